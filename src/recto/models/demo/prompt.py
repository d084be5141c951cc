"""What the demo model reads in an expert's system prompt: the due step, and the user's data. It adds nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from recto.page.prompt.system_prompt import HEADINGS
from recto.skills.sop import ALWAYS, DUE, NEXT, NOT_DUE

OUTLINE = re.compile(rf"(?:^[{DUE}{NOT_DUE}] \d+\. .*(?:\n|\Z))+", re.MULTILINE)
# At the beginning of a line of its own: a date within other data is somewhere deeper.
BIRTH = re.compile(r"^- (?:date|日期|出生日期): ", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class DueStep:
    """The step marked as due: what is to be done in it, and whether any comes after it."""

    text: str
    is_last: bool


def due_step(rules: str) -> DueStep | None:
    """The step that the system prompt marks; None where it has no procedure, or nothing in it is due."""
    section = _section(rules, "sop")
    outline = OUTLINE.search(section)
    lines = outline[0].splitlines() if outline else []
    marked = [place for place, line in enumerate(lines) if line.startswith(DUE)]
    if outline is None or not marked:
        return None
    text = section[outline.end() :]
    for rule in ALWAYS.values():
        text = text.partition(f"\n\n{rule.partition('{')[0]}")[0]
    for opening in NEXT.values():
        text = text.strip().removeprefix(opening.partition("{")[0])
    return DueStep(text=text, is_last=marked[0] == len(lines) - 1)


def user_data(rules: str) -> Sequence[str]:
    """What is known of the user: the texts of that section, without their titles."""
    parts = re.split(r"(?:^|\n)### ", _section(rules, "data"))
    return [part.partition("\n")[2].strip() for part in parts if part.strip()]


def has_birth(rules: str) -> bool:
    """Whether the birth is known."""
    return any(BIRTH.search(text) for text in user_data(rules))


def other_data(rules: str) -> Sequence[str]:
    """What else is known: what the skill has kept, and the user's life."""
    return [text for text in user_data(rules) if not BIRTH.search(text)]


def _section(rules: str, name: str) -> str:
    for headings in HEADINGS.values():
        _, found, behind = f"\n{rules}".partition(f"\n{headings[name]}\n")
        if found:
            return re.split(r"\n+## ", behind, maxsplit=1)[0]
    return ""
