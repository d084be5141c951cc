"""How runs reach workers and events reach readers. Refuses to be the truth: a wake-up is a hint, the run row is.

- `ports`: who works on a run, and how a run hears that it is to stop
- `dispatch`: runs claimed, held by a lease, handed back
- `hub`: events published to readers
- `janitor`: cleaning up, again and again, while the server runs
"""
