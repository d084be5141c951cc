"""Report of `recto fold`: folded results by tool and file, with reasons and savings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from recto.cli.sessions.session import Session
from recto.page.fold.rules import RULES, FoldRule
from recto.page.manifest import Manifest, Part, Receipt
from recto.page.manifest_rows import why

FORMATS = {
    "openai": "A conversation",
    "pi": "A pi session",
    "claude-code": "A Claude Code session",
    "codex": "A Codex session",
    "opencode": "An opencode session",
}
NOTHING = "Nothing to fold: no result is old enough to be replaced by a newer one."


@dataclass(frozen=True, kw_only=True)
class ReportLine:
    """Folds of one tool on one file for one reason."""

    tool: str
    file: str
    why: str
    folds: int
    before: int
    after: int


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """Tokens before and after. Folding saved `folded` tokens; other steps left out `left_out`."""

    before: int
    after: int
    folded: int
    left_out: int


def tokens_of_messages(manifest: Manifest) -> Tokens:
    """Count the tokens of the messages, without the request envelope."""
    messages = [part for part in manifest.parts if part.kind == "message"]
    before, after = sum(part.tokens_before for part in messages), sum(part.tokens_after for part in messages)
    saving = sum(receipt.tokens_before - receipt.tokens_after for receipt in manifest.receipts)
    return Tokens(before=before, after=after, folded=saving, left_out=before - after - saving)


def report(session: Session, manifest: Manifest, *, every: bool, rules: Sequence[FoldRule] = RULES) -> RenderableType:
    """Build the report; `every` lists each fold instead of each file."""
    if every:
        table = _table("Tool", "Result", "Why")
        for receipt in manifest.receipts:
            before, after = f"{receipt.tokens_before:,}", f"{receipt.tokens_after:,}"
            table.add_row(receipt.tool, receipt.message, f"{receipt.rule}: {receipt.reason}", "1", before, after)
    else:
        table = _by_file(list(manifest.receipts), rules)
    body: RenderableType = table if manifest.receipts else Text(NOTHING)
    tokens = tokens_of_messages(manifest)
    share = f" ({100 * tokens.folded / tokens.before:.0f} %)" if tokens.before else ""
    return Group(
        Text(
            f"{FORMATS[session.format]}, {len(session.messages):,} messages: "
            f"{tokens.before:,} tokens before, {tokens.after:,} after\n"
            f"Folding saves {tokens.folded:,}{share}, other steps leave out {tokens.left_out:,}."
        ),
        body,
        *[Text(line) for line in _last_lines(session, manifest)],
    )


def lines(receipts: Sequence[Receipt], rules: Sequence[FoldRule] = RULES) -> Iterator[ReportLine]:
    """Yield folds by tool and file, largest saving first within a tool."""
    names = {number: name for rule in rules for number, name in rule.numbers.items()}
    folds: dict[tuple[str, str, str], list[Receipt]] = {}
    for receipt in receipts:
        folds.setdefault((receipt.tool, ", ".join(receipt.paths), receipt.rule), []).append(receipt)
    rows = [
        ReportLine(
            tool=tool,
            file=file or "-",
            why=f"{rule}: {names[rule]}",
            folds=len(group),
            before=sum(receipt.tokens_before for receipt in group),
            after=sum(receipt.tokens_after for receipt in group),
        )
        for (tool, file, rule), group in sorted(folds.items())
    ]
    return iter(sorted(rows, key=lambda line: (line.tool, line.after - line.before, line.file)))


def _by_file(receipts: Sequence[Receipt], rules: Sequence[FoldRule]) -> Table:
    table = _table("Tool", "File", "Why")
    for tool, group in groupby(lines(receipts, rules), key=lambda line: line.tool):
        of_tool = list(group)
        for line in of_tool:
            table.add_row(tool, line.file, line.why, str(line.folds), f"{line.before:,}", f"{line.after:,}")
        before, after = sum(line.before for line in of_tool), sum(line.after for line in of_tool)
        folds = sum(line.folds for line in of_tool)
        table.add_row(tool, "all", "", str(folds), f"{before:,}", f"{after:,}", style="bold")
        table.add_section()
    return table


def _table(*names: str) -> Table:
    table = Table()
    for name in names:
        table.add_column(name, overflow="fold", no_wrap=name == "Tool")
    for name in ("Folds", "Before", "After"):
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _last_lines(session: Session, manifest: Manifest) -> Iterator[str]:
    changes: dict[tuple[str, str, str], list[Part]] = {}
    for part in manifest.parts:
        if part.kind == "message" and part.decision in ("repaired", "dropped"):
            changes.setdefault((part.rule or "", part.decision, part.reason), []).append(part)
    for (rule, decision, reason), parts in sorted(changes.items()):
        less = sum(part.tokens_before - part.tokens_after for part in parts)
        count = sum(part.count for part in parts)
        yield f"{decision} ({rule}): {count} x {why(rule, reason)}, {less:,} tokens less"
    if manifest.left_alone:
        yield f"left alone (R6): {len(manifest.left_alone)} results whose call names no file or is not there"
    yield from session.notes
    if manifest.tokens.estimated:
        yield "Tokens are estimates, counted with o200k_base."
