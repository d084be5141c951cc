"""A first run, over HTTP like any client's: what `recto serve --hello` shows."""

from __future__ import annotations

import http.client
import sys
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from recto.conversation.json import Json, dump, load_object
from recto.ids import new_id

QUESTION = "What is 12 * 7, and what time is it?"
# What the shipped agent is for: it takes up a skill, and goes on as its expert.
OF_VIBE = "Read my bazi: I was born on 1990-05-15 at 14:30 in Beijing, male."
VIBE, IN_ENGLISH = "vibe", "vibe-en"
SHOWN, OK = 100, 200


def say_hello(url: str, token: str | None, agent: str) -> None:
    """Ask one question and print the answer as it streams."""
    from rich.console import Console  # here: only who is greeted waits for it

    # What a model or a tool writes is shown as it is: brackets are no markup, long lines are not broken.
    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    question, asked = (OF_VIBE, IN_ENGLISH) if agent == VIBE else (QUESTION, agent)
    console.print(f"\nPOST {url}/api/v1/agent/runs  {question!r}")
    for event in _events(url, token, question, asked):
        line = _line(event)
        console.print(line, end="" if event.get("type") == "TEXT_MESSAGE_CONTENT" else "\n") if line else None
    console.print()
    sys.stdout.flush()


def _events(url: str, token: str | None, question: str, agent: str) -> Iterator[Mapping[str, Json]]:
    message = {"id": new_id(), "role": "user", "content": question}
    ids = {"threadId": new_id(), "runId": new_id(), "protocolVersion": "1.0"}
    body = dump({**ids, "messages": [message], "forwardedProps": {"agent": agent}})
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
    headers = {"content-type": "application/json", "accept": "text/event-stream"}
    headers |= {"authorization": f"Bearer {token}"} if token else {}
    connection.request("POST", "/api/v1/agent/runs", body, headers)
    answer = connection.getresponse()
    if answer.status != OK:
        detail = (load_object(answer.read()) or {}).get("detail", answer.reason)
        yield {"type": "RUN_ERROR", "message": detail}
    for line in answer:
        if line.startswith(b"data: "):
            yield load_object(line[6:]) or {}
    connection.close()


def _line(event: Mapping[str, Json]) -> str:
    match event:
        case {"type": "TOOL_CALL_START", "toolCallName": name}:
            return f"  calls {name}"
        case {"type": "TOOL_CALL_RESULT", "content": content}:
            return f"  answer {_short(str(content))}"
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


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]} ..."
