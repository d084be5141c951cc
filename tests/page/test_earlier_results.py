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


def find(rows: list[Row], tool: str, n: int, path: str | None = None) -> str | NotRecalled:
    """What is found, in words."""
    found = find_result(facts_of(recto.decode(rows)), Recall(tool, path, n))
    return found if isinstance(found, NotRecalled) else words(found)


def words(found: Recalled) -> str:
    return "|".join(part.text for part in found.parts if isinstance(part, Text))


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
        found = find_result(facts, receipt.recall)
        assert isinstance(found, Recalled)
        assert found.parts == folded_parts(log, receipt, fold.project)


def folded_parts(log: Sequence[Entry], receipt: Receipt, project: Project) -> tuple[object, ...]:
    """What a receipt says is folded, as the log has it: all of a result, or its good parts of one file."""
    (message,) = [entry for entry in log if isinstance(entry, ToolMessage) and entry.id == receipt.message]
    if receipt.part is None:
        return message.parts
    named = [part for part in message.parts if isinstance(part, Text) and part.path]
    good = [part for part in named if not part.text.lstrip().startswith("Error:")]
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
    found = [find_result(facts, receipt.recall) for receipt in receipts]
    assert [words(one) for one in found if isinstance(one, Recalled)] == [f"out {n}" for n in range(5)]


# What is counted


def test_X5_reads_of_a_file_are_counted_from_the_newest_however_it_is_spelled():
    rows = many_reads(7)
    spellings = ("a.py", "./a.py", "/srv/app/a.py", "src/../a.py")
    assert [find(rows, READ, 7, path) for path in spellings] == ["text 0"] * 4
    assert find(rows, READ, 1, "a.py") == "text 6"


def test_X5_errors_are_not_counted():
    rows = [*reads("r0", "a.py", "good", 0), *reads("r1", "a.py", "Error: gone", 1)]
    assert find(rows, READ, 1, "a.py") == "good"


def test_X5_of_a_batch_read_its_part_of_the_file_is_given():
    parts = [{"type": "text", "text": f"all of {name}", "path": name} for name in ("a.py", "b.py")]
    rows = [*reads("batch", ["a.py", "b.py"], parts, 0), *reads("r", "a.py", "newer", 1)]
    assert (find(rows, READ, 2, "a.py"), find(rows, READ, 1, "b.py")) == ("all of a.py", "all of b.py")


def test_X5_without_a_path_all_results_of_the_tool_are_counted():
    rows = [*reads("r0", "a.py", "a", 0), *reads("r1", "b.py", "b", 1)]
    assert [find(rows, READ, n) for n in (1, 2)] == ["b", "a"]


def test_X5_results_of_tools_that_no_rule_folds_are_counted_by_the_tool_alone():
    rows = [*runs("e0", "first edit", 0, "filesystem-edit"), *runs("e1", "second edit", 1, "filesystem-edit")]
    assert [find(rows, "filesystem-edit", n) for n in (1, 2)] == ["second edit", "first edit"]
    assert find(rows, "filesystem-edit", 1, "a.py") == NotRecalled("unsorted")


def test_X5_what_recall_gave_back_is_no_read_and_cannot_be_recalled():
    recalled = [asks("c", "recall", {"tool": READ, "path": "a.py", "n": 1}), answers("c", "old text")]
    rows = [*reads("r0", "a.py", "text", 0), *recalled]
    assert find(rows, READ, 1, "a.py") == "text"
    assert find(rows, "recall", 1) == NotRecalled("tool", known=(READ,))


def test_X5_results_of_one_reply_are_counted_in_the_order_of_its_calls():
    calls = [function_call(id, READ, {"filePath": "a.py"}) for id in ("c1", "c2")]
    rows = [asks_all(*calls), answers("c2", "second"), answers("c1", "first")]
    assert [find(rows, READ, n, "a.py") for n in (1, 2)] == ["second", "first"]


# What is not there


@pytest.mark.parametrize(
    ("asked", "missing"),
    [
        (Recall(READ, "a.py", 8), NotRecalled("number", of=7)),
        (Recall(READ, "a.py", 0), NotRecalled("number", of=7)),
        (Recall(READ, "b.py", 1), NotRecalled("file", known=("a.py",))),
        (Recall("read", "a.py", 1), NotRecalled("tool", known=(READ,))),
    ],
)
def test_X5_it_is_said_what_there_is_instead(asked: Recall, missing: NotRecalled):
    assert find_result(facts_of(recto.decode(many_reads(7))), asked) == missing


# What a page leaves out


def test_X5_what_a_summary_stands_for_is_counted_behind_what_is_shown():
    log = [replace(message, id=f"m{place}") for place, message in enumerate(recto.decode(many_reads(7)))]
    marked = [*log, Compacted(id="k", upto="m10", summary="Read a lot.")]
    found = [find_result(facts_of(marked), Recall(READ, "a.py", n)) for n in range(1, 8)]
    assert [words(one) for one in found if isinstance(one, Recalled)] == [f"text {n}" for n in range(6, -1, -1)]


def test_X5_what_a_window_leaves_out_is_counted_behind_what_is_shown():
    later = recto.decode([*many_reads(7), user("And now?")])
    found = find_result(facts_of(later, history=2), Recall(READ, "a.py", 7))
    assert isinstance(found, Recalled)
    assert (words(found), found.of, found.time) == ("text 0", 7, later[2].time)


def test_X5_what_was_rolled_back_is_not_there():
    log = [replace(message, id=f"m{place}") for place, message in enumerate(recto.decode(many_reads(7)))]
    found = find_result(facts_of([*log, RolledBack(id="b", to="m9")]), Recall(READ, "a.py", 1))
    assert isinstance(found, Recalled)
    assert (words(found), found.of) == ("text 3", 4)


@pytest.mark.parametrize("summarised", [True, False])
def test_X5_failed_results_that_no_page_has_are_given_back_too(summarised: bool):
    old = [user("Go on."), *runs("t0", '{"exitCode": 1, "stdout": "why it failed"}', 0), *runs("t1", "fine", 1)]
    rows = [*old, *reads("r0", "a.py", "Error: gone", 2), *reads("r1", "b.py", "Error: gone", 3), user("And now?")]
    rows += [*runs("t2", '{"exitCode": 2}', 4), *runs("t3", "newest", 5), *reads("r2", "b.py", "Error: still gone", 6)]
    log: list[Entry] = [replace(message, id=f"m{place}") for place, message in enumerate(recto.decode(rows))]
    log += [Compacted(id="k", upto="m8", summary="So far.")] if summarised else []
    facts = facts_of(log, history=None if summarised else 0)

    def given(tool: str, path: str | None = None) -> list[str]:
        answers = [find_result(facts, Recall(tool, path, n)) for n in range(1, 5)]
        return [words(one) for one in answers if isinstance(one, Recalled)]

    assert given(RUN) == ["newest", "fine", '{"exitCode": 1, "stdout": "why it failed"}']
    assert [given(READ, path) for path in ("a.py", "b.py")] == [["Error: gone"]] * 2
    assert find_result(facts, Recall(READ, "c.py", 1)) == NotRecalled("file", known=("a.py", "b.py"))


def test_X5_the_error_of_a_failed_result_is_given_back_with_it():
    rows = [user("Go on."), *runs("t0", "", 0), user("And now?")]
    log = [
        replace(message, error="It was refused.") if isinstance(message, ToolMessage) else message
        for message in recto.decode(rows)
    ]
    found = find_result(facts_of(log, history=0), Recall(RUN, None, 1))
    assert isinstance(found, Recalled)
    assert "It was refused." in words(found)
