"""The manifest: for every part of a page its source, its tokens, and why it is included, folded or left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Literal, NamedTuple, NotRequired, TypeAlias, TypedDict, cast

from recto.conversation.json import Json
from recto.conversation.log import FoldStep
from recto.errors import WireError
from recto.page.fold.observations import LeftAlone
from recto.page.text.tokens import TokenCount

Decision: TypeAlias = Literal["kept", "folded", "cut", "repaired", "injected", "dropped"]
PartKind: TypeAlias = Literal["envelope", "tool", "system", "prompt", "quote", "summary", "message", "closing"]
# Of two decisions on one message, the one with the higher weight wins.
WEIGHT: Mapping[Decision, int] = {"kept": 0, "repaired": 1, "injected": 2, "cut": 3, "folded": 4, "dropped": 5}
Span: TypeAlias = tuple[int, int]
# Named tuples, because a page has thousands of these and frozen dataclasses take five times as long to create.


class Recall(NamedTuple):
    """Arguments that recall folded content: the tool, its file if any, and n counted from the newest (X5)."""

    tool: str
    path: str | None
    n: int


class Receipt(NamedTuple):
    """Proof of one fold: the replaced result, the tokens saved, newer results, and how to recall it.

    `part` is the place of the folded part in a batch result, or None if the whole result was folded.
    """

    rule: str
    message: str
    part: int | None
    tool: str
    paths: tuple[str, ...]
    tokens_before: int
    tokens_after: int
    newer: tuple[str, ...]
    recall: Recall
    reason: str


class Note(NamedTuple):
    """The decision of a step about one message. A message without a note is as in the log."""

    decision: Decision
    rule: str
    reason: str
    receipts: tuple[Receipt, ...] = ()


class Part(NamedTuple):
    """A part of a page, sent or left out. `source` is a message id, a tool name, or the envelope.

    Neighbouring messages left out for one reason form one part from `source` to `upto`; `count` is their number.
    """

    kind: PartKind
    source: str
    role: str | None
    tokens_before: int
    tokens_after: int
    decision: Decision
    rule: str | None
    reason: str
    receipts: tuple[Receipt, ...] = ()
    upto: str | None = None
    count: int = 1  # pyright: ignore[reportIncompatibleMethodOverride] - of a tuple, which nobody calls


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The parts in page order with their sizes in bytes; a part left out has size 0.

    `left_alone` are results whose calls could not be read for folding (R6). `skill` is the thread's active skill.
    `step` is a new fold step (X2) to store in the log.
    """

    parts: tuple[Part, ...]
    sizes: Sequence[int]
    tokens: TokenCount
    left_alone: tuple[LeftAlone, ...] = ()
    skill: str | None = None
    step: FoldStep | None = None

    @cached_property
    def spans(self) -> tuple[Span | None, ...]:
        """Byte ranges of the parts, together the whole body. None for a part left out."""
        ends = list(accumulate(self.sizes))
        return tuple((end - size, end) if size else None for size, end in zip(self.sizes, ends, strict=True))

    @cached_property
    def tokens_before(self) -> int:
        """Our token count of the page if nothing were folded, cut or left out."""
        return sum(part.tokens_before for part in self.parts)

    @cached_property
    def tokens_after(self) -> int:
        """Our token count of the page. `tokens` is this count corrected by the usage that the provider reported."""
        return sum(part.tokens_after for part in self.parts)

    @property
    def tokens_saved(self) -> int:
        """Tokens that folding, cutting and leaving out saved.

        Files in a reminder do not count: their content is never part of the page.
        """
        lighter = [part for part in self.parts if part.decision != "injected"]
        return sum(max(0, part.tokens_before - part.tokens_after) for part in lighter)

    @property
    def receipts(self) -> Iterator[Receipt]:
        """The receipt of every fold, in page order."""
        return (receipt for part in self.parts for receipt in part.receipts)

    def rows(self) -> list[dict[str, Json]]:
        """Return the manifest as JSON objects, one for each part."""
        return [_row(part, span) for part, span in zip(self.parts, self.spans, strict=True)]

    def to_stored(self) -> dict[str, Json]:
        """Return the manifest as stored with its call: everything except bytes."""
        row: dict[str, Json] = {"parts": self.rows(), "tokens": self.tokens.tokens, "skill": self.skill}
        return {**row, "step": step_row(self.step)} if self.step else row

    def row(self, place: int) -> dict[str, Json]:
        """Return the part at a place as a JSON object."""
        return _row(self.parts[place], self.spans[place])


