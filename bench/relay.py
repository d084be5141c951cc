"""Between Recto and a model: passes calls on, with a bound on their replies, and keeps the replies as they came."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from http.client import HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TypedDict, cast

# A model on a processor takes its time for a page.
SECONDS = 900.0


class ChoiceRow(TypedDict, total=False):
    """What a chunk of a stream adds."""

    content: str | None
    tool_calls: list[object]


class Choice(TypedDict, total=False):
    """One of the replies in a chunk; there is only one."""

    delta: ChoiceRow
    finish_reason: str | None


class Chunk(TypedDict, total=False):
    """A chunk of a stream, as far as it is read here."""

    choices: list[Choice]


@contextmanager
def relay(url: str, max_tokens: int | None, replies: Path | None) -> Generator[str]:
    """The address to call instead of `url`. Each reply is a line of JSON in `replies`, with the question before it."""

    class Passing(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

        def do_POST(self) -> None:
            body = cast("dict[str, object]", json.loads(self.rfile.read(int(self.headers["content-length"]))))
            bounded = body | ({"max_tokens": max_tokens} if max_tokens else {})
            lines = list[bytes]()
            with _answer(url.rstrip("/") + self.path, bounded) as answer:
                self.send_response(answer.status)
                self.send_header("content-type", answer.headers["content-type"] or "")
                self.end_headers()
                for line in answer:
                    lines.append(line)
                    self.wfile.write(line)
                    self.wfile.flush()
            if replies:
                with replies.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(_row(body, lines), ensure_ascii=False) + "\n")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Passing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def _answer(url: str, body: dict[str, object]) -> HTTPResponse:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    try:
        response = urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=SECONDS)
    except urllib.error.HTTPError as refusal:
        response = refusal
    return cast("HTTPResponse", response)


def _row(body: dict[str, object], lines: list[bytes]) -> dict[str, object]:
    chunks = [cast("Chunk", json.loads(line[6:])) for line in lines if line.startswith(b"data: {")]
    choices = [choice for chunk in chunks for choice in chunk.get("choices", [])]
    return {
        "messages": body.get("messages"),
        "tools": [tool["function"]["name"] for tool in cast("list[dict[str, dict[str, str]]]", body.get("tools", []))],
        "finish": next((reason for choice in choices if (reason := choice.get("finish_reason"))), None),
        "reply": "".join(choice.get("delta", {}).get("content") or "" for choice in choices),
        "native": [call for choice in choices for call in choice.get("delta", {}).get("tool_calls") or []],
    }
