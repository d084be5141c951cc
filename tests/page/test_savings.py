"""R11, X2: what folding saved in a call, by rule: against the same page with nothing folded, as the cache had it."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from recto.conversation.log import Entry, FoldStep
from recto.conversation.messages import Text
from recto.page.assemble import assemble
from recto.page.facts import Facts
from recto.page.fold.fold_settings import CachePrices, CostSettings, FoldSettings
from recto.page.fold.rules import READS
from recto.page.prefix import SentPage
from recto.page.prompt.system_prompt import Prompt
from recto.page.savings import Saving, savings_of
from recto.page.text.tokens import tokens_of
from tests.page.test_fold_cost import COUNTER, PRICES, command, facts, poem, priced, read, settings, talk

# The step folds 999 tokens of a command, and what stands behind it is written to the cache again.
LOG: tuple[Entry, ...] = priced(old=1_000, young=2_000, calls=200)
SAVED_TOKENS = 999


def page(facts: Facts) -> SentPage:
    return SentPage.of(*assemble(facts))


def step(log: tuple[Entry, ...]) -> FoldStep:
    step = assemble(facts(log))[1].step
    assert step
    return step


STEP = step(LOG)
STORED_STEP = replace(STEP, id="f", time=LOG[-1].time)
BEFORE = page(facts(LOG[:-2], fold=settings(CostSettings())))
AFTER = page(facts(LOG))
LATER = page(facts((*LOG, STORED_STEP, *poem(900))))
COST = STEP.rewritten * (PRICES.write - PRICES.read) * 1_000
PLAIN, UNLISTED = CachePrices(5, 5), PRICES._replace(is_listed=False)


def fold_saving(saving: float | None, cost: float | None = 0) -> Saving:
    return Saving(kind="fold", name="X2", tokens=SAVED_TOKENS, benefit=rounded(saving), cost=rounded(cost))


def broken(cause: str, tokens: int, cost: float | None) -> Saving:
    return Saving(kind="break", name=cause, tokens=tokens, cost=rounded(cost))


def rounded(price: float | None) -> int | None:
    return None if price is None else int(price)


READ, WRITE = SAVED_TOKENS * PRICES.read * 1_000, SAVED_TOKENS * PRICES.write * 1_000
CASES: Mapping[str, tuple[SentPage | None, SentPage, CachePrices, tuple[Saving, ...]]] = {
    "nothing is folded": (BEFORE, BEFORE, PRICES, ()),
    "nothing was in the cache: it would have been written": (None, AFTER, PRICES, (fold_saving(WRITE),)),
    "a step saves what would have been read, and costs what is written again": (
        *(BEFORE, AFTER, PRICES),
        (fold_saving(READ, COST), broken("fold_step", STEP.rewritten, COST)),
    ),
    "later calls save as much, and cost nothing": (AFTER, LATER, PRICES, (fold_saving(READ),)),
    "without a cache each call saves what input costs": (
        *(BEFORE, AFTER, PLAIN),
        (fold_saving(SAVED_TOKENS * 5_000), broken("fold_step", STEP.rewritten, 0)),
    ),
    "where no list has the prices, tokens are told": (
        *(BEFORE, AFTER, UNLISTED),
        (fold_saving(None, None), broken("fold_step", STEP.rewritten, None)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_X2_what_folding_saved_in_a_call(name: str):
    before, after, prices, expected = CASES[name]
    assert savings_of(before, after, prices) == expected


def test_X2_what_a_call_is_said_to_save_and_cost_is_what_its_step_was_weighed_by():
    saving, loss = savings_of(BEFORE, AFTER, PRICES)
    assert (saving.tokens, saving.benefit, saving.cost) == (STEP.freed, STEP.saves, STEP.costs)
    assert (loss.tokens, loss.cost) == (STEP.rewritten, STEP.costs)


def test_R11_what_stands_behind_another_break_would_have_been_written_anyway():
    log = (*LOG, STORED_STEP, *poem(900))
    before, after = (page(facts(log, prompt=Prompt(identity=name))) for name in ("You code.", "You teach."))
    saving, loss = savings_of(before, after, PRICES)
    assert (saving.benefit, saving.cost) == (WRITE, 0)
    assert (loss.kind, loss.name) == ("break", "prompt_changed")
    assert loss.tokens > STEP.rewritten


def test_R11_another_model_has_nothing_of_it_in_its_cache():
    _, loss = savings_of(replace(AFTER, model="a"), replace(LATER, model="b"), PRICES)
    assert loss.name == "model_changed"


FOLDED_RESULT = replace(read(0)[1], parts=(Text(text=READS.placeholder),))


def test_R11_savings_are_told_by_rule_and_a_fold_that_breaks_the_prefix_costs_its_rule():
    text = " ".join(["word"] * 500)
    reads = [read(n, "a.py", text) for n in range(7)]
    commands = [command(100 + n, text) for n in range(7)]
    eager = FoldSettings()
    before = page(facts(talk(*commands, *reads[:6]), fold=eager))
    after = page(facts(talk(*commands, *reads), fold=eager))
    by_name = {saving.name: saving for saving in savings_of(before, after, PRICES)}
    # Commands are a second old: they stay. Of the reads two are folded now, one of them since this page.
    assert by_name.keys() == {"R2", "fold_step"}
    assert by_name["R2"].benefit == by_name["R2"].tokens * 1_000
    assert by_name["R2"].cost == by_name["fold_step"].cost == by_name["fold_step"].tokens * 9_000
    # What stands for the second read, and behind it four whole ones of the page before, each with its call.
    line, one, call = (tokens_of(message, COUNTER) for message in (FOLDED_RESULT, reads[0][1], reads[0][0]))
    assert by_name["fold_step"].tokens == line + 4 * (call + one)
