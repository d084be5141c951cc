"""A model call in forms that other programs take: a curl command, an entry of a HAR file. Neither holds a key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from urllib.parse import parse_qsl, urlsplit

from recto.conversation.json import Json, dump

# Where a call went is for operators: to others, the address is this, which no name server will ever know.
UNTOLD = "https://model.invalid"
END_OF_PAGE = "END_OF_PAGE"
OK = 200
NOT_KEPT = "The reply is in the conversation; its bytes are not kept."


@dataclass(frozen=True, kw_only=True)
class RequestHead:
    """What stands around a page when it is sent. `url` is the address before `path`; None: it is not to be told.

    `url_setting` names the variable it is in, `usual_url` is what it is without. In the values of `headers`, `$NAME`
    stands for a secret of that name.
    """

    path: str
    url: str | None = None
    url_setting: str
    usual_url: str = ""
    headers: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class MadeCall:
    """A call as it was made. `body` is None where it is no longer what was sent; `more` is told beside the rest."""

    head: RequestHead
    body: bytes | None
    started: datetime
    first_token: datetime | None = None
    ended: datetime | None = None
    is_answered: bool = False
    more: Mapping[str, Json] = field(default_factory=dict[str, Json])


def as_curl(head: RequestHead, body: bytes) -> bytes:
    """A command for a shell that sends these very bytes. Keys are its variables."""
    address = _quoted(head.url) if head.url is not None else f'"{_variable(head)}"'
    headers = [f'  -H "{name}: {value}" \\\n' for name, value in head.headers.items()]
    end = END_OF_PAGE
    while end.encode() in body:
        end += "_"
    # A here-document ends with a line break, which the page has not: so its bytes are counted.
    lines = (
        f"head -c {len(body)} <<'{end}' | curl -sS -N {address}{_quoted(head.path)} \\\n",
        *headers,
        "  --data-binary @-\n",
    )
    return "".join(lines).encode() + body + f"\n{end}\n".encode()


def _variable(head: RequestHead) -> str:
    return f"${{{head.url_setting}:-{head.usual_url}}}" if head.usual_url else f"${head.url_setting}"


def _quoted(text: str) -> str:
    inner = text.replace("'", "'\\''")
    return f"'{inner}'"


def har_beginning(version: str) -> bytes:
    """A HAR file up to its entries, which are divided by commas."""
    creator = dump({"name": "recto", "version": version})
    return b'{"log":{"version":"1.2","creator":' + creator + b',"entries":['


HAR_END = b"]}}"


def har_entry(call: MadeCall) -> dict[str, Json]:
    """A call as an entry of a HAR file (1.2)."""
    text, head = (call.body or b"").decode(errors="replace"), call.head
    wait, receive = _milliseconds(call.started, call.first_token), _milliseconds(call.first_token, call.ended)
    data: dict[str, Json] = {"mimeType": "application/json", "text": text}
    if call.body is None:
        data["comment"] = "The page is damaged or gone, so it is not shown."
    nothing: dict[str, Json] = {"httpVersion": "HTTP/1.1", "cookies": [], "headersSize": -1}
    return {
        "startedDateTime": call.started.isoformat(),
        "time": _milliseconds(call.started, call.ended),
        "request": {
            **nothing,
            "method": "POST",
            "url": f"{UNTOLD if head.url is None else head.url}{head.path}",
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
