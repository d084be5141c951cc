"""What the demo model has done in a skill: its tools collect, compute, draw and save. It never repeats a call."""

from __future__ import annotations

import re
from collections.abc import Iterator

from recto.conversation.json import dump
from recto.models.demo.birth import FORGETS, birth_in, correction_in
from recto.models.demo.choice import (
    ASKS,
    CARDS,
    DRAW,
    USE_SKILL,
    active_skill,
    call_of,
    choose,
    in_skill,
    takes,
    wishes,
)
from recto.models.demo.life import IN_NEED, SAVE_LIFE, life_in
from recto.models.demo.page import DemoCall, DemoPage, Made, text_of
from recto.models.demo.prompt import due_step, has_birth, other_data

COLLECT, SKY = "collect_birth_info", "sky_today"
COMPUTES = "compute_"
THREE = re.compile("three|3|三")
OF_THE_SKY = re.compile(r"水逆|逆行|天象|\bretrograde\b", re.IGNORECASE)
OF_THE_DAY = re.compile(r"[今每]日|\b(?:daily|of the day)\b", re.IGNORECASE)
AGAIN = re.compile(r"再来|塔罗|占卜|\b(?:draw|tarot|again|another)\b", re.IGNORECASE)
NO_CARDS = re.compile(r"(?:不|别|不再|不想)抽|不占卜")
REFUSES = re.compile(
    r"不想[说讲告透填给]|不(?:愿意?|方便|肯)[说讲告透填给]|不告诉|不透露|不说了?$|[要是].{0,3}(?:保密|隐私)"
    r"|\b(?:rather not|prefer not to|don'?t want to (?:say|tell|share|give)|won'?t (?:say|tell|share)"
    r"|none of your business|not (?:telling|saying)|(?:is|that's|it's) private)\b",
    re.IGNORECASE,
)


def is_of_skills(name: str) -> bool:
    """Whether a tool is one that is called, and told of, here."""
    return name in (USE_SKILL, COLLECT, DRAW, SAVE_LIFE, SKY) or name.startswith(COMPUTES)


def next_call(page: DemoPage) -> DemoCall | None:
    """The next call that the user's words or the skill at work ask for. The same is never called twice in a turn."""
    calls = [*choose(page), *(_steps(page) if in_skill(page) else ())]
    made = {(one.name, dump(one.arguments)) for one in page.made}
    return next((call for call in calls if (call.name, call.arguments.encode()) not in made), None)


def _steps(page: DemoPage) -> Iterator[DemoCall]:
    """Collect, compute, draw, save: what is offered, still due, and not done in this turn."""
    done = {one.name for one in page.made}
    if SKY in page.offered and OF_THE_SKY.search(page.words):
        # The sky is everybody's: no birth is needed for it.
        yield call_of(SKY, {})
        return
    if COLLECT in page.offered and COLLECT not in done:
        yield from _collecting(page)
    for name in page.offered:
        if name.startswith(COMPUTES) and name not in done and _is_due(page, name) and not needs_birth(page):
            yield call_of(name, {})
    is_asked = any(one.name == USE_SKILL for one in page.made) or CARDS.search(page.words) or AGAIN.search(page.words)
    is_wanted = (is_asked or not other_data(page.rules)) and not NO_CARDS.search(page.words)
    if DRAW in page.offered and DRAW not in done and is_wanted:
        is_daily = "daily" in takes(page, DRAW) and OF_THE_DAY.search(page.words)
        yield call_of(DRAW, {"daily": True} if is_daily else {"spread": _spread(page)})
    if SAVE_LIFE in page.offered and SAVE_LIFE not in done:
        yield from _saving(page)


def _collecting(page: DemoPage) -> Iterator[DemoCall]:
    """What was said of the birth; where it is known, what is put right, or the wish to have it forgotten."""
    known, is_known = takes(page, COLLECT), has_birth(page.rules)
    if is_known and "date" in known and FORGETS.search(page.words):
        yield call_of(COLLECT, {"date": ""})
        return
    calls = [*page.before, *page.made]
    refused = [one.arguments.get("date") for one in calls if one.name == COLLECT and one.answer is None]
    # What was told before they had it forgotten is forgotten too.
    is_over = any(_status(one) == "forgotten" for one in calls)
    said = (page.words,) if is_over else (page.words, *page.earlier)
    told = correction_in(page.words) if is_known else birth_in(said, refused)
    # One that takes no date is a form of the client's: it asks by itself.
    is_form = "date" not in known and needs_birth(page) and not refuses(page)
    if told or is_form:
        yield call_of(COLLECT, {name: one for name, one in told.items() if not known or name in known})


def _saving(page: DemoPage) -> Iterator[DemoCall]:
    """What was said of their life; as it was said only where the step that is due asks for any of it."""
    if REFUSES.search(page.words) or IN_NEED.search(page.words):
        return
    due = due_step(page.rules)
    is_asked = due is None or SAVE_LIFE in due.text
    told = life_in(page.words, takes(page, SAVE_LIFE), other_data(page.rules), notes=is_asked)
    if told:
        yield call_of(SAVE_LIFE, told)


def _is_due(page: DemoPage, tool: str) -> bool:
    """Whether the birth has just been told, the procedure has come to this tool, or there is nothing made by it."""
    due = due_step(page.rules)
    is_named = due is not None and not due.is_last and tool in due.text
    return collected(page) == "saved" or is_named or not other_data(page.rules)


def refuses(page: DemoPage) -> bool:
    """Whether they would rather not tell of their birth, and have not asked for the skill again since."""
    if any(_status(one) == "declined" for one in (*page.before, *page.made)):
        return True
    active = active_skill(page)
    for words in (page.words, *page.earlier):
        if REFUSES.search(words):
            return True
        if wishes(page, words).get(active, 0) >= ASKS:
            return False
    return False


def _spread(page: DemoPage) -> str:
    """Three cards, by whatever name that has here."""
    values = takes(page, DRAW).get("spread", {}).get("enum")
    names = [one for one in values if isinstance(one, str)] if isinstance(values, list) else []
    return next((name for name in names if THREE.search(name)), names[0] if names else "three")


def needs_birth(page: DemoPage) -> bool:
    """Whether there is something to compute, and no birth to compute it of."""
    computes = any(name.startswith(COMPUTES) for name in page.offered)
    status = collected(page)
    return computes and status != "saved" and (status == "forgotten" or not has_birth(page.rules))


def collected(page: DemoPage) -> str:
    """What became of the birth that was told, or asked for, in this turn."""
    return next((_status(one) for one in reversed(page.made) if one.name == COLLECT), "")


def _status(made: Made) -> str:
    return text_of((made.answer or {}).get("status")) if made.name == COLLECT else ""
