"""What is known of a user while a skill is at work: the fields it declares, its own data, the tier. Nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from recto.page.canonical import Json

FREE_TIER = "free"
SKILL_DATA = "skill_data"


@dataclass(frozen=True, kw_only=True)
class Known:
    """What a skill may know: profile fields by name, its own data by its name, the user's tier, and the scenario."""

    profile: Mapping[str, Json] = field(default_factory=dict[str, Json])
    skill_data: Mapping[str, Json] = field(default_factory=dict[str, Json])
    tier: str = FREE_TIER
    scenario: str | None = None

    def at(self, path: str) -> Json:
        """What stands at a dotted path: `birth_info.date`, `skill_data.bazi.pillars`, `tier`, `scenario`; else None.

        What is empty is not known: `""`, `[]` and `{}` are None too.
        """
        name, *rest = path.split(".")
        match name:
            case "tier":
                value: Json = self.tier
            case "scenario":
                value = self.scenario
            case "skill_data":
                value = self.skill_data
            case _:
                value = self.profile.get(name)
        for step in rest:
            value = value.get(step) if isinstance(value, Mapping) else None
        return None if value in ("", [], {}) else value


def words_in(value: Json) -> Iterator[str]:
    """Every text and number in a value, as text, in order."""
    match value:
        case str() if value.strip():
            yield value.strip()
        case bool() | None | str():
            return
        case int() | float():
            yield str(value)
        case Mapping():
            for inner in value.values():
                yield from words_in(inner)
        case Sequence():
            for inner in value:
                yield from words_in(inner)
