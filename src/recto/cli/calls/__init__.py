"""Model calls in the terminal, read from the data of a server.

- `explain_run`: `recto explain`
- `try_agent`: `recto agents try`
- `call_report`: what it shows people of a call
"""
