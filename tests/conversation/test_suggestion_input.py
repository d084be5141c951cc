"""A wish for suggestions as CopilotKit sends it (P15): a tool that must be called, and words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.input.suggestion_input import SUGGEST, forced_tool, read_suggestion
from recto.conversation.json import Json
from recto.conversation.messages import AssistantMessage, UserMessage, words_of
from recto.errors import WireError

TOOL: dict[str, Json] = {"name": SUGGEST, "description": "Suggest", "parameters": {"type": "object"}}
PROPS: dict[str, Json] = {"toolChoice": {"type": "function", "function": {"name": SUGGEST}}, "tenant": "t"}
ASK: dict[str, Json] = {"id": "s1", "role": "user", "content": "Suggest what the user could say next."}
CALL: Json = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def wish(*messages: Json, **rest: Json) -> dict[str, Json]:
    body: dict[str, Json] = {"threadId": "s1", "runId": "r1", "tools": [TOOL], "forwardedProps": PROPS}
    return {**body, "messages": [*messages, ASK], **rest}


def test_P15_a_wish_has_its_tool_its_context_and_the_words_of_its_history():
    picture: Json = {"type": "image", "source": {"type": "data", "value": "QQ==", "mimeType": "image/png"}}
    suggestion = read_suggestion(
        wish(
            {"id": "0", "role": "system", "content": "You are mine."},
            {"id": "1", "role": "user", "content": [{"type": "text", "text": "Look"}, picture]},
            {"id": "2", "role": "assistant", "content": "I see.", "toolCalls": [CALL]},
            {"id": "3", "role": "tool", "toolCallId": "c1", "content": "result"},
            {"id": "4", "role": "assistant", "toolCalls": [CALL]},
            {"id": "5", "role": "reasoning", "content": "hm"},
            context=[{"description": "page", "value": "orders"}],
        )
    )
    assert [(type(one), words_of(one)) for one in suggestion.messages] == [
        (UserMessage, "Look"),
        (AssistantMessage, "I see."),
        (UserMessage, ASK["content"]),
    ]
    assert (suggestion.thread, suggestion.run, suggestion.tool.name, suggestion.protocol) == ("s1", "r1", SUGGEST, None)
    assert [(item.description, item.value) for item in suggestion.context] == [("page", "orders")]


@pytest.mark.parametrize(
    "broken", [None, 7, {}, {"role": "user"}, {"id": "1", "role": "user", "content": 3}, {"id": "1", "role": "new"}]
)
def test_P15_a_broken_message_of_the_history_harms_nothing(broken: Json):
    assert [words_of(one) for one in read_suggestion(wish(broken)).messages] == [ASK["content"]]


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"tools": []}, "forwardedProps.toolChoice"),
        ({"forwardedProps": {"toolChoice": "auto"}}, "forwardedProps.toolChoice"),
        ({"messages": [{"id": "1", "role": "assistant", "content": "Hi"}]}, "messages"),
        ({"messages": None}, "messages"),
        ({"threadId": None}, "threadId"),
        ({"tools": [7]}, "tools[0]"),
    ],
)
def test_P15_a_wish_that_is_none_names_the_field(change: dict[str, Json], where: str):
    with pytest.raises(WireError) as wrong:
        read_suggestion({**wish(), **change})
    assert wrong.value.where == where


FIELD = st.sampled_from(["forwardedProps", "toolChoice", "function", "name", "messages", "tools", "role", "content"])
ANY = st.recursive(
    st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(FIELD, inner), max_leaves=6
)


@given(ANY)
def test_P15_whatever_comes_is_a_wish_or_is_refused(value: Json):
    assert forced_tool(value) is None or isinstance(forced_tool(value), str)
    try:
        parsed_input = read_suggestion(value)
    except WireError:
        return
    assert parsed_input.messages
