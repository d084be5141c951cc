"""Upload files and ask the `docs` agent about them, in two turns: it knows them in the second by the same ids.

Needs a server (`recto serve`): its address in RECTO_URL, a credential in RECTO_TOKEN. Standard library only.
Usage: python 07_files.py FILE...
"""

import http.client
import json
import os
import sys
import uuid
from pathlib import Path
from urllib.parse import urlsplit

SERVER = urlsplit(os.environ.get("RECTO_URL", "http://127.0.0.1:8787"))
UPLOADS, RUNS = "/api/v1/agent/attachments", "/api/v1/agent/runs"


def post(path: str, body: bytes, content_type: str) -> http.client.HTTPResponse:
    """An answer, its body not read yet. A refusal ends the program with its words."""
    connection = http.client.HTTPConnection(SERVER.hostname or "", SERVER.port, timeout=60)
    headers = {"authorization": f"Bearer {os.environ['RECTO_TOKEN']}", "content-type": content_type}
    connection.request("POST", path, body, headers | {"accept": "text/event-stream"})
    answer = connection.getresponse()
    if answer.status >= 400:
        sys.exit(f"{answer.status}: {json.loads(answer.read())['detail']}")
    return answer


def upload(files: list[Path]) -> list[dict[str, str]]:
    """The files the server took, each with its signed url. What it refused is told."""
    boundary = uuid.uuid4().hex
    parts = [
        f'--{boundary}\r\ncontent-disposition: form-data; name="file"; filename="{file.name}"\r\n\r\n'.encode()
        + file.read_bytes()
        for file in files
    ]
    body = b"\r\n".join([*parts, f"--{boundary}--\r\n".encode()])
    taken = json.loads(post(f"{UPLOADS}?agent=docs", body, f"multipart/form-data; boundary={boundary}").read())
    for one in taken["attachments"]:
        print(f"{one['name']}: {one.get('error') or one['type'] + ', ' + one['mimeType']}")
    return [one for one in taken["attachments"] if "url" in one]


def ask(thread: str, words: str, files: list[dict[str, str]]) -> None:
    """One turn, printed as it comes. A run that fails ends the program with its words."""
    shown = [{"type": one["type"], "source": {"type": "url", "value": one["url"]}} for one in files]
    message = {"id": str(uuid.uuid4()), "role": "user", "content": [{"type": "text", "text": words}, *shown]}
    body = {"threadId": thread, "runId": str(uuid.uuid4()), "messages": [message], "forwardedProps": {"agent": "docs"}}
    print(f"\n> {words}")
    for line in post(RUNS, json.dumps(body).encode(), "application/json"):
        if not line.startswith(b"data: "):
            continue
        event = json.loads(line.removeprefix(b"data: "))
        if event["type"] == "TOOL_CALL_START":
            print(f"  calls {event['toolCallName']}")
        elif event["type"] == "TEXT_MESSAGE_CONTENT":
            print(event["delta"], end="")
        elif event["type"] == "RUN_FINISHED":
            print("\nThe run is finished, and stored.")
        elif event["type"] == "RUN_ERROR":
            sys.exit(f"\nThe run failed: {event['message']}")


if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.exit("Usage: python 07_files.py FILE...")
    conversation = str(uuid.uuid4())
    ask(conversation, "What is in these files?", upload([Path(name) for name in sys.argv[1:]]))
    ask(conversation, "Read the files once more.", [])
