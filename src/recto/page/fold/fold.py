"""Folding (R1-R9): which results newer ones stand for, and the line with a receipt that takes their place in the page.

Never touches errors, other tools or its input. Folding twice changes nothing more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from recto.conversation.memo import remember, remember_last
from recto.conversation.messages import Message, Text, ToolMessage
from recto.page.draft import Draft
from recto.page.fold.fold_settings import FoldKey, FoldSettings, fold_key
from recto.page.fold.observations import BEFORE_ALL, ByFile, LeftAlone, Observation, find_observations, parts_by_file
from recto.page.fold.rules import FoldRule
from recto.page.manifest import Note, Recall, Receipt
from recto.page.text.tokens import OFFLINE, TokenCounter, tokens_of

DEFAULTS = FoldSettings()
STALE = "{what} {n} counted from the newest, {keep} stay"
STALE_BATCH = "a batch read, stale for each of its files: {paths}"
TOO_OLD = ", and older than {minutes:g} minutes"


class StaleResult(NamedTuple):
    """Why a result is not needed: `n` is its number counted from the newest, `keep` stay, `newest` stands for it.

    `path` is the file it is not needed for; a command or a search has none.
    """

    path: str | None
    n: int
    keep: int
    newest: str


@dataclass(frozen=True, kw_only=True)
class Folded:
    """A conversation after folding, with a receipt for each fold and what was left alone for want of a path (R6)."""

    draft: Draft
    left_alone: tuple[LeftAlone, ...]

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation as it goes into the page."""
        return self.draft.messages

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """The receipt of every fold, in the order of the conversation."""
        return tuple(receipt for _, note in sorted(self.draft.notes.items()) for receipt in note.receipts)


class _Why(NamedTuple):
    """What a receipt says of a fold beside the files it was not needed for."""

    tool: str
    rule: str
    reason: str
    part: int | None = None


def fold(
    messages: Sequence[Message],
    *,
    settings: FoldSettings = DEFAULTS,
    now: datetime | None = None,
    counter: TokenCounter = OFFLINE,
) -> Folded:
    """Fold a conversation as of `now` (the newest time in it, where none is given)."""
    key = fold_key(settings, counter)
    seen = find_observations(messages, key)
    now = now or seen.newest
    shown = list(messages)
    notes: dict[int, Note] = {}
    for rule in settings.rules:
        for result, stale in stale_results(seen.found[rule.name], rule, now, key):
            folded = remember_last(result.message, _fold_result, result.call.name, rule, stale, key)
            shown[result.place], notes[result.place] = folded
    draft = Draft(messages=tuple(shown), origins=range(len(shown)), notes=notes)
    return Folded(draft=draft, left_alone=seen.left_alone)


def stale_results(
    seen: ByFile, rule: FoldRule, now: datetime, key: FoldKey
) -> Iterator[tuple[Observation, tuple[StaleResult, ...]]]:
    """Results that newer ones stand for, each with the files for which they do (R2-R5, R8, R9)."""
    stale: dict[int, tuple[Observation, list[StaleResult]]] = {}
    for path, results in seen.items():
        keep = rule.keep_for(_size(results[-1].message, path, key)) if rule.keep_by_size else rule.keep
        newest = label(results[-1].message)
        for n, result in _beyond(results, keep):
            if rule.max_age is None or _is_older(result, rule.max_age, now):
                stale.setdefault(result.place, (result, []))[1].append(StaleResult(path, n, keep, newest))
    for result, files in stale.values():
        # R5: a batch result in one piece goes only when no file needs it; one with a part for each file goes by parts.
        if len(files) == len(result.files) or result.by_part:
            yield result, tuple(files)


def _is_older(result: Observation, age: timedelta, now: datetime) -> bool:
    # A result with no time before it in the log has no age: it may be new.
    return result.time is not BEFORE_ALL and now - result.time > age


def label(message: ToolMessage) -> str:
    """What a result is called in receipts: its id, or that of its call."""
    return message.id or message.tool_call_id


