"""Differences between two pages: changed parts, the first differing byte, and the cost of a broken prefix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from typing import Literal, TypeAlias

from recto.conversation.json import Json
from recto.page.manifest import Manifest, Part
from recto.page.manifest_rows import rule_fields, shown_row
from recto.page.prefix import Break, SentPage, first_difference, prefix_break, what_became

Change: TypeAlias = Literal["same", "changed", "added", "gone"]
# Fields of parts to compare, besides their bytes.
COMPARED = ("role", "decision", "rule", "reason", "receipts", "upto", "count")
CONTENT, PLACE, TOKENS = "content", "place", "tokens"
_Key: TypeAlias = tuple[str, str, int]
NONE = range(0)


@dataclass(frozen=True, kw_only=True)
class DifferenceRow:
    """A changed, added or gone part, or a range of unchanged parts, by their places in both pages.

    `fields` names the changed fields. For an added or gone message, `instead` is the gap that contains it in the other
    page.
    """

    change: Change
    before: range = NONE
    after: range = NONE
    fields: tuple[str, ...] = ()
    instead: Part | None = None


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The differences between two pages. Each part is in exactly one row, in the order of the later page.

    `offset` is the first differing byte, or None. `tokens_again` counts tokens after a break that the earlier page
    already had. The provider must read them again.
    """

    before: SentPage
    after: SentPage
    rows: tuple[DifferenceRow, ...]
    offset: int | None
    broken: Break | None
    tokens_again: int

    def row(self) -> dict[str, Json]:
        """Return the difference as a JSON object."""
        first = broken = None
        if self.offset is not None:
            before, after = _place_row(self.before, self.offset), _place_row(self.after, self.offset)
            first = {"offset": self.offset, "before": before, "after": after}
        if self.broken:
            broken = {"cause": self.broken.cause, "source": self.broken.source, "bytesKept": self.broken.bytes_kept}
            broken |= {"tokensAgain": self.tokens_again}
        return {
            "identical": self.offset is None,
            "firstDifference": first,
            "prefixBreak": broken,
            "parts": list(self._part_rows()),
        }

    def _part_rows(self) -> Iterator[dict[str, Json]]:
        pages = {"before": self.before, "after": self.after}
        for row in self.rows:
            sides = {"before": row.before, "after": row.after}
            result: dict[str, Json] = {
                "change": row.change,
                "places": {name: ([at.start, at.stop] if at else None) for name, at in sides.items()},
            }
            if row.change == "same":
                tokens = sum(part.tokens_after for part in self.after.manifest.parts[row.after.start : row.after.stop])
                yield {**result, "count": len(row.after), TOKENS: tokens}
                continue
            for name, at in sides.items():
                if at:
                    result[name] = shown_row(pages[name].manifest.row(at.start), pages[name].body)
            if row.fields:
                result["fields"] = list(row.fields)
            if gap := row.instead:
                source = {"source": gap.source, "upto": gap.upto, "count": gap.count, "decision": gap.decision}
                result["instead"] = {**source, "rule": gap.rule, **rule_fields(gap.rule), "reason": gap.reason}
            yield result


def difference(before: SentPage, after: SentPage) -> Difference:
    """Compare two pages of one thread."""
    broken = prefix_break(before, after)
    return Difference(
        before=before,
        after=after,
        rows=tuple(_merge_same_rows(_rows(before, after))),
        offset=first_difference(before.body, after.body),
        broken=broken,
        tokens_again=tokens_again(before, after, broken) if broken else 0,
    )


