"""Skills by the words that a user says: the one whose triggers are in a message. It activates nothing. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from recto.skills.skill import Skill

# Letters of scripts that put blanks between words; in others a trigger may stand anywhere.
_SPACED = r"[^\W\u2e80-\U0010ffff]"


@dataclass(frozen=True, kw_only=True)
class Triggered:
    """A skill, and its triggers that were said, as its file has them."""

    skill: Skill
    said: tuple[str, ...]


def triggered(skills: Iterable[Skill], words: str) -> Triggered | None:
    """The skill that a message speaks of most: by the letters of its triggers in it. Of two that are even, none."""
    text = _plain(words)
    found = [Triggered(skill=skill, said=_said(skill.triggers, text)) for skill in skills]
    best = sorted([one for one in found if one.said], key=_letters, reverse=True)
    if not best or (len(best) > 1 and _letters(best[0]) == _letters(best[1])):
        return None
    return best[0]


def _said(triggers: Iterable[str], text: str) -> tuple[str, ...]:
    """The triggers in a text, without those that are a part of another one there."""
    said = [trigger for trigger in triggers if _pattern(_plain(trigger)).search(text)]
    return tuple([one for one in said if not any(one != other and _plain(one) in _plain(other) for other in said)])


def _letters(one: Triggered) -> int:
    return sum(map(len, one.said))


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


@cache
def _pattern(trigger: str) -> re.Pattern[str]:
    before = rf"(?<!{_SPACED})" if re.match(_SPACED, trigger) else ""
    after = rf"(?!{_SPACED})" if re.search(rf"{_SPACED}\Z", trigger) else ""
    return re.compile(f"{before}{re.escape(trigger)}{after}")
