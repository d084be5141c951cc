"""Model providers: protocols, endpoints and authentication. No other package connects to them."""
