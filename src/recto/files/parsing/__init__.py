"""Document parsing: the parsers, and the pool of processes that limits them."""
