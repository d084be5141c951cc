"""How runs reach workers and events reach readers. Refuses to be the truth: a wake-up is a hint, the run row is.

- `dispatch`: how runs reach workers in one process
- `hub`: how events reach readers, in one process
- `janitor`: cleaning up, again and again, while the server runs
- `ports`: what the engine is to the rest
"""
