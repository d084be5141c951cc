"""Exports of a model call as a curl command or a HAR entry. Neither contains a key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from urllib.parse import parse_qsl, urlsplit

from recto.conversation.json import Json, dump

# Only operators see the provider's URL. Others get this one, which never resolves.
HIDDEN_URL = "https://model.invalid"
END_OF_PAGE = "END_OF_PAGE"
OK = 200
NOT_KEPT = "The reply is in the conversation; its bytes are not kept."


@dataclass(frozen=True, kw_only=True)
class RequestHead:
    """Path, URL and headers of a request. `url` is the part before `path`; None hides it.

    `url_setting` names the environment variable of the URL and `usual_url` its default. `$NAME` in header values is a
    placeholder for a secret.
    """

    path: str
    url: str | None = None
    url_setting: str
    usual_url: str = ""
    headers: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class ExportedCall:
    """A call for export. `body` is None if the sent bytes are lost; `more` holds additional fields."""

    head: RequestHead
    body: bytes | None
    started: datetime
    first_token: datetime | None = None
    ended_at: datetime | None = None
    is_answered: bool = False
    more: Mapping[str, Json] = field(default_factory=dict[str, Json])


def as_curl(head: RequestHead, body: bytes) -> bytes:
    """Return a shell command that sends these exact bytes. Keys are shell variables."""
    variable = f"${{{head.url_setting}:-{head.usual_url}}}" if head.usual_url else f"${head.url_setting}"
    address = _quote(head.url) if head.url is not None else f'"{variable}"'
    headers = [f'  -H "{name}: {value}" \\\n' for name, value in head.headers.items()]
    end = END_OF_PAGE
    while end.encode() in body:
        end += "_"
    # A here-document ends with a line break that the page does not have. `head -c` removes it.
    lines = (
        f"head -c {len(body)} <<'{end}' | curl -sS -N {address}{_quote(head.path)} \\\n",
        *headers,
        "  --data-binary @-\n",
    )
    return "".join(lines).encode() + body + f"\n{end}\n".encode()


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def har_beginning(version: str) -> bytes:
    """Return a HAR file up to its entries, which are separated by commas."""
    creator = dump({"name": "recto", "version": version})
    return b'{"log":{"version":"1.2","creator":' + creator + b',"entries":['


HAR_END = b"]}}"


def har_entry(call: ExportedCall) -> dict[str, Json]:
    """Return a call as an entry of a HAR 1.2 file."""
    text, head = (call.body or b"").decode(errors="replace"), call.head
    wait, receive = _milliseconds(call.started, call.first_token), _milliseconds(call.first_token, call.ended_at)
    data: dict[str, Json] = {"mimeType": "application/json", "text": text}
    if call.body is None:
        data["comment"] = "The page is damaged or gone, so it is not shown."
    nothing: dict[str, Json] = {"httpVersion": "HTTP/1.1", "cookies": [], "headersSize": -1}
    return {
        "startedDateTime": call.started.isoformat(),
        "time": _milliseconds(call.started, call.ended_at),
        "request": {
            **nothing,
            "method": "POST",
            "url": f"{HIDDEN_URL if head.url is None else head.url}{head.path}",
            "headers": [{"name": name, "value": value} for name, value in head.headers.items()],
            "queryString": [{"name": name, "value": value} for name, value in parse_qsl(urlsplit(head.path).query)],
            "postData": data,
            "bodySize": len(call.body) if call.body is not None else -1,
        },
        "response": {
            **nothing,
            "status": OK if call.is_answered else 0,
            "statusText": "",
            "headers": [],
            "content": {"size": 0, "mimeType": "text/event-stream", "comment": NOT_KEPT},
            "redirectURL": "",
            "bodySize": -1,
        },
        "cache": {},
        "timings": {"send": 0, "wait": wait, "receive": receive},
        "_recto": dict(call.more),
    }


def _milliseconds(begin: datetime | None, end: datetime | None) -> float:
    return (end - begin) / timedelta(milliseconds=1) if begin and end else 0.0
