"""P14: hints are for clients; the model sees the result without them, and the log keeps them."""

from datetime import UTC, datetime

import pytest

from recto.conversation.json import load_object
from recto.conversation.messages import AssistantMessage, Text, ToolCall, ToolMessage, UserMessage
from recto.page.assemble import assemble
from recto.page.facts import Facts, Turn
from recto.page.steps.result_texts import HINTS_LEFT_OUT, strip_ui_hints

TIME = datetime(2026, 1, 1, tzinfo=UTC)


def talk(result: str) -> tuple[UserMessage, AssistantMessage, ToolMessage]:
    return (
        UserMessage(id="u", time=TIME, parts=(Text(text="Hi"),), response_id="r"),
        AssistantMessage(id="a", parts=(ToolCall(id="c", name="draw", arguments="{}"),)),
        ToolMessage(id="t", tool_call_id="c", parts=(Text(text=result),)),
    )


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ('{"cards": ["愚者"], "ui_hints": {"title": "T"}}', '{"cards":["愚者"]}'),
        ('{"ui_hints": {}}', "{}"),
        ('{"a": {"ui_hints": 1}}', '{"a": {"ui_hints": 1}}'),
        ('It said "ui_hints"', 'It said "ui_hints"'),
        ('["ui_hints"]', '["ui_hints"]'),
        ('{"ui_hints": 1}\n\n(You made this very call)', '{"ui_hints": 1}\n\n(You made this very call)'),
    ],
)
def test_P14_the_model_sees_a_result_without_its_hints(result: str, text: str):
    draft = strip_ui_hints(talk(result))
    assert draft.messages[-1] == talk(text)[-1]
    assert dict(draft.notes) == ({2: HINTS_LEFT_OUT} if result != text else {})


def test_P14_the_page_has_no_hints_and_the_manifest_says_so():
    log = talk('{"cards": ["愚者"], "ui_hints": {"title": "T", "body": "long"}}')
    page, manifest = assemble(Facts(log=log, turn=Turn(response_id="r")))
    assert b"ui_hints" not in page.body
    (part,) = [part for part in manifest.parts if part.source == "t"]
    assert (part.decision, part.rule) == ("cut", "P14")
    assert part.tokens_after < part.tokens_before


def test_P14_a_conversation_of_others_is_left_as_it_is():
    log = talk('{"ui_hints": {"title": "T"}}')
    page, _ = assemble(Facts(log=log))
    assert b"ui_hints" in page.body
    assert load_object(page.body)
