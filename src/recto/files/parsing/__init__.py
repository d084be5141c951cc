"""Documents read in child processes: the parsers, and the pool that holds them to limits.

- `ports`: what a parser is asked, what it answers as it goes, and its limits
- `refusal`: why a document cannot be read
- `formats`: the parsers
- `pool`: the child processes
"""
