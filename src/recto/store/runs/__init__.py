"""The runs of store.

- `admission`: SQL of what stands in the way of a new run (P6)
- `calls`: SQL of model calls (X1)
- `event_batch`: what many runs say at the same time, written as one
- `queued`: SQL of what waits
- `record`: SQL of a run's progress
- `run_queue`: SQL of runs
- `spending`: SQL of spending
"""
