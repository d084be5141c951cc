"""The state that a thread shares with its clients, beside what is said.

- `json_patch`: places in JSON values, what is changed there, and what differs between two of them
- `thread_state`: what a request and tools change of a thread's state, and what readers hear of it
"""