def step_row(step: FoldStep) -> dict[str, Json]:
    """Return a fold step as JSON: number of results, cause, savings per call and one-time cost."""
    return {
        "results": len(step.results),
        "cause": step.cause,
        "freed": step.freed,
        "rewritten": step.rewritten,
        "saves": step.saves,
        "costs": step.costs,
    }


def _row(part: Part, span: Span | None) -> dict[str, Json]:
    kind, source, role, before, after, decision, rule, reason, receipts, upto, count = part
    row: dict[str, Json] = {
        "kind": kind,
        "source": source,
        "role": role,
        "decision": decision,
        "rule": rule,
        "reason": reason,
        "tokens": {"before": before, "after": after},
        "span": list(span) if span else None,
    }
    if receipts:
        row["receipts"] = [
            {
                "rule": receipt.rule,
                "part": receipt.part,
                "tool": receipt.tool,
                "paths": receipt.paths,
                "tokens": {"before": receipt.tokens_before, "after": receipt.tokens_after},
                "newer": receipt.newer,
                "recall": receipt.recall._asdict(),
                "reason": receipt.reason,
            }
            for receipt in receipts
        ]
    return row if upto is None else {**row, "upto": upto, "count": count}


class _StoredTokens(TypedDict):
    before: int
    after: int


class _StoredRecall(TypedDict):
    tool: str
    path: str | None
    n: int


class _StoredReceipt(TypedDict):
    rule: str
    part: int | None
    tool: str
    paths: list[str]
    tokens: _StoredTokens
    newer: list[str]
    recall: _StoredRecall
    reason: str


class _StoredPart(TypedDict):
    kind: PartKind
    source: str
    role: str | None
    decision: Decision
    rule: str | None
    reason: str
    tokens: _StoredTokens
    span: tuple[int, int] | None
    receipts: NotRequired[list[_StoredReceipt]]
    upto: NotRequired[str]
    count: NotRequired[int]


class _StoredManifest(TypedDict):
    parts: list[_StoredPart]
    tokens: int
    skill: NotRequired[str | None]


def read_manifest(data: Mapping[str, Json]) -> Manifest:
    """Read a stored manifest. Raise a WireError if it is invalid."""
    manifest = cast("_StoredManifest", data)
    try:
        rows = manifest["parts"]
        return Manifest(
            parts=tuple([_part(row) for row in rows]),
            sizes=[span[1] - span[0] if (span := row["span"]) else 0 for row in rows],
            tokens=TokenCount(tokens=manifest["tokens"], estimated=True),
            skill=manifest.get("skill"),
        )
    except (KeyError, TypeError, IndexError) as error:
        raise WireError(where="manifest", problem=f"is none that this Recto knows: {error!r}") from error


def _part(row: _StoredPart) -> Part:
    source, tokens = row["source"], row["tokens"]
    return Part(
        row["kind"],
        source,
        row["role"],
        tokens["before"],
        tokens["after"],
        row["decision"],
        row["rule"],
        row["reason"],
        tuple([_receipt(receipt, source) for receipt in row["receipts"]]) if "receipts" in row else (),
        row.get("upto"),
        row.get("count", 1),
    )


def _receipt(row: _StoredReceipt, message: str) -> Receipt:
    recall = row["recall"]
    return Receipt(
        rule=row["rule"],
        message=message,
        part=row["part"],
        tool=row["tool"],
        paths=tuple(row["paths"]),
        tokens_before=row["tokens"]["before"],
        tokens_after=row["tokens"]["after"],
        newer=tuple(row["newer"]),
        recall=Recall(recall["tool"], recall["path"], recall["n"]),
        reason=row["reason"],
    )


def merge_notes(first: Note, second: Note) -> Note:
    """Merge the notes of two steps on one message: the decision with the higher weight, and both reasons."""
    decides = max(second, first, key=lambda note: WEIGHT[note.decision])
    return Note(
        decision=decides.decision,
        rule=decides.rule,
        reason=f"{first.reason}; {second.reason}",
        receipts=(*first.receipts, *second.receipts),
    )
