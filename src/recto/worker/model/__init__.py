"""The model of worker.

- `call_model`: one call of the model
- `name_thread`: A thread named by the model, where its agent says so
- `reply`: A reply of the model while it comes in
- `side_call`: A model call beside the conversation
- `write_summary`: compaction at work (R13)
"""
