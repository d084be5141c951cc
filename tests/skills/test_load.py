"""S5: a skill is a folder with SKILL.md; our settings in it; languages; and one that is broken keeps no other away."""

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from recto.skills.load_skills import LoadedSkills, load_skills
from recto.skills.skill import BundledFile, Scenario, Skill
from recto.skills.skill_file import NAME_RULE
from recto.skills.sop import Missing, Sop, SopStep
from tests.skills.skill_folders import PLAIN, a_skill, broken, list_problems, loaded_with, one

EVERYTHING = """\
license: MIT
title: The Whole
allowed-tools: Read Bash(ls:*)
version: 2.0
profile_fields:
- life_context.career
- skill_data.it
- extracted
requires_birth_info: true
requires_compute: true
compute_type: bazi
compute_tool: compute_it
collect_tool: collect_it
triggers: [fate, 八字]
scenarios:
  basic: {description: The whole., rule_ids: [r1, basic]}
  love: {}
default_scenario: love"""


# Values


def test_S5_every_setting_becomes_a_value(tmp_path: Path):
    sop = (
        "steps:\n- {id: a, title: A, when: {missing: birth_info}, text: Ask.}\n- {id: b, text: Read.}\nrules: Be kind."
    )
    skill = one(tmp_path, EVERYTHING, {"sop.yaml": sop, "notes/a.txt": "abc"})
    assert skill == Skill(
        name="it",
        description="Does it.",
        heading="Expert",
        identity="You do it.",
        folder=tmp_path / "it",
        title="The Whole",
        license="MIT",
        fields=("birth_info", "life_context.career", "extracted"),
        has_data=True,
        requires_birth_info=True,
        requires_compute=True,
        compute_type="bazi",
        compute_tool="compute_it",
        collect_tool="collect_it",
        triggers=("fate", "八字"),
        scenarios=(
            Scenario(name="basic", description="The whole.", rule_ids=("basic", "r1")),
            Scenario(name="love", rule_ids=("love",)),
        ),
        default_scenario="love",
        tools=("Read", "Bash", "compute_it", "collect_it"),
        sop=Sop(
            steps=(
                SopStep(id="a", title="A", text="Ask.", when=Missing(path="birth_info")),
                SopStep(id="b", title="b", text="Read."),
            ),
            rules="Be kind.",
        ),
        files=(BundledFile(path="notes/a.txt", size=3),),
        metadata={"version": 2.0},
    )


@pytest.mark.parametrize(
    ("settings", "fields", "has_data"),
    [
        ("", (), False),
        ("profile_fields: [skill_data.it]", (), True),
        ("profile_fields: [skill_data.it.pillars, a-b]", ("a-b",), True),
        ("requires_compute: true", (), True),
        ("requires_birth_info: true\nprofile_fields: [x, birth_info]", ("x", "birth_info"), False),
        ("profile_fields: [x, x.y, x]", ("x", "x.y"), False),
    ],
)
def test_S6_what_a_skill_declares_is_what_it_may_know(
    tmp_path: Path, settings: str, fields: tuple[str, ...], has_data: bool
):
    skill = one(tmp_path, settings)
    assert (skill.fields, skill.has_data) == (fields, has_data)


@pytest.mark.parametrize(
    ("settings", "names", "default"),
    [
        ("", (), None),
        ("scenarios: [a, b]\ndefault_scenario: b", ("a", "b"), "b"),
        ("scenarios: {b: {}, a: {description: x}}", ("b", "a"), "b"),
    ],
)
def test_S5_the_first_scenario_is_the_default_unless_one_is_named(
    tmp_path: Path, settings: str, names: tuple[str, ...], default: str | None
):
    skill = one(tmp_path, settings)
    assert (tuple(scenario.name for scenario in skill.scenarios), skill.default_scenario) == (names, default)
    assert all(scenario.name in scenario.rule_ids for scenario in skill.scenarios)


