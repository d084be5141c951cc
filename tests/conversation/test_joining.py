"""DESIGN "Events and resuming": whoever joins a run in its middle ends with the messages of who read from the start."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count

from ag_ui.core import events as official
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from recto.conversation.events import (
    ActivityUpdate,
    Event,
    RunFinished,
    RunStarted,
    ToolCallResult,
    discard_lost,
    encode_event,
    for_older_client,
    read_view_snapshot,
    starts_run,
)
from recto.conversation.json import Json
from recto.conversation.log import Entry, view
from recto.conversation.message_snapshots import RenderContext, join_events, message_rows, view_event
from recto.conversation.messages import AssistantMessage, Text, ToolMessage, UserMessage
from recto.models.ports import CallDelta, CallStarted, Delta, ReasoningDelta, ReplyEnd, TextDelta
from recto.worker.model.reply import Reply
from tests.conversation.stock_client import Row, StockClient

NOW = datetime(2026, 5, 14, 12, tzinfo=UTC)
PARSER: TypeAdapter[official.Event] = TypeAdapter(official.Event)
CONTEXT = RenderContext(url_of=lambda _file: None)
START = RunStarted(thread="t", run="r")
END = RunFinished(thread="t", run="r")
# A conversation before the run, and what the run was asked.
BEFORE: tuple[Entry, ...] = (
    UserMessage(id="u0", parts=(Text(text="Hi"),)),
    AssistantMessage(id="a0", parts=(Text(text="Hello."),)),
)
QUESTION = UserMessage(id="u1", parts=(Text(text="Go."),))


@dataclass(kw_only=True)
class Story:
    """A run as it is stored: after each write, how much of the log and of the events there is."""

    log: list[Entry] = field(default_factory=lambda: list(BEFORE))
    bodies: list[bytes] = field(default_factory=list[bytes])
    writes: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def write(self, events: Sequence[Event], entries: Sequence[Entry] = ()) -> None:
        self.log += entries
        self.bodies += encoded(events)
        self.writes.append((len(self.log), len(self.bodies)))

    def sent_bodies(self, *, after: int = 0) -> list[bytes]:
        """The events as they are sent."""
        return [self._encode(body) for body in self.bodies[after:]]

    def _encode(self, body: bytes) -> bytes:
        snapshot = read_view_snapshot(body)
        if snapshot is None:
            return body
        last = next(place for place, entry in enumerate(self.log) if entry.id == snapshot.upto)
        return view_event(self.log[: last + 1], snapshot, CONTEXT)

    def client(self, log: int, number: int) -> list[bytes]:
        """What is sent to who joins then."""
        so_far = join_events(self.log[:log], self.bodies[:number], CONTEXT)
        tail = [body for body in self.sent_bodies(after=number) if not starts_run(body)]
        return [*encoded([START]), *so_far, *tail]


def encoded(events: Sequence[Event]) -> list[bytes]:
    return [body for event in events for body in encode_event(event)]


WORDS = st.text("ab\n", min_size=1, max_size=3)
deltas: st.SearchStrategy[list[Delta]] = st.lists(
    st.one_of(
        st.builds(ReasoningDelta, text=WORDS),
        st.builds(TextDelta, text=WORDS),
        st.builds(TextDelta, text=WORDS),
        st.builds(CallStarted, index=st.integers(0, 2), id=st.just(""), name=st.sampled_from(["look", "pick"])),
        st.builds(CallDelta, index=st.integers(0, 2), arguments=WORDS),
    ),
    max_size=9,
)
steps = st.lists(
    st.tuples(deltas, st.sampled_from(["kept", "kept", "kept", "lost", "taken over"]), st.integers(0, 3)), max_size=4
)


@st.composite
def stories(draw: st.DrawFn) -> Story:
    story, numbers = Story(), count()
    story.write([START], [QUESTION])
    for deltas, fate, result in draw(steps):
        reply = Reply(id=f"a{next(numbers)}-", reasoning_id=f"r{next(numbers)}", call_id=lambda _: f"c{next(numbers)}")
        if draw(st.booleans()):
            story.write([ActivityUpdate(message="documents", activity="recto.progress", content={"done": result})])
        for delta in _once_each(deltas):
            story.write(reply.add(delta))
        match fate:
            case "kept":
                reply.add(ReplyEnd(finish="stop"))
                story.write(reply.close(), [] if reply.is_empty else reply.entries(NOW, f"e{next(numbers)}"))
                _answer(story, reply, result, numbers)
            case "lost":
                upto = story.log[-1].id
                story.write(discard_lost(encoded(reply.announced_events), logged=(), reason="Lost.", upto=upto))
            case _:
                logged, upto = {entry.id for entry in story.log}, story.log[-1].id
                story.write(discard_lost(story.bodies, logged=logged, reason="Lost.", upto=upto))
    story.write([END])
    return story


def _once_each(deltas: Sequence[Delta]) -> Iterator[Delta]:
    """As providers have it: calls are started in order, each once."""
    started = 0
    for delta in deltas:
        if not isinstance(delta, CallStarted) or delta.index == started:
            started += isinstance(delta, CallStarted)
            yield delta


def _answer(story: Story, reply: Reply, most: int, numbers: Iterator[int]) -> None:
    for call in [call.id for call in reply.calls.values()][:most]:
        id = f"t{next(numbers)}"
        story.write([ActivityUpdate(message=f"{call}-progress", activity="recto.progress", content={"done": 1})])
        result = ToolMessage(id=id, tool_call_id=call, parts=(Text(text="out"),))
        story.write([ToolCallResult(message=id, call=call, content="out")], [result])


def visible_rows(client: StockClient, *, thoughts: bool) -> list[tuple[Json, ...]]:
    """What is seen of a client's messages; a thought that was emptied is none."""
    rows = [row for row in client.messages if (row["role"] == "reasoning") == thoughts]
    return [
        (row["id"], row["role"], row.get("content", ""), row.get("toolCallId"), row.get("toolCalls"))
        for row in rows
        if not thoughts or row["content"]
    ]


