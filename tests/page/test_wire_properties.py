"""Wires, for any message they can carry: what is written is read back. For any JSON: nothing but a WireError."""

from dataclasses import replace
from typing import Literal, get_args

import orjson
import pytest
from ag_ui.core import Message as Theirs
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from recto.conversation.messages import Message, ToolMessage
from recto.errors import RectoError
from recto.page.wire.formats import AGUI, WIRES, decode, encode
from tests.page.wire_strategies import CARRIED, MODEL, agui_messages, anything, damaged, encode_with

THEIRS: TypeAdapter[Theirs] = TypeAdapter(Theirs)
Role = Literal["user", "assistant", "tool", "system", "developer", "reasoning", "activity"]
FORMATS = (*WIRES, AGUI)


@pytest.mark.parametrize("wire", FORMATS)
@given(st.data())
def test_what_was_written_is_read_back_whole(wire: str, data: st.DataObject):
    message = data.draw(CARRIED[wire])
    text = encode_with(message, wire)
    # The name of a tool stands on its call.
    plain_message = replace(message, tool_name="") if isinstance(message, ToolMessage) else message
    assert decode(orjson.loads(f"[{text}]"), wire, model=MODEL) == (plain_message,)
    assert encode_with(message, wire) == text


@given(agui_messages)
def test_the_protocols_own_models_take_what_was_written(message: Message):
    ours = orjson.loads(encode_with(message, AGUI))
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