def _rows(before: SentPage, after: SentPage) -> Iterator[DifferenceRow]:
    """Yield a row for each part in the order of the later page. A gone part follows the last staying part before it."""
    old, new = before.manifest, after.manifest
    places, keys = _index_parts(old), list(_index_parts(new))
    went, came = what_became(old, new), what_became(new, old)
    # Group the places of gone parts by the place of the nearest preceding part that stays, or -1
    removals, anchor, new_keys = dict[int, list[int]](), -1, set(keys)
    for key, place in places.items():
        if key in new_keys:
            anchor = place
        else:
            removals.setdefault(anchor, []).append(place)
    newest = -1

    def leave(anchor: int) -> Iterator[DifferenceRow]:
        for place in removals.get(anchor, ()):
            instead = _gap(went.get(old.parts[place].source))
            yield DifferenceRow(change="gone", before=range(place, place + 1), instead=instead)

    yield from leave(-1)
    for at, key in enumerate(keys):
        place = places.get(key)
        if place is None:
            instead = _gap(came.get(new.parts[at].source))
            yield DifferenceRow(change="added", after=range(at, at + 1), instead=instead)
            continue
        fields = tuple(_changed((before, after), place, at, is_moved=place < newest))
        newest = max(newest, place)
        change = "changed" if fields else "same"
        yield DifferenceRow(change=change, before=range(place, place + 1), after=range(at, at + 1), fields=fields)
        yield from leave(place)


def _index_parts(manifest: Manifest, sources: Set[str] | None = None) -> dict[_Key, int]:
    """Map (kind, source, count) to places in page order; the envelope occurs twice.

    With `sources`, only parts with one of these sources are included.
    """
    places, counts = dict[_Key, int](), Counter[tuple[str, str]]()
    for place, part in enumerate(manifest.parts):
        if sources is None or part.source in sources:
            name = (part.kind, part.source)
            places[*name, counts[name]] = place
            counts[name] += 1
    return places


def _gap(part: Part | None) -> Part | None:
    return part if part and part.upto is not None else None


def _changed(sides: tuple[SentPage, SentPage], place: int, at: int, *, is_moved: bool) -> Iterator[str]:
    old, new = sides[0].manifest.parts[place], sides[1].manifest.parts[at]
    if old != new:
        yield from (name for name in COMPARED if getattr(old, name) != getattr(new, name))
        if old[3:5] != new[3:5]:
            yield TOKENS
    if sides[0].bytes_at(place) != sides[1].bytes_at(at):
        yield CONTENT
    if is_moved:
        yield PLACE


def _merge_same_rows(rows: Iterable[DifferenceRow]) -> Iterator[DifferenceRow]:
    """Merge neighbouring rows of unchanged parts."""
    stretch: DifferenceRow | None = None
    for row in rows:
        if stretch and row.change == "same" and row.before.start == stretch.before.stop:
            before, after = range(stretch.before.start, row.before.stop), range(stretch.after.start, row.after.stop)
            stretch = DifferenceRow(change="same", before=before, after=after)
            continue
        if stretch:
            yield stretch
        stretch = row if row.change == "same" else None
        if stretch is None:
            yield row
    if stretch:
        yield stretch


def tokens_again(before: SentPage, after: SentPage, broken: Break) -> int:
    """Count the tokens after a break that the earlier page already had."""
    parts, start = after.manifest.parts, after.place_at(broken.bytes_kept)
    # Most breaks are near the end of a page, so index only the parts after the break. Skip the end of the page, which
    # is never cached.
    sources = {part.source for part in parts[start:-1]}
    places = _index_parts(before.manifest, sources)
    places_behind = [
        (key, at) for key, at in _index_parts(after.manifest, sources).items() if start <= at < len(parts) - 1
    ]
    pairs = [(at, places[key]) for key, at in places_behind if key in places]
    return sum(parts[at].tokens_after for at, place in pairs if after.bytes_at(at) == before.bytes_at(place))


def _place_row(page: SentPage, offset: int) -> Json:
    place = page.place_at(offset)
    if place >= len(page.manifest.parts):
        return None
    part, span = page.manifest.parts[place], page.manifest.spans[place]
    into = offset - span[0] if span else 0
    return {"place": place, "kind": part.kind, "source": part.source, "role": part.role, "into": into}
