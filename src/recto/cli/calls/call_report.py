"""Terminal reports on a page: composition, size, savings and changes.

Input are JSON rows, as the API returns them and `recto explain --json` prints them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import floor, log10
from typing import cast

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from recto.cli.calls.call_words import CallWords
from recto.conversation.json import Json, Object, as_object, objects
from recto.page.manifest import Manifest, Part, read_manifest
from recto.page.named_rules import NAMED_RULES, link_of

# Groups of more unchanged parts share a line; most folded parts to list.
FEW, MANY = 3, 12
BAR_WIDTH = 76
KEPT = "kept"
# Last characters of an id, enough to tell messages apart.
ID_CHARACTERS = 8
# `tool` already names tool definitions.
ROLES = {"tool": "result"}
STYLES: Mapping[str, str] = {"folded": "cyan", "cut": "yellow", "repaired": "yellow", "dropped": "red"}
SIGNS = {"added": "+", "gone": "-", "changed": "~", "same": "="}
# Colour of each kind, and its letter for terminals without colours.
KINDS: Mapping[str, tuple[str, str]] = {
    "envelope": ("bright_black", "e"),
    "tool": ("magenta", "t"),
    "system": ("blue", "s"),
    "prompt": ("blue", "p"),
    "quote": ("yellow", "q"),
    "summary": ("red", "m"),
    "user": ("green", "u"),
    "assistant": ("cyan", "a"),
    "result": ("bright_blue", "r"),
    "closing": ("bright_black", "c"),
}
OTHER_KIND = ("white", "o")
BLOCK, MILLION, PERCENT = "█", 1_000_000, 100
NUMBERS = ("Was", "Tokens", "Share", "Call", "Saved", "N")
LONG = ("Part", "Why", "Why, and how it begins", "Left out", "Model")


@dataclass(frozen=True, kw_only=True)
class ShownPage:
    """A page: its manifest, the first words of each part, and its size in bytes."""

    manifest: Manifest
    words: Sequence[str]
    size: int


def shown_page(row: Object) -> ShownPage:
    """Read the page of a row."""
    words = [str(part.get("words") or "") for _, part in objects(row.get("parts"), "parts")]
    size = row.get("bytes")
    return ShownPage(manifest=read_manifest(row), words=words, size=size if isinstance(size, int) else 0)


@dataclass(frozen=True, kw_only=True)
class PartLine:
    """A part, or a group of adjacent unchanged parts."""

    number: str
    what: str
    before: int
    after: int
    decision: str
    rule: str
    why: str
    words: str = ""


def composition(manifest: Manifest) -> Mapping[str, int]:
    """Sum the tokens of a page by kind, in order of appearance."""
    found: dict[str, int] = {}
    for part in manifest.parts:
        found[kind_of(part)] = found.get(kind_of(part), 0) + part.tokens_after
    return {kind: tokens for kind, tokens in found.items() if tokens}


def kind_of(part: Part) -> str:
    """Return the kind of a part; for messages, their role."""
    return ROLES.get(part.role, part.role) if part.kind == "message" and part.role else part.kind


@dataclass(frozen=True, kw_only=True)
class KindMark:
    """Cells of a bar, in the colours or letters of their kinds."""

    cells: Sequence[tuple[str, int]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        has_colours = bool(console.color_system) and not console.no_color and not options.ascii_only
        text = Text()
        for kind, count in self.cells:
            colour, letter = KINDS.get(kind, OTHER_KIND)
            text.append((BLOCK if has_colours else letter) * count, style=colour)
        yield text

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        width = sum(count for _, count in self.cells)
        return Measurement(width, width)


def composition_view(manifest: Manifest, words: CallWords) -> RenderableType:
    """Render a bar and a table of the kinds, with tokens and shares."""
    kinds = composition(manifest)
    total = sum(kinds.values()) or 1
    table = table_of(words, "", "Part", "Tokens", "Share")
    for kind, tokens in kinds.items():
        mark = KindMark(cells=[(kind, 1)])
        table.add_row(mark, words.kinds.get(kind, kind), f"{tokens:,}", percent(tokens / total))
    return Group(KindMark(cells=bar_cells(kinds)), table)


def bar_cells(kinds: Mapping[str, int], width: int = BAR_WIDTH) -> Sequence[tuple[str, int]]:
    """Divide a bar among kinds, with at least one cell each."""
    total, ends, cells, done = sum(kinds.values()), 0, list[tuple[str, int]](), 0
    for left, (kind, tokens) in zip(range(len(kinds) - 1, -1, -1), kinds.items(), strict=True):
        ends += tokens
        end = min(max(round(width * ends / total), done + 1), width - left)
        cells.append((kind, end - done))
        done = end
    return cells


def percent(share: float) -> str:
    """Format a share in whole percent; a non-zero share is never shown as 0."""
    return "<1 %" if 0 < share < 1 / PERCENT else f"{PERCENT * share:.0f} %"


def room_lines(row: Object, words: CallWords) -> Iterator[str]:
    """Yield lines on the context window and compaction, if the row has them."""
    match row:
        case {"tokens": int(tokens), "window": int(window), "compactAt": int(full)}:
            yield words.window.format(tokens=tokens, window=window, share=percent(tokens / window))
            told = words.room if tokens < full else words.full
            yield told.format(full=full, at=percent(full / window), left=full - tokens)
        case _:
            return


def saved_lines(row: Object, manifest: Manifest, words: CallWords) -> Iterator[str]:
    """Yield lines on tokens and money saved per call."""
    saved = manifest.tokens_saved
    if not saved:
        yield words.nothing_smaller
        return
    yield words.saves.format(tokens=saved)
    match row.get("prices"):
        case {"currency": str(currency), "input": int() | float() as fresh, "cached": int() | float() as cached}:
            known = {"fresh": money(fresh * saved / MILLION), "cached": money(cached * saved / MILLION)}
            yield words.price.format(**known, currency=currency)
        case _:
            yield words.no_price.format(model=row.get("model"))


def money(amount: float) -> str:
    """Format an amount with two significant digits."""
    digits = 2 if amount >= 1 or amount == 0 else 1 - floor(log10(amount))
    return f"{amount:,.{digits}f}"


def part_lines(page: ShownPage, words: CallWords, *, every: bool) -> Iterator[PartLine]:
    """Yield the parts of a page; `every` disables grouping."""
    manifest = page.manifest
    shown = [
        (place, part) for place, (part, size) in enumerate(zip(manifest.parts, manifest.sizes, strict=True)) if size
    ]
    for key, group in groupby(shown, key=lambda one: _group_of(one[1])):
        some = list(group)
        if key is None or every or len(some) <= FEW:
            yield from (_line(place, page, words) for place, _ in some)
            continue
        yield PartLine(
            number=f"{some[0][0]}-{some[-1][0]}",
            what=words.some[key].format(count=len(some)),
            before=sum(part.tokens_before for _, part in some),
            after=sum(part.tokens_after for _, part in some),
            decision=KEPT,
            rule="",
            why=words.why(None, some[0][1].reason),
        )


def _group_of(part: Part) -> str | None:
    return part.kind if part.decision == KEPT and part.kind in ("tool", "message") else None


def _line(place: int, page: ShownPage, words: CallWords) -> PartLine:
    part = page.manifest.parts[place]
    return PartLine(
        number=str(place),
        what=name_of(part, words),
        before=part.tokens_before,
        after=part.tokens_after,
        decision=part.decision,
        rule=part.rule or "",
        why=words.why(part.rule, part.reason),
        words=page.words[place],
    )


def smaller_lines(page: ShownPage, words: CallWords) -> Sequence[PartLine]:
    """Return the parts that were made smaller, largest saving first."""
    parts = page.manifest.parts
    saved = [place for place, part in enumerate(parts) if part.decision != "injected" and _saved(part) > 0]
    return [_line(place, page, words) for place in sorted(saved, key=lambda place: -_saved(parts[place]))]


def _saved(part: Part) -> int:
    return part.tokens_before - part.tokens_after


def smaller_view(page: ShownPage, words: CallWords) -> RenderableType:
    """Render what was folded, cut or left out, limited to the largest savings."""
    lines = smaller_lines(page, words)
    table = parts_table([*lines[:MANY]], words)
    rest = lines[MANY:]
    saved = sum(line.before - line.after for line in rest)
    return Group(table, Text(words.more_parts.format(count=len(rest), tokens=saved))) if rest else table


def name_of(part: Part, words: CallWords) -> str:
    """Return the display name of a part."""
    if part.upto is not None:
        return words.messages.format(count=part.count)
    kind = words.kinds.get(kind_of(part), kind_of(part))
    if part.kind == "tool":
        return f"{kind} {part.source}"
    return f"{kind} {part.source[-ID_CHARACTERS:]}" if part.kind == "message" else kind


def parts_table(lines: Sequence[PartLine], words: CallWords) -> Table:
    """Render parts with their tokens, before and after."""
    table = table_of(words, "#", "Part", "Was", "Tokens", "Decision", "Why, and how it begins")
    for line in lines:
        was = f"{line.before:,}" if line.before != line.after else ""
        decided = f"{words.decisions.get(line.decision, line.decision)} {line.rule}".strip()
        begins = ((f"\n> {line.words}", "dim"),) if line.words else ()
        reason = Text.assemble(line.why, *begins)
        decision = Text(decided, style=STYLES.get(line.decision, ""))
        table.add_row(line.number, Text(line.what), was, f"{line.after:,}", decision, reason)
    return table


def left_out(manifest: Manifest, words: CallWords) -> RenderableType:
    """Render the parts that were left out, with reasons."""
    parts = [part for part, size in zip(manifest.parts, manifest.sizes, strict=True) if not size]
    if not parts:
        return Text(words.nothing_left_out)
    table = table_of(words, "Left out", "Tokens", "Rule", "Why")
    for part in parts:
        reason = Text(words.why(part.rule, part.reason))
        table.add_row(Text(name_of(part, words)), f"{part.tokens_before:,}", part.rule or "", reason)
    return table


def rule_lines(manifest: Manifest, words: CallWords, *, every: bool) -> Sequence[str]:
    """Return a link to the documentation of the rules; with `every`, one for each rule used."""
    rules = dict.fromkeys(part.rule for part in manifest.parts if part.rule) if every else {}
    told = [f"{rule} {NAMED_RULES[rule].name}: {link_of(rule)}" for rule in rules if rule in NAMED_RULES]
    return told or [words.rules]


def changes(found: Object, title: str, words: CallWords) -> RenderableType:
    """Render the difference from the previous call."""
    table = table_of(words, "", "Part", "Tokens")
    table.add_column(title, overflow="fold")
    for _, row in objects(found.get("parts"), "parts"):
        table.add_row(*_change_cells(row, words))
    return Group(table, Text(break_line(found, words), style="yellow" if found.get("prefixBreak") else "green"))


def _change_cells(row: Object, words: CallWords) -> Sequence[str | Text]:
    change = str(row["change"])
    sign = SIGNS[change]
    if change == "same":
        count = cast("int", row["count"])
        return (
            sign,
            words.changed["parts" if count > 1 else "part"].format(count=count),
            f"{row['tokens']:,}",
            words.same,
        )
    was, now = (_part(row[side]) if side in row else None for side in ("before", "after"))
    part = cast("Part", now or was)
    if now is None or was is None:
        return sign, Text(name_of(part, words)), f"{part.tokens_after:,}", Text(_instead(row, words))
    tokens = f"{was.tokens_after:,} > {now.tokens_after:,}" if was.tokens_after != now.tokens_after else ""
    fields = [str(one) for one in cast("Sequence[Json]", row.get("fields", ()))]
    told = words.comma.join(words.fields.get(one, one) for one in fields)
    decided = f"{words.decisions.get(now.decision, now.decision)} {now.rule or ''}".strip()
    why = f"{told}{words.colon}{decided}" if "decision" in fields else told
    return sign, Text(name_of(now, words)), tokens or f"{now.tokens_after:,}", Text(why)


def _part(row: Json) -> Part:
    return read_manifest({"parts": [row], "tokens": 0}).parts[0]


def _instead(row: Object, words: CallWords) -> str:
    change, instead = str(row["change"]), row.get("instead")
    if instead is None:
        return words.changed[change]
    if change == "added":
        return words.left_out_before
    return words.left_out_now.format(count=as_object(instead, "instead")["count"])


def break_line(found: Object, words: CallWords) -> str:
    """Describe whether the previous page is still a cacheable prefix, and if not, the cause and cost."""
    match found:
        case {
            "prefixBreak": {"cause": str(cause), "source": str(source), "bytesKept": int(kept), "tokensAgain": again}
        }:
            told = words.causes.get(cause, cause.replace("_", " "))
            return words.breaks.format(offset=kept, part=_place(found, source, words), cause=told, tokens=again)
        case _:
            return words.holds


def _place(found: Object, source: str, words: CallWords) -> str:
    """Return the name of the part in which a prefix break occurs."""
    match found:
        case {"firstDifference": {"before": {"kind": str(kind), "source": str(id), "role": role}}}:
            part = {
                "kind": kind,
                "source": id,
                "role": role,
                "decision": KEPT,
                "rule": None,
                "reason": "",
                "span": None,
            }
            return name_of(_part({**part, "tokens": {"before": 0, "after": 0}}), words)
        case _:
            return source


def table_of(words: CallWords, *names: str) -> Table:
    """Return a table without borders; only text columns wrap."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        side = "right" if name in NUMBERS else "left"
        table.add_column(words.columns.get(name, name), justify=side, no_wrap=name not in LONG, overflow="fold")
    return table
