"""Calls of the model: the page is stored, sent, and the reply streamed into events and entries of the log.

- `call_model`: one call of the model, from the page to the log
- `call_savings`: what folding saved in it
- `reply`: the reply while it comes in
- `side_call`: a call beside the conversation, recorded and paid for like any other
- `write_summary`: a summary in the place of what no longer fits
- `name_thread`: a title for the thread
- `suggest`: what a user could say next, with no run and nothing stored
"""
