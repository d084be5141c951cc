"""Uploads to a real server (P9): harmful names, far too much, and a server that stops or dies."""

import socket
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import pytest

from recto.api.files.attachments import ATTACHMENTS
from recto.conversation.json import Json
from recto.files.storage.blobs import LABEL
from recto.testing.process import ServerProcess
from tests.api.forms import BOUNDARY, FORM, begin_form, file, form_of
from tests.api.wrong_inputs import answer_of, connect
from tests.support.client import TOKEN, HttpReply, request
from tests.waiting import wait_for

pytestmark = pytest.mark.full

MEBIBYTE = 2**20
# What the system may hold of a connection: the faster it is read, the more, up to `tcp_rmem` and `tcp_wmem`.
UNDER_WAY = 40 * MEBIBYTE
SECONDS = 60.0
HOSTILE = {
    "</name><id>x</id>.pdf": "id>.pdf",
    "../../x": "x",
    "gpj.\u202etxt": "gpj.txt",
    "nul\0byte.txt": "nul byte.txt",
    "CON.txt": "_CON.txt",
    "party 🎉👩\u200d👩\u200d👧.txt": "party 🎉👩\u200d👩\u200d👧.txt",
    'quote".txt': 'quote".txt',
    "line%0d%0aSet-Cookie: a=b.txt": "line%0d%0aSet-Cookie: a=b.txt",
    "": "file",
    "🎉" * 10_000: "🎉" * 200,
}


@dataclass(frozen=True, kw_only=True)
class Uploading:
    """A server and its data folder."""

    server: ServerProcess
    data: Path

    @property
    def url(self) -> str:
        return self.server.url

    def upload(self, body: bytes) -> HttpReply:
        return request(self.url, "POST", ATTACHMENTS, body, content_type=FORM)

    def rows(self) -> list[Mapping[str, Json]]:
        return entries(request(self.url, "GET", f"{ATTACHMENTS}?limit=100"))

    def objects(self) -> list[Path]:
        """All files there are in the storage, whole or not, but its label."""
        return [path for path in (self.data / "files").rglob("*") if path.is_file() and path.name != LABEL]

    def memory(self) -> int:
        """The most memory it ever had, in bytes."""
        lines = Path(f"/proc/{self.server.pid}/status").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) * 1_024 for line in lines if line.startswith("VmHWM:"))


@contextmanager
def uploading(data: Path, **settings: str) -> Generator[Uploading]:
    with ServerProcess.serve(data, {"RECTO_MODEL": "demo", "RECTO_AGENT": "chat", **settings}) as server:
        yield Uploading(server=server, data=data)


def entries(reply: HttpReply) -> list[Mapping[str, Json]]:
    assert reply.status == 200, reply.body
    return cast("list[Mapping[str, Json]]", reply.json["attachments"])


