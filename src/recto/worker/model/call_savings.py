"""What folding saved in a call: its page beside the last one that was answered. Looked at when the reply is there."""

from __future__ import annotations

from recto.conversation.log import view
from recto.errors import Conflict, NotFound
from recto.page.assemble import find_cache_state
from recto.page.facts import Facts
from recto.page.fold.fold_by_cost import FIRST_CALL, GAP
from recto.page.prefix import AnsweredPage, SentPage
from recto.page.savings import Saving, savings_of
from recto.store.runs.calls import sent_page
from recto.store.store import Store
from recto.worker.run_state import LoadedRun


async def find_savings(run: LoadedRun, number: int, facts: Facts, answered: AnsweredPage) -> tuple[Saving, ...]:
    """What was saved in a call of a run. Who was not asked for long has nothing in its cache that could be broken."""
    is_gone = find_cache_state(facts, view(facts.log)).cold in (FIRST_CALL, GAP)
    before = None if is_gone else await _page_before(run, number)
    return savings_of(before, answered.sent_page, facts.cache_prices)


async def _page_before(run: LoadedRun, number: int) -> SentPage | None:
    """The last page of the thread: this process has it, unless another one sent it or it was forgotten."""
    if run.inputs.last_answer:
        return run.inputs.last_answer.sent_page
    return await read_answered_page(run.runtime.store, run.state.row.id, number)


async def read_answered_page(store: Store, run: str, number: int) -> SentPage | None:
    """The page of a call of a run as the store has it, or of the last before it that was answered; None: of none."""
    try:
        found = await store.calls.find_answered(run, number)
        return sent_page(await store.calls.read(*found)) if found else None
    except (NotFound, Conflict):
        # Deleted meanwhile, or damaged: nobody can say what it was.
        return None
