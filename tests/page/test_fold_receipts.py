"""R11, X5: every fold has a receipt: what, why, what it saved, what stands for it, how to ask for it again."""

from dataclasses import replace

import recto
from recto.page.fold.fold import FoldResult
from recto.page.fold.rules import READS
from recto.page.manifest import Note, Recall, Receipt
from tests.page.conversations import Row, at, reads, runs, user
from tests.page.counters import WordCounter

KEEP_ONE = recto.FoldSettings(reads=replace(READS, keep=1))


def fold(rows: list[Row], settings: recto.FoldSettings = KEEP_ONE) -> FoldResult:
    return recto.fold(recto.decode(rows), settings=settings, counter=WordCounter())


def path_part(path: str, text: str) -> Row:
    return {"type": "text", "text": text, "path": path}


def test_X5_a_folded_read_has_a_receipt():
    rows = [row for n in range(4) for row in reads(f"r{n}", "./a.py", f"{n} one two three", n)]
    settings = recto.FoldSettings(reads=replace(READS, keep=2))
    stale = Receipt(
        rule="R2",
        message="r0",
        part=None,
        tool="filesystem-read",
        paths=("a.py",),
        tokens_before=8,
        tokens_after=5,
        newer=("r3",),
        recall=Recall(tool="filesystem-read", path="a.py", n=4),
        reason="a.py: read 4 counted from the newest, 2 stay",
    )
    less_stale = stale._replace(
        message="r1",
        recall=Recall(tool="filesystem-read", path="a.py", n=3),
        reason="a.py: read 3 counted from the newest, 2 stay",
    )
    assert fold(rows, settings).receipts == (stale, less_stale)


def test_X5_a_folded_batch_in_one_piece_has_one_receipt_for_all_its_files():
    rows = [
        *reads("batch", ["a.py", "src\\b.py"], "all of a and b", 0),
        *reads("a", "a.py", "a", 1),
        *reads("b1", "src/b.py", "b", 2),
        *reads("b2", "src/b.py", "b", 3),
    ]
    batch, single = fold(rows).receipts
    assert batch == Receipt(
        rule="R5",
        message="batch",
        part=None,
        tool="filesystem-read",
        paths=("a.py", "src/b.py"),
        tokens_before=9,
        tokens_after=5,
        newer=("a", "b2"),
        recall=Recall(tool="filesystem-read", path="a.py", n=2),
        reason="a batch read, stale for each of its files: a.py, src/b.py",
    )
    assert (single.rule, single.message, single.newer) == ("R2", "b1", ("b2",))


def test_X5_each_folded_part_of_a_batch_has_a_receipt():
    parts = [path_part("a.py", "a in four words"), path_part("b.py", "Error: b"), path_part("c.py", "c in it")]
    rows = [
        *reads("batch", ["a.py", "b.py", "c.py"], parts, 0),
        *reads("a", "a.py", "a", 1),
        *reads("c1", "c.py", "c", 2),
        *reads("c2", "c.py", "c", 3),
    ]
    first = Receipt(
        rule="R5",
        message="batch",
        part=0,
        tool="filesystem-read",
        paths=("a.py",),
        tokens_before=4,
        tokens_after=1,
        newer=("a",),
        recall=Recall(tool="filesystem-read", path="a.py", n=2),
        reason="a.py: read 2 counted from the newest, 1 stay",
    )
    third = first._replace(
        part=2,
        paths=("c.py",),
        tokens_before=3,
        newer=("c2",),
        recall=Recall(tool="filesystem-read", path="c.py", n=3),
        reason="c.py: read 3 counted from the newest, 1 stay",
    )
    result = fold(rows)
    assert result.receipts[:2] == (first, third)
    assert result.draft.notes[1] == Note(
        decision="folded", rule="R5", reason=f"{first.reason}; {third.reason}", receipts=(first, third)
    )


def test_X5_a_folded_command_has_a_receipt():
    rows = [row for n in range(6) for row in runs(f"t{n}", "three words out", n)]
    rows.append(user("next", timestamp=at(16)))
    assert fold(rows).receipts == (
        Receipt(
            rule="R8",
            message="t0",
            part=None,
            tool="terminal-execute",
            paths=(),
            tokens_before=7,
            tokens_after=5,
            newer=("t5",),
            recall=Recall(tool="terminal-execute", path=None, n=6),
            reason="result 6 counted from the newest, 5 stay, and older than 15 minutes",
        ),
    )


def test_X5_receipts_stand_in_the_order_of_the_conversation():
    rows = [
        *runs("t0", "out", 0),
        *reads("late", "a.py", "x", 9),
        *reads("early", "a.py", "x", 3),
        *[row for n in range(5) for row in runs(f"t{n + 1}", "out", 10 + n)],
        *reads("last", "a.py", "x", 20),
    ]
    assert [receipt.message for receipt in fold(rows).receipts] == ["t0", "late", "early"]
