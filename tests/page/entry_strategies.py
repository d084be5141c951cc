"""Hypothesis strategies for a log as the worker writes it: messages of every role between markers of every kind.

Message ids are told once, as in a thread; calls re-use few ids, and markers speak of messages that are there, hidden
or unknown.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeGuard

from hypothesis import strategies as st

from recto.conversation.log import (
    Compacted,
    ConfirmAsked,
    ConfirmDecided,
    Entry,
    FoldStep,
    Interrupted,
    ReplyEnded,
    RolledBack,
    SkillChanged,
    StateChanged,
    ToolStarted,
    Undone,
)
from recto.conversation.messages import (
    ActivityMessage,
    AssistantMessage,
    DeveloperMessage,
    Message,
    ReasoningMessage,
    SystemMessage,
    Text,
    ToolMessage,
    UserMessage,
)
from tests.page.talk import call, result

CALL_IDS = ("c1", "c2", "c3")
TOOLS = ("charge", "look", "ask")
WORDS = ("", "hi", "one two three", "四 五")

calls = st.builds(call, st.sampled_from(CALL_IDS), st.sampled_from(TOOLS))
words = st.builds(Text, text=st.sampled_from(WORDS))
users = st.builds(UserMessage, parts=st.tuples(words))
texts = st.builds(AssistantMessage, parts=st.tuples(words))
askers = st.lists(calls, min_size=1, max_size=3, unique_by=lambda one: one.id).map(
    lambda calls: AssistantMessage(parts=tuple(calls))
)
results = st.builds(result, st.just(""), st.sampled_from(CALL_IDS), st.sampled_from(WORDS))
others = st.sampled_from(
    (
        SystemMessage(text="Be kind."),
        DeveloperMessage(text="Be brief."),
        ReasoningMessage(text="hm"),
        ActivityMessage(activity_type="PLAN", content="{}"),
    )
)
any_message: st.SearchStrategy[Message] = st.one_of(users, texts, askers, askers, results, results, others)
# Ids as `entry_logs` gives them, and one that nobody has.
known_ids = st.sampled_from((*(f"m{place}" for place in range(8)), "nobody"))
any_marker: st.SearchStrategy[Entry] = st.one_of(
    st.builds(SkillChanged, skill=st.sampled_from((None, "bazi", "tarot"))),
    st.builds(ToolStarted, message=known_ids, call=st.sampled_from(CALL_IDS)),
    st.builds(ConfirmAsked, message=known_ids, call=st.sampled_from(CALL_IDS), run=st.just("r"), seconds=st.just(60.0)),
    st.builds(ConfirmDecided, interrupt=known_ids, run=st.just("t"), approved=st.booleans()),
    st.builds(FoldStep, results=st.tuples(known_ids), model=st.sampled_from(("", "other"))),
    st.builds(StateChanged, value=st.sampled_from(('{"a":1}', "null"))),
    st.builds(Interrupted, message=known_ids, reason=st.just("cancelled")),
    st.builds(ReplyEnded, message=known_ids, finish=st.sampled_from(("length", "refused", "filtered"))),
    st.builds(Compacted, upto=known_ids, summary=st.just("so far")),
    st.builds(RolledBack, to=known_ids),
    st.builds(RolledBack, to=st.just("any user")),
    st.just(Undone()),
)


def talks(most: int = 14) -> st.SearchStrategy[tuple[Message, ...]]:
    """Messages alone, numbered m0, m1 ..."""
    return st.lists(any_message, max_size=most).map(
        lambda items: tuple(replace(message, id=f"m{place}") for place, message in enumerate(items))
    )


def entry_logs(most: int = 16) -> st.SearchStrategy[tuple[Entry, ...]]:
    """Messages and markers in any order, numbered m0, m1 ... One in three entries is a marker."""
    return st.lists(any_message | any_message | any_marker, max_size=most).map(_number)


def _number(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    users = [place for place, entry in enumerate(entries) if isinstance(entry, UserMessage)]
    log: list[Entry] = []
    for place, entry in enumerate(entries):
        before = [f"m{one}" for one in users if one < place]
        moved_entry = replace(entry, to=before[place % len(before)]) if _wants_a_user(entry) and before else entry
        log.append(replace(moved_entry, id=f"m{place}"))
    return tuple(log)


def _wants_a_user(entry: Entry) -> TypeGuard[RolledBack]:
    return isinstance(entry, RolledBack) and entry.to == "any user"


def answered_calls(messages: Sequence[Message]) -> set[tuple[int, int]]:
    """Places of each caller with the place of each of its results, each result taken by the newest call of its id."""
    callers: dict[str, int] = {}
    pairs: set[tuple[int, int]] = set()
    for place, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            callers |= {one.id: place for one in message.tool_calls}
        elif isinstance(message, ToolMessage) and message.tool_call_id in callers:
            pairs.add((callers[message.tool_call_id], place))
    return pairs
