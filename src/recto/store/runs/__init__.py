"""Runs in the database, in the order of a run's life.

- `admission`: what stands in the way of a new run
- `resuming`: whether what a run answers still waits
- `run_queue`: runs admitted, claimed under a lease, handed back, cancelled
- `queued`: user messages of runs that have not begun
- `record`: what a worker writes, under its fence
- `relayed`: requests of other agents, each a run of one call that nobody here works on
- `relayed_records`: the same, as the store has it
- `event_batch`: events of many runs, written as one
- `calls`: model calls as they were sent
- `so_far`: a run with its events and its log as of one moment
- `spending`: what calls took, by user and day
- `daily_savings`: what folding saved in them, and why prefixes broke
"""
