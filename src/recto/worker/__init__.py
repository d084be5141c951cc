"""The only room that loops: claim a run, call the model, run its tools. Refuses to know SQL, HTTP or a vendor.

- `account`: what a run has used
- `context`: ...
- `finish`: how a run ends
- `load_run`: A client that answers in the place of a tool
- `log_cache`: logs this process has read lately
- `loop`: the loop
- `model`: ...
- `recorder`: what a run says, on its way to its readers
- `run_state`: how the model is asked in one call of a turn
- `runtime`: what all runs of a process work with
- `tools`: ...
"""
