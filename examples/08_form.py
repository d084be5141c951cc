"""A skill that asks with a form: this client answers `collect_birth_info` in the place of the agent's own tool.

Needs a server: its address in RECTO_URL, a credential in RECTO_TOKEN. Standard library only.
"""

import json
import os
import uuid
from urllib.request import Request, urlopen

API = f"{os.environ.get('RECTO_URL', 'http://127.0.0.1:8787')}/api/v1/agent"
THREAD = str(uuid.uuid4())
# Its own parameters do not matter: what it answers is what the agent's tool of that name takes.
FORM = {
    "name": "collect_birth_info",
    "description": "Shows a form for date, time and place of birth.",
    "parameters": {"type": "object", "properties": {}},
}
QUESTION = {"id": "m1", "role": "user", "content": "Read my bazi, please."}


def run(*messages: object) -> list[dict[str, object]]:
    """Start a run and read its events to the end."""
    body = {"threadId": THREAD, "runId": str(uuid.uuid4()), "messages": messages, "tools": [FORM]}
    props = {"protocolVersion": "1.0", "forwardedProps": {"agent": "vibe-en"}}
    headers = {"authorization": f"Bearer {os.environ['RECTO_TOKEN']}", "content-type": "application/json"}
    data = json.dumps({**body, **props}).encode()
    with urlopen(Request(f"{API}/runs", data, {**headers, "accept": "text/event-stream"})) as answer:
        lines = answer.read().decode().splitlines()
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


def show(events: list[dict[str, object]]) -> list[str]:
    """Print what people would see. Returns the calls that wait for an answer."""
    pending: list[str] = []
    for event in events:
        match event:
            case {"type": "TOOL_CALL_RESULT", "content": str(content)} if '"skill"' in content:
                print("skill:", json.loads(content)["skill"], json.loads(content)["status"])
            case {"type": "CUSTOM", "name": "recto.ui", "value": {"uiSchema": {"root": {"children": [title, *_]}}}}:
                print("card:", title["content"])
            case {"type": "TEXT_MESSAGE_CONTENT", "delta": delta}:
                print(delta, end="")
            case {"type": "RUN_FINISHED", "outcome": {"pendingToolCallIds": [*calls]}}:
                pending += calls
            case _:
                pass
    return pending


# A page would show a form here; this one is filled already.
filled = json.dumps({"date": "1990-05-15", "time": "14:30", "place": "Beijing", "gender": "male"})
waiting = show(run(QUESTION))
print(f"the form is asked for {len(waiting)} time(s)")
answers = [{"id": str(uuid.uuid4()), "role": "tool", "toolCallId": call, "content": filled} for call in waiting]
show(run(QUESTION, *answers))
print()