@pytest.mark.parametrize(
    ("body", "heading", "identity"),
    [
        ("# Bazi - Reader\n\nYou read.\n\n# More", "Bazi - Reader", "You read.\n\n# More"),
        ("\n\n# Closed ##  \nYou read.", "Closed", "You read."),
        ("You read.\n# Not first", "it", "You read.\n# Not first"),
        ("#hash\nYou read.", "it", "#hash\nYou read."),
        ("# Only a title", "Only a title", ""),
    ],
)
def test_S9_the_first_heading_is_that_of_the_prompt_and_the_rest_the_identity(
    tmp_path: Path, body: str, heading: str, identity: str
):
    a_skill(tmp_path, "it", f"---\ndescription: It.\n---\n{body}")
    loaded_skills = load_skills(tmp_path)
    assert loaded_skills.warnings == ()
    assert (loaded_skills.skills["it"].heading, loaded_skills.skills["it"].identity) == (heading, identity)


# Mistakes

KNOWN_NAMES = "Known: a, b."


@pytest.mark.parametrize(
    ("settings", "line", "text"),
    [
        ("profile_fields: [a..b]", 4, 'profile_fields.0 is "a..b"; it is a dotted path such as birth_info or life_'),
        ("profile_fields: [tier]", 4, 'profile_fields.0 is "tier"; it is always available. Remove it.'),
        ("profile_fields: [skill_data.other]", 4, 'profile_fields.0 is "skill_data.other"; a skill reads its own data'),
        ("profile_fields: [skill_data.item]", 4, 'profile_fields.0 is "skill_data.item"; a skill reads its own data '),
        ("requires_birth_info: yes", 4, 'requires_birth_info is "yes"; it is true or false.'),
        ("profile_fields:\n- x\n- 3", 6, "profile_fields.1 is 3; it is text; put it in quotes."),
        ("compute_tool: my tool", 4, 'compute_tool is "my tool"; it is the name of a tool: 1 to 64 letters, digits, '),
        ("triggers:\n- a\n- ' '", 6, 'triggers.1 is " "; it is not empty.'),
        ("scenarios: basic", 4, 'scenarios is "basic"; it is a list of names, or a table of names, each with '),
        ("scenarios: [a, 3]", 4, 'scenarios is ["a",3]; it is a list of names, or a table of names, each with '),
        ("scenarios:\n  a:\n    rules: [x]", 6, "there is no setting rules in scenarios.a; did you mean rule_ids? "),
        (
            "scenarios: [a, b]\ndefault_scenario: c",
            5,
            f'default_scenario is "c"; it is one of the scenarios. {KNOWN_NAMES}',
        ),
        ("scenarios: 3\ndefault_scenario: c", 4, "scenarios is 3; it is a list of names, or a table of names, each "),
    ],
)
def test_S5_a_mistake_in_our_settings_is_told_with_its_line(tmp_path: Path, settings: str, line: int, text: str):
    loaded_skills = loaded_with(tmp_path, settings)
    problems = broken(tmp_path, loaded_skills)
    where = f"it/SKILL.md:{line}: "
    assert [problem[: len(where + text)] for problem in problems] == [where + text]
    assert (loaded_skills.skills, loaded_skills.warnings) == ({}, ())


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("You.", 1, "it has no description, which selects a skill. Add `description: ...` between two lines of "),
        ("---\ndescription: [a]\n---\n", 2, 'description is ["a"]; it is text; put it in quotes.'),
        (b"---\ndescription: It.\n---\n\xff", 4, "byte 25 is not UTF-8 (invalid start byte). Save the file as UTF-8."),
        (f"---\na: {'b' * 65_536}\n---\n", 1, "the settings have 65540 characters, 65536 are allowed. Shorten them."),
        ("---\nname: Core\ndescription: It.\n---\n", 2, "a skill cannot be named core, which means no skill. "),
    ],
)
def test_S5_a_file_that_cannot_be_a_skill_is_told(tmp_path: Path, text: str | bytes, line: int, expected: str):
    a_skill(tmp_path, "it", text)
    where = f"it/SKILL.md:{line}: "
    problems = broken(tmp_path, load_skills(tmp_path))
    assert [problem[: len(where + expected)] for problem in problems] == [where + expected]


def test_S5_a_folder_named_core_or_with_no_name_for_a_skill_is_refused(tmp_path: Path):
    for name in ("core", "八字", "a b", "x" * 65):
        a_skill(tmp_path, name, "---\ndescription: It.\n---\nYou.")
    loaded_skills = load_skills(tmp_path)
    assert loaded_skills.skills == {}
    assert {name: problems[0].text.split(".")[0] for name, problems in loaded_skills.broken.items()} == {
        "core": "a skill cannot be named core, which means no skill",
        **{name: f"the folder's name {name!r} is not valid: {NAME_RULE}" for name in ("八字", "a b", "x" * 65)},
    }


