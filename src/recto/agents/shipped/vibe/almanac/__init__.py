"""Calendar, sky and cards for the `vibe` agent. Pure functions of their arguments."""
