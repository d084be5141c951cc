"""The rows of a Claude Code session that make the conversation, in order: one path of a tree, and what hangs off it.

Each reply of the model is written as several rows, each result under the row of its call. Of parallel calls, all but
one therefore stand beside the path to the newest row, not on it; they are part of the conversation all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from recto.cli.sessions.rows import Row, lineage
from recto.page.canonical import Json
from recto.page.wire.fields import Object


@dataclass(frozen=True, kw_only=True)
class Turn:
    """The rows of one reply of the model; or one row of anything else."""

    rows: tuple[Row, ...]


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """The turns in order, how many compactions the log has, and how many messages are on other branches."""

    turns: tuple[Turn, ...]
    compactions: int
    others: int


def conversation(rows: Sequence[Row]) -> Conversation:
    """The way to the newest message outside any sidechain; logs without a tree are read as they stand."""
    main = _newest_versions(_without_sidechains(rows))
    path = _path(main)
    turns = tuple(_turns(path, main))
    kept = {row.number for turn in turns for row in turn.rows}
    boundaries = sum(_is_boundary(row.fields) for row in main)
    summaries = sum(_is_summary(row.fields) for row in main)
    return Conversation(
        turns=turns,
        compactions=max(boundaries, summaries),
        others=sum(_is_message(row.fields) and row.number not in kept for row in main if not _is_summary(row.fields)),
    )


def _without_sidechains(rows: Sequence[Row]) -> Sequence[Row]:
    """The main conversation; of the log of a subagent, which is all sidechain, everything."""
    main = [row for row in rows if not _is_sidechain(row.fields)]
    return main if any(_is_message(row.fields) for row in main) else rows


def _is_sidechain(fields: Object) -> bool:
    return fields.get("isSidechain") is True or isinstance(fields.get("parent_tool_use_id"), str)


def _is_message(fields: Object) -> bool:
    return fields.get("type") in ("user", "assistant") and isinstance(fields.get("message"), Mapping)


def _newest_versions(rows: Sequence[Row]) -> Sequence[Row]:
    """A row written again under its uuid has its newest content, but keeps its place and its parent.

    Compactions write rows they keep a second time, under the summary.
    """
    newest: dict[str, Row] = {}
    for row in rows:
        key = _text(row.fields, "uuid") or row.where
        first = newest.get(key, row)
        fields = row.fields if first is row else {**row.fields, "parentUuid": first.fields.get("parentUuid")}
        newest[key] = Row(number=first.number, fields=fields)
    return tuple(newest.values())


def _path(rows: Sequence[Row]) -> Sequence[Row]:
    by_uuid = {uuid: row for row in rows if (uuid := _text(row.fields, "uuid")) and "parentUuid" in row.fields}
    leaf = next((uuid for uuid, row in reversed(by_uuid.items()) if _is_message(row.fields)), None)
    if leaf is None or all(row.fields["parentUuid"] is None for row in by_uuid.values()):
        return rows
    return [by_uuid[uuid] for uuid in lineage(leaf, _parents(by_uuid))]


def _parents(by_uuid: Mapping[str, Row]) -> Mapping[str, str | None]:
    parents: dict[str, str | None] = {}
    previous: str | None = None
    for uuid, row in by_uuid.items():
        parent = _text(row.fields, "parentUuid") or _text(row.fields, "logicalParentUuid")
        if parent not in parents and (_is_boundary(row.fields) or _is_summary(row.fields)):
            # A compaction cuts the log in two; where it does not say what came before, the row above it did.
            parent = previous
        parents[uuid] = parent
        previous = uuid
    return parents


def _is_boundary(fields: Object) -> bool:
    return fields.get("subtype") == "compact_boundary"


def _is_summary(fields: Object) -> bool:
    return fields.get("isCompactSummary") is True


def _turns(path: Sequence[Row], rows: Sequence[Row]) -> Iterator[Turn]:
    replies = _replies(rows)
    results = _results(path, rows)
    told: set[str] = set()
    for row in path:
        reply = _reply_id(row)
        if reply is None:
            yield Turn(rows=(row,))
        elif reply not in told:
            told.add(reply)
            turn = Turn(rows=tuple(replies[reply]))
            yield turn
            calls = (call for part in turn.rows for call in _ids(part.fields, "tool_use", "id"))
            yield from (Turn(rows=(results[call],)) for call in calls if call in results)


def _replies(rows: Sequence[Row]) -> Mapping[str, list[Row]]:
    replies: dict[str, list[Row]] = {}
    for row in rows:
        reply = _reply_id(row)
        if reply is not None:
            replies.setdefault(reply, []).append(row)
    return replies


def _reply_id(row: Row) -> str | None:
    match row.fields:
        case {"type": "assistant", "message": {"id": str(id)}}:
            return id
        case {"type": "assistant", "message": Mapping()}:
            return row.where
        case _:
            return None


def _results(path: Sequence[Row], rows: Sequence[Row]) -> Mapping[str, Row]:
    """By call, the rows of results beside the path, where the path itself has no result for it."""
    answered = {call for row in path for call in _ids(row.fields, "tool_result", "tool_use_id")}
    beside: dict[str, Row] = {}
    for row in rows:
        calls = _ids(row.fields, "tool_result", "tool_use_id")
        if calls and not answered.intersection(calls):
            beside[calls[0]] = row
            answered.update(calls)
    return beside


def _ids(fields: Object, kind: str, name: str) -> Sequence[str]:
    """What the blocks of one kind in a row's message call themselves, or their call."""
    match fields.get("message"):
        case {"content": content} if isinstance(content, Sequence) and not isinstance(content, str):
            blocks = [block for block in content if isinstance(block, Mapping) and block.get("type") == kind]
            return [id for block in blocks if isinstance(id := block.get(name), str)]
        case _:
            return []


def _text(fields: Object, name: str) -> str | None:
    value: Json = fields.get(name)
    return value if isinstance(value, str) else None