def test_S5_a_skill_may_have_a_name_other_than_its_folder_with_a_warning(tmp_path: Path):
    a_skill(tmp_path, "折", PLAIN.format(name="Fold_2", settings=""))
    loaded_skills = load_skills(tmp_path)
    assert list(loaded_skills.skills) == ["Fold_2"]
    expected = "折/SKILL.md:2: name is \"Fold_2\"; the folder is named '折'. Use one name for both."
    assert list_problems(tmp_path, loaded_skills.warnings) == [expected]


def test_S5_the_second_of_two_skills_with_one_name_is_broken(tmp_path: Path):
    a_skill(tmp_path, "b", PLAIN.format(name="a", settings=""))
    a_skill(tmp_path, "a")
    loaded_skills = load_skills(tmp_path)
    assert loaded_skills.skills["a"].folder == tmp_path / "a"
    expected = ["b/SKILL.md: another skill is named a already, in a. Rename one of them."]
    assert broken(tmp_path, loaded_skills, "b") == expected


@pytest.mark.parametrize(
    ("settings", "warning"),
    [
        (
            f"description: {'x' * 1_025}\n---\nYou.",
            "2: description has 1025 characters; Agent Skills allows 1024. Shorten ",
        ),
        (f"description: {'x' * 1_024}\n---\n", "3: it has no text below its settings. Describe the expert "),
        ("description: It.\nprofile_field: [a]\n---\nYou.", "3: there is no setting profile_field; did you mean "),
        ("description: It.\nmetadata: x\n---\nYou.", '3: metadata is "x"; it is a table of names and values.'),
    ],
)
def test_S5_what_is_hardly_meant_is_a_warning_and_the_skill_loads(tmp_path: Path, settings: str, warning: str):
    a_skill(tmp_path, "it", f"---\n{settings}")
    loaded_skills = load_skills(tmp_path)
    assert list(loaded_skills.skills) == ["it"]
    (problem,) = list_problems(tmp_path, loaded_skills.warnings)
    assert problem.startswith(f"it/SKILL.md:{warning}")


# Folders


def test_S5_a_folder_that_is_not_there_has_no_skills_and_a_file_in_its_place_is_told(tmp_path: Path):
    assert load_skills(tmp_path / "skills") == LoadedSkills()
    (tmp_path / "skills").write_text("x")
    assert list_problems(tmp_path, load_skills(tmp_path / "skills").broken["skills"]) == [
        "skills: skills cannot be read from it (Not a directory). Make it a folder of skills, or remove it."
    ]


def test_S5_skills_are_in_the_order_of_their_folders_and_broken_ones_keep_none_away(tmp_path: Path):
    for name in ("b", "c", "a", "_left_out", ".hidden"):
        a_skill(tmp_path, name)
    (tmp_path / "readme.txt").write_text("no skill")
    a_skill(tmp_path, "bad", "You.")
    loaded_skills = load_skills(tmp_path)
    assert (list(loaded_skills.skills), list(loaded_skills.broken)) == (["a", "b", "c"], ["bad"])
    (tmp_path / "linked").symlink_to(a_skill(tmp_path / "_elsewhere", "linked", files={"a.txt": "a"}))
    assert [file.path for file in load_skills(tmp_path).skills["linked"].files] == ["a.txt"]


def test_S5_skills_are_one_level_deep(tmp_path: Path):
    a_skill(tmp_path / "group", "deep")
    a_skill(tmp_path, "top", files={"inner/SKILL.md": "not a skill of its own"})
    loaded_skills = load_skills(tmp_path)
    assert list(loaded_skills.skills) == ["top"]
    assert [file.path for file in loaded_skills.skills["top"].files] == ["inner/SKILL.md"]
    assert broken(tmp_path, loaded_skills, "group") == [
        "group: there is no SKILL.md in it. Write one, or begin its name with _ to leave it out; "
        "skills are one level deep."
    ]


