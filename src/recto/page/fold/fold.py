"""Folding by rules (R1-R9): stale results become one line, each with a receipt.

Errors and results of other tools stay unchanged. Folding is idempotent.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter as Tally
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from recto.conversation.memo import memoise_last
from recto.conversation.messages import Message, Opaque, Text, ToolMessage
from recto.page.draft import Draft
from recto.page.fold.fold_settings import FoldKey, FoldSettings, fold_key
from recto.page.fold.observations import (
    BEFORE_ALL,
    ByFile,
    LeftAlone,
    Observation,
    Series,
    find_observations,
    fold_to_placeholder,
    label,
    parts_by_file,
)
from recto.page.fold.rules import FoldRule
from recto.page.manifest import Note, Recall, Receipt
from recto.page.text.tokens import OFFLINE, TokenCounter, count_text, note_tokens, tokens_of, tokens_of_texts

DEFAULTS = FoldSettings()
STALE_BATCH = "a batch read, stale for each of its files: {paths}"
MINUTE = timedelta(minutes=1)


class StaleResult(NamedTuple):
    """The reason that a result is stale: it is number `n` from the newest, of which only `keep` stay.

    `newest` is the label of the newest result. `path` is the file of a read; a command or search has none. `n_of_tool`
    is the number for recall, which counts only results of the same tool.
    """

    path: str | None
    n: int
    keep: int
    newest: str
    n_of_tool: int


@dataclass(frozen=True, kw_only=True)
class FoldResult:
    """A conversation after folding, and the results whose call is missing or names no file (R6)."""

    draft: Draft
    left_alone: tuple[LeftAlone, ...]

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages after folding."""
        return self.draft.messages

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """The receipt of every fold, in the order of the conversation."""
        return tuple(receipt for _, note in sorted(self.draft.notes.items()) for receipt in note.receipts)


class _Why(NamedTuple):
    """Fields of a receipt that do not depend on its files."""

    tool: str
    rule: str
    reason: str
    part: int | None = None


class _Fold(NamedTuple):
    """A folded result: its place, the message that replaces it, and the note."""

    place: int
    message: ToolMessage
    note: Note


class _Stale(NamedTuple):
    """Stale results of a series: folds of results with one file, and batch results with their reasons."""

    folds: tuple[_Fold, ...]
    batches: tuple[tuple[Observation, StaleResult], ...]


def fold(
    messages: Sequence[Message],
    *,
    settings: FoldSettings = DEFAULTS,
    now: datetime | None = None,
    counter: TokenCounter = OFFLINE,
) -> FoldResult:
    """Fold a conversation as of `now`, which defaults to its newest time."""
    key = fold_key(settings, counter)
    observations = find_observations(messages, key)
    now = now or observations.newest
    new_messages = list(messages)
    notes: dict[int, Note] = {}
    for rule in settings.rules:
        for place, message, note in _folds(observations.by_rule[rule.name], rule, now, key):
            new_messages[place], notes[place] = message, note
    draft = Draft(messages=tuple(new_messages), origins=range(len(new_messages)), notes=notes)
    return FoldResult(draft=draft, left_alone=observations.left_alone)


def _folds(by_file: ByFile, rule: FoldRule, now: datetime, key: FoldKey) -> Iterator[_Fold]:
    """Yield the fold of each stale result (R2-R5, R8, R9)."""
    batches: dict[int, tuple[Observation, list[StaleResult]]] = {}
    age = rule.max_age
    for path, series in by_file.items():
        old = len(series.results)
        if age is not None:
            old = bisect_left(series.results, True, key=lambda result: now - result.time <= age)
        # Cached until the series grows or more of its results are old enough.
        stale = memoise_last(series, _stale_results, path, rule, old, key)
        yield from stale.folds
        for result, why in stale.batches:
            batches.setdefault(result.place, (result, []))[1].append(why)
    for result, files in batches.values():
        # R5: fold a batch result with parts part by part. Fold one without parts only if it is stale for every file.
        if len(files) == len(result.files) or result.by_part:
            change = memoise_last(result.message, _fold_result, result.call.name, rule, tuple(files), key)
            yield _Fold(result.place, *change)


