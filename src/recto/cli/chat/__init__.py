"""`recto chat`: an agent in the terminal, as a client of the public API."""
