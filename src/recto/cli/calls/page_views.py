"""Reports on a page: the next one of a thread, and that of a past call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from recto.cli.calls.call_report import (
    ShownPage,
    changes,
    composition_view,
    left_out,
    money,
    part_lines,
    parts_table,
    room_lines,
    rule_lines,
    saved_lines,
    shown_page,
    smaller_view,
    table_of,
)
from recto.cli.calls.call_words import CallWords
from recto.conversation.json import Object, as_list, as_object

BLANK = Text()
# Fraction of a currency unit in which `price` is counted.
PRICE_PARTS = 1_000_000_000


def with_manifest(row: Object) -> Object:
    """Merge the manifest into an API answer, as the reports expect."""
    return {**row, **as_object(row.get("manifest"), "manifest")}


def context_view(row: Object, words: CallWords) -> RenderableType:
    """Render the next page of a thread: composition, room, folded parts and savings."""
    page = shown_page(row)
    return Group(
        Text(words.next_page.format(agent=row["agent"], model=row["model"]), style="bold"),
        Text(words.size.format(tokens=page.manifest.tokens.tokens, bytes=page.size)),
        *_lines(_notes(row, words), style="yellow"),
        *_page_lines(row, page, words),
        *([BLANK, smaller_view(page, words)] if page.manifest.tokens_saved else []),
    )


def call_view(row: Object, words: CallWords, calls: Table | None = None, *, every: bool = False) -> RenderableType:
    """Render a past call: its page with every part, and the difference from the previous call.

    The row is what `recto explain --json` prints. `every` disables grouping of unchanged parts.
    """
    page = shown_page(row)
    return Group(
        *_lines(_first_lines(row, page, words)),
        *([BLANK, calls] if calls else []),
        *_page_lines(row, page, words),
        BLANK,
        parts_table(list(part_lines(page, words, every=every)), words),
        BLANK,
        left_out(page.manifest, words),
        *_lines(rule_lines(page.manifest, words, every=every)),
        BLANK,
        _since(row, words),
    )


def calls_table(rows: Sequence[tuple[int, Object]], shown: int, words: CallWords) -> Table:
    """Render a table of calls with a mark at the displayed one."""
    table = table_of(words, "", "Call", "For", "Model", "Tokens", "Ended")
    for number, row in rows:
        tokens, purpose = row.get("tokens"), str(row["purpose"])
        counted = f"{tokens:,}" if isinstance(tokens, int) else ""
        ended = str(row.get("finish") or ("failed" if row.get("error") else ""))
        mark, told = ">" if number == shown else "", [words.columns.get(one, one) for one in (purpose, ended)]
        table.add_row(mark, str(number), told[0], str(row["model"]), counted, told[1])
    return table


def _page_lines(row: Object, page: ShownPage, words: CallWords) -> Iterator[RenderableType]:
    yield BLANK
    yield composition_view(page.manifest, words)
    yield BLANK
    yield from _lines(room_lines(row, words))
    yield from _lines(saved_lines(row, page.manifest, words))


def _notes(row: Object, words: CallWords) -> Iterator[str]:
    """Return notes on the preview. The note that there is nothing to answer yet is omitted."""
    notes = [str(note) for note in as_list(row.get("notes", ()), "notes")]
    return (words.notes.get(note, note) for note in (notes[:-1] if row.get("next") == "finished" else notes))


def _first_lines(row: Object, page: ShownPage, words: CallWords) -> Iterator[str]:
    manifest = page.manifest
    skill = words.with_skill.format(skill=manifest.skill) if manifest.skill else ""
    purpose = words.columns.get(str(row["purpose"]), str(row["purpose"]))
    yield words.call.format(n=row["n"], calls=row["calls"], run=row["run"])
    yield words.of_call.format(
        purpose=purpose, model=row["model"], agent=row["agent"], skill=skill, started=row["started"]
    )
    size = words.size.format(tokens=manifest.tokens.tokens, bytes=page.size)
    yield f"{size}{words.verified if row.get('verified') else ''}"
    if usage := _usage(row, words):
        yield words.counted.format(usage=usage)
    match row:
        case {"price": int(price), "prices": {"currency": str(currency)}}:
            yield words.cost.format(price=money(price / PRICE_PARTS), currency=currency)
        case {"error": str(error)}:
            yield words.error.format(error=error)
        case _:
            pass


def _usage(row: Object, words: CallWords) -> str:
    """Describe the provider's usage."""
    counts = as_object(row.get("usage") or {}, "usage")
    return words.comma.join(text.format(count=counts[name]) for name, text in words.usage.items() if name in counts)


def _since(row: Object, words: CallWords) -> RenderableType:
    match row:
        case {"before": {"run": str(run), "n": number}, "difference": {**difference}}:
            told = words.since if run == row["run"] else words.since_run
            return changes(difference, told.format(n=number, run=run[-8:]), words)
        case _:
            return Text(words.first)


def _lines(lines: Iterator[str] | Sequence[str], style: str = "") -> Iterator[Text]:
    return (Text(line, style=style) for line in lines)
