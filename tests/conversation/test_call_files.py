"""F8: calls of tools that act elsewhere are stored with file ids, and sent with urls."""

from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.events import TextContent, ToolCallArguments, ToolCallEnded, encode_event, merge
from recto.conversation.json import dump, load_object
from recto.conversation.message_files import FILES, FileRef, encode_with_files, refs_in, sign_file_urls

REF = FileRef(id="resp-0", attachment="att-1", name="a b.pdf", kind="document", mime_type="application/pdf")
OTHER = FileRef(id="resp-1", attachment="att-2", name="p.png", kind="image")
MISSING_FILE = FileRef(id="resp-2", attachment="att-3", name="x.txt", kind="document", is_there=False)


def url_of(key: str, name: str) -> str:
    return f"https://recto.test/{key}/{name}"


def store_call(arguments: str, *files: FileRef) -> bytes:
    (body,) = encode_event(ToolCallArguments(call="c1", delta=arguments, files=files))
    return body


def test_F8_a_stored_event_keeps_the_id_and_a_reader_gets_the_url():
    body = store_call('{"file":"resp-0","note":"about resp-0","n":1.50}', REF)
    assert b"https" not in body
    assert load_object(sign_file_urls(body, url_of)) == {
        "type": "TOOL_CALL_ARGS",
        "toolCallId": "c1",
        "delta": '{"file":"https://recto.test/att-1/a b.pdf","note":"about resp-0","n":1.50}',
    }


def test_F8_only_files_that_are_named_and_there_are_noted():
    arguments = '{"a":["resp-0",{"resp-1":"resp-2"}],"b":"resp-0 and more"}'
    assert refs_in("send", arguments, (REF, OTHER, MISSING_FILE)) == (REF,)
    assert refs_in("read_files", arguments, (REF,)) == ()
    assert refs_in("send", "{not json resp-0", (REF,)) == ()


def test_F8_nobody_can_write_the_note_himself():
    # Words that look like our note are part of a string, where quotes are escaped.
    for event in (
        ToolCallArguments(call="c", delta='{"rectoFiles":{"x":{"key":"k","name":"n"}}}'),
        TextContent(message="m", delta='"rectoFiles":'),
    ):
        (body,) = encode_event(event)
        assert sign_file_urls(body, url_of) is body


def test_F8_whole_arguments_are_not_merged_with_others():
    one, two = ToolCallArguments(call="c", delta='{"a":"resp-0"}', files=(REF,)), ToolCallArguments(call="c", delta="x")
    assert merge((one, two)) == [one, two]
    assert merge((two, one)) == [two, one]
    assert merge((two, two, ToolCallEnded(call="c"))) == [
        ToolCallArguments(call="c", delta="xx"),
        ToolCallEnded(call="c"),
    ]


LEAVES = st.none() | st.text(max_size=5) | st.sampled_from(["resp-0", "resp-1"])


@given(st.dictionaries(st.text(max_size=5), st.recursive(LEAVES, st.lists, max_leaves=6), max_size=4))
def test_F8_what_is_noted_is_exactly_what_is_replaced(arguments: dict[str, object]):
    text = dump(arguments).decode()
    refs = refs_in("send", text, (REF, OTHER))
    (body,) = encode_event(ToolCallArguments(call="c", delta=text, files=refs))
    request_body = load_object(sign_file_urls(body, url_of)) or {}
    assert FILES not in request_body
    delta = str(request_body["delta"])
    assert (delta != text) is bool(refs)
    assert all(f'"{url_of(ref.attachment, ref.name)}"' in delta for ref in refs)


def test_F8_an_event_that_names_no_file_is_written_as_ever():
    assert encode_event(ToolCallArguments(call="c", delta="x")) == [
        b'{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"x"}'
    ]
    assert encode_with_files({"type": "TOOL_CALL_ARGS"}, (REF,)).endswith(
        b'"rectoFiles":{"resp-0":{"key":"att-1","name":"a b.pdf"}}}'
    )
