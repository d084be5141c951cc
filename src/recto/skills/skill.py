"""Skills as values: persona, required user data, procedure, cases and files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from recto.conversation.json import Json
from recto.skills.cases import NO_CASES, CaseIndex
from recto.skills.sop import Sop

# Name by which clients and the model request that no skill is active.
CORE = "core"
BIRTH_INFO = "birth_info"


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A use of a skill. Cases that are linked to one of its rules rank first. Its own name is one of the rules."""

    name: str
    description: str = ""
    rule_ids: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class BundledFile:
    """A file of a skill's folder, read on demand. `path` is relative to the folder, with `/` between names."""

    path: str
    size: int


@dataclass(frozen=True, kw_only=True)
class Skill:
    """A skill (S5).

    `heading` is the first heading in the body of its SKILL.md, and `identity` is the remaining body. Clients show
    `title`, or the name if there is no title. `fields` are dotted paths into the user's profile. With `has_data`, the
    skill reads its own data, `skill_data.<name>`. `collect_tool` asks for missing data; `compute_tool` computes the
    skill's own data. `tools` are the names in the file; an agent may lack some of them. `metadata` contains all other
    settings of the file.
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
        """Return the scenario of that name, else the default (S3)."""
        scenarios = {one.name: one for one in self.scenarios}
        return scenarios.get(name or "") or scenarios.get(self.default_scenario or "")