def _beyond(seen: Sequence[Observation], keep: int) -> Iterator[tuple[int, Observation]]:
    """All but the newest `keep`, numbered from the newest."""
    return enumerate(reversed(seen[: max(0, len(seen) - keep)]), start=keep + 1)


def _size(message: ToolMessage, path: str | None, key: FoldKey) -> int:
    indexes = remember(message, parts_by_file, key).get(path or "")
    parts = message.parts if indexes is None else [message.parts[index] for index in indexes]
    return sum(len(part.text) for part in parts if isinstance(part, Text))


def _fold_result(
    message: ToolMessage, tool: str, rule: FoldRule, files: tuple[StaleResult, ...], key: FoldKey
) -> tuple[ToolMessage, Note]:
    if rule.path_args and parts_by_file(message, key):
        return _fold_parts(message, tool, rule, files, key)
    if len(files) == 1:
        why = _Why(tool, rule.number, _reason(files[0], rule))
    else:
        reason = STALE_BATCH.format(paths=", ".join(stale.path or "" for stale in files))
        why = _Why(tool, rule.batch_number or rule.number, reason)
    return _fold_whole(message, files, rule.placeholder, why, key)


def _fold_whole(
    message: ToolMessage, files: tuple[StaleResult, ...], placeholder: str, why: _Why, key: FoldKey
) -> tuple[ToolMessage, Note]:
    shown = remember(message, _with_placeholder, placeholder)
    tokens = tokens_of(message, key.counter), tokens_of(shown, key.counter)
    return shown, _note(_receipt(message, files, why, tokens))


def _with_placeholder(message: ToolMessage, placeholder: str) -> ToolMessage:
    return ToolMessage(
        id=message.id,
        seq=message.seq,
        time=message.time,
        tool_call_id=message.tool_call_id,
        tool_name=message.tool_name,
        parts=(Text(text=placeholder),),
        error=message.error,
        encrypted_value=message.encrypted_value,
    )


def _fold_parts(
    message: ToolMessage, tool: str, rule: FoldRule, files: tuple[StaleResult, ...], key: FoldKey
) -> tuple[ToolMessage, Note]:
    by_file = parts_by_file(message, key)
    folded = {index: stale for stale in files for index in by_file[stale.path or ""]}
    parts = list(message.parts)
    receipts: list[Receipt] = []
    for index, stale in sorted(folded.items()):
        part = parts[index]
        if isinstance(part, Text):
            parts[index] = replace(part, text=rule.placeholder)
            why = _Why(tool, rule.batch_number or rule.number, _reason(stale, rule), index)
            tokens = remember(message, _count_part, part.text, rule.placeholder, key)
            receipts.append(_receipt(message, (stale,), why, tokens))
    return replace(message, parts=tuple(parts)), _note(*receipts)


def _count_part(_: ToolMessage, text: str, placeholder: str, key: FoldKey) -> tuple[int, int]:
    before, after = key.counter.count((text, placeholder))
    return before, after


def _reason(stale: StaleResult, rule: FoldRule) -> str:
    what = "result" if stale.path is None else f"{stale.path}: read"
    age = "" if rule.max_age is None else TOO_OLD.format(minutes=rule.max_age / timedelta(minutes=1))
    return STALE.format(what=what, n=stale.n, keep=stale.keep) + age


def _receipt(message: ToolMessage, files: tuple[StaleResult, ...], why: _Why, tokens: tuple[int, int]) -> Receipt:
    return Receipt(
        rule=why.rule,
        message=label(message),
        part=why.part,
        tool=why.tool,
        paths=tuple(stale.path for stale in files if stale.path is not None),
        tokens_before=tokens[0],
        tokens_after=tokens[1],
        newer=tuple(dict.fromkeys(stale.newest for stale in files)),
        recall=Recall(tool=why.tool, path=files[0].path, n=files[0].n),
        reason=why.reason,
    )


def _note(*receipts: Receipt) -> Note:
    reason = "; ".join(dict.fromkeys(receipt.reason for receipt in receipts))
    return Note(decision="folded", rule=receipts[0].rule, reason=reason, receipts=receipts)
