"""A first run, over HTTP like any client's: what `recto serve --hello` shows."""

from __future__ import annotations

import http.client
import sys
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from rich.console import Console

from recto.ids import new_id
from recto.page.canonical import Json, dump, load_object

QUESTION = "What is 12 * 7, and what time is it?"


def say_hello(url: str, token: str | None) -> None:
    """Ask one question and print the answer as it streams."""
    # What a model or a tool writes is shown as it is: brackets are no markup, long lines are not broken.
    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    console.print(f"\nPOST {url}/api/v1/agent/runs  {QUESTION!r}")
    for event in _events(url, token):
        line = _line(event)
        console.print(line, end="" if event.get("type") == "TEXT_MESSAGE_CONTENT" else "\n") if line else None
    console.print()
    sys.stdout.flush()


def _events(url: str, token: str | None) -> Iterator[Mapping[str, Json]]:
    message = {"id": new_id(), "role": "user", "content": QUESTION}
    body = dump({"threadId": new_id(), "runId": new_id(), "messages": [message], "protocolVersion": "1.0"})
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
    headers = {"content-type": "application/json", "accept": "text/event-stream"}
    headers |= {"authorization": f"Bearer {token}"} if token else {}
    connection.request("POST", "/api/v1/agent/runs", body, headers)
    for line in connection.getresponse():
        if line.startswith(b"data: "):
            yield load_object(line[6:]) or {}
    connection.close()


def _line(event: Mapping[str, Json]) -> str:
    match event:
        case {"type": "TOOL_CALL_START", "toolCallName": name}:
            return f"  calls {name}"
        case {"type": "TOOL_CALL_RESULT", "content": content}:
            return f"  answer {content}"
        case {"type": "TEXT_MESSAGE_CONTENT", "delta": delta}:
            return f"{delta}"
        case {"type": "TEXT_MESSAGE_START" | "TEXT_MESSAGE_END"}:
            return " "
        case {"type": "RUN_ERROR", "message": message}:
            return f"The run failed: {message}"
        case {"type": "RUN_FINISHED"}:
            return "The run is finished, and stored."
        case _:
            return ""
