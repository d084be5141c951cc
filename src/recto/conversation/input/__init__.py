"""What clients send to have a run made, from its JSON to the entries of the log.

- `agui`: AG-UI messages, both ways
- `run_options`: options of a run (P1)
- `run_input`: AG-UI's RunAgentInput as values, as it is sent and as it is stored
- `input_rules`: the rules a run's input must keep (P2)
- `suggestion_input`: a wish for what a user could say next
- `take_input`: what of a run's input is added to the log (P3)
- `client_list`: a client's whole list of messages, and what it means for the log (P15)
"""
