"""P1: RunAgentInput as clients send it, in either spelling; what is wrong with it is named by its field."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.input.run_input import (
    ContextItem,
    RunInput,
    RunOptions,
    add_notes,
    decode_input,
    stored_dialect,
    stored_input,
)
from recto.conversation.json import Json, dump, load
from recto.conversation.messages import AssistantMessage, File, Key, Text, ToolMessage, ToolOffer, UserMessage
from recto.errors import WireError

Body = dict[str, Json]
HELLO: Body = {"id": "m1", "role": "user", "content": "hi"}
WORDS = UserMessage(id="m1", parts=(Text(text="hi"),))
LEAST: Body = {"threadId": "t", "runId": "r", "messages": [HELLO]}


def test_P1_the_least_a_client_can_send():
    assert decode_input(LEAST) == RunInput(thread="t", run="r", messages=(WORDS,))


def test_P1_everything_a_client_can_send_in_camel_case():
    body: Body = {
        **LEAST,
        "parentRunId": "p",
        "state": {"any": "thing"},
        "tools": [{"name": "ask", "description": "Ask.", "parameters": {"type": "object", "b": 1, "a": "é"}}],
        "context": [{"description": "Page", "value": "/home"}],
        "forwardedProps": {"agent": "docs", "mine": [1, None]},
        "protocolVersion": "1.0",
    }
    assert decode_input(body) == RunInput(
        thread="t",
        run="r",
        parent="p",
        messages=(WORDS,),
        tools=(ToolOffer(name="ask", description="Ask.", parameters='{"type":"object","b":1,"a":"é"}'),),
        context=(ContextItem(description="Page", value="/home"),),
        props={"agent": "docs", "mine": [1, None]},
        protocol="1.0",
        state={"any": "thing"},
    )


def test_P10_a_stored_input_has_its_options_and_its_files_by_their_keys():
    source: Body = {"type": "url", "value": "recto-attachment:a1", "mimeType": "text/plain"}
    user: Body = {**HELLO, "content": [{"type": "document", "source": source}]}
    props: Body = {"agent": "docs", "datasets": ["d"], "mine": [1, None]}
    parsed_input = stored_input(dump({**LEAST, "messages": [user], "forwardedProps": props}))
    file = File(kind="document", source=Key(key="a1"), mime_type="text/plain")
    options = RunOptions(agent="docs", datasets=("d",))
    messages = (UserMessage(id="m1", parts=(file,)),)
    assert parsed_input == RunInput(thread="t", run="r", messages=messages, props=props, options=options)


def test_R13_only_what_we_noted_makes_a_run_that_compacts():
    body: Body = {**LEAST, "messages": []}
    assert stored_input(dump(add_notes(body, None, thread=None, compact=True))).compact
    assert not stored_input(dump(add_notes(body, None, thread=None))).compact
    assert not stored_input(dump({**body, "compact": True})).compact


@pytest.mark.parametrize("body", [b"[]", b'{"threadId": "t"', dump({**LEAST, "forwardedProps": {"agent": 5}})])
def test_P1_what_is_stored_and_is_no_input_says_so(body: bytes):
    with pytest.raises((WireError, ValueError)):
        stored_input(body)


def test_P7_the_protocol_of_a_stored_input_is_read_without_the_rest_of_it():
    bodies: list[Body] = [LEAST, {"protocolVersion": "1.0"}, {"protocol_version": "0.9", "messages": 5}]
    assert [stored_dialect(dump(body))[0] for body in bodies] == [None, "1.0", "0.9"]


def test_P1_snake_case_says_the_same():
    call: Body = {"id": "c", "type": "function", "function": {"name": "ask", "arguments": "{}"}}
    camel: Body = {
        **LEAST,
        "parentRunId": "p",
        "protocolVersion": "1.0",
        "messages": [
            {"id": "a", "role": "assistant", "toolCalls": [call]},
            {"id": "b", "role": "tool", "toolCallId": "c", "content": "yes"},
        ],
        "forwardedProps": {"voice_mode": "warm"},
    }
    snake = load(re.sub(rb"[A-Z]", lambda match: b"_" + match[0].lower(), dump(camel)))
    assert decode_input(snake) == decode_input(camel)
    assert [type(message) for message in decode_input(snake).messages] == [AssistantMessage, ToolMessage]


def test_P1_where_both_spellings_are_sent_camel_case_counts():
    assert decode_input({**LEAST, "thread_id": "other", "run_id": "other"}) == decode_input(LEAST)


@pytest.mark.parametrize(
    "extra",
    [
        {"resume": []},
        {"state": None},
        {"messages": [{**HELLO, "mood": "good"}]},
        {"parentRunId": None, "tools": None, "context": None, "forwardedProps": None, "protocolVersion": None},
    ],
    ids=",".join,
)
def test_P1_fields_we_do_not_know_and_empty_ones_are_ignored(extra: Body):
    assert decode_input({**LEAST, **extra}) == decode_input(LEAST)


@pytest.mark.parametrize(
    ("tool", "offer"),
    [
        ({"name": "a"}, ToolOffer(name="a", description="", parameters='{"type":"object"}')),
        ({"name": "a", "parameters": {}}, ToolOffer(name="a", description="", parameters="{}")),
    ],
)
def test_P1_a_tool_needs_a_name_only(tool: Json, offer: ToolOffer):
    assert decode_input({**LEAST, "tools": [tool]}).tools == (offer,)


WRONG: list[tuple[Body, str]] = [
    ({"threadId": None}, "threadId: is missing; a string is needed"),
    ({"threadId": 7}, "RunAgentInput.threadId: must be a string, is a number"),
    ({"parentRunId": False}, "RunAgentInput.parentRunId: must be a string, is a boolean"),
    ({"protocolVersion": 1.0}, "RunAgentInput.protocolVersion: must be a string, is a number"),
    ({"messages": None}, "messages: is missing; an array is needed"),
    ({"messages": [{"id": "m", "role": "king"}]}, "messages[0].role: 'king' is no role of AG-UI"),
    ({"messages": [HELLO, {"role": "user", "content": "x"}]}, "messages[1].id: is missing; a string is needed"),
    ({"tools": [{"description": "x"}]}, "tools[0].name: is missing; a string is needed"),
    ({"tools": [{"name": "a", "description": 1}]}, "tools[0].description: must be a string, is a number"),
    ({"context": [{"description": "x", "value": {}}]}, "context[0].value: must be a string, is an object"),
    ({"tools": [{"name": "a", "parameters": "{}"}]}, "tools[0].parameters: must be an object, is a string"),
    ({"context": [{"description": "x", "value": {}}]}, "context[0].value: must be a string, is an object"),
    ({"forwardedProps": []}, "forwardedProps: must be an object, is an array"),
]


@pytest.mark.parametrize(("change", "problem"), WRONG)
def test_P1_a_wrong_type_is_named_by_its_field(change: Body, problem: str):
    with pytest.raises(WireError, match=f"^{re.escape(problem)}$"):
        decode_input({**LEAST, **change})


@pytest.mark.parametrize("body", [None, 7, "x", [], [LEAST]])
def test_P1_a_body_that_is_no_object_is_refused(body: Json):
    with pytest.raises(WireError, match=r"^RunAgentInput: must be an object"):
        decode_input(body)


JSON: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ("threadId", "runId", "messages", "tools", "context", "forwardedProps", "parentRunId", "protocolVersion")


@given(JSON | st.dictionaries(st.sampled_from(FIELDS), JSON).map(lambda change: {**LEAST, **change}))
def test_P1_whatever_is_sent_it_is_an_input_or_an_error_that_names_a_place(body: Json):
    try:
        assert isinstance(decode_input(body), RunInput)
    except WireError as error:
        assert error.where