def test_S5_what_stands_for_a_file_and_is_none_is_told(tmp_path: Path):
    (tmp_path / "folder" / "SKILL.md").mkdir(parents=True)
    for name in ("loop", "nothing", "out", "pipe"):
        (tmp_path / name).mkdir()
    (tmp_path / "loop" / "SKILL.md").symlink_to("SKILL.md")
    (tmp_path / "nothing" / "SKILL.md").symlink_to("nowhere")
    (tmp_path / "out" / "SKILL.md").symlink_to(a_skill(tmp_path, "good") / "SKILL.md")
    os.mkfifo(tmp_path / "pipe" / "SKILL.md")
    (tmp_path / "good" / "sop.yaml").mkdir()
    loaded_skills = load_skills(tmp_path)
    assert {name: re.split(r"\.| \(", problems[0].text)[0] for name, problems in loaded_skills.broken.items()} == {
        "folder": "it is not a file",
        "good": "it is not a file",
        "loop": "it cannot be read",
        "nothing": "it cannot be read",
        "out": "it leads out of the skill's folder",
        "pipe": "it is not a file",
    }
    assert all(problem.line is None for problems in loaded_skills.broken.values() for problem in problems)


# Languages


def test_S9_a_variant_for_the_language_has_the_body_and_the_settings_it_names(tmp_path: Path):
    english = "---\ndescription: In English.\nscenarios: {a: {description: One.}}\n---\n# Reader\n\nYou read."
    files = {"SKILL.en.md": english, "SKILL.fr.md": "Tu lis."}
    settings = "triggers: [t]\nscenarios: [a, b]\nrequires_birth_info: true"
    chinese, skill = one(tmp_path, settings, files), one(tmp_path, settings, files, "en")
    assert (chinese.description, chinese.heading, chinese.identity) == ("Does it.", "Expert", "You do it.")
    assert skill == replace(
        chinese,
        description="In English.",
        heading="Reader",
        identity="You read.",
        scenarios=(Scenario(name="a", description="One.", rule_ids=("a",)),),
    )
    assert chinese.files == ()


def test_S9_a_variant_without_a_body_has_that_of_the_file_and_its_tables_stand_whole(tmp_path: Path):
    files = {"SKILL.en.md": "---\ndescription: In English.\nscenarios: {b: {}}\n---\n"}
    skill = one(tmp_path, "scenarios: {a: {description: x}}", files, "en")
    assert (skill.description, skill.identity) == ("In English.", "You do it.")
    assert skill.scenarios == (Scenario(name="b", rule_ids=("b",)),)


def test_S9_a_mistake_is_told_of_the_file_it_is_in(tmp_path: Path):
    english = "---\nlicense: MIT\n\ndefault_scenario: c\nlicens: x\n---\nYou."
    loaded_skills = loaded_with(tmp_path, "scenarios: 3", {"SKILL.en.md": english}, "en")
    assert [problem.split("; ")[0] for problem in broken(tmp_path, loaded_skills)] == ["it/SKILL.md:4: scenarios is 3"]
    loaded_skills = loaded_with(tmp_path, "scenarios: [a]", {"SKILL.en.md": english}, "en")
    assert [problem.split("; ")[0] for problem in broken(tmp_path, loaded_skills)] == [
        'it/SKILL.en.md:4: default_scenario is "c"'
    ]
    loaded_skills = loaded_with(tmp_path, "scenarios: [c]", {"SKILL.en.md": english}, "en")
    assert [warning.split("; ")[0] for warning in list_problems(tmp_path, loaded_skills.warnings)] == [
        "it/SKILL.en.md:5: there is no setting licens"
    ]


def test_S9_a_variant_that_cannot_be_read_is_told_and_hurts_no_other_language(tmp_path: Path):
    (a_skill(tmp_path) / "SKILL.en.md").mkdir()
    assert list(load_skills(tmp_path, "zh").skills) == ["it"]
    expected = ["it/SKILL.md: its variant SKILL.en.md: it is not a file. Replace or remove it."]
    assert broken(tmp_path, load_skills(tmp_path, "en")) == expected


def test_S9_a_variant_of_the_procedure_stands_in_its_place(tmp_path: Path):
    files = {"sop.yaml": "steps: [{id: a, text: 问。}]", "sop.en.yaml": "steps: [{id: b, text: Ask.}]"}
    chinese, english = one(tmp_path, "", files), one(tmp_path, "", files, "en")
    assert [skill.sop.steps[0].text for skill in (chinese, english) if skill.sop] == ["问。", "Ask."]
    assert (chinese.files, english.files) == ((), ())
