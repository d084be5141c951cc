"""Uploads to a real server (P9): harmful names, many at once, far too much, cut off, and a server that dies."""

import random
import socket
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import pytest

from recto.api.files.attachments import ATTACHMENTS
from recto.conversation.json import Json
from recto.files.storage.blobs import LABEL
from recto.testing.client import TOKEN, HttpReply, request
from recto.testing.process import ServerProcess
from tests.api.forms import BOUNDARY, FORM, Field, begun, file, form_of
from tests.api.wrong_inputs import answer_of, connect

pytestmark = pytest.mark.full

MEBIBYTE = 2**20
GIBIBYTE = 2**30
# What the system may hold of a connection: the faster it is read, the more, up to `tcp_rmem` and `tcp_wmem`.
UNDER_WAY = 40 * MEBIBYTE
SECONDS = 60.0
HOSTILE = {
    "</name><id>x</id>.pdf": "id>.pdf",
    "../../x": "x",
    "..\\..\\boot.ini": "boot.ini",
    "/etc/passwd": "passwd",
    "gpj.\u202etxt": "gpj.txt",
    "nul\0byte.txt": "nul byte.txt",
    "CON.txt": "_CON.txt",
    "aux": "_aux",
    "party 🎉👩\u200d👩\u200d👧.txt": "party 🎉👩\u200d👩\u200d👧.txt",
    'quote".txt': 'quote".txt',
    "semi;colon=1.txt": "semi;colon=1.txt",
    "line%0d%0aSet-Cookie: a=b.txt": "line%0d%0aSet-Cookie: a=b.txt",
    "percent%2e%2e%2f.txt": "percent%2e%2e%2f.txt",
    "报告.txt": "报告.txt",
    "  . ": "file",
    "": "file",
    "n" * 10_000 + ".txt": "n" * 196 + ".txt",
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

    def upload(self, body: bytes, **headers: str) -> HttpReply:
        return request(self.url, "POST", ATTACHMENTS, body, content_type=FORM, **headers)

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
    yield begun(file("long.txt", b""))
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
    made = socket.create_connection((address.hostname, address.port), timeout=SECONDS)
    head = f"POST {ATTACHMENTS} HTTP/1.1\r\nHost: {address.netloc}\r\nAuthorization: Bearer {TOKEN}\r\n"
    made.sendall(f"{head}Content-Type: {FORM}\r\nContent-Length: {length}\r\n\r\n".encode() + body)
    return made


def wait_until(is_so: Callable[[], bool]) -> None:
    """Ask until it is so."""
    until = time.monotonic() + SECONDS
    while not is_so() and time.monotonic() < until:
        time.sleep(0.02)
    assert is_so()


def test_P9_whatever_a_file_is_called_it_is_stored_listed_and_served_safely(tmp_path: Path):
    with uploading(tmp_path) as here:
        for number, (name, kept) in enumerate(HOSTILE.items()):
            body = b"words of number %d" % number
            pdf = b"%PDF-1.7\n" if name.endswith("pdf") else b""
            (entry,) = entries(here.upload(form_of(file(name, pdf + body))))
            assert entry.get("name") == kept, entry
            served = fetch(here, entry)
            assert (served.status, served.body) == (200, pdf + body)
            assert "set-cookie" not in served.headers
            assert served.headers["content-disposition"].partition(";")[0] in {"inline", "attachment"}
            assert served.headers["x-content-type-options"] == "nosniff"
        assert [row["name"] for row in here.rows()] == list(HOSTILE.values())[::-1]
        # Nothing of a name is a name in the storage.
        assert {len(path.name) for path in here.objects()} == {36}
        assert "Traceback" not in here.server.output


def fetch(here: Uploading, entry: Mapping[str, Json], **headers: str) -> HttpReply:
    """Read a file by its signed url, as nobody."""
    url = str(entry["url"])
    assert url.startswith(here.url)
    return request(here.url, "GET", url.removeprefix(here.url), token=None, **headers)


def asks_until(here: Uploading, whole: bytes, status: int) -> HttpReply:
    until = time.monotonic() + SECONDS
    while (reply := here.upload(whole)).status != status and time.monotonic() < until:
        time.sleep(0.02)
    assert reply.status == status
    return reply


@pytest.mark.parametrize(("limit", "size"), [(64 * MEBIBYTE, 128 * MEBIBYTE), (GIBIBYTE, 2 * GIBIBYTE)])
def test_P9_far_too_much_is_stopped_early_and_takes_no_memory(tmp_path: Path, limit: int, size: int):
    with uploading(tmp_path, RECTO_UPLOAD_BYTES=str(limit)) as here:
        assert here.upload(form_of(file("first.txt", b"words" * MEBIBYTE))).status == 200
        before = here.memory()
        reply, poured = pour(here.url, text_of(size))
        (entry,) = entries(reply)
        assert (entry["code"], reply.headers["connection"]) == ("too_large", "close")
        # What is under way in the network is not counted by the server.
        assert poured < limit + 16 * MEBIBYTE + UNDER_WAY
        assert here.memory() - before < 48 * MEBIBYTE
        assert [row["name"] for row in here.rows()] == ["first.txt"]
        assert len(here.objects()) == 1


@pytest.mark.parametrize(
    ("first", "more"),
    [
        (b"", b"\n" * MEBIBYTE),
        (begun(file("a.txt", b"words")), b"\r\n" + begun(file("more.txt", b"x" * 10 * MEBIBYTE))),
    ],
)
def test_P9_a_form_without_end_is_stopped_and_leaves_nothing(tmp_path: Path, first: bytes, more: bytes):
    with uploading(tmp_path, RECTO_UPLOAD_BYTES=str(MEBIBYTE), RECTO_UPLOAD_FILES="2") as here:
        reply, poured = pour(here.url, [first, *[more] * 20] if first else [more] * 200)
        assert (reply.status, reply.json["code"], reply.headers["connection"]) == (413, "too_large", "close")
        # What is under way in the network is not counted by the server.
        assert poured < 19 * MEBIBYTE + 16 * MEBIBYTE
        assert (here.rows(), here.objects()) == ([], [])


def test_P9_who_drips_into_a_field_keeps_nobody_out_for_long(tmp_path: Path):
    first, whole = begun(Field(name="agent", body=b"d")), form_of(file("a.txt", b"words"))
    until = time.monotonic() + SECONDS
    with uploading(tmp_path, RECTO_UPLOAD_SECONDS="1", RECTO_UPLOADS="1") as here:
        held = begin(here.url, first, 10_000)
        assert asks_until(here, whole, 429).json["code"] == "limit_reached"
        while (status := here.upload(whole).status) == 429 and time.monotonic() < until:
            with suppress(BrokenPipeError, ConnectionResetError):
                held.sendall(b"d")
        assert status == 200
        held.close()


def test_P9_a_large_file_is_stored_and_takes_no_memory(tmp_path: Path):
    whole = b"".join(text_of(100 * MEBIBYTE))
    with uploading(tmp_path) as here:
        assert here.upload(form_of(file("first.txt", b"words" * MEBIBYTE))).status == 200
        before = here.memory()
        (entry,) = entries(here.upload(whole))
        assert here.memory() - before < 48 * MEBIBYTE
        assert entry["size"] == len(whole) - len(b"".join(text_of(0)))


def test_P9_uploads_cut_at_random_points_leave_no_row_and_no_object(tmp_path: Path):
    chance = random.Random(7)
    whole = form_of(*[file(f"{name}.txt", chance.randbytes(1_000).hex().encode() * 200) for name in "abc"])
    with uploading(tmp_path) as here:
        for _ in range(30):
            end = chance.randrange(len(whole) - 10)
            begin(here.url, whole[:end], len(whole)).close()
        # A stopped server has nothing under way any more.
        assert here.server.stop() == 0
        assert "Traceback" not in here.server.output
        assert here.objects() == []
    with uploading(tmp_path) as here:
        assert here.rows() == []
        assert [entry["name"] for entry in entries(here.upload(whole))] == ["a.txt", "b.txt", "c.txt"]


def test_X4_a_server_killed_during_an_upload_has_neither_row_nor_object_of_it(tmp_path: Path):
    whole = b"".join(text_of(20 * MEBIBYTE))
    with uploading(tmp_path) as here:
        held = begin(here.url, whole[: len(whole) // 2], len(whole))
        wait_until(lambda: bool(here.objects()))
        here.server.kill()
        held.close()
        assert len(here.objects()) == 1
    with uploading(tmp_path) as here:
        assert (here.rows(), here.objects()) == ([], [])
        assert entries(here.upload(whole))[0]["name"] == "long.txt"
        assert len(here.objects()) == 1


def test_X4_a_server_that_is_stopped_during_an_upload_ends_it_quietly(tmp_path: Path):
    whole = form_of(file("one.txt", b"one"), file("two.txt", b"two" * MEBIBYTE))
    with uploading(tmp_path) as here:
        held = begin(here.url, whole[:-1_000], len(whole))
        wait_until(lambda: bool(here.rows()))
        assert here.server.stop() == 0
        assert "Traceback" not in here.server.output
        assert " ERROR " not in here.server.output
        with suppress(ConnectionResetError):
            assert held.recv(20) in {b"", b"HTTP/1.1 503 Service"}
        held.close()
        assert here.objects() == []
    with uploading(tmp_path) as here:
        assert here.rows() == []


def test_C3_uploads_need_a_credential_and_a_form(tmp_path: Path):
    whole = form_of(file("a.txt", b"words"))
    with uploading(tmp_path) as here:
        assert request(here.url, "POST", ATTACHMENTS, whole, token=None, content_type=FORM).status == 401
        wrong = request(here.url, "POST", ATTACHMENTS, whole, content_type="text/plain")
        assert (wrong.status, wrong.json["code"]) == (415, "wrong_media")
        assert here.upload(b'{"a": 1}').status == 422
        assert here.rows() == []
        assert (here.data / "files").stat().st_mode & 0o777 == 0o700
