"""The one function every page goes through: facts in, page and manifest out."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from operator import attrgetter
from typing import NamedTuple

from recto.page.canonical import Json
from recto.page.draft import Draft, then
from recto.page.fit import Target, WireName, fit
from recto.page.fold import fold
from recto.page.folding import FoldSettings
from recto.page.galley import Galley, Piece, kept, set_message, set_messages, set_tools
from recto.page.manifest import Manifest, Note, Part
from recto.page.messages import Message, remember, remember_last
from recto.page.repair import repair
from recto.page.setting import Page, Segment, ToolOffer, envelope, finish, segment
from recto.page.tokens import OFFLINE, Calibration, TokenCounter, calibrate, tokens_of

SOURCE, TOKENS_AFTER = attrgetter("source"), attrgetter("tokens_after")


@dataclass(frozen=True, kw_only=True)
class Facts:
    """All that shapes a page. The same facts give the same bytes, on every platform and run (R1).

    `options` are fields of the request beside the conversation (`stream`, `temperature` ...). `now` decides what is
    old; where it is not given, the newest time in the log does. `last` is what the provider reported of the last page.
    """

    log: Sequence[Message]
    target: Target = Target()
    tools: tuple[ToolOffer, ...] = ()
    options: Mapping[str, Json] = field(default_factory=dict[str, Json])
    fold: FoldSettings = FoldSettings()
    now: datetime | None = None
    counter: TokenCounter = OFFLINE
    last: Calibration | None = None


class _At(NamedTuple):
    wire: WireName
    counter: TokenCounter


def assemble(facts: Facts) -> tuple[Page, Manifest]:
    """Set the page of one model call: repair, fit to the target, fold, and write it out with its manifest."""
    target, counter = facts.target, facts.counter
    repaired = repair(facts.log)
    fitted = then(repaired, fit(repaired.messages, target))
    tools = set_tools(facts.tools, target.wire, counter)
    talk = set_messages(fitted.messages, tools.last, target.wire, counter)
    folded = fold(fitted.messages, settings=facts.fold, now=facts.now, counter=counter)
    page, manifest = _set_page(facts, tools, _set_changes(facts, talk, then(fitted, folded.draft)))
    return page, replace(manifest, left_alone=folded.left_alone)


def _set_changes(facts: Facts, talk: Galley, draft: Draft) -> Galley:
    """The conversation with what was noted of each message, its folded bytes, and those left out where they stood."""
    parts, sizes, segments = list(talk.parts), list(talk.sizes), list(talk.segments)
    origins = draft.origins
    _name_the_nameless(parts, origins)
    places = origins if isinstance(origins, range) else dict(zip(origins, range(len(origins)), strict=True))
    at, left_out = _At(facts.target.wire, facts.counter), list[int]()
    for origin, note in draft.notes.items():
        if note.decision == "dropped":
            left_out.append(origin)
            continue
        place = places[origin]
        before = tokens_of(facts.log[origin], facts.counter)
        setting = remember_last(note, _set_changed, parts[place], draft.messages[place], before, at)
        sizes[place] += len(setting.segment.data) - len(segments[2 * place + 1].data)
        parts[place], segments[2 * place + 1] = setting
    for origin in sorted(left_out, reverse=True):
        place = bisect_left(origins, origin)
        parts.insert(place, _left_out(facts, origin, draft.notes[origin]))
        sizes.insert(place, 0)
    return Galley(parts=tuple(parts), sizes=tuple(sizes), segments=tuple(segments), last=talk.last)


def _name_the_nameless(parts: list[Part], origins: Sequence[int]) -> None:
    if not all(map(SOURCE, parts)):
        for place, (part, origin) in enumerate(zip(parts, origins, strict=True)):
            if not part.source:
                parts[place] = replace(part, source=f"messages[{origin}]")


def _set_changed(note: Note, base: Part, shown: Message, tokens_before: int, at: _At) -> Piece:
    piece = remember(shown, set_message, at.wire, at.counter)
    part = _changed(note, base, tokens_before)
    return Piece(replace(part, tokens_after=piece.part.tokens_after), piece.segment)


def _changed(note: Note, base: Part, tokens_before: int) -> Part:
    return replace(
        base,
        tokens_before=tokens_before,
        decision=note.decision,
        rule=note.rule,
        reason=note.reason,
        receipts=note.receipts,
    )


def _left_out(facts: Facts, origin: int, note: Note) -> Part:
    message = facts.log[origin]
    nothing = kept("message", message.id or f"messages[{origin}]", message.role, 0)
    return _changed(note, nothing, tokens_of(message, facts.counter))


def _set_page(facts: Facts, tools: Galley, talk: Galley) -> tuple[Page, Manifest]:
    head, tail = segment(envelope(facts.target.model, facts.options)), finish(talk.last)
    page = Page(segments=(head, *tools.segments, *talk.segments, tail))
    parts = (_envelope(head, facts.counter), *tools.parts, *talk.parts, _envelope(tail, facts.counter))
    sizes = (len(head.data), *tools.sizes, *talk.sizes, len(tail.data))
    tokens = calibrate(counted=sum(map(TOKENS_AFTER, parts)), digest=page.digest, last=facts.last)
    return page, Manifest(parts=parts, sizes=sizes, tokens=tokens)


def _envelope(data: Segment, counter: TokenCounter) -> Part:
    return kept("envelope", "envelope", None, counter.count((data.data.decode(),))[0])
