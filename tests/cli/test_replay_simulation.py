"""A replay beside a naive one: prefixes, evidence, files read again, policies, sums."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.cli.replay.policies import POLICIES, PageChanges
from recto.cli.replay.replay_command import plot_svg
from recto.cli.replay.results import (
    NONE,
    Evidence,
    PlayedCall,
    ReplayedSession,
    evidence,
    lines_in,
    play,
    quoted_lines,
    replay_session,
    share_saved,
    worst_point,
)
from recto.cli.replay.stretches import CallStretch, ReplaySettings, SessionCall, stretches_of
from recto.cli.sessions.reader import read_session
from recto.cli.sessions.session import Session, SessionCompaction
from recto.conversation.json import dump
from recto.conversation.messages import AssistantMessage, Message, Opaque, Text, ToolCall, ToolMessage, UserMessage
from recto.errors import NoPrice, NotAConversation
from recto.models.ports import Usage
from recto.models.prices import Price, Prices
from recto.page.fold.agent_tools import CLAUDE_CODE, CODER, CODEX, OPENCODE, PI, AgentTools, known_tools
from recto.page.text.tokens import OFFLINE, tokens_of
from tests.long_session import EACH_SESSION, TracedSession

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
MODEL = "anthropic:claude-opus-4-5"
LIST = Prices(
    currency="USD",
    as_of=AT.date(),
    prices=(
        Price(
            models=("anthropic:*",),
            input=Decimal(5),
            output=Decimal(25),
            cached=Decimal("0.5"),
            cache_write=Decimal("6.25"),
        ),
        Price(models=("plain:*",), input=Decimal(2), output=Decimal(10)),
        Price(models=("short:*",), input=Decimal(2), output=Decimal(10), up_to=10),
    ),
)
SETTINGS = ReplaySettings(prices=LIST, policies=tuple(POLICIES))
LINES = ("a = 1", "b = 2", "return a", "}", "if b:")


def user(text: str = "go", minute: float = 0) -> UserMessage:
    return UserMessage(time=AT + timedelta(minutes=minute), parts=(Text(text=text),))


def make_call(id: str, tool: str = "read", **arguments: object) -> AssistantMessage:
    call = ToolCall(id=id, name=tool, arguments=dump(arguments or {"path": "a.py"}).decode())
    return AssistantMessage(id=f"m-{id}", time=AT, parts=(call,))


def result(id: str, text: str = "x = 1", minute: float = 0) -> ToolMessage:
    time = AT + timedelta(minutes=minute)
    return ToolMessage(id=f"r-{id}", time=time, tool_call_id=id, parts=(Text(text=text),))


def session_of(*messages: Message, **fields: object) -> Session:
    session_read = Session(format="pi", messages=messages, tools=PI, model=MODEL)
    return replace(session_read, **fields)


def numbers(traced: TracedSession, **fields: object) -> ReplayedSession:
    settings = replace(SETTINGS, **{"model": MODEL, **fields})
    return replay_session(read_session(traced.data, source=traced.name), traced.name, settings)


# Made stretches and the changes that some policy might make in them


@st.composite
def messages(draw: st.DrawFn) -> Message:
    text = "\n".join(draw(st.lists(st.sampled_from(LINES), max_size=3)))
    match draw(st.sampled_from(("user", "reply", "edit", "result", "result"))):
        case "user":
            return user(text)
        case "reply":
            return AssistantMessage(parts=(Text(text=text),))
        case "edit":
            return make_call("c", "edit", path="a.py", oldText=text, newText="new")
        case _:
            return result("c", text)


@st.composite
def played(draw: st.DrawFn) -> tuple[CallStretch, list[PageChanges]]:
    log_entries = draw(st.lists(messages(), max_size=14))
    places = [place for place, message in enumerate(log_entries) if isinstance(message, AssistantMessage)]
    calls = tuple(
        SessionCall(place=place, number=number, model=MODEL, output=1, is_cold=number == 1 or draw(st.booleans()))
        for number, place in enumerate(places, 1)
    )
    tokens = tuple(tokens_of(message, OFFLINE) for message in log_entries)
    steps: list[PageChanges] = []
    for call in calls:
        changed = draw(st.sets(st.integers(0, max(call.place - 1, 0)), max_size=2)) if call.place else set[int]()
        # Texts of their own: what changes is never what stood there.
        steps.append({place: result("c", f"folded {call.number} {place}") for place in changed})
    return CallStretch(messages=tuple(log_entries), calls=calls, tokens=tokens, before=draw(st.integers(0, 9))), steps


def naive_pages(stretch: CallStretch, steps: Sequence[PageChanges]) -> list[list[Message]]:
    """Each page written out anew."""
    pages: list[list[Message]] = []
    for number, call in enumerate(stretch.calls):
        changes: dict[int, Message] = {}
        for step in steps[: number + 1]:
            changes.update(step)
        pages.append([changes.get(place, message) for place, message in enumerate(stretch.messages[: call.place])])
    return pages


def naive_calls(stretch: CallStretch, steps: Sequence[PageChanges]) -> list[PlayedCall]:
    calls: list[PlayedCall] = []
    last: list[Message] = []
    for call, page in zip(stretch.calls, naive_pages(stretch, steps), strict=True):
        common = 0
        while common < len(last) and last[common] == page[common]:
            common += 1
        prefix = 0 if call.is_cold else stretch.before + sum(tokens_of(one, OFFLINE) for one in page[:common])
        size = stretch.before + sum(tokens_of(one, OFFLINE) for one in page)
        calls.append(PlayedCall(input=size, cached=prefix, breaks=common < len(last)))
        last = page
    return calls


@given(played())
def test_X2_the_cost_of_a_call_equals_a_naive_replay(case: tuple[CallStretch, list[PageChanges]]):
    stretch, steps = case
    assert list(play(stretch, steps)) == naive_calls(stretch, steps)


@given(played())
def test_evidence_equals_a_naive_search_of_each_page(case: tuple[CallStretch, list[PageChanges]]):
    stretch, steps = case
    quoted_count = kept_count = 0
    for call, page in zip(stretch.calls, naive_pages(stretch, steps), strict=True):
        visible_lines = {
            line for message in stretch.messages[: call.place] if message.role == "tool" for line in lines_in(message)
        }
        stands = {line for message in page for line in lines_in(message)}
        lines = quoted_lines(stretch.messages[call.place], PI) & visible_lines
        quoted_count, kept_count = quoted_count + len(lines), kept_count + len(lines & stands)
    assert evidence(stretch, steps, PI) == Evidence(quoted_count=quoted_count, kept_count=kept_count)


PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n a = 1\n-b = 2\n+b = 3\n*** End Patch"


@pytest.mark.parametrize(
    ("tools", "tool", "arguments"),
    [
        (PI, "edit", {"path": "a.py", "oldText": "a = 1\n  b = 2\n\n", "newText": "c"}),
        (PI, "edit", {"path": "a.py", "edits": [{"oldText": "a = 1"}, {"oldText": "b = 2", "newText": "c"}]}),
        (CLAUDE_CODE, "Edit", {"file_path": "a.py", "old_string": "a = 1\nb = 2", "new_string": "c"}),
        (CLAUDE_CODE, "MultiEdit", {"edits": [{"old_string": "a = 1"}, {"old_string": "\tb = 2"}]}),
        (CODEX, "apply_patch", {"input": PATCH}),
        (CODEX, "shell", {"command": ["apply_patch", PATCH]}),
        (OPENCODE, "edit", {"filePath": "a.py", "oldString": "a = 1\nb = 2", "newString": "c"}),
        (CODER, "filesystem-edit", {"filePath": "a.py", "searchContent": "a = 1\nb = 2", "replaceContent": "c"}),
    ],
)
def test_the_edits_of_every_agent_quote_the_lines_they_replace(
    tools: AgentTools, tool: str, arguments: Mapping[str, object]
):
    assert quoted_lines(make_call("c", tool, **arguments), tools) == {"a = 1", "b = 2"}
    # Whose session it is need not be known.
    plain = Session(format="openai", messages=())
    assert quoted_lines(make_call("c", tool, **arguments), known_tools(plain.tools)) == {"a = 1", "b = 2"}


@pytest.mark.parametrize("tool", ["write", "read", "unknown"])
def test_other_calls_quote_nothing(tool: str):
    assert quoted_lines(make_call("c", tool, path="a.py", content="a = 1", oldText=None), PI) == frozenset()
    assert quoted_lines(AssistantMessage(parts=(ToolCall(id="c", name="edit", arguments="{"),)), PI) == frozenset()


@pytest.mark.parametrize("text_shown", ["  7→    b = 2", "7\tb = 2", "00007| b = 2", "7: b = 2", "b = 2"])
def test_a_line_is_found_under_the_numbers_that_tools_give_it(text_shown: str):
    assert "b = 2" in lines_in(result("c", f"a\n{text_shown}\n"))


# How a session becomes calls


def test_a_call_is_cold_after_the_life_of_the_cache_and_where_the_model_is_another():
    messages = [user(), make_call("1"), result("1", minute=4), make_call("2"), result("2", minute=9.1), make_call("3")]
    last = (result("3", minute=9.2), make_call("4"))
    (stretch,) = stretches_of(session_of(*messages, *last, models={"m-4": "anthropic:other"}), SETTINGS)
    assert [call.is_cold for call in stretch.calls] == [True, False, True, True]
    (stretch,) = stretches_of(session_of(*messages, *last), replace(SETTINGS, cache_life=timedelta(minutes=6)))
    assert [call.is_cold for call in stretch.calls] == [True, False, False, False]


def test_with_cut_a_session_restarts_with_the_summary_and_the_kept_messages():
    messages = (user("one"), make_call("1"), result("1"), make_call("2"), user("two"), make_call("3"))
    session = session_of(*messages, compactions=(SessionCompaction(place=4, first_kept=3, summary="short"),))
    first, second = stretches_of(session, replace(SETTINGS, cut=True))
    assert first.messages == messages[:4]
    assert [message.role for message in second.messages] == ["user", "assistant", "user", "assistant"]
    assert second.messages[0] == UserMessage(parts=(Text(text="short"),))
    assert [(call.place, call.number, call.is_cold) for call in second.calls] == [(3, 3, True)]
    assert second.origin == 2
    (whole,) = stretches_of(session, SETTINGS)
    assert (whole.messages, len(whole.calls)) == (messages, 3)


def test_tokens_before_the_conversation_are_the_provider_count_minus_its_messages():
    messages = (user("one"), make_call("1"))
    count = tokens_of(messages[0], OFFLINE)
    for reported_tokens, before in ((count + 700, 700), (count - 1, 0)):
        (stretch,) = stretches_of(session_of(*messages, usages={"m-1": Usage(input=reported_tokens)}), SETTINGS)
        assert stretch.before == before
        (page,) = play(stretch, [{}])
        assert page.input == count + before


# Policies and what comes of them


def test_clear_folds_all_but_the_newest_results_in_one_step_once_a_page_is_long():
    messages: list[Message] = [user()]
    for number in range(8):
        messages += [make_call(str(number)), result(str(number), "word " * 100)]
    settings = replace(SETTINGS, policies=("clear",), clear_over=500, clear_keep=2)
    run = replay_session(session_of(*messages), "s", settings).runs["clear"]
    plain = replay_session(session_of(*messages), "s", settings).runs[NONE]
    over = next(place for place, page in enumerate(plain.pages) if page > 500)
    assert run.pages[:over] == plain.pages[:over]
    assert run.pages[over] < 500
    assert (run.breaks, run.folds) == (2, 5)


def test_a_fold_of_a_read_counts_as_read_again_when_its_file_is_read_later():
    messages: list[Message] = [user()]
    for number in range(6):
        messages += [
            make_call(str(number), path="a.py" if number % 2 else f"{number}.py"),
            result(str(number), "word " * 100),
        ]
    settings = replace(SETTINGS, policies=("clear",), clear_over=100, clear_keep=0)
    run = replay_session(session_of(*messages, make_call("end")), "s", settings).runs["clear"]
    # Those of a.py but the last, which are read again.
    assert (run.folds, run.read_again) == (6, 2)


# The share of its price that the recorded session is to save at least, and the share of evidence that all are to keep.
LEAST_SAVED = {"recorded": 0.5}
LEAST_KEPT = 0.999


@EACH_SESSION
def test_X2_folding_by_cost_saves_money_and_keeps_quoted_lines(traced: TracedSession):
    replayed = numbers(traced)
    base, eager, cost = (replayed.runs[name] for name in (NONE, "eager", "cost"))
    assert replayed.calls == traced.roles["assistant"]
    assert {name: len(run.prices) for name, run in replayed.runs.items()} == dict.fromkeys(POLICIES, replayed.calls)
    assert (base.breaks, base.folds, base.read_again, worst_point(base, base)) == (0, 0, 0, 0.0)
    assert base.evidence.kept_count == base.evidence.quoted_count > 0
    # What is folded breaks the prefix, and costs more than it saves: that is why there is another policy.
    assert eager.breaks > 0
    assert sum(eager.pages) < sum(base.pages)
    share = {name: share_saved(run, base) for name, run in replayed.runs.items()}
    assert share["eager"] < 0 == share[NONE] <= share["clear"] < share["cost"]
    assert share["cost"] > LEAST_SAVED.get(traced.name, 0)
    assert cost.evidence.kept_count >= LEAST_KEPT * cost.evidence.quoted_count


# What is refused


def test_a_model_without_a_price_is_an_error_with_advice():
    with pytest.raises(NoPrice) as caught_error:
        replay_session(session_of(user(), make_call("1"), model=""), "s", SETTINGS)
    hint = "name a model with --model, such as openai:gpt-5, or a list with --prices"
    assert str(caught_error.value) == f"it names no model; {hint}"
    with pytest.raises(NoPrice) as caught_error:
        replay_session(session_of(user("word " * 100), make_call("1"), model="short:x"), "s", SETTINGS)
    assert str(caught_error.value) == f"short:x with a prompt of 105 tokens has no price in the list; {hint}"


def test_a_session_without_a_reply_has_no_call_to_play():
    with pytest.raises(NotAConversation, match="s: it contains no reply of a model, so there is no call to replay"):
        replay_session(session_of(user()), "s", SETTINGS)


def test_of_signed_thinking_the_words_are_counted_and_not_the_signature():
    def thinks(data: str) -> Session:
        reasoning = Opaque(provider="anthropic", model=None, place="block", name="thinking", data=data)
        return session_of(
            user(), AssistantMessage(id="a", parts=(reasoning, Text(text="Well."))), user(), make_call("1")
        )

    words = '{"type":"thinking","thinking":"one two three","signature":"SIGNATURE"}'
    short = stretches_of(thinks(words.replace("SIGNATURE", "")), SETTINGS)[0].tokens
    assert stretches_of(thinks(words.replace("SIGNATURE", "x9Q/" * 500)), SETTINGS)[0].tokens == short
    assert stretches_of(thinks(words.replace("one two three", "")), SETTINGS)[0].tokens[1] < short[1]


def test_the_picture_has_a_line_for_each_policy_and_a_point_for_each_call():
    messages = [user("word " * 100), make_call("1"), result("1"), make_call("2"), result("2"), make_call("3")]
    one = replay_session(session_of(*messages), "<a & b>", SETTINGS)
    svg = ElementTree.fromstring(plot_svg([one], SETTINGS))
    space = "{http://www.w3.org/2000/svg}"
    lines = svg.findall(f"{space}polyline")
    assert len(lines) == 2 * len(POLICIES)
    assert {len((line.get("points") or "").split()) for line in lines} == {3}
    words = [text.text or "" for text in svg.iter(f"{space}text")]
    assert all(any(word.startswith(policy) for word in words) for policy in POLICIES)
    assert svg.findtext(f"{space}title") == "<a & b>"
