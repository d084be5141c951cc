"""P14: what is shown of a result or an answer is the same in events and in history, and no hints break either."""

import json

import pytest
from ag_ui.core import events as official
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from recto.conversation.events import UiUpdate, encode_event, for_older_client
from recto.conversation.json import Json, dump
from recto.conversation.ui.compile_ui import compile_ui, load_hinted, ui_events, ui_of

PARSER: TypeAdapter[official.Event] = TypeAdapter(official.Event)
HINTS: Json = {"title": "八字", "fields": {"日主": "庚金"}}
WORDS = dump({"status": "computed", "ui_hints": HINTS}).decode()
hints = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just("javascript:alert(1)"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(("title", "body", "items", "table", "root", "type", "x")), inner, max_size=3)
    ),
    max_leaves=8,
)


def test_P14_a_result_with_hints_has_an_event_with_its_schema_under_its_message():
    schema = compile_ui(HINTS, locale="zh-CN")
    assert schema
    assert ui_events("m", WORDS, "zh") == (UiUpdate(message="m", schema=schema),)


@pytest.mark.parametrize(
    "content",
    ["", "ui_hints", '{"ui_hints": ', '{"ui_hints":{}}', '{"ui_hints":null}', '["ui_hints"]', None, 7, [], {"a": 1}],
)
def test_P14_what_has_no_hints_has_no_schema(content: Json):
    assert ui_events("m", content, "zh") == ()


def test_P14_hints_are_found_in_a_text_part_beside_others():
    parts: Json = [{"type": "image", "source": {"type": "url", "value": "x"}}, {"type": "text", "text": WORDS}, 7]
    assert ui_of(parts) == ui_of(WORDS)


@pytest.mark.parametrize(("locale", "name"), [("zh", "zh-CN"), ("en", "en-US"), ("en-GB", "en-GB"), ("<b>", "zh-CN")])
def test_P14_an_agent_s_language_is_named_as_clients_know_it(locale: str, name: str):
    assert (ui_of(WORDS, locale) or {})["locale"] == name


@given(hints)
def test_P14_any_hints_make_an_event_that_clients_take_old_and_new(raw_hints: Json):
    for event in ui_events("m", dump({"ui_hints": raw_hints}).decode(), "en"):
        (body,) = encode_event(event)
        assert PARSER.validate_json(body).type.value == "CUSTOM"
        assert for_older_client(body) is body
        assert b":null" not in body


def test_P14_only_an_object_with_the_key_itself_has_hints():
    assert load_hinted(WORDS) == json.loads(WORDS)
    assert load_hinted('{"a": {"ui_hints": {"title": "x"}}}') is None