def text_of(size: int) -> Iterator[bytes]:
    """A form with one long text, from the same bytes in memory again and again."""
    yield begin_form(file("long.txt", b""))
    piece = b"All work and no play. \n" * 40_000
    for _ in range(size // len(piece)):
        yield piece
    yield f"\r\n--{BOUNDARY}--\r\n".encode()


def pour(url: str, pieces: Iterable[bytes]) -> tuple[HttpReply, int]:
    """Send a form without its length, for as long as the server takes it: the answer, and how much went out."""
    connection, poured = connect(url), 0
    connection.putrequest("POST", ATTACHMENTS)
    fields = {"content-type": FORM, "transfer-encoding": "chunked", "authorization": f"Bearer {TOKEN}"}
    for name, value in fields.items():
        connection.putheader(name, value)
    connection.endheaders()
    with suppress(BrokenPipeError, ConnectionResetError):
        for piece in pieces:
            connection.send(b"%x\r\n%b\r\n" % (len(piece), piece))
            poured += len(piece)
        connection.send(b"0\r\n\r\n")
    return answer_of(connection), poured


def begin(url: str, body: bytes, length: int) -> socket.socket:
    """Send the beginning of a form, and stay."""
    address = urlsplit(url)
    connection = socket.create_connection((address.hostname, address.port), timeout=SECONDS)
    head = f"POST {ATTACHMENTS} HTTP/1.1\r\nHost: {address.netloc}\r\nAuthorization: Bearer {TOKEN}\r\n"
    connection.sendall(f"{head}Content-Type: {FORM}\r\nContent-Length: {length}\r\n\r\n".encode() + body)
    return connection


def test_P9_whatever_a_file_is_called_it_is_stored_listed_and_served_safely(tmp_path: Path):
    with uploading(tmp_path) as here:
        for number, (name, is_kept) in enumerate(HOSTILE.items()):
            body = b"words of number %d" % number
            pdf = b"%PDF-1.7\n" if name.endswith("pdf") else b""
            (entry,) = entries(here.upload(form_of(file(name, pdf + body))))
            assert entry.get("name") == is_kept, entry
            url = str(entry["url"])
            assert url.startswith(here.url)
            served = request(here.url, "GET", url.removeprefix(here.url), token=None)
            assert (served.status, served.body) == (200, pdf + body)
            assert "set-cookie" not in served.headers
            assert served.headers["content-disposition"].partition(";")[0] in {"inline", "attachment"}
            assert served.headers["x-content-type-options"] == "nosniff"
        assert [row["name"] for row in here.rows()] == list(HOSTILE.values())[::-1]
        # Nothing of a name is a name in the storage.
        assert {len(path.name) for path in here.objects()} == {36}
        assert "Traceback" not in here.server.output


def test_P9_large_files_take_no_memory_and_one_far_too_large_is_stopped_early(tmp_path: Path):
    limit, most = 64 * MEBIBYTE, b"".join(text_of(60 * MEBIBYTE))
    with uploading(tmp_path, RECTO_UPLOAD_BYTES=str(limit)) as here:
        assert here.upload(form_of(file("first.txt", b"words" * MEBIBYTE))).status == 200
        before = here.memory()
        (entry,) = entries(here.upload(most))
        assert entry["size"] == len(most) - len(b"".join(text_of(0)))
        reply, poured = pour(here.url, text_of(2 * limit))
        (entry,) = entries(reply)
        assert (entry["code"], reply.headers["connection"]) == ("too_large", "close")
        # What is under way in the network is not counted by the server.
        assert poured < limit + 16 * MEBIBYTE + UNDER_WAY
        assert here.memory() - before < 48 * MEBIBYTE
        assert [row["name"] for row in here.rows()] == ["long.txt", "first.txt"]
        assert len(here.objects()) == 2


def test_X4_a_server_killed_during_an_upload_has_neither_row_nor_object_of_it(tmp_path: Path):
    whole = b"".join(text_of(20 * MEBIBYTE))
    with uploading(tmp_path) as here:
        connection = begin(here.url, whole[: len(whole) // 2], len(whole))
        wait_for(here.objects)
        here.server.kill()
        connection.close()
        assert len(here.objects()) == 1
    with uploading(tmp_path) as here:
        assert (here.rows(), here.objects()) == ([], [])
        assert entries(here.upload(whole))[0]["name"] == "long.txt"
        assert len(here.objects()) == 1


def test_X4_a_server_that_is_stopped_during_an_upload_ends_it_quietly(tmp_path: Path):
    whole = form_of(file("one.txt", b"one"), file("two.txt", b"two" * MEBIBYTE))
    with uploading(tmp_path) as here:
        connection = begin(here.url, whole[:-1_000], len(whole))
        wait_for(here.rows)
        assert here.server.stop() == 0
        assert "Traceback" not in here.server.output
        assert " ERROR " not in here.server.output
        with suppress(ConnectionResetError):
            assert connection.recv(20) in {b"", b"HTTP/1.1 503 Service"}
        connection.close()
        assert here.objects() == []
    with uploading(tmp_path) as here:
        assert here.rows() == []
