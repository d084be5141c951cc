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
    "parameters": {"type": "object"},
}
QUESTION = {"id": "m1", "role": "user", "content": "Read my bazi, please."}


def run(*messages: object) -> list[dict[str, str]]:
    """Start a run and read its events to the end."""
    body = {"threadId": THREAD, "runId": str(uuid.uuid4()), "messages": messages, "tools": [FORM]}
    props = {"protocolVersion": "1.0", "forwardedProps": {"agent": "vibe-en"}}
    headers = {"authorization": f"Bearer {os.environ['RECTO_TOKEN']}", "content-type": "application/json"}
    data = json.dumps({**body, **props}).encode()
    with urlopen(Request(f"{API}/runs", data, {**headers, "accept": "text/event-stream"})) as answer:
        lines = answer.read().decode().splitlines()
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


def show(events: list[dict[str, str]]) -> None:
    """Print what people would see: the skill that is on, cards, words."""
    for event in events:
        if event["type"] == "TOOL_CALL_RESULT" and '"skill"' in event["content"]:
            result = json.loads(event["content"])
            print("skill:", result["skill"], result["status"])
        elif event["type"] == "CUSTOM" and event["name"] == "recto.ui":
            card = json.loads(json.dumps(event["value"]))["uiSchema"]["root"]
            print("card:", card["children"][0]["content"])
        elif event["type"] == "TEXT_MESSAGE_CONTENT":
            print(event["delta"], end="")


def waiting() -> list[str]:
    """The ids of the calls that wait for this client."""
    request = Request(f"{API}/threads/{THREAD}", headers={"authorization": f"Bearer {os.environ['RECTO_TOKEN']}"})
    with urlopen(request) as answer:
        return [call["id"] for call in json.loads(answer.read())["pendingCalls"]]


# A page would show a form here; this one is filled already.
filled = json.dumps({"date": "1990-05-15", "time": "14:30", "place": "Beijing", "gender": "male"})
show(run(QUESTION))
calls = waiting()
print(f"the form is asked for {len(calls)} time(s)")
answers = [{"id": str(uuid.uuid4()), "role": "tool", "toolCallId": call, "content": filled} for call in calls]
show(run(QUESTION, *answers))
print()
