"""A naive model of a thread's log: a list of exported rows, and plain code that says what is seen of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import cast

from tests.end_to_end.world import WORD, Row

MESSAGES = ("user", "assistant", "tool", "reasoning", "activity")
TURNED_BACK = ("rolled_back", "undone")


@dataclass(kw_only=True, eq=False)
class Conversation:
    """A thread. A fork starts with `copied`; `back` are the views before rollbacks that can be undone."""

    id: str
    owner: str
    words: set[str] = field(default_factory=set[str])
    shown_ids: set[str] = field(default_factory=set[str])
    copied: Sequence[object] = ()
    rows: Sequence[Row] = ()
    back: list[list[str]] = field(default_factory=list[list[str]])
    title: str | None = None


def body_of(row: Row) -> Row:
    return cast("Row", row["body"])


def content(row: Row) -> object:
    return row["id"], row["kind"], row["body"]


def in_view(rows: Sequence[Row]) -> list[Row]:
    """Return the visible rows of a log."""
    texts: list[Row] = []
    before: list[list[Row]] = []
    for row in rows:
        if row["kind"] == "rolled_back":
            places = [place for place, one in enumerate(texts) if one["id"] == body_of(row)["to"]]
            if places:
                before.append(texts)
                texts = texts[: places[0]]
        elif row["kind"] == "undone":
            texts = before.pop() if before else texts
        else:
            texts = [*texts, row]
    return texts


def messages_in(rows: Sequence[Row]) -> list[str]:
    return [str(row["id"]) for row in rows if row["kind"] in MESSAGES]


def users_in(rows: Sequence[Row]) -> list[str]:
    return [str(row["id"]) for row in rows if row["kind"] == "user"]


def meant_by(rows: Sequence[Row], id: str) -> str | None:
    """Return the id of the visible user message with this id or client id, the newest if there are several."""
    came = [str(row["id"]) for row in rows if row["kind"] == "user" and body_of(row).get("client_id") == id]
    return id if id in users_in(rows) else came[-1] if came else None


def words_in(rows: Sequence[Row]) -> set[str]:
    return set(WORD.findall(str([row["body"] for row in rows])))


def words_when_said(rows: Sequence[Row], word: str) -> list[set[str]]:
    """Return the visible words after each message that contains this word."""
    places = [place for place, row in enumerate(rows) if row["kind"] == "user" and word in words_in([row])]
    return [words_in(in_view(rows[: place + 1])) for place in places]


def waiting_in(rows: Sequence[Row]) -> tuple[list[str], list[str]]:
    """Return the pending calls and the open interrupts of the last reply."""
    calls: list[Row] = []
    open_calls: dict[str, str] = {}
    for row in rows:
        body = body_of(row)
        match row["kind"]:
            case "user":
                calls, open_calls = [], {}
            case "assistant":
                calls, open_calls = _call_parts(row), {}
            case "interrupted":
                calls = []
            case "tool":
                calls = [call for call in calls if call["id"] != body["tool_call_id"]]
            case "confirm_asked":
                open_calls = {**open_calls, str(row["id"]): str(body["call"])}
            case "confirm_decided":
                open_calls.pop(str(body["interrupt"]), None)
            case _:
                pass
    names = {str(call["id"]): call["name"] for call in calls}
    pending = [id for id, name in names.items() if name == "ask_me"]
    return pending, [id for id, call in open_calls.items() if call in names]


def check_log(talk: Conversation, rows: Sequence[Row]) -> None:
    """Check that rows were only added, without gaps or repeated ids, and in the order of their runs."""
    assert list(rows[: len(talk.rows)]) == list(talk.rows)
    talk.rows = rows
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
    assert len({str(row["id"]) for row in rows}) == len(rows)
    assert [content(row) for row in rows[: len(talk.copied)]] == list(talk.copied)
    assert words_in(rows) <= talk.words
    own = rows[len(talk.copied) :]
    assert all((row["run"] is None) is (row["kind"] in TURNED_BACK) for row in own)
    runs = [str(row["run"]) for row in own if row["run"]]
    assert [run for run, _ in groupby(runs)] == sorted(set(runs))
    check_view(in_view(rows))


def check_view(log_view: Sequence[Row]) -> None:
    """Check that each result follows its call once, and that a summary covers visible messages."""
    call_ids: set[str] = set()
    known_ids: set[str] = set()
    for row in log_view:
        if row["kind"] == "tool":
            assert body_of(row)["tool_call_id"] in call_ids
            call_ids.remove(str(body_of(row)["tool_call_id"]))
        if row["kind"] == "compacted":
            assert body_of(row)["upto"] in known_ids
        call_ids |= {str(call["id"]) for call in _call_parts(row)}
        known_ids.add(str(row["id"]))


def _call_parts(row: Row) -> list[Row]:
    return list(_calls(row))


def _calls(row: Row) -> Iterator[Row]:
    parts = body_of(row).get("parts") if row["kind"] == "assistant" else ()
    return (part for part in cast("list[Row]", parts or ()) if part["is"] == "call")
