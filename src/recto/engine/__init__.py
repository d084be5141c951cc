"""How runs reach workers and events reach readers. Refuses to be the truth: a wake-up is a hint, the run row is."""
