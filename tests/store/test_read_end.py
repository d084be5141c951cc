"""The end of a log gives the same page, manifest and next step as the whole log (R12, R13, S1, S2)."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import cast

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from recto.conversation.input.input_entries import pending_calls
from recto.conversation.log import Compacted, Entry, RolledBack, SkillChanged, StateChanged, Undone, view
from recto.conversation.messages import File, Message, SystemMessage, ToolMessage, UnreadMessages, Url, UserMessage
from recto.conversation.next_step import Run, next_step
from recto.page.assemble import assemble
from recto.page.facts import Facts, Turn
from recto.page.text.tokens import OFFLINE, tokens_of
from recto.page.wire.base import Target
from recto.store.log.entry_codec import MESSAGE_KINDS, encode_entry, entry_kind
from recto.store.log.entry_rows import read_entries
from recto.store.log.logs import EndQuery, MissingCounts, read_end
from recto.store.runs.run_progress import ADD_ENTRY
from recto.store.schema import FILE_REFS, THREADS, to_micros
from tests.page.entry_strategies import askers, entry_logs, others, texts, users, words
from tests.page.talk import asks, result, says, user
from tests.store.tables import tables

START = datetime(2026, 1, 1, tzinfo=UTC)
TARGETS = (Target(wire="openai", model="m"), Target(wire="anthropic", model="m"))
NUMBERS = count(1)


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    with tables() as store:
        yield store


@st.composite
def turns(draw: st.DrawFn) -> list[Entry]:
    """Draw a turn as runs write it, sometimes followed by a summary, a skill change, a rollback or an undo."""
    results: list[Entry] = [draw(users)]
    for _ in range(draw(st.integers(0, 3))):
        request = draw(askers)
        results += [request, *[ToolMessage(tool_call_id=call.id, parts=(draw(words),)) for call in request.tool_calls]]
        results += draw(st.lists(others, max_size=1)) if draw(st.integers(0, 9)) == 0 else []
    results.append(draw(texts))
    more = st.one_of(
        st.just(Compacted(upto="", summary="so far")),
        st.builds(SkillChanged, skill=st.sampled_from((None, "bazi", "tarot"))),
        st.builds(StateChanged, value=st.sampled_from(('{"a":1}', '{"a":2}', "null"))),
        st.just(RolledBack(to="")),
        st.just(Undone()),
    )
    return [*results, *(draw(st.lists(more, max_size=2)) if draw(st.integers(0, 2)) == 0 else [])]


@st.composite
def talks(draw: st.DrawFn) -> tuple[Entry, ...]:
    log: list[Entry] = []
    for entry in [entry for turn in draw(st.lists(turns(), min_size=4, max_size=12)) for entry in turn]:
        changed = replace(entry, id=f"m{len(log)}")
        messages = [one.id for one in log if entry_kind(one) in MESSAGE_KINDS]
        if isinstance(changed, Compacted):
            changed = replace(changed, upto=draw(st.sampled_from(messages)))
        if isinstance(changed, RolledBack):
            changed = replace(changed, to=draw(st.sampled_from(messages)))
        log.append(changed)
    return tuple(log)


def store_log(connection: Connection, log: Sequence[Entry], *, with_counts: bool = True) -> str:
    thread = f"thread{next(NUMBERS)}"
    connection.execute(THREADS.insert(), {"id": thread, "owner": "o", "last_seq": len(log), "created": 0, "updated": 0})
    rows = [
        {
            "thread": thread,
            "seq": place,
            "id": entry.id,
            "kind": entry_kind(entry),
            "run": None,
            "time": to_micros(START + timedelta(minutes=place)),
            "body": encode_entry(entry),
            "tokens": tokens_of(cast("Message", entry), OFFLINE)
            if with_counts and entry_kind(entry) in MESSAGE_KINDS
            else None,
            "counter": OFFLINE.name if with_counts else None,
        }
        for place, entry in enumerate(log, start=1)
    ]
    ADD_ENTRY.run_many(connection, rows)
    return thread


def end_of(connection: Connection, thread: str, history: int | None = None) -> tuple[Entry, ...] | None:
    result = read_end(connection, EndQuery(thread=thread, counter=OFFLINE.name, history=history))
    assert not isinstance(result, MissingCounts)
    return result.entries if result else None


def what_comes_of(log: Sequence[Entry], facts: Facts) -> object:
    """Return all that depends on a log: the page, its manifest, and the next step."""
    page, manifest = assemble(replace(facts, log=log))
    results = view(log)
    return (
        page.body,
        manifest.rows(),
        (manifest.tokens, manifest.skill, manifest.left_alone),
        (
            results.skill,
            results.state,
            results.compaction,
            results.messages[results.turn_start :],
            pending_calls(results),
        ),
        next_step(log, Run()),
        [entry for entry in results.entries[-1:] if not isinstance(entry, UnreadMessages)],
    )


@pytest.mark.full
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    log=talks() | talks() | entry_logs(40),
    read_for=st.none() | st.integers(0, 6),
    less=st.integers(0, 2),
    facts=st.builds(Facts, log=st.just(()), target=st.sampled_from(TARGETS), turn=st.sampled_from((None, Turn()))),
)
def test_R13_the_end_of_a_log_gives_what_the_whole_log_gives(
    connection: Connection, log: tuple[Entry, ...], read_for: int | None, less: int, facts: Facts
):
    thread = store_log(connection, log)
    whole, end = read_entries(connection, thread), end_of(connection, thread, read_for)
    event(f"an end: {bool(end)}")
    if end:
        facts = replace(facts, history=None if read_for is None else max(0, read_for - less))
        assert len(end) < len(whole)
        assert what_comes_of(end, facts) == what_comes_of(whole, facts)


@pytest.mark.full
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(log=talks(), more=turns(), read_for=st.none() | st.integers(0, 6))
def test_R13_the_end_of_a_log_continues_like_the_whole_log(
    connection: Connection, log: tuple[Entry, ...], more: Sequence[Entry], read_for: int | None
):
    thread = store_log(connection, log)
    whole, end = read_entries(connection, thread), end_of(connection, thread, read_for)
    messages = [replace(entry, id=f"n{place}") for place, entry in enumerate(more)]
    messages = [entry for entry in messages if not isinstance(entry, (RolledBack, Undone, Compacted))]
    for length in range(len(messages) + 1) if end else ():
        facts, tail = Facts(log=(), history=read_for), messages[:length]
        assert what_comes_of((*(end or ()), *tail), facts) == what_comes_of((*whole, *tail), facts)


def long_log(turns: int = 50) -> tuple[Entry, ...]:
    return tuple(
        entry
        for n in range(turns)
        for entry in (user(f"u{n}"), asks(f"a{n}", f"c{n}"), result(f"r{n}", f"c{n}"), says(f"s{n}"))
    )


def test_R13_a_placeholder_stands_for_the_messages_of_a_summary(connection: Connection):
    log = (*long_log(), Compacted(id="sum", upto="s48", summary="so far"), user("new"))
    end = end_of(connection, store_log(connection, log))
    assert end
    unread = end[0]
    assert isinstance(unread, UnreadMessages)
    assert (unread.first, unread.id, unread.count) == ("u0", "s48", 196)
    assert unread.tokens == sum(tokens_of(message, OFFLINE) for message in view(log).messages[:196])
    assert [entry.id for entry in end[1:]] == ["u49", "a49", "r49", "s49", "sum", "new"]


def test_S1_outside_the_window_only_the_skill_is_read(connection: Connection):
    log = (SkillChanged(id="skill", skill="bazi"), *long_log(), user("new"))
    end = end_of(connection, store_log(connection, log), 5)
    assert end
    assert [entry.id for entry in end[:3]] == ["s47", "skill", "u48"]
    assert view(end).skill == view(read_entries(connection, store_log(connection, log))).skill


def test_R13_a_window_after_a_summary_has_two_placeholders(connection: Connection):
    log = (*long_log(30), Compacted(id="sum", upto="s9", summary="so far"), user("new"))
    end = end_of(connection, store_log(connection, log), 4)
    assert end
    assert [entry.id for entry in end[:3]] == ["s9", "s28", "u29"]
    both = end_of(connection, store_log(connection, (*log, *long_log(40)[120:])), 4)
    assert both
    assert [(one.first, one.id) for one in both if isinstance(one, UnreadMessages)] == [("u0", "s9"), ("u10", "s37")]
    assert [one.id for one in both if isinstance(one, Compacted)] == ["sum"]


WHOLE: dict[str, tuple[Entry, ...]] = {
    "a rollback reaches before it": (
        *(*long_log(), RolledBack(id="back", to="u2"), *long_log(60)[200:], Undone(id="undone"), user("new")),
    ),
    "a result reaches before it": (asks("a", "late"), *long_log(), result("r", "late"), user("new")),
    "no user spoke": (says("s0"), says("s1")),
    "a file has no id of its own": (
        *(*long_log(), UserMessage(id="new", parts=(File(kind="image", source=Url(url="https://x.test/a")),))),
    ),
    "it is shown however old it is": (SystemMessage(id="told", text="Be kind."), *long_log()),
}


@pytest.mark.parametrize("case", WHOLE)
def test_a_log_whose_end_depends_on_earlier_entries_is_read_whole(connection: Connection, case: str):
    assert end_of(connection, store_log(connection, WHOLE[case]), 3) is None


def test_F4_the_log_of_a_thread_with_files_is_read_whole(connection: Connection):
    thread = store_log(connection, long_log())
    assert end_of(connection, thread, 3)
    connection.execute(FILE_REFS.insert(), {"thread": thread, "id": "f", "body": b"{}", "created": 0})
    assert end_of(connection, thread, 3) is None
