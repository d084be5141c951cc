"""Calls of tools: read from the model's text where need be, checked, run, and their results stored.

- `offered_tools`: the tools of a reply, by whatever a model makes of their names
- `call_marks`: what stands around a call and is no part of it
- `call_values`: names, arguments and values as models write them
- `call_forms`: calls in the forms that models write by habit (P11)
- `made_up`: results that a model wrote itself
- `thought_in_text`: the thought a reply begins with, told apart from its words
- `calls_in_text`: calls a model writes into its words, taken out of them
- `keep_files`: the files of the workspace, kept before a turn changes them
- `run_tools`: the calls of a reply, run and answered
- `shared_state`: the state shared with clients, in the hands of a tool
- `tool_context`: what a tool may know and do of the run it acts for
- `tool_progress`: how far a tool is, for whoever watches
"""
