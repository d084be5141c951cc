"""Uploads (P9): every file of a form is taken or refused on its own; what breaks off leaves nothing behind."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recto.agents.agent import CHAT
from recto.agents.file_input import FileInput
from recto.api.files import attachments, serving
from recto.api.files.attachments import ATTACHMENTS
from recto.api.files.multipart import PIECE, FormLimits, MultipartForm
from recto.api.files.uploads import BEYOND_BYTES, check_length, form_limits
from recto.config.file_settings import FileSettings, UploadRules
from recto.conversation.json import Json
from recto.files.attachments import Attachments
from recto.ids import new_id
from tests.api.forms import FORM, Field, begin_form, cut_at, file, form_of, send_pieces
from tests.api.local_api import NOW, Answer, End, LocalApi, assert_problem, local_api
from tests.waiting import settle, wait_until

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89" + bytes(100)
NOTES = file("notes.txt", b"buy milk", "text/plain")
PICTURE = file("dot.png", PNG, "image/png")
LIMIT = 2**20
HEADERS = {"content-type": FORM}
AGENTS = {
    "vibe": replace(CHAT, name="vibe", file_input=FileInput(is_on=True)),
    "docs": replace(CHAT, name="docs", file_input=FileInput(is_on=True, images=False)),
    "small": replace(CHAT, name="small", file_input=FileInput(is_on=True, max_bytes=10)),
    "blind": replace(CHAT, name="blind", file_input=FileInput()),
}
REPEATABLE = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[LocalApi]:
    async with local_api(tmp_path, (*attachments.ROUTES, *serving.ROUTES)) as server:
        rule(server, UploadRules(files=3, upload_bytes=LIMIT))
        yield server


def rule(api: LocalApi, rules: UploadRules) -> None:
    """Have it take files of up to so many bytes, in forms as these rules say."""
    file_settings = FileSettings(upload_bytes=rules.upload_bytes, user_bytes=rules.user_bytes)
    files = Attachments(api.storage, api.store.files, file_settings, clock=lambda: NOW, new_id=new_id)
    api.change(by_name=AGENTS, attachments=files, rules=rules)


async def upload(api: LocalApi, *parts: Field | bytes, query: str = "", user: str = "ann") -> Answer:
    return await send(api, [form_of(*parts)], query=query, user=user)


async def send(
    api: LocalApi, pieces: Iterable[bytes], *, query: str = "", user: str = "ann", end: End = "whole"
) -> Answer:
    return await api.send("POST", f"{ATTACHMENTS}{query}", pieces, headers=HEADERS, user=user, end=end)


def codes(answer: Answer) -> list[Json]:
    """What became of each file: the code of its refusal, or its name."""
    assert answer.status == 200, answer.body
    return [entry.get("code", entry["name"]) for entry in answer.rows("attachments")]


async def list_stored(api: LocalApi, user: str = "ann") -> list[Mapping[str, Json]]:
    return (await api.ask("GET", ATTACHMENTS, user=user)).rows("attachments")


async def assert_nothing(api: LocalApi) -> None:
    assert api.storage.blobs == {}
    assert await list_stored(api) == []
    assert (api.backend.files.uploads.count, api.backend.files.uploads.bytes) == (0, 0)


async def test_P9_each_file_of_a_form_is_stored_and_told_with_a_url_that_serves_it(api: LocalApi):
    answer = await upload(api, NOTES, PICTURE)
    first, second = answer.rows("attachments")
    assert (answer.status, "connection" in answer.headers) == (200, False)
    assert {**first, "id": "", "url": ""} == {
        "id": "",
        "name": "notes.txt",
        "type": "document",
        "mimeType": "text/plain",
        "size": 8,
        "url": "",
        "expiresAt": "2026-05-15T12:00:00.000Z",
    }
    assert (second["type"], second["mimeType"], second["size"]) == ("image", "image/png", len(PNG))
    for entry, body in ((first, NOTES.body), (second, PNG)):
        served = await api.send("GET", str(entry["url"]), user="whoever")
        assert (served.status, served.body) == (200, body)


async def test_P9_a_file_that_is_refused_says_why_and_spoils_no_other(api: LocalApi):
    empty, wrong = file("none.txt", b""), file("dot.pdf", PNG, "application/pdf")
    answer = await upload(api, empty, NOTES, wrong)
    assert codes(answer) == ["empty", "notes.txt", "mismatch"]
    assert answer.rows("attachments")[0] == {
        "name": "none.txt",
        "error": "it is empty; send a file with something in it",
        "code": "empty",
    }
    assert [row["name"] for row in await list_stored(api)] == ["notes.txt"]
    assert len(api.storage.blobs) == 1


async def test_P9_files_beyond_as_many_as_may_be_are_told_so(api: LocalApi):
    answer = await upload(api, *[file(f"{number}.txt", b"%d" % number) for number in range(5)])
    assert codes(answer) == ["0.txt", "1.txt", "2.txt", "too_many", "too_many"]
    assert "up to 3 files" in str(answer.rows("attachments")[4]["error"])


async def test_D1_the_agent_decides_what_is_taken_and_the_default_one_where_none_is_named(api: LocalApi):
    docs = Field(name="agent", body=b"docs")
    assert codes(await upload(api, PICTURE)) == ["dot.png"]
    # A part with a filename is a file, whatever its field.
    assert codes(await upload(api, Field(name="agent", filename="a.txt", body=b"blind"))) == ["a.txt"]
    assert codes(await upload(api, docs, PICTURE)) == ["not_allowed"]
    assert codes(await upload(api, PICTURE, query="?agent=docs")) == ["not_allowed"]
    assert codes(await upload(api, docs, NOTES, query="?agent=docs")) == ["notes.txt"]
    assert codes(await upload(api, NOTES, query="?agent=blind")) == ["not_allowed"]


@pytest.mark.parametrize(
    ("parts", "query", "problem"),
    [
        ([NOTES, Field(name="agent", body=b"docs")], "", "agent: must come before the files in the form"),
        ([Field(name="agent", body=b"docs"), NOTES], "?agent=vibe", "agent: is named twice, as 'vibe' and 'docs'"),
        ([Field(name="agent", body=b"nobody"), NOTES], "", "there is no agent 'nobody'; known: vibe, docs"),
        ([Field(name="agent", body=b"x" * 70_000), NOTES], "", "agent: has more than 65,536 bytes"),
        ([Field(name="agent", body=b"docs")], "", "body: contains no file"),
        ([NOTES, b"broken"], "", "body: is not a form"),
    ],
)
async def test_P9_a_form_that_means_nothing_is_refused_whole(
    api: LocalApi, parts: list[Field | bytes], query: str, problem: str
):
    answer = await upload(api, *parts, query=query)
    assert_problem(answer, 422, problem)
    assert answer.headers["connection"] == "close"
    await assert_nothing(api)


async def test_P9_what_is_no_form_is_refused(api: LocalApi):
    for content_type in ("application/json", "", "multipart/mixed; boundary=x"):
        answer = await api.send("POST", ATTACHMENTS, [b"{}"], headers={"content-type": content_type})
        assert_problem(answer, 422, "Send files as multipart/form-data")


async def test_P9_a_file_that_is_too_large_is_refused_and_the_next_one_taken(api: LocalApi):
    answer = await upload(api, file("big.txt", b"x" * (LIMIT + 1)), NOTES)
    assert (codes(answer), "connection" in answer.headers) == (["too_large", "notes.txt"], False)
    assert codes(await upload(api, file("a.txt", b"x" * 11), NOTES, query="?agent=small")) == ["too_large", "notes.txt"]
    assert codes(await upload(api, file("all.txt", b"x" * LIMIT))) == ["all.txt"]


@pytest.mark.parametrize(("large", "code"), [(file("big.txt", b""), "too_large"), (file("a.pdf", b"x"), "mismatch")])
async def test_P9_no_more_is_read_of_a_refused_file_than_leads_to_the_next(api: LocalApi, large: Field, code: str):
    rest, read = LIMIT + BEYOND_BYTES + LIMIT, 0

    def endless() -> Iterable[bytes]:
        nonlocal read
        yield begin_form(NOTES, large)
        for _ in range(rest // 65_536):
            read += 65_536
            yield b"x" * 65_536

    answer = await send(api, endless())
    assert (codes(answer), answer.headers["connection"]) == (["notes.txt", code], "close")
    assert 0 <= read - LIMIT - BEYOND_BYTES <= 2 * 65_536
    assert [row["name"] for row in await list_stored(api)] == ["notes.txt"]
    assert len(api.storage.blobs) == 1


@pytest.mark.parametrize("length", [str(3 * LIMIT + BEYOND_BYTES + LIMIT + 1), "9" * 5_000])
async def test_P9_a_form_that_says_it_is_too_long_is_refused_without_a_byte_of_it(api: LocalApi, length: str):
    answer = await api.send("POST", ATTACHMENTS, [], headers={**HEADERS, "content-length": length}, end="left")
    assert_problem(answer, 413, "A form may contain 3 files of up to 1,048,576 bytes")
    assert answer.headers["connection"] == "close"
    # One that could fit or says nothing is let pass.
    for fitting in (None, "", "-1", "²", "x", str(3 * LIMIT)):
        check_length(fitting, UploadRules(files=3, upload_bytes=LIMIT))
    check_length("9" * 30, UploadRules(upload_bytes=0))


@pytest.mark.parametrize(
    "more",
    [
        b"\r\n" + begin_form(file("more.txt", b"x" * LIMIT)),
        b"\r\n" + begin_form(Field(name="comment", body=b"x" * 60_000)),
        b"\r\n" + begin_form(b"A: " + b"b" * 60_000 + b"\r\n" + NOTES.headers),
    ],
)
async def test_P9_a_form_without_a_length_ends_where_one_with_a_length_would(api: LocalApi, more: bytes):
    most, read = form_limits(api.backend.files.rules).all_bytes or 0, 0

    def endless() -> Iterable[bytes]:
        nonlocal read
        yield begin_form(NOTES)
        while read < 2 * most:
            read += len(more)
            yield more

    answer = await send(api, endless())
    assert_problem(answer, 413, f"The form exceeds the limit of {most:,} bytes")
    assert answer.headers["connection"] == "close"
    assert read <= most + 2 * len(more)
    await assert_nothing(api)


@pytest.mark.parametrize(("rules", "other"), [(UploadRules(at_once=1), 429), (UploadRules(of_user=1), 200)])
async def test_P9_more_uploads_at_once_than_may_be_are_asked_to_come_again(
    api: LocalApi, rules: UploadRules, other: int
):
    rule(api, rules)
    with api.backend.files.uploads.admit("ann", rules, MultipartForm(send_pieces([]), FORM, FormLimits())):
        answer = await upload(api, NOTES)
        assert (await upload(api, NOTES, user="bob")).status == other
    assert_problem(answer, 429, "The limit of 1 active uploads is reached")
    assert answer.headers["retry-after"] == "1"
    assert codes(await upload(api, NOTES)) == ["notes.txt"]


@given(end=st.integers(0, 10**6), pieces=st.lists(st.integers(0, 2_000), max_size=5))
@REPEATABLE
async def test_P9_an_upload_that_is_cut_anywhere_leaves_no_row_and_no_object(
    api: LocalApi, end: int, pieces: list[int]
):
    whole = form_of(NOTES, PICTURE, file("more.txt", b"more" * 50))
    # Behind the last boundary there is nothing left to lose.
    cut = whole[: end % (len(whole) - 3)]
    rejection = await send(api, cut_at(cut, pieces), end="left")
    assert rejection.status == 400
    short = await send(api, cut_at(cut, pieces))
    assert_problem(short, 422, "body: ends before the closing boundary")
    await assert_nothing(api)


async def test_P9_an_upload_that_falls_silent_is_ended_and_leaves_nothing(api: LocalApi):
    rule(api, UploadRules(seconds=0.01))
    answer = await send(api, [form_of(NOTES, PICTURE)[:-50]], end="silent")
    assert_problem(answer, 408, "No more data of the form arrived for 0.01 s.")
    assert (answer.json["code"], answer.headers["connection"]) == ("too_slow", "close")
    await assert_nothing(api)


async def test_X4_a_server_that_stops_ends_its_uploads_and_leaves_nothing(api: LocalApi):
    sending, _ = await begin(api)
    await api.backend.files.uploads.stop()
    await assert_nothing(api)
    answer = await sending
    assert_problem(answer, 503, "The server is stopping")
    assert (answer.json["code"], answer.headers["connection"]) == ("stopping", "close")
    assert_problem(await upload(api, NOTES), 503, "The server is stopping")


async def begin(api: LocalApi) -> tuple[asyncio.Task[Answer], Json]:
    """An upload whose first file is stored, and whose second one does not end; and the id of the first."""
    sending = asyncio.create_task(send(api, [begin_form(NOTES, PICTURE)], end="silent"))
    while not (rows := await list_stored(api)):
        await settle()
    return sending, rows[0]["id"]


async def test_P9_a_file_its_owner_deleted_before_the_upload_was_cancelled_is_no_trouble(api: LocalApi):
    sending, id = await begin(api)
    assert (await api.ask("DELETE", f"{ATTACHMENTS}/{id}")).status == 200
    sending.cancel()
    assert_problem(await sending, 503, "The server is stopping")
    await assert_nothing(api)


async def test_P9_an_upload_the_storage_cannot_take_is_told_and_leaves_nothing(api: LocalApi):
    api.storage.is_down = True
    answer = await upload(api, NOTES)
    assert_problem(answer, 503, "The server cannot use its storage at present")
    assert answer.headers["retry-after"] == "1"
    api.storage.is_down = False
    await assert_nothing(api)


async def test_P9_what_there_is_no_room_for_never_reaches_the_storage(api: LocalApi):
    rule(api, UploadRules(user_bytes=1_000))
    assert codes(await upload(api, file("a.txt", b"x" * 900))) == ["a.txt"]
    forms = [form_of(file(f"{number}.txt", b"%d" % number * 4 * LIMIT)) for number in range(4)]
    answers = await asyncio.gather(*[send(api, cut_at(form, range(0, len(form), PIECE))) for form in forms])
    assert [codes(answer) for answer in answers] == [["quota"]] * 4
    assert "you may store 100 bytes more" in str(answers[0].rows("attachments")[0]["error"])
    assert api.storage.received == 900


async def test_P9_what_a_user_s_other_uploads_take_is_no_room_any_more(api: LocalApi):
    rule(api, UploadRules(user_bytes=5 * PIECE))
    large = file("large.txt", b"x" * 3 * PIECE)
    sending = asyncio.create_task(send(api, [begin_form(large)], end="silent"))
    await wait_until(lambda: api.backend.files.uploads.bytes >= 3 * PIECE)
    answer = await upload(api, large, NOTES)
    assert codes(answer) == ["quota", "notes.txt"]
    assert "your other active uploads use the rest of your quota" in str(answer.rows("attachments")[0]["error"])
    assert codes(await upload(api, large, user="bob")) == ["large.txt"]
    sending.cancel()
    assert (await sending).status == 503
    assert codes(await upload(api, large)) == ["large.txt"]
    assert api.backend.files.uploads.bytes == 0


async def test_P9_an_attachment_is_looked_at_with_a_new_url_and_deleted_once(api: LocalApi):
    (entry,) = (await upload(api, NOTES)).rows("attachments")
    one, url = f"{ATTACHMENTS}/{str(entry['id']).upper()}", str(entry["url"])
    assert (await api.ask("GET", one)).json == entry
    assert (await api.ask("DELETE", one)).json == {"id": entry["id"]}
    assert_problem(await api.ask("DELETE", one), 404, "There is no attachment")
    assert_problem(await api.ask("GET", one), 404, "There is no attachment")
    assert (await api.send("GET", url)).status == 404
    assert_problem(await api.ask("GET", f"{ATTACHMENTS}?cursor=x"), 422, "cursor")
    await assert_nothing(api)
