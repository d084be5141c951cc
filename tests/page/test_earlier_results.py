"""X5: what was folded, summarised or left out is found again, by its number counted from the newest."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recto
from recto.conversation.log import Compacted, Entry, RolledBack
from recto.conversation.messages import Text, ToolMessage
from recto.page.assemble import assemble
from recto.page.earlier_results import NotRecalled, Recalled, find_result
from recto.page.facts import Facts
from recto.page.fold.fold_settings import FoldSettings
from recto.page.fold.paths import Project, normalise
from recto.page.fold.rules import READS, TERMINAL
from recto.page.manifest import Recall, Receipt
from tests.page.conversations import Row, answers, asks, asks_all, function_call, reads, runs, user
from tests.page.counters import WordCounter
from tests.page.log_strategies import fold_settings, logs

READ, RUN = "filesystem-read", "terminal-execute"
KEEP_ONE = FoldSettings(reads=replace(READS, keep=1), project=Project(root="/srv/app"))


def facts_of(log: Sequence[Entry], fold: FoldSettings = KEEP_ONE, history: int | None = None) -> Facts:
    return Facts(log=log, fold=fold, history=history, counter=WordCounter())


def words(recalled: Recalled) -> str:
    return "|".join(part.text for part in recalled.parts if isinstance(part, Text))


def many_reads(count: int) -> list[Row]:
    return [user("Go on."), *[row for n in range(count) for row in reads(f"r{n}", "a.py", f"text {n}", n)]]


# The receipts of a page


@st.composite
def marked_logs(draw: st.DrawFn) -> tuple[Entry, ...]:
    """Any log, each message with an id of its own; some of them summarised, some of them rolled back."""
    log = [replace(message, id=f"m{place}") for place, message in enumerate(draw(logs()))]
    if not log:
        return ()
    entries: list[Entry] = list(log)
    places = st.integers(0, len(log) - 1)
    if draw(st.booleans()):
        place = draw(places)
        entries.insert(draw(st.integers(place + 1, len(log))), Compacted(id="k", upto=f"m{place}", summary="So far."))
    if draw(st.integers(0, 4)) == 0:
        entries.append(RolledBack(id="b", to=f"m{draw(places)}"))
    return tuple(entries)


@given(log=marked_logs(), fold=fold_settings(), history=st.none() | st.integers(0, 6))
def test_X5_every_receipt_names_exactly_the_result_that_was_folded(
    log: tuple[Entry, ...], fold: FoldSettings, history: int | None
):
    facts = facts_of(log, fold, history)
    for receipt in assemble(facts)[1].receipts:
        recalled = find_result(facts, receipt.recall)
        assert isinstance(recalled, Recalled)
        assert recalled.parts == folded_parts(log, receipt, fold.project)


def folded_parts(log: Sequence[Entry], receipt: Receipt, project: Project) -> tuple[object, ...]:
    """What a receipt says is folded, as the log has it: all of a result, or its good parts of one file."""
    (message,) = [entry for entry in log if isinstance(entry, ToolMessage) and entry.id == receipt.message]
    if receipt.part is None:
        return message.parts
    names = [part for part in message.parts if isinstance(part, Text) and part.path]
    good = [part for part in names if not part.text.lstrip().startswith("Error:")]
    return tuple(part for part in good if normalise(part.path or "", project) == receipt.paths[0])


def test_X5_where_a_rule_has_several_tools_each_is_counted_by_itself():
    fold = FoldSettings(terminal=replace(TERMINAL, tools=("sh", "zsh"), keep=0, max_age=timedelta(0)))
    rows = [row for n in range(6) for row in runs(f"t{n}", f"out {n}", n, "sh" if n % 3 else "zsh")]
    facts = facts_of(recto.decode(rows), fold)
    receipts = [*assemble(facts)[1].receipts]
    assert [receipt.recall for receipt in receipts] == [
        *(Recall("zsh", None, 2), Recall("sh", None, 4), Recall("sh", None, 3)),
        *(Recall("zsh", None, 1), Recall("sh", None, 2)),
    ]
    recalled = [find_result(facts, receipt.recall) for receipt in receipts]
    assert [words(one) for one in recalled if isinstance(one, Recalled)] == [f"out {n}" for n in range(5)]


# What is counted

SEVEN = many_reads(7)
PARTS = [{"type": "text", "text": f"all of {name}", "path": name} for name in ("a.py", "b.py")]
BATCH = [*reads("batch", ["a.py", "b.py"], PARTS, 0), *reads("r", "a.py", "newer", 1)]
EDITS = [*runs("e0", "first edit", 0, "filesystem-edit"), *runs("e1", "second edit", 1, "filesystem-edit")]
RECALLED = [
    *reads("r0", "a.py", "text", 0),
    *[asks("c", "recall", {"tool": READ, "path": "a.py", "n": 1}), answers("c", "old text")],
]
ONE_REPLY = [
    asks_all(*[function_call(id, READ, {"filePath": "a.py"}) for id in ("c1", "c2")]),
    *[answers("c2", "second"), answers("c1", "first")],
]


@pytest.mark.parametrize(
    ("rows", "recall", "expected"),
    [
        *[(SEVEN, Recall(READ, path, 7), "text 0") for path in ("a.py", "./a.py", "/srv/app/a.py", "src/../a.py")],
        (SEVEN, Recall(READ, "a.py", 1), "text 6"),
        # Errors are not counted.
        ([*SEVEN, *reads("bad", "a.py", "Error: gone", 9)], Recall(READ, "a.py", 1), "text 6"),
        # A batch gives its part of the file; without a path all results of the tool are counted.
        *[(BATCH, Recall(READ, *one), f"all of {one[0]}") for one in (("a.py", 2), ("b.py", 1))],
        *[(BATCH, Recall(READ, None, 1), "newer"), (EDITS, Recall("filesystem-edit", None, 2), "first edit")],
        # Results of one reply are in the order of its calls.
        *[(ONE_REPLY, Recall(READ, "a.py", n), text) for n, text in ((1, "second"), (2, "first"))],
        # A recalled result is no read.
        (RECALLED, Recall(READ, "a.py", 1), "text"),
        (RECALLED, Recall("recall", None, 1), NotRecalled("tool", alternatives=(READ,))),
        # Otherwise it is said what there is instead.
        (EDITS, Recall("filesystem-edit", "a.py", 1), NotRecalled("unsorted")),
        (SEVEN, Recall(READ, "a.py", 8), NotRecalled("number", of=7)),
        (SEVEN, Recall(READ, "a.py", 0), NotRecalled("number", of=7)),
        (SEVEN, Recall(READ, "b.py", 1), NotRecalled("file", alternatives=("a.py",))),
        (SEVEN, Recall("read", "a.py", 1), NotRecalled("tool", alternatives=(READ,))),
    ],
)
def test_X5_results_are_counted_from_the_newest(rows: list[Row], recall: Recall, expected: str | NotRecalled):
    result = find_result(facts_of(recto.decode(rows)), recall)
    assert (result if isinstance(result, NotRecalled) else words(result)) == expected


# What a page leaves out


def test_X5_what_a_summary_stands_for_is_counted_behind_what_is_shown():
    log = [replace(message, id=f"m{place}") for place, message in enumerate(recto.decode(many_reads(7)))]
    marked = [*log, Compacted(id="k", upto="m10", summary="Read a lot.")]
    recalled = [find_result(facts_of(marked), Recall(READ, "a.py", n)) for n in range(1, 8)]
    assert [words(one) for one in recalled if isinstance(one, Recalled)] == [f"text {n}" for n in range(6, -1, -1)]


def test_X5_what_a_window_leaves_out_is_counted_behind_what_is_shown():
    later = recto.decode([*many_reads(7), user("And now?")])
    recalled = find_result(facts_of(later, history=2), Recall(READ, "a.py", 7))
    assert isinstance(recalled, Recalled)
    assert (words(recalled), recalled.of, recalled.time) == ("text 0", 7, later[2].time)


def test_X5_what_was_rolled_back_is_not_there():
    log = [replace(message, id=f"m{place}") for place, message in enumerate(recto.decode(many_reads(7)))]
    recalled = find_result(facts_of([*log, RolledBack(id="b", to="m9")]), Recall(READ, "a.py", 1))
    assert isinstance(recalled, Recalled)
    assert (words(recalled), recalled.of) == ("text 3", 4)


@pytest.mark.parametrize("summarised", [True, False])
def test_X5_failed_results_that_no_page_has_are_given_back_too(summarised: bool):
    old = [user("Go on."), *runs("t0", '{"exitCode": 1, "stdout": "why it failed"}', 0), *runs("t1", "fine", 1)]
    rows = [*old, *reads("r0", "a.py", "Error: gone", 2), *reads("r1", "b.py", "Error: gone", 3), user("And now?")]
    rows += [*runs("t2", '{"exitCode": 2}', 4), *runs("t3", "newest", 5), *reads("r2", "b.py", "Error: still gone", 6)]
    log: list[Entry] = [replace(message, id=f"m{place}") for place, message in enumerate(recto.decode(rows))]
    log += [Compacted(id="k", upto="m8", summary="So far.")] if summarised else []
    facts = facts_of(log, history=None if summarised else 0)

    def find_texts(tool: str, path: str | None = None) -> list[str]:
        answers = [find_result(facts, Recall(tool, path, n)) for n in range(1, 5)]
        return [words(one) for one in answers if isinstance(one, Recalled)]

    assert find_texts(RUN) == ["newest", "fine", '{"exitCode": 1, "stdout": "why it failed"}']
    assert [find_texts(READ, path) for path in ("a.py", "b.py")] == [["Error: gone"]] * 2
    assert find_result(facts, Recall(READ, "c.py", 1)) == NotRecalled("file", alternatives=("a.py", "b.py"))


def test_X5_the_error_of_a_failed_result_is_given_back_with_it():
    rows = [user("Go on."), *runs("t0", "", 0), user("And now?")]
    log = [
        replace(message, error="It was refused.") if isinstance(message, ToolMessage) else message
        for message in recto.decode(rows)
    ]
    recalled = find_result(facts_of(log, history=0), Recall(RUN, None, 1))
    assert isinstance(recalled, Recalled)
    assert "It was refused." in words(recalled)
