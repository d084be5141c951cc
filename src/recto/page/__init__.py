"""Page assembly: facts in, page and manifest out. Pure: no I/O, clock, randomness or async."""
