"""A tool of the client: the model calls a function of this program.

Needs a server with the agents beside this file (`recto serve --agents examples/agents`), found as in 04.
"""

from datetime import datetime

from recto.client import Client


def current_time(form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """The time on the user's own clock.

    Args:
        form: How to write it, as strftime has it.
    """
    print("the model calls current_time")
    return datetime.now().astimezone().strftime(form)


# The run ends with the call pending; the next one brings what the function returned. Both are one turn.
turn = Client(agent="guest", tools=[current_time]).chat("What time is it?")
print(turn.answer())
print(turn.outcome)
