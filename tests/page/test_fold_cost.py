"""X2: folding by cost, one case for each line of its rule; and what a page and its manifest say of it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from recto.conversation.json import dump
from recto.conversation.log import Compacted, Entry, FoldStep, RolledBack, SkillChanged, Undone
from recto.conversation.messages import AssistantMessage, Message, Text, ToolCall, ToolMessage, UserMessage
from recto.errors import SettingsError
from recto.page.assemble import assemble
from recto.page.earlier_results import Recalled, find_result
from recto.page.facts import Facts
from recto.page.fold.activity import EditCall, read_edit
from recto.page.fold.fold_by_cost import NextCall, PlannedStep, cache_state, plan_step
from recto.page.fold.fold_settings import CachePrices, CostSettings, FoldSettings, fold_key, placeholder_in
from recto.page.fold.paths import Project
from recto.page.fold.rules import READS, SEARCH, TERMINAL
from recto.page.text.tokens import tokens_of
from recto.page.wire.base import Target
from tests.page.counters import WordCounter

START = datetime(2026, 11, 1, tzinfo=UTC)
RULES = (READS, TERMINAL, SEARCH)
# Small enough to count by hand: everything is worth folding.
SMALL = CostSettings(least_page=0, least_step=0, least_result=1, horizon=100, payback=100, placeholder="gone")
PRICES = CachePrices(1, 10)
READ, EDIT, COMMAND = "filesystem-read", "filesystem-edit", "terminal-execute"
COUNTER = WordCounter()


def turn(number: int, tool: str, arguments: Mapping[str, object], text: str) -> tuple[Message, Message]:
    """A call and its result, `r{number}`."""
    call = ToolCall(id=f"c{number}", name=tool, arguments=dump(arguments).decode())
    reply = AssistantMessage(id=f"a{number}", time=START + timedelta(seconds=2 * number), parts=(call,))
    time = START + timedelta(seconds=2 * number + 1)
    return reply, ToolMessage(id=f"r{number}", time=time, tool_call_id=call.id, parts=(Text(text=text),))


def read(number: int, path: str = "a.py", text: str = "one two three", **more: object) -> tuple[Message, Message]:
    return turn(number, READ, {"filePath": path, **more}, text)


def edit(number: int, path: str = "a.py", old: str = "", text: str = "done") -> tuple[Message, Message]:
    return turn(number, EDIT, {"filePath": path, "searchContent": old, "replaceContent": "x"}, text)


def command(number: int, text: str = "ok") -> tuple[Message, Message]:
    return turn(number, COMMAND, {"command": "ls"}, text)


def poem(number: int) -> tuple[Message, Message]:
    """A call that has nothing to do with anything: time passes."""
    return turn(number, "write_poem", {}, "roses")


def make_question(id: str = "u") -> UserMessage:
    return UserMessage(id=id, time=START, parts=(Text(text="go"),))


def talk(*turns: Sequence[Message]) -> tuple[Message, ...]:
    return (make_question(), *[message for one in turns for message in one])


def poems(count: int, start: int = 100) -> tuple[Message, ...]:
    return tuple(message for number in range(start, start + count) for message in poem(number))


def settings(cost: CostSettings = SMALL) -> FoldSettings:
    return FoldSettings(rules=RULES, cost=cost)


def planned(
    messages: Sequence[Message], cost: CostSettings = SMALL, prices: CachePrices = PRICES, cold: str = ""
) -> PlannedStep | None:
    return plan_step(messages, fold_key(settings(cost), COUNTER), (), prices, cold=cold)


def count(message: Message) -> int:
    return tokens_of(message, COUNTER)


def fold_ids(messages: Sequence[Message], cost: CostSettings = SMALL) -> tuple[str, ...]:
    step = planned(messages, cost)
    return step.results if step else ()


# When a result is spent

LONG = "one two three four"
UNUSED_RESULTS: Mapping[str, tuple[tuple[Message, ...], int, str]] = {
    "a command after 8 calls": (command(0, LONG), 8, "r0"),
    "a job of the terminal after 8 calls": (turn(0, "terminal-jobs", {}, LONG), 8, "r0"),
    "what recall gave back after 8 calls": (turn(0, "recall", {}, LONG), 8, "r0"),
    "a failed command after 8 calls": (command(0, f'{{"exitCode": 1, "stderr": "{LONG}"}}'), 8, "r0"),
    "a read after 200 calls": (read(0, text=LONG), 200, "r0"),
    "a part of a file that was edited since, after 40": ((*read(0, text=LONG, startLine=2), *edit(1)), 40, "r0"),
    "a file that was edited and read since, after 40": ((*read(0, text=LONG), *edit(1), *read(2, text="x")), 40, "r0"),
}


@pytest.mark.parametrize("name", UNUSED_RESULTS)
def test_X2_a_result_is_spent_when_nothing_touched_it_for_more_calls_than_its_window(name: str):
    messages, window, id = UNUSED_RESULTS[name]
    plain = replace(SMALL, turn_calls=0)
    assert id not in fold_ids(talk(messages, poems(window - 1)), plain)
    assert id not in fold_ids(talk(messages, poems(window)), plain)
    assert id in fold_ids(talk(messages, poems(window + 1)), plain)


def test_X2_a_batch_in_which_each_part_is_an_error_is_left_alone():
    reply, result = turn(3, READ, {"filePath": ["a.py", "b.py"]}, "")
    parts = tuple(Text(text=f"Error: no {path}, {LONG}", path=path) for path in ("a.py", "b.py"))
    assert fold_ids(talk((reply, replace(result, parts=parts)), poems(300))) == ()


# When a step pays


def priced(*, old: int, young: int, calls: int) -> tuple[Message, ...]:
    """A spent result of so many words, words behind it that stay, and then so many calls."""
    stays = turn(1, "write_poem", {}, " ".join(["word"] * young))
    return talk(command(0, " ".join(["word"] * old)), stays, poems(calls - 2))


COST = CostSettings(least_page=0, least_step=100, least_result=1, placeholder="gone")


def test_X2_a_step_pays_for_itself_within_a_fifth_of_the_calls_so_far():
    assert planned(priced(old=1_000, young=2_000, calls=50), COST) is None
    step = planned(priced(old=1_000, young=2_000, calls=200), COST)
    assert step is not None
    assert (step.results, step.cause) == (("r0",), "pays")
    assert step.tokens_freed == 999
    # What stays behind it: the words, and 200 calls and results.
    assert step.rewritten == 4_182


def test_X2_where_the_prefix_is_cold_or_nothing_is_cached_all_spent_results_are_folded_for_nothing():
    messages = priced(old=50, young=90_000, calls=20)
    assert planned(messages, COST) is None
    assert planned(messages, COST, cold="gap") == PlannedStep(("r0",), "gap", 49, 0)
    assert planned(messages, COST, CachePrices(5, 5)) == PlannedStep(("r0",), "no_cache", 49, 0)


# Why a prefix is cold, and how long a step is in force


def facts(log: Sequence[Entry], **more: object) -> Facts:
    newest = max(entry.time or START for entry in log)
    plain = Facts(
        log=tuple(log), target=Target(model="m"), fold=settings(COST), cache_prices=PRICES, now=newest, counter=COUNTER
    )
    return replace(plain, **more)


# Worth nothing while the prefix is warm.
QUIET = priced(old=50, young=90_000, calls=20)
LATER = UserMessage(id="u2", time=START + timedelta(hours=2), parts=(Text(text="hello again"),))


@pytest.mark.parametrize(
    ("more", "cause"),
    [
        ((), None),
        ((LATER,), "gap"),
        ((replace(LATER, time=START + timedelta(seconds=500)),), None),
        ((Compacted(id="k", time=START, upto="u", summary="so far"),), "compaction"),
        ((UserMessage(id="u2", time=START, parts=()), RolledBack(id="b", to="u2"), Undone(id="n")), "rollback"),
        ((RolledBack(id="b", to="none"), *poem(500), Undone(id="n", time=START)), "rollback"),
        ((SkillChanged(id="s", time=START, skill="tarot"),), "skill_changed"),
        ((FoldStep(id="f", time=START, results=("r0",), model="other"),), "model_changed"),
    ],
)
def test_X2_the_log_tells_why_the_prefix_is_cold(more: tuple[Entry, ...], cause: str | None):
    step = assemble(facts((*QUIET, *more)))[1].step
    assert (step.cause if step else None) == cause


def test_X2_another_model_than_the_last_page_went_to_has_nothing_in_its_cache():
    assert assemble(facts(QUIET, sent_to="m"))[1].step is None
    step = assemble(facts(QUIET, sent_to="other"))[1].step
    assert step is not None
    assert (step.cause, step.model, step.results) == ("model_changed", "m", ("r0",))


STEP = FoldStep(id="f", time=START, results=("r0",), model="m", cause="gap", freed=49)


def page_text(log: Sequence[Entry], **more: object) -> str | None:
    """What the page shows of the first result."""
    manifest = assemble(facts(log, **more))[1]
    return next(part.decision for part in manifest.parts if part.source == "r0")


def test_X2_a_step_is_in_force_until_it_is_rolled_back_or_the_model_is_another():
    log: tuple[Entry, ...] = (*QUIET, LATER, STEP, *poem(500))
    # Nothing is spent any more: what is folded is folded by the step.
    long = settings(replace(COST, window=400))
    assert page_text(log, fold=long) == "folded"
    back = (*log, RolledBack(id="b", time=START, to="u2"))
    assert page_text((*back, *poem(600)), fold=long) == "kept"
    assert page_text((*back, Undone(id="n", time=START)), fold=long) == "folded"
    assert page_text(log, fold=long, target=Target(model="n")) == "kept"


def test_X2_one_step_is_made_for_a_call_so_that_a_retry_sends_the_same_page():
    log = (*QUIET, LATER)
    page, manifest = assemble(facts(log))
    assert manifest.step
    stored_step = replace(manifest.step, id="f", time=LATER.time)
    again, second_manifest = assemble(facts((*log, stored_step), now=START + timedelta(hours=5)))
    assert (again.body, second_manifest.step) == (page.body, None)


def test_X2_a_step_for_a_call_is_the_only_one_though_the_cache_grows_cold_before_it_is_made_again():
    old, wall = command(0, " ".join(["word"] * 500)), turn(1, "write_poem", {}, " ".join(["word"] * 20_000))
    log = talk(old, wall, command(2, " ".join(["word"] * 3_000)), poems(100))
    page, manifest = assemble(facts(log))
    assert manifest.step
    assert manifest.step.results == ("r2",)
    stored_step = replace(manifest.step, id="f", time=START + timedelta(minutes=10))
    again, second_manifest = assemble(facts((*log, stored_step), now=START + timedelta(hours=5)))
    assert (again.body, second_manifest.step) == (page.body, None)


def test_X2_before_the_first_reply_nothing_is_in_a_cache():
    call = NextCall(model="m", prices=PRICES, sent_to="", now=START, cache_minutes=5)
    assert cache_state((make_question(),), call).cold == "first_call"
    assert cache_state((make_question(), *poem(1)), call).cold == ""


# What a page shows, and its manifest says


def test_X2_the_manifest_says_what_a_step_saves_and_costs():
    messages = priced(old=1_000, young=2_000, calls=200)
    page, manifest = assemble(facts(messages, sent_to="m"))
    step = manifest.step
    assert step
    text = f"999 tokens less on every call, {step.rewritten:,} written to the cache again"
    part = next(part for part in manifest.parts if part.source == "r0")
    assert (part.decision, part.rule) == ("folded", "X2")
    assert part.reason == f"not needed for long, folded with 0 others: {text}"
    assert part.receipts[0].tokens_before - part.receipts[0].tokens_after == 999
    assert (step.saves, step.costs) == (999 * 1_000, step.rewritten * 9_000)
    assert manifest.to_stored()["step"] == {
        "results": 1,
        "cause": "pays",
        "freed": 999,
        "rewritten": step.rewritten,
        "saves": step.saves,
        "costs": step.costs,
    }
    assert b'"content":"gone"' in page.body
    unlisted = assemble(facts(messages, cache_prices=PRICES._replace(is_listed=False)))[1].step
    assert unlisted
    assert (unlisted.freed, unlisted.saves, unlisted.costs) == (999, 0, 0)


def test_X2_results_folded_by_one_step_share_its_reason_as_one_object():
    first, *others = assemble(facts((*talk(*[command(n, LONG) for n in range(3)]), *poems(300), LATER)))[1].receipts
    assert len(others) == 2
    assert all(receipt.reason is first.reason for receipt in others)


def test_X2_arguments_of_edits_are_never_folded():
    quote_text = " ".join(["needle"] * 400)
    messages = talk(edit(0, old=quote_text, text=LONG), poems(60))
    page, manifest = assemble(facts((*messages, LATER)))
    assert manifest.step
    assert page.body.decode().count("needle") == 400


@pytest.mark.parametrize("tool", [COMMAND, READ, EDIT])
def test_X5_a_receipt_names_exactly_what_recall_gives_back_errors_too(tool: str):
    texts = ("first words of it", "Error: second words of it", "third words of it")
    arguments = {"filePath": "a.py", "command": "ls"}
    log = (*talk(*[turn(n, tool, arguments, text) for n, text in enumerate(texts)]), *poems(300), LATER)
    everything = facts(log)
    receipts = list(assemble(everything)[1].receipts)
    assert len(receipts) == 3
    for receipt, text in zip(receipts, texts, strict=True):
        recalled = find_result(everything, receipt.recall)
        assert isinstance(recalled, Recalled)
        assert recalled.parts == (Text(text=text),)


def test_X2_what_stands_for_a_result_names_recall_where_there_is_one():
    assert placeholder_in("zh", has_recall=False) == "[旧结果，已移出上下文]" == CostSettings().placeholder
    assert placeholder_in("en-GB", has_recall=True).endswith("; the recall tool gets it back]")


# What edits quote

PATCH = "*** Begin Patch\n*** Update File: src/a.py\n@@ class A\n def f():\n-    return 1\n+    return 2\n*** End Patch"
EDITS: Mapping[str, tuple[dict[str, object], EditCall]] = {
    "our own": ({"filePath": "a.py", "searchContent": "x = 1\n\n  y"}, EditCall(("a.py",), ("x = 1", "y"))),
    "several": ({"path": "./a.py", "edits": [{"oldText": "b"}, {"oldText": "aa"}]}, EditCall(("a.py",), ("aa", "b"))),
    "another's": ({"file_path": "a.py", "old_string": "x"}, EditCall(("a.py",), ("x",))),
    "a patch": ({"input": PATCH}, EditCall(("src/a.py",), ("def f():", "return 1"))),
    "a patch as a command": ({"command": ["apply_patch", PATCH]}, EditCall(("src/a.py",), ("def f():", "return 1"))),
    "nothing old": ({"filePath": "a.py", "replaceContent": "x"}, EditCall(("a.py",), ())),
}


@pytest.mark.parametrize("name", EDITS)
def test_X2_an_edit_quotes_what_it_expects_to_find(name: str):
    arguments, expected = EDITS[name]
    call = ToolCall(id="c", name=EDIT, arguments=dump(arguments).decode())
    assert read_edit(call, CostSettings().quotes, READS.path_args, Project()) == expected


def test_X2_an_edit_whose_arguments_cannot_be_read_quotes_nothing():
    for arguments in ("", "{", "[]", "null", '"a"'):
        call = ToolCall(id="c", name=EDIT, arguments=arguments)
        assert read_edit(call, ("old",), READS.path_args, Project()) == EditCall((), ())


@pytest.mark.parametrize(
    ("wrong", "name"),
    [({"window": -1}, "window"), ({"touched_share": 1.5}, "touched_share"), ({"placeholder": " "}, "p")],
)
def test_R11_settings_that_mean_nothing_are_refused(wrong: Mapping[str, object], name: str):
    with pytest.raises(SettingsError, match=f"fold.cost.{name}"):
        replace(CostSettings(), **wrong)
