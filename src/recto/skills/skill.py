"""A skill as a value: who the expert is, what it needs to know, and what it goes by. Refuses to read any file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from recto.conversation.json import Json
from recto.skills.cases import NO_CASES, CaseIndex
from recto.skills.sop import Sop

# What a client, and the model, call having no skill.
CORE = "core"
BIRTH_INFO = "birth_info"


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """What a skill may be asked for. Cases linked to one of its rules come first; its own name is one of them."""

    name: str
    description: str = ""
    rule_ids: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class BundledFile:
    """A file of a skill's folder, by its path from there, with `/` between names. It is read on demand only."""

    path: str
    size: int


@dataclass(frozen=True, kw_only=True)
class Skill:
    """A skill (S5). `heading` and `identity` are the body of its SKILL.md: its first heading, and what follows.

    `title` is what people are shown for its name; empty where that will do.
    `fields` are dotted paths into the user's profile; `has_data` says that it reads `skill_data.<name>`, what it has
    kept of the user. `collect_tool` asks for what is missing, `compute_tool` makes its data. `tools` are those it
    names; an agent may not have them all. `metadata` is whatever else its file says.
    """

    name: str
    description: str
    heading: str
    identity: str
    folder: Path
    title: str = ""
    license: str = ""
    fields: tuple[str, ...] = ()
    has_data: bool = False
    requires_birth_info: bool = False
    requires_compute: bool = False
    compute_type: str = ""
    compute_tool: str = ""
    collect_tool: str = ""
    triggers: tuple[str, ...] = ()
    scenarios: tuple[Scenario, ...] = ()
    default_scenario: str | None = None
    tools: tuple[str, ...] = ()
    sop: Sop | None = None
    cases: CaseIndex = NO_CASES
    files: tuple[BundledFile, ...] = ()
    metadata: Mapping[str, Json] = field(default_factory=dict[str, Json])

    def scenario(self, name: str | None) -> Scenario | None:
        """The scenario of that name; without one, or where it has none of that name, the default (S3)."""
        scenarios = {one.name: one for one in self.scenarios}
        return scenarios.get(name or "") or scenarios.get(self.default_scenario or "")
