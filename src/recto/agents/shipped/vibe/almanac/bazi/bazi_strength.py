"""Strength of the day master, without the special structures (从格, 化格).

Each sign has a weight (WEIGHTS); that of a branch is divided among its hidden stems. The score is the percentage of the
day master's own element and the one that generates it: weak below 40, strong from 50, else balanced. An even chart has
40. Favourable elements, scarcest first: if weak, the supporting ones; if strong, all others; if balanced, the two
scarcest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from recto.agents.shipped.vibe.almanac.bazi.bazi_words import ELEMENTS, cycle_step, word
from recto.agents.shipped.vibe.almanac.bazi.pillars import Pillars
from recto.agents.shipped.vibe.almanac.bilingual import Bilingual
from recto.conversation.json import Json
from recto.page.prompt.reminder import Locale

# Weights of stem and branch. The month's branch, the season, has most; the day's stem, the master itself, has none.
WEIGHTS: Mapping[str, tuple[int, int]] = {"year": (6, 9), "month": (9, 40), "day": (0, 15), "hour": (9, 12)}
SHARES: Mapping[int, tuple[float, ...]] = {1: (1.0,), 2: (0.7, 0.3), 3: (0.6, 0.3, 0.1)}
STRONG, WEAK = 50, 40
METHOD = Bilingual(
    zh="月令40、日支15、时支12、年支9、月干时干各9、年干6，地支按藏干分配；"
    "同我生我所占百分比≥50为身强，<40为身弱，其间为中和；不论从格、化格。",
    en="Month branch 40, day branch 15, hour branch 12, year branch 9, month and hour stems 9 each, year stem 6, each "
    "branch shared out over its hidden stems. The per cent that is the day master's element or brings it forth: 50 or "
    "more is strong, below 40 weak, else balanced. Special structures are not judged.",
)


@dataclass(frozen=True, kw_only=True)
class Strength:
    """Grade (身强, 身弱, 中和), score and reasons, and the weight of each element."""

    grade: str
    score: int
    reasons: tuple[Bilingual, ...]
    weights: Mapping[str, int]
    favourable: tuple[str, ...]


def strength_of(pillars: Pillars) -> Strength:
    """Return the strength of the day master."""
    own = pillars.day.element
    supporting = (own, cycle_step(own, 4))
    weights = element_weights(pillars)
    # Round away the errors of floats. The shown score is rounded down, so that it agrees with the grade.
    score = round(sum(weights[element] for element in supporting), 6)
    grade = "身强" if score >= STRONG else "身弱" if score < WEAK else "中和"
    scarce_first = sorted(ELEMENTS, key=lambda element: weights[element])
    match grade:
        case "身弱":
            favourable = [element for element in scarce_first if element in supporting]
        case "身强":
            favourable = [element for element in scarce_first if element not in supporting]
        case _:
            favourable = scarce_first[:2]
    return Strength(
        grade=grade,
        score=int(score),
        reasons=tuple(_reasons(pillars, supporting)),
        weights={element: round(weight) for element, weight in weights.items()},
        favourable=tuple(favourable),
    )


def element_weights(pillars: Pillars) -> dict[str, float]:
    """Return the percentage of each element in a chart."""
    weights = dict.fromkeys(ELEMENTS, 0.0)
    by_place = {"year": pillars.year, "month": pillars.month, "day": pillars.day}
    for place, pillar in (by_place if pillars.hour is None else {**by_place, "hour": pillars.hour}).items():
        stem, branch = WEIGHTS[place]
        weights[pillar.element] += stem
        for hidden, part in zip(pillar.hidden, SHARES[len(pillar.hidden)], strict=True):
            weights[hidden.element] += branch * part
    total = sum(weights.values())
    return {element: weight * 100 / total for element, weight in weights.items()}


def visible_counts(pillars: Pillars) -> dict[str, int]:
    """Count the stems and branches of each element, without hidden stems."""
    signs = [element for pillar in pillars.all for element in (pillar.element, pillar.branch_element)]
    return {element: signs.count(element) for element in ELEMENTS}


def strength_row(strength: Strength, locale: Locale) -> dict[str, Json]:
    """Return the row of a strength in a language."""
    return {
        "verdict": word(strength.grade, locale),
        "score": strength.score,
        "reasons": [reason.in_locale(locale) for reason in strength.reasons],
        "method": METHOD.in_locale(locale),
    }


def _reasons(pillars: Pillars, supporting: tuple[str, str]) -> Iterator[Bilingual]:
    """Yield the reasons of a grade: the season, the roots of the day master, and supporting stems."""
    own = word(pillars.day.element, "en")
    branch, season = pillars.month.branch, pillars.month.hidden[0].element
    month = f"the month {word(branch, 'en')} is {word(season, 'en')}"
    if season in supporting:
        zh = f"得令：生于{branch}月，月令{season}生扶日主"
        yield Bilingual(zh=zh, en=f"In season: {month}, which supports the day master")
    else:
        zh = f"失令：生于{branch}月，月令{season}不助日主"
        yield Bilingual(zh=zh, en=f"Out of season: {month}, no support for the day master")
    roots = [one.branch for one in pillars.all if any(hidden.element == pillars.day.element for hidden in one.hidden)]
    if roots:
        en = f"Rooted: {own} is hidden in {', '.join(word(branch, 'en') for branch in roots)}"
        yield Bilingual(zh=f"得地：日主通根于{'、'.join(roots)}", en=en)
    else:
        yield Bilingual(zh="不得地：四支无日主之根", en=f"No root: no branch hides {own}")
    stems = [one.stem for one in pillars.all if one is not pillars.day and one.element in supporting]
    if stems:
        en = f"Supported by the stems {', '.join(word(stem, 'en') for stem in stems)}"
        yield Bilingual(zh=f"天干有助：{'、'.join(stems)}生扶日主", en=en)
    else:
        yield Bilingual(zh="天干无助：无印比透出", en="No stem supports the day master")
