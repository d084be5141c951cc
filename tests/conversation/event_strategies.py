"""Hypothesis strategies for events of a run: any one of them, and streams that repeat the same few ids."""

from hypothesis import strategies as st

from recto.conversation.events import (
    ActivityUpdate,
    Discarded,
    Event,
    ReasoningContent,
    ReasoningEnded,
    ReasoningStarted,
    RunFailed,
    RunFinished,
    RunStarted,
    StateDelta,
    StateSnapshot,
    StepFinished,
    StepStarted,
    TextContent,
    TextEnded,
    TextStarted,
    ToolCallArguments,
    ToolCallEnded,
    ToolCallResult,
    ToolCallStarted,
    UiUpdate,
)
from recto.conversation.json import Json
from recto.conversation.ui.compile_ui import compile_ui

# Few of each, so that neighbours are often of the same thing.
MESSAGES = st.sampled_from(["m1", "m2", "m3"])
CALLS = st.sampled_from(["c1", "c2"])
WORDS = st.text(min_size=1, max_size=8)
USAGE: st.SearchStrategy[dict[str, Json] | None] = st.sampled_from(
    [None, {"inputTokens": 3, "outputTokens": 2, "totalTokens": 5}]
)
deltas: st.SearchStrategy[TextContent | ReasoningContent | ToolCallArguments] = st.one_of(
    st.builds(TextContent, message=MESSAGES, delta=WORDS),
    st.builds(ReasoningContent, message=MESSAGES, delta=WORDS),
    st.builds(ToolCallArguments, call=CALLS, delta=WORDS),
)
ends: st.SearchStrategy[Event] = st.one_of(
    st.builds(
        RunFinished,
        thread=WORDS,
        run=WORDS,
        outcome=st.just("success"),
        pending=st.lists(CALLS, unique=True).map(tuple),
        finish=st.sampled_from([None, "length", "refused"]),
        usage=USAGE,
    ),
    st.builds(RunFinished, thread=WORDS, run=WORDS, outcome=st.just("cancelled"), usage=USAGE),
    st.builds(RunFailed, message=WORDS, code=WORDS, usage=USAGE),
)
middles: st.SearchStrategy[Event] = st.one_of(
    st.builds(StateSnapshot, state=st.dictionaries(WORDS, WORDS, max_size=2)),
    st.builds(StateDelta, operations=st.just([{"op": "add", "path": "/a", "value": 1}])),
    st.builds(StepStarted, step=WORDS),
    st.builds(StepFinished, step=WORDS),
    st.builds(RunStarted, thread=WORDS, run=WORDS, parent=st.none() | WORDS),
    st.builds(TextStarted, message=MESSAGES),
    st.builds(TextEnded, message=MESSAGES),
    st.builds(ReasoningStarted, message=MESSAGES),
    st.builds(ReasoningEnded, message=MESSAGES),
    st.builds(ToolCallStarted, call=CALLS, name=WORDS, message=MESSAGES),
    st.builds(ToolCallEnded, call=CALLS),
    st.builds(ToolCallResult, message=MESSAGES, call=CALLS, content=st.text(max_size=8)),
    st.builds(Discarded, message=MESSAGES, reason=WORDS),
)
activities = st.builds(
    ActivityUpdate,
    message=MESSAGES,
    activity=WORDS,
    content=st.dictionaries(WORDS, st.integers(0, 9) | WORDS, max_size=3),
)
cards = st.builds(
    UiUpdate,
    message=MESSAGES,
    schema=WORDS.map(lambda words: compile_ui({"title": words, "fields": {"a": words}}) or {}),
)
events: st.SearchStrategy[Event] = st.one_of(deltas, middles, activities, cards, ends)
streams = st.lists(st.one_of(deltas, deltas, middles, cards), max_size=30)
