"""Files on their way to the server (P9): the form they are sent in, and the parts of a message that name them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlencode

from recto.client.exchange import UPLOADS, Exchange
from recto.client.transports import ClientRequest
from recto.conversation.json import Json, objects
from recto.errors import FileRefused
from recto.ids import new_id

# A file by its path; or bytes, under a name.
FileToSend: TypeAlias = str | PathLike[str] | tuple[str, bytes]


async def send_files(exchange: Exchange, files: Sequence[FileToSend], agent: str | None) -> list[Mapping[str, Json]]:
    """Store files on the server; the parts that name them in a message. One that is not taken raises FileRefused."""
    boundary = new_id()
    body = b"".join([*[_part(boundary, *_named(file)) for file in files], f"--{boundary}--\r\n".encode()])
    query = f"?{urlencode({'agent': agent})}" if agent else ""
    headers = {"content-type": f"multipart/form-data; boundary={boundary}"}
    sent = await exchange.ask(ClientRequest(method="POST", path=UPLOADS + query, body=body, headers=headers))
    found = [row for _, row in objects(sent.get("attachments"), "attachments")]
    if refused := [row for row in found if "url" not in row]:
        why = "; ".join(f"{row.get('name')}: {row.get('error')}" for row in refused)
        raise FileRefused(why, code=str(refused[0].get("code")))
    return [{"type": row["type"], "source": {"type": "url", "value": row["url"]}} for row in found]


def _named(file: FileToSend) -> tuple[str, bytes]:
    if isinstance(file, tuple):
        return file
    path = Path(file)
    return path.name, path.read_bytes()


def _part(boundary: str, name: str, data: bytes) -> bytes:
    # As browsers write names: what would end the name or the line is escaped.
    quoted = name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
    head = f'--{boundary}\r\ncontent-disposition: form-data; name="file"; filename="{quoted}"\r\n\r\n'
    return head.encode() + data + b"\r\n"
