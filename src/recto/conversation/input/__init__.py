"""The input of conversation.

- `agui`: AG-UI messages, both ways
- `input_rules`: rules a run's input must keep (P2), each asked of all of it before the next
- `run_input`: AG-UI's RunAgentInput
- `take_input`: what of a run's input enters the log
"""
