"""Requests of other agents (X3): repaired, folded, stored, sent on; the reply passed back as it comes.

- `remembered`: messages this process has read lately, so that a conversation that grows is not read anew
- `relay`: what becomes of a request before it is sent on
- `relayed_exchange`: sending it on, reading along in the reply, and writing down how it went
"""
