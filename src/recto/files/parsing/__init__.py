"""Document parsing: the parsers and the pool of child processes that limits them."""
