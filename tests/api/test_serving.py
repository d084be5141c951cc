"""Files under their signed urls (P9, P10): who has one may read, whole or in part, and no browser runs anything."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.agents.file_input import FileInput
from recto.api.files import serving
from recto.api.files.serving import NO_FILE, ByteRange, Outside, RequestedRange, Whole, matches_tag, requested_range
from recto.config.file_settings import UploadRules
from recto.conversation.file_formats import served_as
from recto.conversation.message_files import Attachment
from recto.files.ports import Upload
from tests.api.forms import send_pieces
from tests.api.local_api import NOW, Answer, LocalApi, assert_problem, local_api

ALL = FileInput(is_on=True, audio=True, video=True, endings=("svg", "xml", "js", "bin"))
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
TEXT = b"".join(b"line %04d\n" % number for number in range(500))


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[LocalApi]:
    async with local_api(tmp_path, serving.ROUTES) as server:
        yield server


async def keep(api: LocalApi, name: str = "a.txt", body: bytes = TEXT) -> Attachment:
    return await api.backend.files.attachments.receive(Upload(owner="ann", name=name, allowed=ALL), send_pieces([body]))


def url_of(api: LocalApi, attachment: Attachment, seconds: float = 60) -> str:
    return api.backend.files.signer.url(attachment.id, attachment.name, NOW + timedelta(seconds=seconds))


async def get(api: LocalApi, url: str, method: str = "GET", **headers: str) -> Answer:
    header_fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return await api.send(method, url, headers=header_fields, user="nobody of note")


CASES: list[tuple[str | None, int, RequestedRange]] = [
    (None, 10, Whole()),
    ("bytes=0-0", 10, ByteRange(start=0, end=1)),
    ("bytes=2-", 10, ByteRange(start=2, end=10)),
    ("bytes=2-99", 10, ByteRange(start=2, end=10)),
    ("bytes=-3", 10, ByteRange(start=7, end=10)),
    ("Bytes=002-003", 10, ByteRange(start=2, end=4)),
    ("bytes= 2-5 ", 10, ByteRange(start=2, end=6)),
    ("bytes=10-", 10, Outside()),
    ("bytes=99999999999999999999999999-", 10, Outside()),
    ("bytes=-0", 10, Outside()),
    ("bytes=0-", 0, Outside()),
    ("bytes=5-2", 10, Whole()),
    ("bytes=", 10, Whole()),
    ("", 10, Whole()),
    ("bytes=a-b", 10, Whole()),
    ("bytes=1-2,4-5", 10, Whole()),
    ("bytes=+1-2", 10, Whole()),
    ("bytes=１-２", 10, Whole()),
    ("lines=1-2", 10, Whole()),
]


@pytest.mark.parametrize(("header", "size", "requested"), CASES)
def test_P9_a_range_is_read_as_the_standard_says(header: str | None, size: int, requested: RequestedRange):
    assert requested_range(header, size) == requested


@given(header=st.text() | st.from_regex(r"bytes=[0-9]{0,25}-[0-9]{0,25}", fullmatch=True), size=st.integers(0, 10**12))
def test_P9_whatever_is_asked_for_no_byte_outside_the_file_is_given(header: str, size: int):
    match requested_range(header, size):
        case ByteRange(start=start, end=end):
            assert 0 <= start < end <= size
        case Whole() | Outside():
            pass


@given(body=st.binary(min_size=1, max_size=50), start=st.integers(0, 60), length=st.integers(1, 60))
def test_P9_a_range_gives_the_bytes_it_names(body: bytes, start: int, length: int):
    requested = requested_range(f"bytes={start}-{start + length - 1}", len(body))
    expected = body[start : start + length]
    assert (body[requested.start : requested.end] if isinstance(requested, ByteRange) else b"") == expected
    last = requested_range(f"bytes=-{length}", len(body))
    assert isinstance(last, ByteRange)
    assert body[last.start : last.end] == body[-length:]


@pytest.mark.parametrize(
    ("header", "is_named"),
    [
        *[(None, False), ("", False), ("*", True), (" * ", True), ('"x"', True), ('W/"x"', True), ('"y"', False)],
        *[('"a", W/"x", "b"', True), ("x", False), ('"a,"x', False)],
    ],
)
def test_P9_a_version_is_named_alone_in_a_list_or_by_a_star(header: str | None, is_named: bool):
    assert matches_tag(header, '"x"') is is_named


@pytest.mark.parametrize(
    ("mime_type", "served"),
    [
        *[(kind, (kind, True)) for kind in ("image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain")],
        *[(kind, (kind, True)) for kind in ("audio/mpeg", "audio/mp4", "video/mp4", "video/webm")],
        ("Text/Plain; charset=x", ("text/plain", True)),
        *[(kind, (kind, False)) for kind in ("text/csv", "application/msword", DOCX, "image/heic")],
        *[
            (kind, ("application/octet-stream", False))
            for kind in (
                *("text/html", "image/svg+xml", "application/xml", "text/xml", "text/javascript", "text/css"),
                *("application/xhtml+xml", "application/javascript", "application/vnd.mozilla.xul+xml"),
                *("application/x-shockwave-flash", "message/rfc822", "multipart/related", "", "nonsense"),
                *("text/plain\r\nx: y", "application/vnd.a\r\nx: y"),
            )
        ],
    ],
)
def test_P9_only_what_nothing_runs_in_is_shown(mime_type: str, served: tuple[str, bool]):
    assert served_as(mime_type) == served


async def test_P9_a_signed_url_needs_nothing_else_and_serves_the_bytes_safely(api: LocalApi):
    attachment = await keep(api)
    answer = await get(api, url_of(api, attachment))
    assert (answer.status, answer.body) == (200, TEXT)
    assert answer.headers == {
        "accept-ranges": "bytes",
        "content-security-policy": "default-src 'none'; sandbox",
        "cross-origin-resource-policy": "cross-origin",
        "content-type": "text/plain",
        "content-disposition": 'inline; filename="a.txt"',
        "cache-control": "private, max-age=59",
        "etag": f'"{attachment.sha256}"',
        "content-length": str(len(TEXT)),
    }


async def test_P9_head_tells_the_same_and_sends_nothing(api: LocalApi):
    url = url_of(api, await keep(api))
    whole, head = await get(api, url), await get(api, url, "HEAD", range="bytes=0-1")
    assert (head.status, head.headers, head.body) == (200, whole.headers, b"")


async def test_P9_what_a_browser_might_run_is_only_saved(api: LocalApi):
    body = b"<svg xmlns='http://www.w3.org/2000/svg'><script>a()</script></svg>"
    answer = await get(api, url_of(api, await keep(api, "a.svg", body)))
    assert (answer.status, answer.body, answer.headers["content-type"]) == (200, body, "application/octet-stream")
    assert answer.headers["content-disposition"] == 'attachment; filename="a.svg"'


async def test_P9_parts_of_a_file_are_served(api: LocalApi):
    url, size = url_of(api, await keep(api)), len(TEXT)
    for header, start, end in (("bytes=10-19", 10, 20), ("bytes=4990-", 4_990, size), ("bytes=-5", size - 5, size)):
        answer = await get(api, url, range=header)
        assert (answer.status, answer.body) == (206, TEXT[start:end])
        assert answer.headers["content-range"] == f"bytes {start}-{end - 1}/{size}"
        assert answer.headers["content-length"] == str(end - start)
    several = await get(api, url, range="bytes=0-1,5-6")
    assert (several.status, several.body) == (200, TEXT)


async def test_P9_a_part_that_is_not_there_is_told_with_the_size(api: LocalApi):
    answer = await get(api, url_of(api, await keep(api)), range="bytes=5000-")
    assert_problem(answer, 416, "The range is beyond the end of the file, which has 5,000 bytes.")
    assert answer.headers["content-range"] == "bytes */5000"


async def test_P9_a_part_of_another_version_is_the_whole(api: LocalApi):
    attachment = await keep(api)
    url, tag = url_of(api, attachment), f'"{attachment.sha256}"'
    statuses = [
        (await get(api, url, range="bytes=0-1", if_range=condition)).status
        for condition in (tag, f"W/{tag}", '"another"', "Thu, 14 May 2026 12:00:00 GMT")
    ]
    assert statuses == [206, 200, 200, 200]


async def test_P9_who_has_this_version_is_sent_nothing(api: LocalApi):
    attachment = await keep(api)
    answer = await get(api, url_of(api, attachment), if_none_match=f'W/"{attachment.sha256}"', range="bytes=0-1")
    assert (answer.status, answer.body, answer.headers["etag"]) == (304, b"", f'"{attachment.sha256}"')
    assert "content-length" not in answer.headers


async def test_P9_bad_expired_and_deleted_urls_are_refused_alike(api: LocalApi, caplog: pytest.LogCaptureFixture):
    attachment = await keep(api)
    good, expired = url_of(api, attachment), url_of(api, attachment, seconds=-1)
    never = api.backend.files.signer.url("01990b1e-6f3a-7c5e-8a57-1f0c2b9d4e12", "a.txt", NOW + timedelta(seconds=60))
    bad = [
        good.replace("a.txt", "b.txt"),
        good.replace("signature=1", "signature=2"),
        good[:-1],
        f"{good}&x=1",
        good + "A",
    ]
    problem = [await get(api, url) for url in (*bad, expired, never, good.partition("?")[0])]
    await api.backend.files.attachments.delete("ann", attachment.id)
    problem.append(await get(api, good))
    assert {(answer.status, answer.body) for answer in problem} == {(404, problem[0].body)}
    assert problem[0].json["detail"] == NO_FILE
    lines = [record.getMessage() for record in caplog.records if record.name == "recto.audit"]
    assert len(lines) == len(problem)
    assert all("status 404, reason no_file" in line and "signature" not in line for line in lines)


async def test_P10_a_storage_with_urls_of_its_own_is_where_readers_are_sent(api: LocalApi):
    attachment = await keep(api)
    url = url_of(api, attachment)
    api.storage.links = True
    answer = await get(api, url)
    assert (answer.status, answer.body) == (307, b"")
    assert answer.headers["location"] == f"https://storage.example/{attachment.blob}?seconds=60"
    assert answer.headers["cache-control"] == "no-store"
    # What is signed there is a GET, so whoever only asks what there is gets it from here.
    assert (await get(api, url, "HEAD")).status == 200
    api.change(rules=UploadRules(redirects=False))
    assert (await get(api, url)).body == TEXT


async def test_P9_what_cannot_be_read_is_told_before_anything_is_sent(api: LocalApi):
    attachment = await keep(api)
    url = url_of(api, attachment)
    api.storage.is_down = True
    assert_problem(await get(api, url), 503, "The server cannot use its storage at present.")
    api.storage.is_down = False
    api.storage.blobs.clear()
    assert_problem(await get(api, url), 404, NO_FILE)


async def test_P9_a_reader_that_leaves_ends_the_reading(api: LocalApi):
    answer = await api.send("GET", url_of(api, await keep(api, body=TEXT * 10)), end="left")
    assert (answer.status, len(answer.body) < len(TEXT * 10)) == (200, True)
    assert (len(api.storage.opened), api.storage.reading) == (1, 0)
