"""Wires, for any message they can carry: what is written is read back. For any JSON: nothing but a WireError."""

from dataclasses import replace
from typing import Literal, get_args

import orjson
from ag_ui.core import Message as Theirs
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from recto.conversation.input import agui
from recto.conversation.messages import Message, ToolMessage
from recto.errors import RectoError
from recto.page.wire import anthropic, gemini, openai
from recto.page.wire.formats import AGUI, WIRES, decode, encode
from tests.page.wire_strategies import (
    MODEL,
    agui_messages,
    anthropic_messages,
    anything,
    damaged,
    gemini_messages,
    gemini_turn,
    openai_messages,
    responses_messages,
)

THEIRS: TypeAdapter[Theirs] = TypeAdapter(Theirs)
Role = Literal["user", "assistant", "tool", "system", "developer", "reasoning", "activity"]
FORMATS = (*WIRES, AGUI)


@given(openai_messages)
def test_openai_reads_back_what_it_wrote(message: Message):
    written = openai.encode(message)
    assert openai.decode([orjson.loads(written)], model=MODEL) == (message,)
    assert openai.encode(message) == written


@given(responses_messages)
def test_responses_read_back_what_they_wrote(message: Message):
    written = encode((message,), "openai-responses")
    assert decode(written, "openai-responses", model=MODEL) == (message,)
    assert decode({"input": written}, "openai-responses", model=MODEL) == (message,)
    assert encode((message,), "openai-responses") == written


@given(anthropic_messages)
def test_anthropic_reads_back_what_it_wrote(message: Message):
    role, blocks = anthropic.encode(message)
    turn = {"role": role, "content": orjson.loads(b"[" + blocks + b"]")}
    assert anthropic.decode([turn], model=MODEL) == (message,)
    assert anthropic.encode(message) == (role, blocks)


@given(gemini_messages)
def test_gemini_reads_back_what_it_wrote(message: Message):
    turn = gemini_turn(message)
    # The name of the tool stands on its call.
    known = replace(message, tool_name="") if isinstance(message, ToolMessage) else message
    assert gemini.decode([turn], model=MODEL) == (known,)
    assert gemini_turn(message) == turn


@given(agui_messages)
def test_agui_reads_back_what_it_wrote_and_the_protocols_own_models_take_it(message: Message):
    written = agui.encode(message)
    ours = orjson.loads(written)
    assert agui.decode([ours]) == (message,)
    assert agui.encode(message) == written
    assert orjson.loads(THEIRS.dump_json(THEIRS.validate_python(ours), by_alias=True)) == ours


@given(st.data(), st.sampled_from(FORMATS))
def test_any_json_is_a_conversation_or_refused_with_words(data: st.DataObject, wire: str):
    value = data.draw(damaged(wire) | anything)
    try:
        read = decode(value, wire)
    except RectoError as refused:
        assert str(refused)
    else:
        assert {message.role for message in read} <= set(get_args(Role))


@given(st.data(), st.sampled_from(("openai", "ag-ui")))
def test_what_was_read_can_be_written_and_read_again(data: st.DataObject, wire: Literal["openai", "ag-ui"]):
    try:
        read = decode(data.draw(damaged(wire)), wire)
    except RectoError:
        return
    assert [message.role for message in decode(encode(read, wire), wire)] == [message.role for message in read]
