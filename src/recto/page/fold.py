"""Folding (R1-R9): old results that newer ones stand for are replaced by a line, in the page only.

Never touches errors, other tools or its input. Folding twice changes nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from recto.page.draft import Draft
from recto.page.folding import AgeRule, FoldSettings, Lens, ReadRule, lens_of
from recto.page.manifest import Note, Recall, Receipt
from recto.page.messages import Message, Text, ToolMessage, remember, remember_last
from recto.page.sightings import LeftAlone, find_sightings, parts_by_file
from recto.page.stale import Stale, label, stale_reads, stale_results
from recto.page.tokens import OFFLINE, TokenCounter, tokens_of

DEFAULTS = FoldSettings()
STALE_READ = "{path}: read {n} counted from the newest, {keep} stay"
STALE_BATCH = "a batch read, stale for each of its files: {paths}"
STALE_RESULT = "result {n} counted from the newest, {keep} stay, and older than {minutes:g} minutes"


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
    lens = lens_of(settings, counter)
    seen = find_sightings(messages, lens)
    now = now or seen.newest
    shown = list(messages)
    notes: dict[int, Note] = {}
    for sighting, files in stale_reads(seen.reads, lens):
        folded = remember_last(sighting.message, _fold_read, sighting.call.name, files, lens)
        shown[sighting.place], notes[sighting.place] = folded
    rules = lens.settings
    old = (*stale_results(seen.commands, rules.terminal, now), *stale_results(seen.searches, rules.search, now))
    for sighting, rule, stale in old:
        folded = remember_last(sighting.message, _fold_result, sighting.call.name, rule, stale, lens)
        shown[sighting.place], notes[sighting.place] = folded
    draft = Draft(messages=tuple(shown), origins=range(len(shown)), notes=notes)
    return Folded(draft=draft, left_alone=seen.left_alone)


def _fold_read(message: ToolMessage, tool: str, files: tuple[Stale, ...], lens: Lens) -> tuple[ToolMessage, Note]:
    placeholder = (lens.settings.reads or ReadRule()).placeholder
    if parts_by_file(message, lens):
        return _fold_parts(message, tool, files, placeholder, lens)
    if len(files) == 1:
        rule, reason = "R2", _read_reason(files[0])
    else:
        rule, reason = "R5", STALE_BATCH.format(paths=", ".join(stale.path or "" for stale in files))
    return _fold_whole(message, files, placeholder, _Why(tool, rule, reason), lens)


def _fold_result(message: ToolMessage, tool: str, rule: AgeRule, stale: Stale, lens: Lens) -> tuple[ToolMessage, Note]:
    name = "R8" if rule is lens.settings.terminal else "R9"
    minutes = rule.max_age / timedelta(minutes=1)
    reason = STALE_RESULT.format(n=stale.n, keep=stale.keep, minutes=minutes)
    return _fold_whole(message, (stale,), rule.placeholder, _Why(tool, name, reason), lens)


def _fold_whole(
    message: ToolMessage, files: tuple[Stale, ...], placeholder: str, why: _Why, lens: Lens
) -> tuple[ToolMessage, Note]:
    shown = remember(message, _placeheld, placeholder)
    tokens = tokens_of(message, lens.counter), tokens_of(shown, lens.counter)
    return shown, _note(_receipt(message, files, why, tokens))


def _placeheld(message: ToolMessage, placeholder: str) -> ToolMessage:
    return ToolMessage(
        id=message.id,
        seq=message.seq,
        time=message.time,
        tool_call_id=message.tool_call_id,
        parts=(Text(text=placeholder),),
        error=message.error,
        encrypted_value=message.encrypted_value,
    )


def _fold_parts(
    message: ToolMessage, tool: str, files: tuple[Stale, ...], placeholder: str, lens: Lens
) -> tuple[ToolMessage, Note]:
    by_file = parts_by_file(message, lens)
    folded = {index: stale for stale in files for index in by_file[stale.path or ""]}
    parts = list(message.parts)
    receipts: list[Receipt] = []
    for index, stale in sorted(folded.items()):
        part = parts[index]
        if isinstance(part, Text):
            parts[index] = replace(part, text=placeholder)
            why = _Why(tool, "R5", _read_reason(stale), index)
            tokens = remember(message, _count_part, part.text, placeholder, lens)
            receipts.append(_receipt(message, (stale,), why, tokens))
    return replace(message, parts=tuple(parts)), _note(*receipts)


def _count_part(_: ToolMessage, text: str, placeholder: str, lens: Lens) -> tuple[int, int]:
    before, after = lens.counter.count((text, placeholder))
    return before, after


def _read_reason(stale: Stale) -> str:
    return STALE_READ.format(path=stale.path, n=stale.n, keep=stale.keep)


def _receipt(message: ToolMessage, files: tuple[Stale, ...], why: _Why, tokens: tuple[int, int]) -> Receipt:
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
