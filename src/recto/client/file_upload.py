"""File uploads (P9)."""

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

# A path, or a name with its bytes.
FileToSend: TypeAlias = str | PathLike[str] | tuple[str, bytes]


async def upload_files(exchange: Exchange, files: Sequence[FileToSend], agent: str | None) -> list[Mapping[str, Json]]:
    """Upload files and return their message parts. Raise FileRefused if the server rejects one."""
    boundary = new_id()
    body = b"".join([*[_part(boundary, *_read_file(file)) for file in files], f"--{boundary}--\r\n".encode()])
    query = f"?{urlencode({'agent': agent})}" if agent else ""
    headers = {"content-type": f"multipart/form-data; boundary={boundary}"}
    answer = await exchange.ask(ClientRequest(method="POST", path=UPLOADS + query, body=body, headers=headers))
    rows = [row for _, row in objects(answer.get("attachments"), "attachments")]
    if rejected := [row for row in rows if "url" not in row]:
        why = "; ".join(f"{row.get('name')}: {row.get('error')}" for row in rejected)
        raise FileRefused(why, code=str(rejected[0].get("code")))
    return [{"type": row["type"], "source": {"type": "url", "value": row["url"]}} for row in rows]


def _read_file(file: FileToSend) -> tuple[str, bytes]:
    if isinstance(file, tuple):
        return file
    path = Path(file)
    return path.name, path.read_bytes()


def _part(boundary: str, name: str, data: bytes) -> bytes:
    # Escape quotes and line breaks as browsers do.
    file_name = name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
    head = f'--{boundary}\r\ncontent-disposition: form-data; name="file"; filename="{file_name}"\r\n\r\n'
    return head.encode() + data + b"\r\n"
