"""Selection of a skill by the triggers that a message contains."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from recto.skills.skill import Skill

# Letters of scripts with spaces between words; in others a trigger may occur anywhere.
_SPACED = r"[^\W\u2e80-\U0010ffff]"
# Ends of clauses.
_BETWEEN = re.compile(r"[,.;:!?，。；：！？、…]|\bbut\b|但")
# Words before a trigger, in its clause, that decline it. Questions (要不要, 想不想) do not.
_REFUSAL = re.compile(
    r"(?:(?<!要)不要|(?<!想)不想|(?<!用)不用|(?<!需)不需要|(?<!是)不是|不必|无需|没兴趣|(?<![特分性区类级告])别(?!人|的))\S{0,8}\Z"
    r"|\b(?:(?:do not|don['’]?t|won['’]?t)(?! (?:know|understand|see|get|remember|feel))|never|stop|without|no more"
    r"|not (?:interested|in the mood|about))\b(?: [\w'’]+){0,4} ?\Z|\bno (?:\w+ )?\Z"
)
_REFUSED_AFTER = re.compile(r"(?:的话|就|也|都|什么的|之类的){0,2}(?:不要|不用|不需要|算了|免了|没兴趣)")


@dataclass(frozen=True, kw_only=True)
class Triggered:
    """A skill, and its triggers in a message, as its file spells them."""

    skill: Skill
    triggers: tuple[str, ...]


def triggered(skills: Iterable[Skill], words: str) -> Triggered | None:
    """Return the skill with the most trigger letters in a message; None if two are equal."""
    text = _plain(words)
    candidates = [Triggered(skill=skill, triggers=_find_triggers(skill.triggers, text)) for skill in skills]
    best = sorted([one for one in candidates if one.triggers], key=_letters, reverse=True)
    if not best or (len(best) > 1 and _letters(best[0]) == _letters(best[1])):
        return None
    return best[0]


def _find_triggers(triggers: Iterable[str], text: str) -> tuple[str, ...]:
    """Return the triggers in a text that it does not decline, without those that are a part of another one."""
    triggered_words = [
        trigger
        for trigger in triggers
        if any(
            not bool(
                _REFUSAL.search(_BETWEEN.split(text[: match.start()])[-1]) or _REFUSED_AFTER.match(text, match.end())
            )
            for match in _pattern(_plain(trigger)).finditer(text)
        )
    ]
    return tuple(
        [
            one
            for one in triggered_words
            if not any(one != other and _plain(one) in _plain(other) for other in triggered_words)
        ]
    )


def _letters(one: Triggered) -> int:
    return sum(map(len, one.triggers))


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


@cache
def _pattern(trigger: str) -> re.Pattern[str]:
    before = rf"(?<!{_SPACED})" if re.match(_SPACED, trigger) else ""
    after = rf"(?!{_SPACED})" if re.search(rf"{_SPACED}\Z", trigger) else ""
    return re.compile(f"{before}{re.escape(trigger)}{after}")
