"""Documents read in child processes: the parsers, the wire to them, and the pool that keeps them within limits.

- `formats`: ...
- `pool`: ...
- `ports`: what is asked of a parser, what it answers as it goes, and the limits it is held to
- `refusal`: why a document cannot be read, in words that end with what to do
"""
