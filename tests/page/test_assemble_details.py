"""Facts reach the part of the page they are for, each of them."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from recto.conversation.log import Compacted, Entry
from recto.conversation.messages import (
    AssistantMessage,
    File,
    Key,
    Opaque,
    ReasoningMessage,
    Text,
    ToolCall,
    ToolMessage,
    ToolOffer,
    UserMessage,
)
from recto.page.assemble import assemble
from recto.page.facts import Facts, Turn
from recto.page.fold.fold_settings import FoldSettings
from recto.page.fold.rules import TERMINAL
from recto.page.preamble import system_text
from recto.page.prompt.quote import ParsedDocument
from recto.page.prompt.system_prompt import Prompt
from recto.page.steps.remind import maps_of

NOON = datetime(2026, 5, 14, 12, tzinfo=UTC)
DOCUMENTS = tuple(File(kind="document", source=Key(key=f"k{n}"), name=f"{n}.pdf") for n in range(3))


def said(facts: Facts) -> list[str]:
    return [str(message["content"]) for message in json.loads(assemble(facts)[0].body)["messages"]]


def test_F4_a_message_shows_no_more_files_than_the_agent_takes():
    asked = UserMessage(id="u1", parts=(Text(text="look"), *DOCUMENTS))
    facts = Facts(log=(asked,), turn=Turn(response_id="r1"), max_files=2)
    assert said(facts)[0].count("<file>") == 2
    assert list(maps_of(facts).files) == ["r1-0", "r1-1"]


def test_F1_the_locale_reaches_past_reminders_and_summaries():
    past = UserMessage(id="u1", parts=(Text(text="look"), DOCUMENTS[0]))
    log: tuple[Entry, ...] = (past, AssistantMessage(id="r1", parts=(Text(text="ok"),)))
    log = (*log, UserMessage(id="u2", parts=(Text(text="on"),)))
    english = said(Facts(log=log, turn=Turn(response_id="r2"), locale="en-GB"))
    assert "Files available to the user in this turn:" in english[0]
    compacted = (*log, Compacted(id="c", upto="r1", summary="so far"))
    assert said(Facts(log=compacted, locale="en"))[0].startswith("A summary of the conversation so far")
    assert said(Facts(log=compacted))[0].startswith("以下是此前对话的摘要")


def test_S5_P11_the_manifest_says_what_tools_offered_in_words_leave_out():
    short = ToolOffer(name="use_skill", description="Choose.", parameters="{}", note="left out", tokens_before=900)
    plain = ToolOffer(name="look", description="Look.", parameters="{}")
    log = (UserMessage(id="u1", parts=(Text(text="go"),)),)
    native, words = (
        assemble(Facts(log=log, tools=(short, plain), tool_calling=calling))[1] for calling in ("native", "prompt")
    )
    (sent,) = [part for part in native.parts if part.source == "use_skill"]
    expected = sent._replace(tokens_before=900 - sent.tokens_after, tokens_after=0)
    assert [part for part in words.parts if part.kind == "tool"] == [expected]
    assert (expected.decision, expected.rule, expected.reason) == ("cut", "S5", "left out")
    assert [part.kind for part in words.parts] == ["envelope", "system", "tool", "message", "envelope"]
    assert words.spans[2] is None


def test_P11_the_text_of_the_system_prompt_is_that_of_the_page():
    look = ToolOffer(name="look", description="Look.", parameters="{}")
    log = (UserMessage(id="u1", parts=(Text(text="go"),)),)
    for calling in ("native", "prompt"):
        facts = Facts(log=log, prompt=Prompt(identity="I am."), budget=20, tools=(look,), tool_calling=calling)
        rendered = system_text(facts)
        assert said(facts)[0] == rendered.text
        assert (rendered.over is None, "TOOLS_START" in rendered.text) == (calling == "native", calling == "prompt")


def test_R8_without_a_now_the_newest_time_of_the_whole_log_decides():
    rule = replace(TERMINAL, tools=("run",), keep=0, max_age=timedelta(minutes=15), placeholder="old")
    call = AssistantMessage(id="a1", parts=(ToolCall(id="c1", name="run", arguments="{}"),))
    result = ToolMessage(id="t1", time=NOON, tool_call_id="c1", parts=(Text(text="out"),))
    log: tuple[Entry, ...] = (UserMessage(id="u1", parts=(Text(text="go"),)), call, result)
    later = ReasoningMessage(id="x", time=NOON + timedelta(hours=1), text="never shown to a model")
    settings = FoldSettings(terminal=rule)
    assert said(Facts(log=log, fold=settings))[2] == "out"
    assert said(Facts(log=(*log, later), fold=settings))[2] == "old"
    assert said(Facts(log=(*log, later), fold=settings, now=NOON))[2] == "out"


def test_D2_the_manifest_says_which_documents_were_cut_and_by_how_much():
    quote = (ParsedDocument(name="a.txt", content="text " * 500), ParsedDocument(name="b.txt", content="short"))
    log = (UserMessage(id="u1", parts=(Text(text="hi"),)),)
    _, manifest = assemble(Facts(log=log, quote=quote, quote_budget=200))
    part = next(part for part in manifest.parts if part.kind == "quote")
    assert part.decision == "cut"
    assert "a.txt" in part.reason
    assert "b.txt" not in part.reason
    assert part.tokens_before > 500
    assert part.tokens_after <= 204
    _, manifest = assemble(Facts(log=log, quote=quote, quote_budget=3))
    assert [part.decision for part in manifest.parts if part.kind == "quote"] == ["dropped"]


def test_provider_state_in_a_user_message_survives_its_reminder():
    block = Opaque(provider="openai", model=None, place="block", name="video_url", data='{"type":"video_url"}')
    asked = UserMessage(id="u1", parts=(Text(text="look"), block))
    body = assemble(Facts(log=(asked,), turn=Turn(response_id="r1", admitted=NOON)))[0].body
    assert b'{"type":"video_url"}' in body
    assert b"# Current time" in body
