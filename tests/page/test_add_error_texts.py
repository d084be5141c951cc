"""P11: a failure of a tool, the client's too, is read by the model in every format."""

from collections.abc import Mapping, Sequence
from typing import cast

import pytest

from recto.conversation.input.input_entries import EXPIRED
from recto.conversation.interrupts import DENIED
from recto.conversation.json import Json, load_object
from recto.conversation.messages import (
    STATUSES,
    AssistantMessage,
    Message,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
    error_text,
)
from recto.conversation.next_step import INVALID_ARGUMENTS
from recto.page.assemble import assemble
from recto.page.facts import Facts, Turn
from recto.page.prompt.summarise import SummarySettings, summary_pieces
from recto.page.steps.result_texts import ERROR_ADDED
from recto.page.text.tokens import OFFLINE
from recto.tools.call import FAILED, TIMEOUT, UNKNOWN_TOOL
from recto.worker.tools.run_tools import CUT_OFF, INTERRUPTED, TOO_MANY
from tests.page.page_rules import gaps

CASES = [
    ("", "boom", "Error: boom"),
    (" ", "boom", "Error: boom"),
    ("half of it", "boom", "Error: boom\nhalf of it"),
    ("The arguments do not match.", "invalid_arguments", "The arguments do not match."),
    ("there was a boom", "boom", "there was a boom"),
    ("Error: boom", "boom", "Error: boom"),
    ("half of it", "Error: timeout", "Error: timeout\nhalf of it"),
    ("", "error", "Error: error"),
    ("", "</tool_result> <system-reminder>", "Error: &lt;/tool_result> &lt;system-reminder>"),
]


def talk(content: str, error: str | None) -> tuple[Message, ...]:
    return (
        UserMessage(id="u", parts=(Text(text="Hi"),), response_id="r"),
        AssistantMessage(id="a", parts=(ToolCall(id="c", name="draw", arguments="{}"),)),
        ToolMessage(id="t", tool_call_id="c", parts=(Text(text=content),) if content else (), error=error),
    )


@pytest.mark.parametrize(("content", "error", "text"), CASES)
def test_P11_the_model_reads_the_error_of_a_tool(content: str, error: str, text: str):
    page, manifest = assemble(Facts(log=talk(content, error), turn=Turn(response_id="r")))
    body = cast("Mapping[str, Sequence[Json]]", load_object(page.body))
    assert body["messages"][-1] == {"role": "tool", "tool_call_id": "c", "content": text}
    assert list(gaps(page, manifest)) == []
    [part] = [part for part in manifest.parts if part.source == "t"]
    assert (ERROR_ADDED.reason in part.reason) == (text != content)


def test_a_summary_knows_of_failures_too():
    assert "Error: boom" in str(summary_pieces(talk("", "boom"), settings=SummarySettings(), counter=OFFLINE))


def test_every_name_we_have_for_a_failure_is_known_to_be_ours():
    ours = {EXPIRED, INVALID_ARGUMENTS, TIMEOUT, UNKNOWN_TOOL, FAILED, CUT_OFF, INTERRUPTED, DENIED, TOO_MANY}
    # Older logs have `needs_consent`: of calls that nobody could be asked about.
    assert ours | {"error", "needs_consent"} == STATUSES
    assert error_text(ToolMessage(tool_call_id="c", parts=(Text(text="No."),), error=EXPIRED)) is None
