"""Model providers: protocols, endpoints, authentication. The only package that talks to them."""
