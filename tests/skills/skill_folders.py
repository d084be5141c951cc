"""Folders of skills to load: builders, kinds of public skill as they are found in the wild, and random ones."""

import random
from collections.abc import Mapping
from pathlib import Path

from hypothesis import strategies as st

from recto.config.problem import FileProblem
from recto.skills.load_skills import LoadedSkills, load_skills
from recto.skills.skill import Skill
from recto.skills.skill_file import OWN
from tests.agents.yaml_pieces import PIECES as YAML_PIECES

Files = Mapping[str, str | bytes]

# Each loads as it stands; most of them are no YAML that we would take in a file of our own.
PUBLIC_KINDS: Mapping[str, str] = {
    "plain": "---\nname: plain\ndescription: Makes plans. Use when somebody plans.\n---\n\n# Planner\n\nYou plan.\n",
    "quoted": "---\nname: quoted\ndescription: \"Reads .abc files ('abc'): all of them.\"\n---\nYou read.",
    "literal": "---\nname: literal\ndescription: |-\n  First line: with a colon.\n  SKIP when [x].\n---\nYou read.",
    "folded": "---\nname: folded\ndescription: >\n  One sentence\n  in two lines.\nlicense: MIT\n---\nYou fold.",
    "colons": "---\nname: colons\ndescription: Use when: somebody asks. Such as: a poem.\nlicense: MIT\n---\nYou.",
    "hints": "---\nname: hints\ndescription: Takes hints.\nargument-hint: [path] [--fast]\n---\nYou take.",
    "wrapped": "---\nname: wrapped\ndescription: Begins here: and\n  goes on there.\n---\nYou wrap.",
    "tools": "---\nname: tools\ndescription: Has tools.\nallowed-tools: Bash(git add:*), Bash(ls *) Read\n---\nYou do.",
    "listed": "---\nname: listed\ndescription: Has tools.\nallowed-tools:\n  - Read\n  - Bash(npm:*)\n---\nYou do.",
    "versions": "---\nname: versions\ndescription: Is versioned.\nversion: 1.0\nmetadata:\n  author: me\n---\nYou are.",
    "anchors": "---\nname: anchors\ndescription: &d Repeats.\nmetadata: {short: *d}\n---\nYou repeat.",
    "tagged": "---\nname: tagged\ndescription: !!str Has a type.\nmodel: !local x\n---\nYou type.",
    "unnamed": "---\ndescription: Has no name.\n---\nYou are nobody.",
    "titled": "---\nname: Titled With Spaces\ndescription: Has a title for a name.\n---\nYou name.",
    "tabs": "---\nname: tabs\ndescription: Has tabs.\nmetadata:\n\tauthor: me\n---\nYou indent.",
    "brackets": "---\nname: brackets\ndescription: [BETA] Does things\n---\nYou do.",
    "endings": "\ufeff---\r\nname: endings\r\ndescription: Ends lines.\r\n---\r\n# It\r\nYou end.\r\n",
    "twice": "---\nname: twice\ndescription: The first.\ndescription: The second.\n---\nYou repeat.",
    "empty-keys": "---\nname: empty-keys\ndescription: Has empty keys.\nlicense:\nmetadata:\nmodel:\n---\nYou are.",
}
PLAIN = "---\nname: {name}\ndescription: Does it.\n{settings}---\n# Expert\n\nYou do it.\n"


def a_skill(folder: Path, name: str = "it", text: str | bytes | None = None, files: Files | None = None) -> Path:
    """A skill's folder, with other files by their paths."""
    for path, content in {
        "SKILL.md": PLAIN.format(name=name, settings="") if text is None else text,
        **(files or {}),
    }.items():
        file = folder / name / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder / name


def one(folder: Path, settings: str = "", files: Files | None = None, locale: str = "zh") -> Skill:
    """The skill `it` with these settings, which has nothing wrong with it."""
    loaded_skills = loaded_with(folder, settings, files, locale)
    assert (loaded_skills.broken, loaded_skills.warnings) == ({}, ())
    return loaded_skills.skills["it"]


def loaded_with(folder: Path, settings: str = "", files: Files | None = None, locale: str = "zh") -> LoadedSkills:
    """What comes of a skill `it`. Its own settings begin in line 4."""
    a_skill(folder, "it", PLAIN.format(name="it", settings=f"{settings}\n" if settings else ""), files)
    return load_skills(folder, locale)


def list_problems(folder: Path, problems: tuple[FileProblem, ...]) -> list[str]:
    """Problems as people read them, from the folder of skills on."""
    return [str(problem).removeprefix(f"{folder}/") for problem in problems]


def broken(folder: Path, loaded_skills: LoadedSkills, name: str = "it") -> list[str]:
    """What is wrong with a skill, which did not load."""
    assert name not in loaded_skills.skills
    return list_problems(folder, loaded_skills.broken[name])


# Random folders

VALUES = ("true", "3", "[]", "{a: b}", "[a, [b, {c: null}]]", "skill_data.it", "birth_info", "core")
PIECES = (*YAML_PIECES, *VALUES, "\n  ", "# A\n")
NAMES = (*OWN, "name", "description", "license", "metadata", "allowed-tools", "version", "model")
SOP_NAMES = ("steps", "rules", "tool_rules", "- id", "  title", "  text", "  when", "missing", "has", "equals", "not")
CASE_NAMES = ("id", "name", "tags", "rule_ids", "more")
MANY_CONDITIONS = "{not: {any: [{equals: {tier: x}}]}}"
WHEN = ("{missing: tier}", "{has: [a, tier]}", MANY_CONDITIONS, "{differs: [tier, scenario]}", "{}")
SOP = "steps:\n- id: a\n  title: A\n  when: {when}\n  text: Do.\n- id: b\n  text: Do.\nrules: [r]\ntool_rules: t\n"
PLACES = ("SKILL.md", "SKILL.en.md", "sop.yaml", "sop.en.yaml", "cases/a.md", "cases/a.en.md", "cases/b.md", "x/y.txt")

BODIES = ("# T\nbody", "body", "")

pieces = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)


def random_folder(chance: random.Random) -> dict[str, bytes]:
    """The files of a skill: some good, some of YAML-like lines, some of random bytes, most with pieces put in."""
    places = ["SKILL.md", *(place for place in PLACES[1:] if chance.random() < 0.3)]
    return {place: _mutated(_random_text(place, chance), chance) for place in places}


def _random_text(place: str, chance: random.Random) -> str:
    lines = SOP_NAMES if place.startswith("sop") else CASE_NAMES if place.startswith("cases") else NAMES
    settings = "".join(
        f"{chance.choice(lines)}: {chance.choice(PIECES)}\n" for _ in range(chance.choice((0, 0, 0, 1, 4)))
    )
    if place.startswith("sop"):
        return SOP.replace("{when}", chance.choice(WHEN)) if chance.random() < 0.8 else settings
    head = "name: it\ndescription: Does it.\n" if place.startswith("SKILL") else "tags: [a]\n"
    return f"---\n{head if chance.random() < 0.9 else ''}{settings}---\n{chance.choice(BODIES)}"


def _mutated(text: str, chance: random.Random) -> bytes:
    for _ in range(chance.choice((0, 0, 0, 0, 1, 2, 5))):
        at = chance.randrange(len(text) + 1)
        text = text[:at] + chance.choice(PIECES) + text[at + chance.choice((0, 0, 1, 9)) :]
    raw = text.encode(errors="replace")
    return raw if chance.random() < 0.97 else raw + chance.randbytes(9)
