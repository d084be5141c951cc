"""A tool that the client answers: the first run ends with the call pending, the second brings the result.

Needs a server with the agents beside this file (`recto serve --agents examples/agents`): its address in RECTO_URL, a
credential in RECTO_TOKEN. Standard library only.
"""

import json
import os
import uuid
from datetime import datetime
from urllib.request import Request, urlopen

API = f"{os.environ.get('RECTO_URL', 'http://127.0.0.1:8787')}/api/v1/agent"
THREAD = str(uuid.uuid4())
CLOCK = {
    "name": "current_time",
    "description": "The time on the user's own clock.",
    "parameters": {"type": "object", "additionalProperties": False},
}
QUESTION = {"id": "m1", "role": "user", "content": "What time is it?"}


def ask(path: str, body: object = None, accept: str = "application/json") -> str:
    """The body of an answer."""
    headers = {"authorization": f"Bearer {os.environ['RECTO_TOKEN']}", "content-type": "application/json"}
    data = json.dumps(body).encode() if body is not None else None
    with urlopen(Request(f"{API}{path}", data, {**headers, "accept": accept})) as answer:
        return answer.read().decode()


def run(*messages: object) -> list[dict[str, object]]:
    """Start a run and read its events to the end. The same tools go with every run that may need them."""
    body = {"threadId": THREAD, "runId": str(uuid.uuid4()), "messages": messages, "tools": [CLOCK]}
    props = {"protocolVersion": "1.0", "forwardedProps": {"agent": "guest"}}
    lines = ask("/runs", {**body, **props}, "text/event-stream").splitlines()
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


# The first run: the model calls, and the run ends with the call pending.
end = run(QUESTION)[-1]
print("first run:", json.dumps(end["outcome"]))
pending = json.loads(ask(f"/threads/{THREAD}"))["pendingCalls"]

# The client does what it was asked. What goes wrong goes to the model too, as `error` beside `content`.
results: list[object] = []
for call in pending:
    print(f"the model calls {call['name']} with {call['arguments']}")
    said = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M:%S")
    results.append({"id": str(uuid.uuid4()), "role": "tool", "toolCallId": call["id"], "content": said})

# The second run: the same user message goes on with its turn, the results follow it.
for event in run(QUESTION, *results):
    match event:
        case {"type": "TEXT_MESSAGE_CONTENT", "delta": delta}:
            print(delta, end="")
        case {"type": "RUN_FINISHED", "outcome": outcome}:
            print("\nsecond run:", json.dumps(outcome))
        case _:
            pass
