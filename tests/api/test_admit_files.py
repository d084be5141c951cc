"""Files of a run's request (P9, P10): what a request that is refused brought along is not kept."""

from base64 import b64encode
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from recto.agents.file_input import FileInput
from recto.api.bodies import parse_run
from recto.api.runs.admit_files import StorableRequest, find_signed_files, store_files
from recto.config.file_settings import FileSettings
from recto.conversation.input.run_input import stored_input
from recto.conversation.json import Json, dump
from recto.conversation.message_files import Attachment
from recto.conversation.messages import Data, File
from recto.errors import InvalidRequest
from recto.files.attachments import Attachments
from recto.ids import new_id
from recto.store.ports import Admission
from tests.api.local_api import NOW, LocalApi, local_api

THREAD, RUN = "01990b1e-6f3a-7c5e-8a57-1f0c2b9d4e12", "01990b1e-6f3a-7c5e-8a57-1f0c2b9d4e13"
ANY = FileInput(is_on=True)
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89" + bytes(100)


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[LocalApi]:
    async with local_api(tmp_path, ()) as server:
        yield server


def inline(name: str, body: bytes, mime_type: str = "text/plain") -> Json:
    kind = "image" if mime_type.startswith("image/") else "document"
    source: Json = {"type": "data", "value": b64encode(body).decode(), "mimeType": mime_type}
    return {"type": kind, "source": source, "metadata": {"filename": name}}


def linked(api: LocalApi, one: Attachment) -> Json:
    url = api.backend.files.signer.url(one.id, one.name, NOW.replace(year=NOW.year + 1))
    return {"type": "document", "source": {"type": "url", "value": url}}


async def store_parts(api: LocalApi, *parts: Json, allowed: FileInput = ANY) -> StorableRequest:
    message: Json = {"id": RUN, "role": "user", "content": list(parts)}
    body = dump({"threadId": THREAD, "runId": RUN, "messages": [message]})
    run_input = parse_run(body)
    signed_files = await find_signed_files(api.backend.files, "ann", run_input.input, allowed)
    request = await store_files(api.backend, "ann", run_input, allowed, signed_files=signed_files)
    # Whoever begins with the run at once and whoever reads it from the store begin with the same.
    assert request.input == stored_input(request.body)
    return request


async def earlier(api: LocalApi, name: str, body: bytes, mime_type: str = "text/plain") -> Attachment:
    """A file that was sent along in another request before."""
    file = File(kind="document", name=name, mime_type=mime_type, source=Data(base64=b64encode(body).decode()))
    return await api.backend.files.attachments.receive_inline("ann", file, ANY)


async def names(api: LocalApi) -> list[str]:
    match = await api.store.files.list_page("ann", None, 50)
    return sorted(one.name for one in match.attachments)


async def test_P10_what_a_request_made_is_told_from_what_it_found(api: LocalApi):
    old, sent_file = await earlier(api, "old.txt", b"old"), await earlier(api, "sent.txt", b"sent")
    parts = [inline("new.txt", b"new"), inline("old.txt", b"old"), linked(api, sent_file), inline("new.txt", b"new")]
    request = await store_parts(api, *parts)
    assert set(request.attachments) == {old.id, sent_file.id, *request.new_ids}
    assert [request.attachments[id].name for id in request.new_ids] == ["new.txt"]
    assert (await store_parts(api, *parts)).new_ids == ()


async def test_P10_what_a_refused_request_made_is_dropped_and_what_it_found_stays(api: LocalApi):
    await earlier(api, "old.txt", b"old")
    request = await store_parts(api, inline("new.txt", b"new"), inline("old.txt", b"old"), inline("b.txt", b"b"))
    assert await names(api) == ["b.txt", "new.txt", "old.txt"]
    await request.drop(api.backend, "ann")
    assert (await names(api), list(api.storage.blobs.values())) == (["old.txt"], [b"old"])


async def test_P10_what_a_machine_made_whose_clock_is_ahead_is_not_taken_for_our_own(api: LocalApi):
    old = await earlier(api, "old.txt", b"old")
    await api.store.files.delete("ann", old.id)
    ahead = replace(old, id="ffffffff-ffff-7fff-bfff-ffffffffffff")
    await api.store.files.add(ahead, 0)
    request = await store_parts(api, inline("old.txt", b"old"), inline("new.txt", b"new"))
    assert ahead.id in request.attachments
    await request.drop(api.backend, "ann")
    assert await names(api) == ["old.txt"]


