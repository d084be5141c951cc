"""What `recto explain` shows people: what a page is made of and why, what was left out, what changed since the last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from recto.page.difference import Difference, DifferenceRow
from recto.page.manifest import Manifest, Part
from recto.page.named_rules import NAMED_RULES, PAGE, link_of, why
from recto.page.prefix import SentPage
from recto.page.shown_parts import first_words

# How many parts that were kept as they are stand in one line, from which number on.
FEW = 3
BAR, PLAIN_BAR, BAR_WIDTH = "█", "#", 40
KEPT = "kept"
# The end of an id tells messages apart; all of it would fill the line.
ID_CHARACTERS = 8
# What is offered is a tool, too.
ROLES = {"tool": "result"}
STYLES: Mapping[str, str] = {"folded": "cyan", "cut": "yellow", "repaired": "yellow", "dropped": "red"}
SIGNS = {"added": "+", "gone": "-", "changed": "~", "same": "="}
HOLDS = "The prefix holds: the page begins with the whole of the one before."
RULES = f"{PAGE} tells what the rules are."
FIRST = "It is the first of its kind in the thread: there is nothing to compare it with."


@dataclass(frozen=True, kw_only=True)
class PartLine:
    """A part, or several that follow each other and were kept as they are."""

    number: str
    what: str
    before: int
    after: int
    decision: str
    why: str
    words: str = ""


def composition(manifest: Manifest) -> Mapping[str, int]:
    """The tokens of a page by what they are for, in the order they first stand in it."""
    found: dict[str, int] = {}
    for part in manifest.parts:
        found[kind_of(part)] = found.get(kind_of(part), 0) + part.tokens_after
    return {kind: tokens for kind, tokens in found.items() if tokens}


def kind_of(part: Part) -> str:
    """What a part is, in a word or two."""
    return ROLES.get(part.role, part.role) if part.kind == "message" and part.role else part.kind


def composition_table(manifest: Manifest, *, is_plain: bool = False) -> Table:
    """A bar for each kind of part."""
    kinds = composition(manifest)
    total = sum(kinds.values()) or 1
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    for kind, tokens in kinds.items():
        bar = (PLAIN_BAR if is_plain else BAR) * max(1, round(BAR_WIDTH * tokens / total))
        table.add_row(kind, f"{tokens:,}", f"{100 * tokens / total:.0f} %", Text(bar, style="blue"))
    return table


def part_lines(page: SentPage, *, every: bool) -> Iterator[PartLine]:
    """The parts that are in the page; `every` has each in a line of its own."""
    manifest = page.manifest
    shown = [
        (place, part) for place, (part, size) in enumerate(zip(manifest.parts, manifest.sizes, strict=True)) if size
    ]
    for key, group in groupby(shown, key=lambda one: _group_of(one[1])):
        some = list(group)
        if key is None or every or len(some) <= FEW:
            yield from (_line(place, part, page) for place, part in some)
            continue
        yield PartLine(
            number=f"{some[0][0]}-{some[-1][0]}",
            what=f"{len(some)} {key}s",
            before=sum(part.tokens_before for _, part in some),
            after=sum(part.tokens_after for _, part in some),
            decision=KEPT,
            why=some[0][1].reason,
        )


def _group_of(part: Part) -> str | None:
    return part.kind if part.decision == KEPT and part.kind in ("tool", "message") else None


def _line(place: int, part: Part, page: SentPage) -> PartLine:
    return PartLine(
        number=str(place),
        what=name_of(part),
        before=part.tokens_before,
        after=part.tokens_after,
        decision=f"{part.decision} {part.rule or ''}".strip(),
        why=why(part.rule, part.reason),
        words=first_words(page.bytes_at(place), part.kind) or "",
    )


def name_of(part: Part) -> str:
    """A part by its kind and what tells it from others of that kind."""
    if part.upto is not None:
        return f"{part.count:,} messages"
    if part.kind == "tool":
        return f"tool {part.source}"
    return f"{kind_of(part)} {part.source[-ID_CHARACTERS:]}" if part.kind == "message" else kind_of(part)


def parts_table(page: SentPage, *, every: bool) -> Table:
    """The parts that are in the page, with their tokens, before they were made smaller where they were."""
    table = _table("#", "Part", "Was", "Tokens", "Decision", "Why, and how it begins")
    for line in part_lines(page, every=every):
        was = f"{line.before:,}" if line.before != line.after else ""
        style = STYLES.get(line.decision.partition(" ")[0], "")
        decision = Text(line.decision, style=style)
        begins = ((f"\n> {line.words}", "dim"),) if line.words else ()
        reason = Text.assemble(line.why, *begins)
        table.add_row(line.number, Text(line.what), was, f"{line.after:,}", decision, reason)
    return table


def left_out(manifest: Manifest) -> RenderableType:
    """What was left out of the page, and why."""
    parts = [part for part, size in zip(manifest.parts, manifest.sizes, strict=True) if not size]
    if not parts:
        return Text("Nothing was left out.")
    table = _table("Left out", "Tokens", "Rule", "Why")
    for part in parts:
        reason = Text(why(part.rule, part.reason))
        table.add_row(Text(name_of(part)), f"{part.tokens_before:,}", part.rule or "", reason)
    return table


def rule_lines(manifest: Manifest, *, every: bool) -> Sequence[str]:
    """Where rules are told of: the page, or, with `every`, the place of each rule that decided something here."""
    rules = dict.fromkeys(part.rule for part in manifest.parts if part.rule) if every else {}
    told = [f"{rule} {NAMED_RULES[rule].name}: {link_of(rule)}" for rule in rules if rule in NAMED_RULES]
    return told or [RULES]


def changes(found: Difference, title: str) -> RenderableType:
    """What is other than in the call before."""
    table = _table("", "Part", "Tokens", title)
    for row in found.rows:
        table.add_row(*_change_cells(found, row))
    return Group(table, Text(break_line(found), style="yellow" if found.broken else "green"))


def _change_cells(found: Difference, row: DifferenceRow) -> Sequence[str | Text]:
    old, new = found.before.manifest.parts, found.after.manifest.parts
    sign = SIGNS[row.change]
    if row.change == "same":
        tokens = sum(part.tokens_after for part in new[row.after.start : row.after.stop])
        count = len(row.after)
        return sign, f"{count:,} part{'s' if count > 1 else ''}", f"{tokens:,}", "the same"
    part = new[row.after.start] if row.after else old[row.before.start]
    if row.change != "changed":
        stands = f"now one of {row.instead.count:,} left out" if row.instead and row.change == "gone" else ""
        stands = "was left out before" if row.instead and row.change == "added" else stands
        return sign, Text(name_of(part)), f"{part.tokens_after:,}", Text(stands or row.change)
    was = old[row.before.start]
    tokens = f"{was.tokens_after:,} > {part.tokens_after:,}" if was.tokens_after != part.tokens_after else ""
    decided = f"{part.decision} {part.rule or ''}".strip() if "decision" in row.fields else ""
    told = ", ".join(row.fields)
    return (
        sign,
        Text(name_of(part)),
        tokens or f"{part.tokens_after:,}",
        Text(f"{told}: {decided}" if decided else told),
    )


def break_line(found: Difference) -> str:
    """Whether a provider's cache can use the whole page before, and if not, why and what that costs."""
    broken = found.broken
    if broken is None:
        return HOLDS
    place = found.before.place_at(broken.bytes_kept)
    part = found.before.manifest.parts[place]
    where = f"at byte {broken.bytes_kept:,}, in {name_of(part)}"
    cost = f"{found.tokens_again:,} tokens behind it stay as they were and have to be read again"
    return f"The prefix breaks {where}: {broken.cause.replace('_', ' ')}. {cost}."


def _table(*names: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        is_number = name in ("Was", "Tokens")
        is_long = name not in ("#", "", "Was", "Tokens", "Decision", "Rule")
        table.add_column(name, justify="right" if is_number else "left", no_wrap=not is_long, overflow="fold")
    return table
