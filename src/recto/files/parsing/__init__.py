"""Documents read in child processes: the parsers, the wire to them, and the pool that keeps them within limits."""
