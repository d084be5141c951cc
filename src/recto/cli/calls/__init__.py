"""Model calls in the terminal, read from the data of a server.

- `explain_run`: `recto explain`
- `call_report`: what it shows people of a call
"""
