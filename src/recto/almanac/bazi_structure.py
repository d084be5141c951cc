"""The structure (格局) of a chart, by its month. Refuses to name the special ones (从格, 化格)."""

from __future__ import annotations

from recto.almanac.bazi_words import PEERS
from recto.almanac.pillars import Pillars

# The day's stem, and the month's branch in which it is at home, at its height, or meets the other stem of its element.
SALARIES = frozenset(["甲寅", "乙卯", "丙巳", "丁午", "戊巳", "己午", "庚申", "辛酉", "壬亥", "癸子"])
BLADES = frozenset(["甲卯", "丙午", "戊午", "庚酉", "壬子"])
ROBBERS = frozenset(["乙寅", "丁巳", "辛申", "癸亥"])


def structure_of(pillars: Pillars) -> str:
    """The structure by how the month carries the master; else by what is hidden in the month.

    That is its main stem if a stem of the chart shows it, else another that is shown, else the main one. The master's
    own element gives no name: earth in a month of earth goes by another that is shown, else it is mixed.
    """
    master_in_month = pillars.day.stem + pillars.month.branch
    for pairs, name in ((SALARIES, "建禄格"), (BLADES, "月刃格"), (ROBBERS, "月劫格")):
        if master_in_month in pairs:
            return name
    shown = {pillar.stem for pillar in pillars.all if pillar is not pillars.day}
    main, *_ = pillars.month.hidden
    seen = [one for one in pillars.month.hidden if one.stem in shown and one.ten_god not in PEERS]
    if not seen and main.ten_god in PEERS:
        return "杂气格"
    return f"{(seen or [main])[0].ten_god}格"
