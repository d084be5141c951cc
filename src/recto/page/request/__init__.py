"""Requests that other agents wrote (X3): read with where each message stands, changed only where a rule says so.

- `sent_request`: a request as it was sent, its messages as they were written, and what they are as values
- `edit_item`: a message of a request with what was folded or taken out of it
- `rewrite`: the request as it is sent on, and its manifest
"""
