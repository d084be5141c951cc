"""A skill that asks with a form: this client answers `collect_birth_info` in the place of the agent's own tool.

Needs a server (`recto serve`), found as in 04.
"""

import json

from recto.client import Client


def collect_birth_info() -> dict[str, str]:
    """Show a form for date, time and place of birth. What it answers is what the agent's tool of that name takes."""
    print("the form is asked for")
    # A page would show a form here; this one is filled already.
    return {"date": "1990-05-15", "time": "14:30", "place": "Beijing", "gender": "male"}


turn = Client(agent="vibe-en", tools=[collect_birth_info]).chat("Read my bazi, please.")
for event in turn.events():
    match event:
        case {"type": "TOOL_CALL_RESULT", "content": str(content)} if '"skill"' in content:
            result = json.loads(content)
            print("skill:", result["skill"], result["status"])
        case {
            "type": "CUSTOM",
            "name": "recto.ui",
            "value": {"uiSchema": {"root": {"children": [{"content": title}, *_]}}},
        }:
            print("card:", title)
        case _:
            pass
print(turn.text)
