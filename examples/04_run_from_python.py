"""Start a run, follow its events to the end, however often the connection is lost, and print what it used.

Needs a server (`recto serve`): its address in RECTO_URL, a credential in RECTO_TOKEN. Standard library only.
"""

import http.client
import json
import os
import sys
import time
import uuid
from collections.abc import Iterator
from urllib.parse import urlsplit

SERVER = urlsplit(os.environ.get("RECTO_URL", "http://127.0.0.1:8787"))
RUNS = "/api/v1/agent/runs"
ENDS = ("RUN_FINISHED", "RUN_ERROR")
LOST = (OSError, http.client.HTTPException)
# More than the server is ever silent: after that the connection is taken for lost.
SILENCE, PAUSE, TRIES = 60.0, 0.2, 20


def request(method: str, path: str, body: object = None, **headers: str) -> http.client.HTTPResponse:
    """An answer, its body not read yet. A refusal ends the program with its words."""
    connection = http.client.HTTPConnection(SERVER.hostname or "", SERVER.port, timeout=SILENCE)
    fields = {"authorization": f"Bearer {os.environ['RECTO_TOKEN']}", "content-type": "application/json"} | headers
    connection.request(method, path, json.dumps(body) if body is not None else None, fields)
    answer = connection.getresponse()
    if answer.status >= 400:
        sys.exit(f"{answer.status}: {json.loads(answer.read())['detail']}")
    return answer


def start(words: str) -> str:
    """Start a run in a new thread. Sent twice it is still one run, so a lost answer is no reason not to ask again."""
    message = {"id": str(uuid.uuid4()), "role": "user", "content": words}
    ids = {"threadId": str(uuid.uuid4()), "runId": str(uuid.uuid4()), "protocolVersion": "1.0"}
    body = {**ids, "messages": [message], "forwardedProps": {"agent": "chat"}}
    for _ in range(TRIES):
        try:
            return json.loads(request("POST", RUNS, body).read())["runId"]
        except LOST:
            time.sleep(PAUSE)
    sys.exit("The server cannot be reached.")


def follow(run: str) -> Iterator[dict[str, object]]:
    """Each event of a run once, in order, until its last."""
    number = tries = 0
    while tries < TRIES:
        try:
            stream = request("GET", f"{RUNS}/{run}/events", **({"last-event-id": str(number)} if number else {}))
            for latest, event in events(stream):
                number, tries = latest, 0
                yield event
                if event["type"] in ENDS:
                    return
        except LOST:
            pass
        # Broken off or ended early: events behind the last whole one come again.
        print(f"(lost the connection after event {number}, going on)", file=sys.stderr)
        tries += 1
        time.sleep(PAUSE)
    sys.exit("The server cannot be reached.")


def events(stream: http.client.HTTPResponse) -> Iterator[tuple[int, dict[str, object]]]:
    """Numbers and events of a stream. One without its blank line did not come whole; comments are heartbeats."""
    number, data = 0, ""
    for line in stream:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name == "id":
            number = int(value)
        elif name == "data":
            data = value
        elif not name and data:
            yield number, json.loads(data)
            data = ""


run = start("What is 12 * 7, and what time is it?")
for event in follow(run):
    match event:
        case {"type": "TOOL_CALL_START", "toolCallName": name}:
            print(f"calls {name}")
        case {"type": "TOOL_CALL_RESULT", "content": content}:
            print(f"gets {content}")
        case {"type": "TEXT_MESSAGE_CONTENT", "delta": delta}:
            print(delta, end="", flush=True)
        case {"type": "CUSTOM", "name": "recto.discarded"}:
            print("\n(what was said last does not count; it is said again)")
        case {"type": "RUN_ERROR", "message": message}:
            print(f"failed: {message}")
        case _:
            pass
found = json.loads(request("GET", f"{RUNS}/{run}").read())
print(f"\n{found['status']}: {found['usage']['totalTokens']} tokens in {found['calls']} model calls")
