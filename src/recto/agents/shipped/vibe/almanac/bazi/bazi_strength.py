"""How strong a day master is, by one simple stated method. Refuses to name the special structures (从格, 化格).

Each sign weighs what WEIGHTS says, a branch's weight shared out over its hidden stems. The score is the share, in per
cent, that is the day master's own element or the one that brings it forth. An even chart has two fifths: below 40 the
master is weak, from 50 it is strong, between the two it is balanced. Weak: what supports is favourable. Strong: what
drains, is held back, or holds back. Balanced: what the chart has least of. Scarcer elements come first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from recto.agents.shipped.vibe.almanac.bazi.bazi_words import ELEMENTS, cycle_step, word
from recto.agents.shipped.vibe.almanac.bazi.pillars import Pillars
from recto.agents.shipped.vibe.almanac.bilingual import Bilingual
from recto.conversation.json import Json
from recto.page.prompt.reminder import Locale

# The month's branch, the season, weighs most; the day's stem is the master itself and weighs nothing.
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
    """The grade (身强, 身弱, 中和), its score, the reasons, the weight of each element, what is favourable."""

    grade: str
    score: int
    reasons: tuple[Bilingual, ...]
    weights: Mapping[str, int]
    favourable: tuple[str, ...]


def strength_of(pillars: Pillars) -> Strength:
    """The strength of the day master, by the method this module states."""
    own = pillars.day.element
    supporting = (own, cycle_step(own, 4))
    weights = element_weights(pillars)
    # Exact but for what fractions of two lose; only then rounded, and down, so that the number shown is of the grade.
    score = round(sum(weights[element] for element in supporting), 6)
    grade = "身强" if score >= STRONG else "身弱" if score < WEAK else "中和"
    return Strength(
        grade=grade,
        score=int(score),
        reasons=(_season(pillars, supporting), _roots(pillars, own), _support(pillars, supporting)),
        weights={element: round(weight) for element, weight in weights.items()},
        favourable=_favourable(grade, supporting, weights),
    )


def element_weights(pillars: Pillars) -> dict[str, float]:
    """How much of a chart each element is, in per cent."""
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
    """How many of the signs, stems and branches, are of each element; hidden stems do not count."""
    signs = [element for pillar in pillars.all for element in (pillar.element, pillar.branch_element)]
    return {element: signs.count(element) for element in ELEMENTS}


def strength_row(strength: Strength, locale: Locale) -> dict[str, Json]:
    """The grade with its score, its reasons and the method, in a language."""
    return {
        "verdict": word(strength.grade, locale),
        "score": strength.score,
        "reasons": [reason.in_locale(locale) for reason in strength.reasons],
        "method": METHOD.in_locale(locale),
    }


def _season(pillars: Pillars, supporting: tuple[str, str]) -> Bilingual:
    branch, season = pillars.month.branch, pillars.month.hidden[0].element
    if season in supporting:
        return Bilingual(
            zh=f"得令：生于{branch}月，月令{season}生扶日主",
            en=f"In season: the month {word(branch, 'en')} is {word(season, 'en')}, which supports the day master",
        )
    return Bilingual(
        zh=f"失令：生于{branch}月，月令{season}不助日主",
        en=f"Out of season: the month {word(branch, 'en')} is {word(season, 'en')}, no support for the day master",
    )


def _roots(pillars: Pillars, own: str) -> Bilingual:
    roots = [pillar.branch for pillar in pillars.all if any(hidden.element == own for hidden in pillar.hidden)]
    if roots:
        return Bilingual(
            zh=f"得地：日主通根于{'、'.join(roots)}",
            en=f"Rooted: {word(own, 'en')} is hidden in {', '.join(word(branch, 'en') for branch in roots)}",
        )
    return Bilingual(zh="不得地：四支无日主之根", en=f"No root: no branch hides {word(own, 'en')}")


def _support(pillars: Pillars, supporting: tuple[str, str]) -> Bilingual:
    stems = [pillar.stem for pillar in pillars.all if pillar is not pillars.day and pillar.element in supporting]
    if stems:
        return Bilingual(
            zh=f"天干有助：{'、'.join(stems)}生扶日主",
            en=f"Supported by the stems {', '.join(word(stem, 'en') for stem in stems)}",
        )
    return Bilingual(zh="天干无助：无印比透出", en="No stem supports the day master")


def _favourable(grade: str, supporting: tuple[str, str], weights: Mapping[str, float]) -> tuple[str, ...]:
    scarce_first = sorted(ELEMENTS, key=lambda element: (weights[element], ELEMENTS.index(element)))
    match grade:
        case "身弱":
            return tuple(element for element in scarce_first if element in supporting)
        case "身强":
            return tuple(element for element in scarce_first if element not in supporting)
        case _:
            return tuple(scarce_first[:2])
