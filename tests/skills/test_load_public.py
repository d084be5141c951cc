"""S5: public skills load as they are, whatever their YAML; and what is no YAML never grows or makes objects."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from recto.conversation.json import Json, dump
from recto.skills.load_skills import load_skills
from recto.skills.skill import Skill
from tests.skills.skill_folders import PUBLIC_KINDS, a_skill, broken, list_problems, loaded_with

LAUGHS = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"] + [f"a{n}: &a{n} [{f'*a{n - 1}, ' * 10}]" for n in range(1, 12)]
)
CHAIN = "\n".join(["a0: &a0 [x]", *[f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 100)]])


def public(folder: Path, name: str) -> Skill:
    a_skill(folder, name, PUBLIC_KINDS[name])
    loaded_skills = load_skills(folder)
    assert loaded_skills.broken == {}
    return loaded_skills.skills[name]


def test_S5_every_kind_of_public_skill_loads_as_it_is(tmp_path: Path):
    for name, text in PUBLIC_KINDS.items():
        a_skill(tmp_path, name, text)
    loaded_skills = load_skills(tmp_path)
    assert loaded_skills.broken == {}
    assert list(loaded_skills.skills) == sorted(PUBLIC_KINDS)
    assert all(skill.identity.startswith("You") and skill.description for skill in loaded_skills.skills.values())


def test_S5_a_public_skill_needs_nothing_and_knows_nothing(tmp_path: Path):
    description = "Makes plans. Use when somebody plans."
    expected = Skill(
        name="plain", description=description, heading="Planner", identity="You plan.", folder=tmp_path / "plain"
    )
    assert public(tmp_path, "plain") == expected


@pytest.mark.parametrize(("title", "expected"), [("' 计划 '", "计划"), ("2048", "2048"), (f"{'x' * 60}", "x" * 60)])
def test_S5_a_title_is_what_people_are_shown_and_no_heading(tmp_path: Path, title: str, expected: str):
    a_skill(tmp_path, "it", f"---\ndescription: It.\ntitle: {title}\n---\n# Planner\nYou plan.")
    loaded_skills = load_skills(tmp_path)
    skill = loaded_skills.skills["it"]
    assert (skill.title, skill.heading, dict(skill.metadata), loaded_skills.warnings) == (expected, "Planner", {}, ())


@pytest.mark.parametrize(("title", "expected"), [("''", '""'), ('"a\\nb"', '"a\\nb"'), ("x" * 61, f'"{"x" * 61}"')])
def test_S5_a_title_that_is_none_is_left_out_with_a_warning(tmp_path: Path, title: str, expected: str):
    a_skill(tmp_path, "it", f"---\ndescription: It.\ntitle: {title}\n---\nYou plan.")
    loaded_skills = load_skills(tmp_path)
    (warning,) = loaded_skills.warnings
    allowed = "it is one line of up to 60 characters, so clients show the name: it."
    assert (warning.line, warning.text) == (3, f"title is {expected}; {allowed}")
    assert loaded_skills.skills["it"].title == ""


@pytest.mark.parametrize(
    ("name", "description"),
    [
        ("quoted", "Reads .abc files ('abc'): all of them."),
        ("literal", "First line: with a colon.\nSKIP when [x]."),
        ("folded", "One sentence in two lines."),
        ("colons", "Use when: somebody asks. Such as: a poem."),
        ("wrapped", "Begins here: and goes on there."),
        ("anchors", "Repeats."),
        ("tagged", "Has a type."),
        ("brackets", "[BETA] Does things"),
        ("endings", "Ends lines."),
        ("twice", "The first."),
    ],
)
def test_S5_a_description_is_what_people_meant(tmp_path: Path, name: str, description: str):
    assert public(tmp_path, name).description == description


@pytest.mark.parametrize(
    ("name", "metadata"),
    [
        ("plain", {}),
        ("hints", {"argument-hint": "[path] [--fast]"}),
        ("versions", {"author": "me", "version": 1.0}),
        ("tagged", {"model": "x"}),
        ("tabs", {"metadata": "author: me"}),
        ("empty-keys", {}),
    ],
)
def test_S5_what_is_nobodys_setting_is_kept(tmp_path: Path, name: str, metadata: Mapping[str, Json]):
    assert public(tmp_path, name).metadata == metadata


def test_S5_settings_beside_one_that_is_no_yaml_stay_what_they_are(tmp_path: Path):
    settings = "name: it\ntriggers: [a, 'b: c']\ndescription: Use when: asked\nscenarios:\n  x: {rule_ids: [r]}"
    a_skill(tmp_path, "it", f"---\n{settings}\n---\nYou.")
    loaded_skills = load_skills(tmp_path)
    it = loaded_skills.skills["it"]
    assert (it.description, it.triggers, it.scenarios[0].rule_ids) == ("Use when: asked", ("a", "b: c"), ("x", "r"))
    assert list_problems(tmp_path, loaded_skills.warnings) == [
        "it/SKILL.md:4: description is not valid YAML, so its value is read as text. Put it in quotes."
    ]


@pytest.mark.parametrize(
    ("settings", "description", "metadata"),
    [
        ('description: "Finds \\d+ digits"', "Finds \\d+ digits", {}),
        ("description: 'It' does", "'It' does", {}),
        ("description: |\n\tOne.\n\tTwo.", "One.\nTwo.", {}),
        ("description: It.\nx: a: b\ny: 99999999999999999999", "It.", {"x": "a: b", "y": "99999999999999999999"}),
        ("description: It.\nx: [a: b\ny z: 1\nv:\n- 1.5", "It.", {"x": "[a: b y z: 1", "v": [1.5]}),
    ],
)
def test_S5_what_is_no_yaml_is_read_a_setting_at_a_time(
    tmp_path: Path, settings: str, description: str, metadata: Mapping[str, Json]
):
    a_skill(tmp_path, "it", f"---\n{settings}\n---\nYou.")
    loaded_skills = load_skills(tmp_path)
    assert (loaded_skills.skills["it"].description, loaded_skills.skills["it"].metadata) == (description, metadata)
    assert loaded_skills.warnings


@pytest.mark.parametrize(
    ("name", "lines", "text"),
    [
        ("plain", (), ""),
        ("hints", (4,), "argument-hint is not valid YAML, so its value is read as text. Put it in quotes."),
        ("twice", (4,), "description is given twice; it is in line 3 too."),
        ("titled", (2,), 'name is "Titled With Spaces"; a skill\'s name has 1 to 64 letters, digits, - or _, '),
        ("tagged", (3, 4), "`!` would give a value a type; write it plainly, or put text in quotes."),
    ],
)
def test_S5_what_was_not_as_it_should_be_is_a_warning_with_its_line(
    tmp_path: Path, name: str, lines: tuple[int, ...], text: str
):
    public(tmp_path, name)
    warnings = load_skills(tmp_path).warnings
    assert tuple(warning.line for warning in warnings) == lines
    assert all(warning.text.startswith(text) for warning in warnings)


@pytest.mark.parametrize(
    ("value", "tools"),
    [
        ("Read,Write,  Read", ("Read", "Write")),
        ("Bash(git add:*), Bash(ls -l $(pwd)) Edit", ("Bash", "Edit")),
        ("Bash(never closed, Read", ("Bash",)),
        (") Read", (")", "Read")),
        ("[Read, 'Bash(git log:*)']", ("Read", "Bash")),
        ("''", ()),
    ],
)
def test_S5_allowed_tools_are_names_as_text_or_a_list(tmp_path: Path, value: str, tools: tuple[str, ...]):
    a_skill(tmp_path, "it", f"---\ndescription: It.\nallowed-tools: {value}\n---\nYou.")
    loaded_skills = load_skills(tmp_path)
    assert (loaded_skills.skills["it"].tools, loaded_skills.warnings) == (tools, ())


@pytest.mark.parametrize("value", ["{Read: true}", "[Read, 3]"])
def test_S5_allowed_tools_of_another_type_are_a_warning(tmp_path: Path, value: str):
    a_skill(tmp_path, "it", f"---\ndescription: It.\nallowed-tools: {value}\n---\nYou.")
    loaded_skills = load_skills(tmp_path)
    assert list(loaded_skills.skills) == ["it"]
    assert [problem.line for problem in loaded_skills.warnings] == [3]
    assert loaded_skills.warnings[0].text.endswith("it is names of tools, as text or as a list. Others are left out.")


@pytest.mark.parametrize(("value", "text"), [("2026", "2026"), ("true", "true")])
def test_S5_a_description_without_quotes_may_look_like_something_else(tmp_path: Path, value: str, text: str):
    a_skill(tmp_path, "it", f"---\ndescription: {value}\n---\nYou.")
    assert load_skills(tmp_path).skills["it"].description == text


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(LAUGHS, id="laughs"),
        pytest.param(CHAIN, id="a chain of names"),
        pytest.param("a: &a [*a]", id="a value in itself"),
        pytest.param("a: *nobody", id="a name that nothing has"),
        pytest.param("a: " + "[" * 300, id="deep"),
        pytest.param("a: !!python/object/apply:os.system [exit]", id="a type"),
        pytest.param("a: 99999999999999999999999999", id="a number"),
        pytest.param('a: "\\UFFFFFFFF"', id="an escape"),
        pytest.param("? [a, b]\n: c", id="a name that is a list"),
        pytest.param("\n".join("x: 'never" for _ in range(2_000)), id="quotes that never end"),
    ],
)
def test_S5_settings_made_to_hurt_do_not_and_the_skill_loads(tmp_path: Path, settings: str):
    a_skill(tmp_path, "it", f"---\nname: it\ndescription: Does it.\n{settings}\n---\nYou.")
    loaded_skills = load_skills(tmp_path)
    assert loaded_skills.skills["it"].description.startswith("Does it.")
    assert loaded_skills.warnings
    # It is plain JSON, of no more than it was.
    assert len(dump(dict(loaded_skills.skills["it"].metadata))) < 100_000


@pytest.mark.parametrize("settings", ["", "description:", "description: ''", "license: MIT: x", "just words"])
def test_S5_a_skill_without_a_description_is_broken(tmp_path: Path, settings: str):
    a_skill(tmp_path, "it", f"---\n{settings}\n---\nYou.")
    problems = broken(tmp_path, load_skills(tmp_path))
    assert any(
        "it has no description, which selects a skill. Add `description: ...` between" in line for line in problems
    )


def test_S5_why_a_broken_file_has_no_description_is_told_too(tmp_path: Path):
    a_skill(tmp_path, "it", "---\ndescripton: Use when: asked\n---\nYou.")
    problems = broken(tmp_path, load_skills(tmp_path))
    assert [line.split(" ")[0] for line in problems] == ["it/SKILL.md:1:", "it/SKILL.md:2:"]


@pytest.mark.parametrize("settings", ["metadata: &x {a: 1}\nmetadata: {b: 1}", "triggers: &x [a]\ntriggers: [b, c, d]"])
def test_S5_of_a_name_that_is_there_twice_the_first_counts_and_the_skill_loads(tmp_path: Path, settings: str):
    loaded_skills = loaded_with(tmp_path, settings)
    assert (list(loaded_skills.skills), dict(loaded_skills.broken)) == (["it"], {})