def _stale_results(series: Series, path: str | None, rule: FoldRule, old: int, key: FoldKey) -> _Stale:
    results, keep = series.results, rule.keep
    newest, count = results[-1].message, len(results)
    if rule.keep_by_size:
        indexes = parts_by_file(newest, key).get(path or "")
        parts = newest.parts if indexes is None else [newest.parts[index] for index in indexes]
        keep = rule.keep_for(sum(len(part.text) for part in parts if isinstance(part, Text)))
    folds, batches = list[_Fold](), list[tuple[Observation, StaleResult]]()
    kept_from = max(min(old, count - keep), 0)
    of_tool = Tally([result.call.name for result in results[kept_from:]])
    for place in range(kept_from - 1, -1, -1):
        result = results[place]
        of_tool[result.call.name] += 1
        # Skip a result without a time: neither it nor an earlier message has one, so it may be new.
        if rule.max_age is not None and result.time is BEFORE_ALL:
            continue
        why = StaleResult(path, count - place, keep, label(newest), of_tool[result.call.name])
        if len(result.files) == 1:
            folds.append(_Fold(result.place, *_fold_result(result.message, result.call.name, rule, (why,), key)))
        else:
            batches.append((result, why))
    return _Stale(tuple(folds), tuple(batches))


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
    replacement = fold_to_placeholder(message, rule.placeholder, key)
    return replacement.message, _note(_receipt(message, files, why, replacement.tokens))


def _fold_parts(
    message: ToolMessage, tool: str, rule: FoldRule, files: tuple[StaleResult, ...], key: FoldKey
) -> tuple[ToolMessage, Note]:
    by_file = parts_by_file(message, key)
    stale_parts = {index: stale for stale in files for index in by_file[stale.path or ""]}
    parts = list(message.parts)
    # The places of nonempty parts, in the order in which `tokens_of_texts` counts them
    texts = [
        place
        for place, part in enumerate(parts)
        if (isinstance(part, Text) and part.text) or (isinstance(part, Opaque) and part.data)
    ]
    receipts: list[Receipt] = []
    for index, stale in sorted(stale_parts.items()):
        part = parts[index]
        if isinstance(part, Text):
            parts[index] = replace(part, text=rule.placeholder)
            why = _Why(tool, rule.batch_number or rule.number, _reason(stale, rule), index)
            before = tokens_of_texts(message, key.counter)[texts.index(index)] if index in texts else 0
            tokens = before, count_text(rule.placeholder, key.counter)
            receipts.append(_receipt(message, (stale,), why, tokens))
    new_message = replace(message, parts=tuple(parts))
    saved_tokens = sum([receipt.tokens_before - receipt.tokens_after for receipt in receipts])
    note_tokens(new_message, key.counter.name, tokens_of(message, key.counter) - saved_tokens)
    return new_message, _note(*receipts)


def _reason(stale: StaleResult, rule: FoldRule) -> str:
    what = "result" if stale.path is None else f"{stale.path}: read"
    age = "" if rule.max_age is None else f", and older than {rule.max_age / MINUTE:g} minutes"
    return f"{what} {stale.n} counted from the newest, {stale.keep} stay{age}"


def _receipt(message: ToolMessage, files: tuple[StaleResult, ...], why: _Why, tokens: tuple[int, int]) -> Receipt:
    first = files[0]
    return Receipt(
        rule=why.rule,
        message=label(message),
        part=why.part,
        tool=why.tool,
        paths=tuple([stale.path for stale in files if stale.path is not None]),
        tokens_before=tokens[0],
        tokens_after=tokens[1],
        newer=(first.newest,) if len(files) == 1 else tuple(dict.fromkeys([stale.newest for stale in files])),
        recall=Recall(why.tool, first.path, first.n_of_tool),
        reason=why.reason,
    )


def _note(*receipts: Receipt) -> Note:
    first, *more = receipts
    reason = "; ".join(dict.fromkeys([receipt.reason for receipt in receipts])) if more else first.reason
    return Note("folded", first.rule, reason, receipts)
