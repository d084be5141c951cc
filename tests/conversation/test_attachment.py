"""P10, F4: what is stored of a request names attachments only, and the worker reads the same files from it."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.input.run_input import decode_input
from recto.conversation.json import Json, dump
from recto.conversation.message_files import (
    Attachment,
    FileRef,
    attach_files,
    drop_copies,
    file_of,
    files_in,
    read_stored_files,
    refs_of,
    replace_files,
)
from recto.conversation.messages import Data, File, Key, Source, Text, ToolMessage, Url, UserMessage

URL = "https://recto.test/api/v1/agent/files/a1/a.pdf?signature=1.k.s"
IMAGE_URL = URL.replace("a1", "b2")


PDF = Attachment(
    id="a1",
    owner="ann",
    name="a.pdf",
    kind="document",
    mime_type="application/pdf",
    size=3,
    sha256="0" * 64,
    blob="blob-1",
    created=datetime(2026, 5, 14, tzinfo=UTC),
)
PNG = replace(PDF, id="b2", name="b.png", kind="image", mime_type="image/png")


def a_request(*content: Json, result: Json = None) -> dict[str, Json]:
    user = {"id": "m1", "role": "user", "content": list(content)}
    messages = [user, result] if result else [user]
    return {"threadId": "t", "runId": "r", "messages": messages, "tools": [], "unknown": {"kept": True}}


def by_url(kind: str, url: str = URL) -> Json:
    return {"type": kind, "source": {"type": "url", "value": url}, "metadata": {"filename": "as the client says.exe"}}


ATTACHMENTS: dict[Source, Attachment] = {
    Url(url=URL): PDF,
    Url(url=IMAGE_URL): PNG,
    Data(base64="aGk="): replace(PDF, id="c3", name="hi.txt", mime_type="text/plain"),
}


def test_P10_a_stored_request_has_no_signature_and_no_bytes_and_reads_back_as_keys():
    inline = {"type": "document", "source": {"type": "data", "value": "aGk=", "mimeType": "text/plain"}}
    binary = {"type": "binary", "mimeType": "image/jpeg", "url": IMAGE_URL}
    result = {"id": "t1", "role": "tool", "toolCallId": "c", "content": [binary]}
    body = a_request({"type": "text", "text": "look"}, by_url("image"), inline, binary, result=result)
    stored_body = replace_files(body, ATTACHMENTS)
    text = dump(stored_body).decode()
    assert "signature" not in text
    assert "aGk=" not in text
    assert isinstance(stored_body, dict)
    assert stored_body["unknown"] == {"kept": True}
    user, tool = read_stored_files(decode_input(stored_body).messages)
    assert isinstance(user, UserMessage)
    assert user.parts == (
        Text(text="look"),
        # F12: the stored kind, name and type win over what the client says.
        File(kind="document", source=Key(key="a1"), mime_type="application/pdf", name="a.pdf"),
        File(kind="document", source=Key(key="c3"), mime_type="text/plain", name="hi.txt"),
        File(kind="image", source=Key(key="b2"), mime_type="image/png", name="b.png"),
    )
    assert isinstance(tool, ToolMessage)
    assert tool.parts == user.parts[-1:]


def test_P10_a_request_without_files_is_stored_as_it_came():
    body = a_request({"type": "text", "text": "hi"})
    assert replace_files(body, {}) is body
    assert replace_files(body, ATTACHMENTS) == body


@pytest.mark.parametrize("body", [None, [], {"messages": "no"}, {"messages": [1, {"content": [2, {"type": "image"}]}]}])
def test_P10_what_is_no_request_is_left_alone(body: Json):
    assert replace_files(body, ATTACHMENTS) == body


def test_P10_what_others_said_is_no_part_of_a_stored_request():
    messages = [{"id": role, "role": role, "content": "x"} for role in ("assistant", "reasoning", "activity")]
    kept_rows = [{"id": role, "role": role, "content": "x"} for role in ("user", "tool", "system", "developer")]
    assert drop_copies({"messages": [kept_rows[0], *messages, *kept_rows[1:]], "a": 1}) == {
        "messages": kept_rows,
        "a": 1,
    }
    body = {"messages": kept_rows}
    assert drop_copies(body) is body
    others: list[Json] = [None, [], {"messages": 1}, {"messages": ["assistant"]}]
    assert [drop_copies(other) for other in others] == others


PARTS: list[Json] = [
    {"type": "text", "text": "look"},
    by_url("image"),
    by_url("document", IMAGE_URL),
    {"type": "document", "id": "mine", "source": {"type": "data", "value": "aGk=", "mimeType": "text/plain"}},
    {"type": "binary", "mimeType": "image/jpeg", "url": IMAGE_URL, "id": "x"},
]
ROLES = ("user", "tool", "assistant", "reasoning", "activity", "system")


def a_message(role: str, parts: list[Json], text: str) -> dict[str, Json]:
    contents: dict[str, Json] = {"user": parts or text, "tool": parts or text, "activity": {"text": text}}
    content = contents.get(role, text)
    return {"id": "m", "role": role, "content": content, "toolCallId": "c", "activityType": "PLAN"}


@given(st.lists(st.builds(a_message, st.sampled_from(ROLES), st.lists(st.sampled_from(PARTS)), st.text())))
def test_P10_what_goes_on_at_once_is_what_reads_back_from_the_store(messages: list[dict[str, Json]]):
    body: Json = {**a_request(), "messages": messages}
    stored_body = replace_files(drop_copies(body), ATTACHMENTS)
    assert attach_files(decode_input(body).messages, ATTACHMENTS) == read_stored_files(
        decode_input(stored_body).messages
    )


def test_P2_every_file_of_a_request_is_named_with_its_field():
    result = {"id": "t1", "role": "tool", "toolCallId": "c", "content": [by_url("image", IMAGE_URL)]}
    body = a_request({"type": "text", "text": "hi"}, by_url("document"), result=result)
    file_sources = files_in(decode_input(body).messages)
    assert [where for where, _ in file_sources] == ["messages[0].content[1]", "messages[1].content[0]"]


def test_F4_ids_count_the_files_after_deduplication():
    twice = (File(kind="document", source=Key(key="a1")), File(kind="document", source=Key(key="a1"), name="again"))
    other = File(kind="image", source=Key(key="b2"))
    refs = refs_of(UserMessage(id="m", parts=(*twice, other)), "resp", {"a1": PDF, "b2": PNG})
    assert refs == (
        FileRef(id="resp-0", attachment="a1", name="a.pdf", kind="document", mime_type="application/pdf"),
        FileRef(id="resp-1", attachment="b2", name="b.png", kind="image", mime_type="image/png"),
    )
    assert file_of(refs[1]) == File(kind="image", source=Key(key="b2"), mime_type="image/png", name="b.png")


@given(
    st.text(max_size=20),
    st.sampled_from(["url", "data", "file", "key", "", None]),
    st.sampled_from(["image", "binary", "x"]),
)
def test_P10_no_part_a_client_can_write_becomes_a_key_by_itself(value: str, kind: str | None, part: str):
    body = a_request({"type": part, "url": value, "mimeType": "image/png", "source": {"type": kind, "value": value}})
    assert replace_files(body, {}) == body