async def test_P10_what_another_run_names_by_now_stays(api: LocalApi):
    rejection, other = await store_parts(api, inline("a.txt", b"a")), await store_parts(api, inline("a.txt", b"a"))
    response_id = new_id()
    run = Admission(
        id=new_id(),
        name=RUN,
        owner="ann",
        thread=THREAD,
        fallback="vibe",
        input=other.body,
        response_id=response_id,
        files=other.refs(response_id),
        created=NOW,
    )
    await api.store.runs.admit(run)
    await rejection.drop(api.backend, "ann")
    assert (await names(api), list(api.storage.blobs.values())) == (["a.txt"], [b"a"])


async def test_P5_nobody_drops_what_is_somebody_else_s(api: LocalApi):
    request = await store_parts(api, inline("a.txt", b"a"))
    await request.drop(api.backend, "bob")
    assert await names(api) == ["a.txt"]


async def test_P10_what_its_owner_deleted_in_the_meantime_is_dropped_without_trouble(api: LocalApi):
    request = await store_parts(api, inline("a.txt", b"a"), inline("b.txt", b"b"))
    await api.backend.files.attachments.delete("ann", request.new_ids[0])
    await request.drop(api.backend, "ann")
    await request.drop(api.backend, "ann")
    assert (await names(api), api.storage.blobs) == ([], {})


@pytest.mark.parametrize("bad", [inline("b.txt", b"MZ\x90\0" + bytes(80)), inline("b.txt", b"")])
async def test_P9_a_later_file_that_may_not_come_takes_the_earlier_ones_with_it(api: LocalApi, bad: Json):
    await earlier(api, "old.txt", b"old")
    with pytest.raises(InvalidRequest, match=r"b\.txt: "):
        await store_parts(api, inline("old.txt", b"old"), inline("new.txt", b"new"), bad)
    assert (await names(api), list(api.storage.blobs.values())) == (["old.txt"], [b"old"])


async def test_P9_a_file_that_was_taken_for_another_agent_is_refused_for_this_one_and_stays(api: LocalApi):
    await earlier(api, "dot.png", PNG, "image/png")
    documents = FileInput(is_on=True, images=False)
    with pytest.raises(InvalidRequest, match=r"dot\.png: "):
        await store_parts(api, inline("new.txt", b"new"), inline("dot.png", PNG, "image/png"), allowed=documents)
    assert await names(api) == ["dot.png"]


@pytest.mark.parametrize("is_inline", [False, True], ids=["by its url", "inline"])
@pytest.mark.parametrize(
    ("allowed", "why"),
    [
        (FileInput(), "this agent accepts no files; name one that does with `agent`"),
        (FileInput(is_on=True, documents=False), "this agent accepts no documents; it accepts images"),
        (FileInput(is_on=True, max_bytes=20), "it has 21 bytes; this agent accepts files of up to 20"),
    ],
    ids=["no files", "no documents", "too large"],
)
async def test_P9_an_upload_is_held_to_what_this_agent_takes_at_admission_too(
    api: LocalApi, allowed: FileInput, why: str, is_inline: bool
):
    one = await earlier(api, "a.txt", b"x" * 21)
    with pytest.raises(InvalidRequest) as caught_error:
        await store_parts(api, inline("a.txt", b"x" * 21) if is_inline else linked(api, one), allowed=allowed)
    assert (str(caught_error.value), await names(api)) == (f"a.txt: {why}", ["a.txt"])


async def test_P9_files_are_counted_once_each_and_held_to_the_most_of_this_agent(api: LocalApi):
    two = FileInput(is_on=True, max_files=2)
    a, b, c = [linked(api, await earlier(api, name, name.encode())) for name in ("a.txt", "b.txt", "c.txt")]
    assert len((await store_parts(api, a, b, a, b, allowed=two)).attachments) == 2
    with pytest.raises(InvalidRequest, match=r"the message has 3 files; this agent accepts up to 2 per message"):
        await store_parts(api, a, b, c, allowed=two)


async def test_P9_what_there_is_no_room_for_takes_the_earlier_ones_with_it(api: LocalApi):
    files = Attachments(api.storage, api.store.files, FileSettings(user_bytes=5), clock=lambda: NOW, new_id=new_id)
    api.change(attachments=files)
    with pytest.raises(InvalidRequest, match=r"b\.txt: with it you would have 6"):
        await store_parts(api, inline("a.txt", b"abc"), inline("b.txt", b"def"))
    assert (await names(api), api.storage.blobs) == ([], {})


async def test_P10_an_upload_named_by_its_url_was_not_made_by_the_request_whatever_the_clock_says(api: LocalApi):
    one = await earlier(api, "sent.txt", b"sent")
    api.change(new_id=lambda: RUN)
    assert one.id > RUN
    assert (await store_parts(api, linked(api, one))).new_ids == ()
