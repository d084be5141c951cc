"""Words that say two things of a chart at once, for cases that only both make true. Refuses to read them as fate."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from recto.almanac.bazi_strength import Strength
from recto.almanac.bazi_words import PEERS, cycle_step, pinyin, word
from recto.almanac.pillars import Pillars
from recto.almanac.told import Told

WEALTH, RESOURCE = ("正财", "偏财"), ("正印", "偏印")
# An even chart has a fifth of each element.
MUCH = 30
STRONG_WEALTH = Told(zh="身强见财", en="Strong with wealth")
WEAK_WEALTH = Told(zh="身弱财多", en="Weak with much wealth")
MANY_PEERS = Told(zh="比劫多", en="Many peers")
# A pair of ten gods: one of each side has to show.
PAIRS: tuple[tuple[Collection[str], Collection[str], Told], ...] = (
    (("食神",), WEALTH, Told(zh="食神生财", en="Eating God feeds wealth")),
    (("伤官",), WEALTH, Told(zh="伤官生财", en="Hurting Officer feeds wealth")),
    (("食神",), ("七杀",), Told(zh="食神制杀", en="Eating God holds Seven Killings")),
    (("七杀",), RESOURCE, Told(zh="杀印相生", en="Seven Killings feeds resource")),
    (("正官",), ("正印",), Told(zh="官印相生", en="Direct Officer feeds Direct Resource")),
    (("伤官",), ("正官",), Told(zh="伤官见官", en="Hurting Officer meets Officer")),
)


def paired(pillars: Pillars, strength: Strength, gods: Collection[str]) -> Iterator[Told]:
    """The strength with the day master, pairs of ten gods, what the master sits on. `gods` are those a chart shows."""
    day, verdict = pillars.day, strength.verdict
    strong, element = word(verdict, "en"), word(day.element, "en")
    yield Told(zh=f"{verdict}{day.stem}{day.element}", en=f"{strong} {pinyin(day.stem)} {element}")
    yield Told(zh=f"{verdict}{day.element}", en=f"{strong} {element}")
    has_wealth = _shows(gods, WEALTH)
    if verdict == "身强" and has_wealth:
        yield STRONG_WEALTH
    if verdict == "身弱" and has_wealth and strength.weights[cycle_step(day.element, 2)] >= MUCH:
        yield WEAK_WEALTH
    if _shows(gods, PEERS) and strength.weights[day.element] >= MUCH:
        yield MANY_PEERS
    yield from (told for one, other, told in PAIRS if _shows(gods, one) and _shows(gods, other))
    seat = day.hidden[0].ten_god
    yield Told(zh=f"日坐{seat}", en=f"{word(seat, 'en')} in the day branch")


def _shows(gods: Collection[str], wanted: Collection[str]) -> bool:
    return any(god in gods for god in wanted)
