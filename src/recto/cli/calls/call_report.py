"""Terminal reports on a page: composition, size, savings and changes.

Input are JSON rows, as the API returns them and `recto explain --json` prints them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import floor, log10
from typing import cast

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

from recto.cli.translation import _, code_name, translations
from recto.conversation.json import Json, Object, as_object, objects
from recto.page.manifest import Manifest, Part, read_manifest
from recto.page.manifest_rows import PAGE, RULE_NAMES, link_of, why

# Groups of more than FEW unchanged parts share a line. MANY is the maximum number of folded parts to list.
FEW, MANY = 3, 12
BAR_WIDTH = 76
DECISION_KEPT = "kept"
# Last characters of an id, enough to tell messages apart.
ID_CHARACTERS = 8
# Kind of a message by role. Tool messages are results, because the kind `tool` means tool definitions.
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


@dataclass(frozen=True, kw_only=True)
class PageReport:
    """A page: its manifest, the first words of each part, and its size in bytes."""

    manifest: Manifest
    words: Sequence[str]
    size: int


def read_page_report(row: Object) -> PageReport:
    """Read the page of a row."""
    words = [str(part.get("words") or "") for _path, part in objects(row.get("parts"), "parts")]
    size = row.get("bytes")
    return PageReport(manifest=read_manifest(row), words=words, size=size if isinstance(size, int) else 0)


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
    tokens_by_kind: dict[str, int] = {}
    for part in manifest.parts:
        kind = kind_of(part.kind, part.role)
        tokens_by_kind[kind] = tokens_by_kind.get(kind, 0) + part.tokens_after
    return {kind: tokens for kind, tokens in tokens_by_kind.items() if tokens}


def kind_of(kind: str, role: str | None) -> str:
    """Return the kind of a part; for messages, their role."""
    return ROLES.get(role, role) if kind == "message" and role else kind


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


def composition_view(manifest: Manifest) -> RenderableType:
    """Render a bar and a table of the kinds, with tokens and shares."""
    kinds = composition(manifest)
    total = sum(kinds.values()) or 1
    table = new_table(word_column(), text_column(_("Part")), number_column(_("Tokens")), number_column(_("Share")))
    for kind, tokens in kinds.items():
        mark = KindMark(cells=[(kind, 1)])
        table.add_row(mark, code_name(kind), f"{tokens:,}", percent(tokens / total))
    return Group(KindMark(cells=bar_cells(kinds)), table)


def bar_cells(kinds: Mapping[str, int], width: int = BAR_WIDTH) -> Sequence[tuple[str, int]]:
    """Divide a bar among kinds, with at least one cell each."""
    total, ends, cells, done = sum(kinds.values()), 0, list[tuple[str, int]](), 0
    for remaining, (kind, tokens) in zip(range(len(kinds) - 1, -1, -1), kinds.items(), strict=True):
        ends += tokens
        end = min(max(round(width * ends / total), done + 1), width - remaining)
        cells.append((kind, end - done))
        done = end
    return cells


def percent(share: float) -> str:
    """Format a share in whole percent; a non-zero share is never shown as 0."""
    return "<1 %" if 0 < share < 1 / PERCENT else f"{PERCENT * share:.0f} %"


def room_lines(row: Object) -> Iterator[str]:
    """Yield lines on the context window and compaction, if the row has them."""
    match row:
        case {"tokens": int(tokens), "window": int(window), "compactAt": int(full)}:
            text = _("Window: {tokens:,} of {window:,} tokens, {share}.")
            yield text.format(tokens=tokens, window=window, share=percent(tokens / window))
            if tokens < full:
                text = _("Older messages are summarised at {full:,} tokens ({at}): {left:,} to go.")
            else:
                text = _("The page has reached {full:,} tokens ({at}): the next run summarises older messages first.")
            yield text.format(full=full, at=percent(full / window), left=full - tokens)
        case _:
            return


def saved_lines(row: Object, manifest: Manifest) -> Iterator[str]:
    """Yield lines on tokens and money saved per call."""
    saved_tokens = manifest.tokens_saved
    if not saved_tokens:
        yield _("Nothing is folded, cut or left out.")
        return
    yield _("Folding, cutting and leaving out save {tokens:,} tokens on each call.").format(tokens=saved_tokens)
    match row.get("prices"):
        case {"currency": str(currency), "input": int() | float() as fresh, "cached": int() | float() as cached}:
            amounts = {"fresh": money(fresh * saved_tokens / MILLION), "cached": money(cached * saved_tokens / MILLION)}
            text = _("This is {fresh} {currency}, or {cached} {currency} if the provider has these tokens cached.")
            yield text.format(**amounts, currency=currency)
        case _:
            yield _("The savings in money are unknown: the price list has no {model}.").format(model=row.get("model"))


def money(amount: float) -> str:
    """Format an amount with two significant digits."""
    digits = 2 if amount >= 1 or amount == 0 else 1 - floor(log10(amount))
    return f"{amount:,.{digits}f}"


def part_lines(page: PageReport, *, every: bool) -> Iterator[PartLine]:
    """Yield the parts of a page; `every` disables grouping."""
    manifest = page.manifest
    parts = [
        (place, part) for place, (part, size) in enumerate(zip(manifest.parts, manifest.sizes, strict=True)) if size
    ]

    def find_group(entry: tuple[int, Part]) -> str | None:
        _place, part = entry
        return part.kind if part.decision == DECISION_KEPT and part.kind in ("tool", "message") else None

    for key, group in groupby(parts, key=find_group):
        by_place = dict(group)
        if key is None or every or len(by_place) <= FEW:
            yield from [_line(place, page) for place in by_place]
            continue
        places, group_parts = list(by_place), list(by_place.values())
        yield PartLine(
            number=f"{places[0]}-{places[-1]}",
            what=(_("{count} tools") if key == "tool" else _("{count} messages")).format(count=len(places)),
            before=sum(part.tokens_before for part in group_parts),
            after=sum(part.tokens_after for part in group_parts),
            decision=DECISION_KEPT,
            rule="",
            why=reason_text(None, group_parts[0].reason),
        )


def _line(place: int, page: PageReport) -> PartLine:
    part = page.manifest.parts[place]
    return PartLine(
        number=str(place),
        what=name_of(part),
        before=part.tokens_before,
        after=part.tokens_after,
        decision=part.decision,
        rule=part.rule or "",
        why=reason_text(part.rule, part.reason),
        words=page.words[place],
    )


def _tokens_saved(part: Part) -> int:
    return part.tokens_before - part.tokens_after


def smaller_view(page: PageReport) -> RenderableType:
    """Render what was folded, cut or left out, limited to the largest savings."""
    parts = page.manifest.parts
    places = [place for place, part in enumerate(parts) if part.decision != "injected" and _tokens_saved(part) > 0]
    lines = [_line(place, page) for place in sorted(places, key=lambda place: -_tokens_saved(parts[place]))]
    table, rest = parts_table(lines[:MANY]), lines[MANY:]
    if not rest:
        return table
    text = _("and {count:,} more, which save {tokens:,} tokens")
    return Group(table, Text(text.format(count=len(rest), tokens=sum(line.before - line.after for line in rest))))


def name_of(part: Part) -> str:
    """Return the display name of a part."""
    if part.upto is not None:
        return _("{count} messages").format(count=f"{part.count:,}")
    return _part_name(part.kind, part.role or "", part.source)


def _part_name(kind: str, role: str, source: str) -> str:
    name = code_name(kind_of(kind, role))
    if kind == "tool":
        return f"{name} {source}"
    return f"{name} {source[-ID_CHARACTERS:]}" if kind == "message" else name


def parts_table(lines: Sequence[PartLine]) -> Table:
    """Render parts with their tokens, before and after."""
    table = new_table(
        word_column("#"),
        text_column(_("Part")),
        number_column(_("Was")),
        number_column(_("Tokens")),
        word_column(_("Decision")),
        text_column(_("Reason and first words")),
    )
    for line in lines:
        was = f"{line.before:,}" if line.before != line.after else ""
        reason = Text.assemble(line.why, *([(f"\n> {line.words}", "dim")] if line.words else []))
        decision = Text(f"{code_name(line.decision)} {line.rule}".strip(), style=STYLES.get(line.decision, ""))
        table.add_row(line.number, Text(line.what), was, f"{line.after:,}", decision, reason)
    return table


def left_out(manifest: Manifest) -> RenderableType:
    """Render the parts that were left out, with reasons."""
    parts = [part for part, size in zip(manifest.parts, manifest.sizes, strict=True) if not size]
    if not parts:
        return Text(_("Nothing was left out."))
    table = new_table(
        text_column(_("Left out")), number_column(_("Tokens")), word_column(_("Rule")), text_column(_("Reason"))
    )
    for part in parts:
        reason = Text(reason_text(part.rule, part.reason))
        table.add_row(Text(name_of(part)), f"{part.tokens_before:,}", part.rule or "", reason)
    return table


def rule_lines(manifest: Manifest, *, every: bool) -> Sequence[str]:
    """Return a link to the documentation of the rules; with `every`, one for each rule used."""
    rules = dict.fromkeys(part.rule for part in manifest.parts if part.rule) if every else {}
    links = [f"{rule} {RULE_NAMES[rule]}: {link_of(rule)}" for rule in rules if rule in RULE_NAMES]
    return links or [_("For the rules, see {page}.").format(page=PAGE)]


def changes(difference: Object, title: str) -> RenderableType:
    """Render the difference from the previous call."""
    table = new_table(word_column(), text_column(_("Part")), number_column(_("Tokens")), text_column(title))
    for _path, row in objects(difference.get("parts"), "parts"):
        table.add_row(*_change_cells(row))
    return Group(table, Text(break_line(difference), style="yellow" if difference.get("prefixBreak") else "green"))


def _change_cells(row: Object) -> Sequence[str | Text]:
    change = str(row["change"])
    sign = SIGNS[change]
    if change == "same":
        count = cast("int", row["count"])
        parts = _("1 part") if count == 1 else _("{count} parts").format(count=f"{count:,}")
        return sign, parts, f"{row['tokens']:,}", _("unchanged")
    was, now = (
        read_manifest({"parts": [row[side]], "tokens": 0}).parts[0] if side in row else None
        for side in ("before", "after")
    )
    part = cast("Part", now or was)
    if now is None or was is None:
        instead, text = row.get("instead"), code_name(change)
        if instead is not None:
            text = _("was left out before") if change == "added" else _("now left out with others, {count} in all")
            text = text.format(count=as_object(instead, "instead").get("count"))
        return sign, Text(name_of(part)), f"{part.tokens_after:,}", Text(text)
    tokens = f"{was.tokens_after:,} > {now.tokens_after:,}" if was.tokens_after != now.tokens_after else ""
    fields = [str(one) for one in cast("Sequence[Json]", row.get("fields", ()))]
    text = _(", ").join(map(code_name, fields))
    if "decision" in fields:
        text += _(": ") + f"{code_name(now.decision)} {now.rule or ''}".strip()
    return sign, Text(name_of(now)), tokens or f"{now.tokens_after:,}", Text(text)


def break_line(difference: Object) -> str:
    """Return a line on the prompt cache: the prefix holds, or the cause and cost of its break."""
    match difference:
        case {
            "prefixBreak": {"cause": str(cause), "source": str(source), "bytesKept": int(kept), "tokensAgain": again}
        }:
            text = _(
                "The prefix breaks at byte {offset:,}, in {part}: {cause}. {tokens:,} unchanged tokens after it must "
                "be read again."
            )
            match difference:
                case {"firstDifference": {"before": {"kind": str(kind), "source": str(id), "role": role}}}:
                    part = _part_name(kind, str(role or ""), id)
                case _:
                    part = source
            return text.format(offset=kept, part=part, cause=code_name(cause, "causes"), tokens=again)
        case _:
            return _("The prefix holds: the page starts with the whole previous page.")


def reason_text(rule: str | None, reason: str) -> str:
    """Return a reason with the name of its rule. Rules write English reasons, which are translated by pattern."""
    patterns = translations("reasons")
    if not patterns:
        return why(rule, reason)
    texts: list[str] = []
    for one in reason.split("; "):
        matches = ((re.fullmatch(pattern, one), text) for pattern, text in patterns.items())
        texts.append(next((match.expand(text) for match, text in matches if match), one))
    name = translations("rules").get(rule or "")
    return f"{name}：{'；'.join(texts)}" if name else "；".join(texts)


def new_table(*columns: Column) -> Table:
    """Return a table without borders."""
    return Table(*columns, box=None, pad_edge=False, header_style="bold")


def text_column(name: str) -> Column:
    """Return a column whose text wraps."""
    return Column(name, overflow="fold")


def word_column(name: str = "") -> Column:
    """Return a column that does not wrap."""
    return Column(name, no_wrap=True, overflow="fold")


def number_column(name: str) -> Column:
    """Return a column of numbers."""
    return Column(name, justify="right", no_wrap=True, overflow="fold")