@given(stories())
def test_P15_whoever_joins_at_any_number_ends_with_the_messages_of_who_read_from_the_start(story: Story):
    rows: list[Row] = [dict(row) for row in message_rows(view((*BEFORE, QUESTION)), CONTEXT)]
    first = StockClient(rows).read(story.sent_bodies())
    for log, number in story.writes:
        client = StockClient().read(story.client(log, number))
        assert visible_rows(client, thoughts=False) == visible_rows(first, thoughts=False)
        assert sorted(map(str, visible_rows(client, thoughts=True))) == sorted(
            map(str, visible_rows(first, thoughts=True))
        )
        assert client.to_run == first.to_run


@given(stories())
def test_P15_in_the_end_a_stock_client_shows_what_the_log_has_and_runs_no_call_of_a_lost_reply(story: Story):
    rows: list[Row] = [dict(row) for row in message_rows(view((*BEFORE, QUESTION)), CONTEXT)]
    client = StockClient(rows).read(story.sent_bodies())
    ids = {str(row["id"]) for row in client.messages if row["role"] != "activity" and row.get("content") != ""}
    assert ids <= {entry.id for entry in story.log}
    call_ids = {call.id for entry in story.log if isinstance(entry, AssistantMessage) for call in entry.tool_calls}
    assert client.to_run <= call_ids


@given(stories(), st.booleans())
def test_P15_what_is_sent_to_who_joins_is_what_the_official_package_reads(story: Story, older: bool):
    for log, number in story.writes:
        for body in join_events(story.log[:log], story.bodies[:number], CONTEXT):
            older_body = for_older_client(body) if older else body
            assert PARSER.validate_json(older_body).type.value in older_body.decode()
