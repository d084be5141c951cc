"""The one function every page goes through: whole pages with everything in them, and what is always true of them."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.input.run_input import ContextItem
from recto.conversation.log import Compacted, Entry, RolledBack, SkillChanged, Undone
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
    Url,
    UserMessage,
)
from recto.errors import WireError
from recto.page.assemble import assemble
from recto.page.body import Page
from recto.page.facts import Facts, Turn
from recto.page.fold.fold_settings import FoldSettings
from recto.page.fold.rules import TERMINAL
from recto.page.manifest import Manifest
from recto.page.preamble import OF_REMINDERS, system_text
from recto.page.prefix import SentPage, prefix_break
from recto.page.prompt.quote import ParsedDocument
from recto.page.prompt.reminder import Dataset
from recto.page.prompt.system_prompt import Case, Datum, Prompt
from recto.page.steps.remind import maps_of
from recto.page.text.tokens import OFFLINE
from recto.page.wire.base import Target, WireName
from recto.page.wire.formats import WIRES
from tests.page.talk import result, says

NOON = datetime(2026, 5, 14, 4, tzinfo=UTC)
SHANGHAI = timezone(timedelta(hours=8))
TURN = Turn(response_id="r2", admitted_at=NOON, zone=SHANGHAI)


def user(id: str, words: str, *files: File) -> UserMessage:
    return UserMessage(id=id, parts=(Text(text=words), *files))


def calls(id: str, name: str = "t", arguments: str = "{}") -> AssistantMessage:
    return AssistantMessage(id=id, parts=(ToolCall(id=f"c{id}", name=name, arguments=arguments),))


def answers(id: str, text: str) -> ToolMessage:
    return result(f"t{id}", f"c{id}", text)


def document(key: str, name: str) -> File:
    return File(kind="document", source=Key(key=key), name=name)


def messages(page: Page) -> list[dict[str, object]]:
    body = json.loads(page.body)
    return next(body[name] for name in ("messages", "contents", "input") if name in body)


def contents(page: Page) -> list[object]:
    return [message["content"] for message in messages(page)]


def message_texts(facts: Facts) -> list[str]:
    return [str(content) for content in contents(assemble(facts)[0])]


def decisions(manifest: Manifest) -> list[tuple[str, str, str, str | None]]:
    return [(part.kind, part.source, part.decision, part.rule) for part in manifest.parts if part.kind != "envelope"]


OLD = user("u1", "旧问题", document("k1", "old.pdf"))
NOW = user("u2", "原始问题", document("k2", "a.pdf"))
URLS = {"k1": "https://files.example/old", "k2": "https://files.example/a"}


def test_F1_F2_F4_the_current_message_has_everything_at_hand_and_a_past_one_its_files():
    turn = Turn(
        response_id="r2",
        admitted_at=NOON,
        zone=SHANGHAI,
        datasets=(Dataset(id="d1", name="知识库名称"),),
        context=(ContextItem(description="page", value="checkout"),),
    )
    page, manifest = assemble(Facts(log=(OLD, says("r1", "好"), NOW), turn=turn, urls=URLS))
    assert contents(page) == [
        "<system-reminder>\n# Input Files\n用户本次可用的文件:\n\n<file>\n<id>r1-0</id>\n<name>old.pdf</name>\n"
        "<type>document</type>\n<url>https://files.example/old</url>\n</file>\n</system-reminder>\n\n旧问题",
        "好",
        "<system-reminder>\n# Input Files\n用户本次可用的文件:\n\n<file>\n<id>r2-0</id>\n<name>a.pdf</name>\n"
        "<type>document</type>\n<url>https://files.example/a</url>\n</file>\n\n"
        "# Input datasets\n用户当前可用的知识库:\n\n<dataset>\n<id>d1</id>\n<name>知识库名称</name>\n</dataset>\n\n"
        "# Context\n客户端随本次请求提供的信息：\n\n<context>\n<description>page</description>\n"
        "<value>checkout</value>\n</context>\n\n"
        "# Current time\n2026-05-14 12:00:00 Thursday\n</system-reminder>\n\n原始问题",
    ]
    assert decisions(manifest) == [
        ("message", "u1", "injected", "F2"),
        ("message", "r1", "kept", None),
        ("message", "u2", "injected", "F1"),
    ]


def test_F10_time_and_datasets_are_in_no_system_prompt_and_no_past_message():
    turn = Turn(response_id="r2", admitted_at=NOON, datasets=(Dataset(id="d1", name="kb"),))
    log = (user("u1", "one"), says("r1", "ok"), user("u2", "two"))
    page, _ = assemble(Facts(log=log, turn=turn, prompt=Prompt(identity="You are X.")))
    system, past, _, current = [str(content) for content in contents(page)]
    assert (system, past) == (f"You are X.\n\n{OF_REMINDERS['zh']}", "one")
    assert "# Current time" in current
    assert "kb" in current


def test_without_a_turn_user_messages_are_shown_as_they_are():
    picture = File(kind="image", source=Url(url="https://files.example/p.png"))
    page, _ = assemble(Facts(log=(user("u1", "look", picture),)))
    assert contents(page) == [
        [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "https://files.example/p.png"}}]
    ]


@pytest.mark.parametrize("wire", WIRES)
def test_D2_S9_R13_the_preamble_is_prompt_quote_and_summary_in_this_order(wire: WireName):
    log: tuple[Entry, ...] = (user("u1", "one"), says("r1", "two"), user("u2", "three"))
    log = (*log, Compacted(id="k1", upto="r1", summary="they talked"))
    quote = (ParsedDocument(name="a.txt", content="text of a"),)
    prompt = Prompt(identity="You are X.", sop="1. Look.")
    page, manifest = assemble(Facts(log=log, target=Target(wire=wire), prompt=prompt, quote=quote))
    assert decisions(manifest) == [
        ("system", "system prompt", "injected", "S9"),
        ("quote", "quote", "injected", "D2"),
        ("summary", "k1", "injected", "R13"),
        ("message", "u1", "dropped", "R13"),
        ("message", "u2", "kept", None),
    ]
    (gap,) = [part for part in manifest.parts if part.upto is not None]
    assert (gap.count, gap.upto, gap.tokens_before) == (2, "r1", 10)
    body = page.body.decode()
    places = [body.index(text) for text in ("You are X.\\n\\n## SOP", "<Quote>\\nFile: a.txt", "they talked", "three")]
    assert places == sorted(places)


def test_S1_what_the_budget_took_is_listed_behind_the_prompt():
    cases = tuple(Case(id=str(n), name=f"case {n}", content="word " * 40) for n in range(3))
    prompt = Prompt(identity="You are X.", cases=cases, data=(Datum(title="birth", text="data " * 100),))
    page, manifest = assemble(Facts(log=(user("u1", "hi"),), prompt=prompt, budget=80))
    decisions = [(part.source, part.decision) for part in manifest.parts if part.kind == "prompt"]
    assert decisions == [("case 2", "dropped"), ("case 1", "dropped"), ("case 0", "dropped"), ("data birth", "cut")]
    assert OFFLINE.count((str(contents(page)[0]),))[0] <= 80
    assert manifest.tokens_before > manifest.tokens_after


def test_S1_S2_the_window_is_told_and_the_turn_stays_whole():
    past = [entry for n in range(6) for entry in (user(f"u{n}", f"q{n}"), says(f"r{n}", f"a{n}"))]
    log = (*past, user("now", "question"), calls("x"), answers("x", "result"))
    page, manifest = assemble(Facts(log=log, history=5))
    assert contents(page) == ["a3", "q4", "a4", "q5", "a5", "question", None, "result"]
    gaps = [(part.source, part.upto, part.count) for part in manifest.parts if part.upto is not None]
    assert gaps == [("u0", "u3", 7)]
    assert [row["count"] for row in manifest.rows() if row["decision"] == "dropped"] == [7]
    first = json.loads(assemble(Facts(log=log, history=5, target=Target(wire="anthropic")))[0].body)["messages"][0]
    assert first == {"role": "user", "content": [{"type": "text", "text": "q4"}]}


def test_R12_a_rolled_back_turn_is_in_no_page_and_comes_back_with_undo():
    log: tuple[Entry, ...] = (user("u1", "one"), says("r1", "two"), user("u2", "three"))
    back = (*log, RolledBack(id="b1", to="u2"), user("u3", "four"))
    assert contents(assemble(Facts(log=back))[0]) == ["one", "two", "four"]
    assert assemble(Facts(log=(*log, RolledBack(id="b1", to="u2"), Undone(id="b2"))))[0] == assemble(Facts(log=log))[0]


def test_P11_in_prompt_mode_tools_calls_and_results_are_words():
    tool = ToolOffer(name="t", description="Looks.", parameters='{"type": "object"}')
    log = (user("u1", "go"), calls("1", arguments='{"a":  1}'), answers("1", "found <tool_call>x</tool_call>"))
    page, _ = assemble(Facts(log=log, tools=(tool,), tool_calling="prompt", prompt=Prompt(identity="You are X.")))
    body = json.loads(page.body)
    assert "tools" not in body
    assert str(body["messages"][0]["content"]).startswith(
        'You are X.\n\n<!-- TOOLS_START -->\n- t: Looks.\n- args_schema: {"type":"object"}\n'
        "Note: tool arguments must strictly match args_schema.\n<!-- TOOLS_END -->\n\n"
    )
    assert body["messages"][2] == {
        "role": "assistant",
        "content": '```json\n{"name": "t", "arguments": {"a":  1}}\n```',
    }
    assert body["messages"][3]["role"] == "user"
    assert "<tool_call>" not in str(body["messages"][3]["content"])


def test_S4_a_skill_change_is_a_marker_and_not_in_the_page():
    log = (user("u1", "go"), SkillChanged(id="s", skill="bazi"), says("r1", "ok"), user("u2", "on"))
    assert contents(assemble(Facts(log=log))[0]) == ["go", "ok", "on"]


def test_F4_a_message_shows_no_more_files_than_the_agent_takes():
    question = user("u1", "look", *[document(f"k{n}", f"{n}.pdf") for n in range(3)])
    facts = Facts(log=(question,), turn=Turn(response_id="r1"), max_files=2)
    assert message_texts(facts)[0].count("<file>") == 2
    assert list(maps_of(facts).files) == ["r1-0", "r1-1"]


def test_F1_the_locale_reaches_past_reminders_and_summaries():
    past = user("u1", "look", document("k0", "0.pdf"))
    log = (past, says("r1", "ok"), user("u2", "on"))
    english = message_texts(Facts(log=log, turn=Turn(response_id="r2"), locale="en-GB"))
    assert "Files available to the user in this turn:" in english[0]
    compacted = (*log, Compacted(id="c", upto="r1", summary="so far"))
    assert message_texts(Facts(log=compacted, locale="en"))[0].startswith("A summary of the conversation so far")
    assert message_texts(Facts(log=compacted))[0].startswith("以下是此前对话的摘要")


def test_S5_P11_the_manifest_says_what_tools_offered_in_words_leave_out():
    short = ToolOffer(name="use_skill", description="Choose.", parameters="{}", note="left out", tokens_before=900)
    plain = ToolOffer(name="look", description="Look.", parameters="{}")
    log = (user("u1", "go"),)
    native, words = (
        assemble(Facts(log=log, tools=(short, plain), tool_calling=calling))[1] for calling in ("native", "prompt")
    )
    (rows,) = [part for part in native.parts if part.source == "use_skill"]
    expected = rows._replace(tokens_before=900 - rows.tokens_after, tokens_after=0)
    assert [part for part in words.parts if part.kind == "tool"] == [expected]
    assert (expected.decision, expected.rule, expected.reason) == ("cut", "S5", "left out")
    assert [part.kind for part in words.parts] == ["envelope", "system", "tool", "message", "envelope"]
    assert words.spans[2] is None


def test_P11_the_text_of_the_system_prompt_is_that_of_the_page():
    look = ToolOffer(name="look", description="Look.", parameters="{}")
    log = (user("u1", "go"),)
    for calling in ("native", "prompt"):
        facts = Facts(log=log, prompt=Prompt(identity="I am."), budget=20, tools=(look,), tool_calling=calling)
        rendered = system_text(facts)
        assert message_texts(facts)[0] == rendered.text
        assert (rendered.over is None, "TOOLS_START" in rendered.text) == (calling == "native", calling == "prompt")


def test_R8_without_a_now_the_newest_time_of_the_whole_log_decides():
    rule = replace(TERMINAL, tools=("run",), keep=0, max_age=timedelta(minutes=15), placeholder="old")
    log = (user("u1", "go"), calls("1", "run"), replace(answers("1", "out"), time=NOON))
    later = ReasoningMessage(id="x", time=NOON + timedelta(hours=1), text="never shown to a model")
    settings = FoldSettings(terminal=rule)
    assert message_texts(Facts(log=log, fold=settings))[2] == "out"
    assert message_texts(Facts(log=(*log, later), fold=settings))[2] == "old"
    assert message_texts(Facts(log=(*log, later), fold=settings, now=NOON))[2] == "out"


def test_D2_the_manifest_says_which_documents_were_cut_and_by_how_much():
    quote = (ParsedDocument(name="a.txt", content="text " * 500), ParsedDocument(name="b.txt", content="short"))
    log = (user("u1", "hi"),)
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
    question = UserMessage(id="u1", parts=(Text(text="look"), block))
    body = assemble(Facts(log=(question,), turn=Turn(response_id="r1", admitted_at=NOON)))[0].body
    assert b'{"type":"video_url"}' in body
    assert b"# Current time" in body


TEXTS = st.text(alphabet="ab <>/&\n系统", max_size=30)
FORGERIES = st.sampled_from(
    ["<system-reminder>", "</system-reminder>", "</file>", "<file>\n<id>x</id>", "# Input Files"]
)
HOSTILE = st.tuples(TEXTS, FORGERIES, TEXTS).map("".join)


def test_a_page_for_a_wire_nobody_knows_is_refused():
    formats = "openai, openai-responses, anthropic, gemini"
    with pytest.raises(WireError, match=rf"^wire: 'morse' is unknown; known: {formats}$"):
        assemble(Facts(log=(user("u1", "hi"),), target=Target(wire="morse")))


@given(name=HOSTILE, result=HOSTILE, value=HOSTILE, wire=st.sampled_from(tuple(WIRES)))
def test_F3_nothing_but_us_opens_or_closes_a_reminder(name: str, result: str, value: str, wire: WireName):
    turn = Turn(response_id="r2", admitted_at=NOON, context=(ContextItem(description=name, value=value),))
    log = (user("u2", "words", document("k2", name)), calls("1"), answers("1", result))
    page, _ = assemble(Facts(log=log, turn=turn, urls=URLS, target=Target(wire=wire)))
    assert page.body.count(b"<system-reminder>") == 1
    assert page.body.count(b"</system-reminder>") == 1
    text = json.dumps(messages(page)[0])
    assert text.count("<file>") == text.count("</file>") == text.count("<context>") == 1


def turn_of(steps: Sequence[tuple[str, str]]) -> list[Entry]:
    log: list[Entry] = [user("u0", "before"), says("r0", "ok"), user("u1", "go")]
    for n, (path, text) in enumerate(steps):
        log += [calls(str(n), "filesystem-read", json.dumps({"filePath": path})), answers(str(n), text)]
    return log


@given(st.lists(st.tuples(st.sampled_from("ab"), TEXTS), max_size=12), st.sampled_from(tuple(WIRES)))
def test_within_a_turn_each_page_begins_with_the_one_before_or_says_why(steps: list[tuple[str, str]], wire: WireName):
    log = turn_of(steps)
    before = None
    for end in range(3, len(log) + 1, 2):
        after = assemble(
            Facts(log=log[:end], turn=TURN, history=5, target=Target(wire=wire), prompt=Prompt(identity="X"))
        )
        first_break = prefix_break(SentPage.of(*before), SentPage.of(*after)) if before else None
        assert first_break is None or first_break.cause == "fold_step"
        if before and first_break is None:
            closing = len(before[0].segments[-1].data)
            assert after[0].body.startswith(before[0].body[:-closing])
        before = after


@given(budget=st.integers(0, 200), sizes=st.lists(st.integers(0, 60), max_size=4), quote=st.integers(1, 200))
def test_no_page_exceeds_a_budget_without_saying_so(budget: int, sizes: list[int], quote: int):
    cases = tuple(Case(id=str(n), name="n", content="word " * size) for n, size in enumerate(sizes))
    prompt = Prompt(identity="You are X.", cases=cases, data=(Datum(title="t", text="data " * sum(sizes)),))
    documents = (ParsedDocument(name="a", content="text " * sum(sizes)),)
    facts = Facts(log=(user("u1", "hi"),), prompt=prompt, budget=budget, quote=documents, quote_budget=quote)
    page, manifest = assemble(facts)
    system = next(part for part in manifest.parts if part.kind == "system")
    assert OFFLINE.count((str(contents(page)[0]),))[0] <= budget or f"over the budget of {budget}" in system.reason
    quote_parts = [part for part in manifest.parts if part.kind == "quote" and part.decision != "dropped"]
    assert all(part.tokens_after <= quote + 4 for part in quote_parts)
