"""S8: cases/*.md: worked examples with tags and rules. A broken one is told and left out; the rest load."""

from pathlib import Path

import pytest

from recto.page.prompt.system_prompt import Case
from recto.skills.cases import CaseIndex, TaggedCase, index_cases
from tests.skills.skill_folders import list_problems, loaded_with, one

STORM = "---\nid: storm\nname: The storm\ntags: [water, 甲子, water]\nrule_ids: [love, r1]\n---\n\nIt rained.\n"


def ids(index: CaseIndex) -> list[str]:
    return [case.case.id for case in index.cases]


def warned(folder: Path, files: dict[str, str | bytes]) -> list[str]:
    """What is said of cases beside a good one, which loads with the skill."""
    loaded_skills = loaded_with(folder, "", {"cases/0.md": STORM, **files})
    assert ids(loaded_skills.skills["it"].cases) == ["storm"]
    return list_problems(folder / "it", loaded_skills.warnings)


def test_S8_a_case_has_an_id_a_name_tags_rules_and_content(tmp_path: Path):
    case = Case(id="storm", name="The storm", content="It rained.")
    tagged = TaggedCase(case=case, tags=("water", "甲子"), rule_ids=("love", "r1"))
    assert one(tmp_path, "", {"cases/a.md": STORM}).cases == index_cases((tagged,))


def test_S8_without_an_id_the_name_of_the_file_stands(tmp_path: Path):
    case = one(tmp_path, "", {"cases/old-tale.md": "---\ntags: [a]\n---\nOnce."}).cases.cases[0]
    assert case == TaggedCase(case=Case(id="old-tale", name="old-tale", content="Once."), tags=("a",))
    warnings = one(tmp_path, "", {"cases/old-tale.md": "---\nid: x\ntags: [a]\n---\nOnce."}).cases.cases[0]
    assert warnings.case == Case(id="x", name="x", content="Once.")


def test_S8_cases_are_in_the_order_of_their_files_and_no_bundled_files(tmp_path: Path):
    files = {f"cases/{name}.md": f"---\nid: {10 - number}x\ntags: [a]\n---\nOnce." for number, name in enumerate("cab")}
    skill = one(tmp_path, "", {**files, "cases/notes.txt": "x", "cases/more/d.md": "x", "cases/.e.md": "x"})
    assert ids(skill.cases) == ["9x", "8x", "10x"]
    assert [file.path for file in skill.files] == ["cases/more/d.md", "cases/notes.txt"]


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("---\ntags: water\n---\nx", 2, 'tags is "water"; it is a list, such as [a, b]. The case is left out.'),
        ("---\ntags: ['']\n---\nx", 2, 'tags.0 is ""; it is not empty. The case is left out.'),
        ("---\nname:\n---\nx", 2, "name has no value. Add one or remove the line. The case is left out."),
        ("---\ntag: [a]\n---\nx", 2, "there is no setting tag; did you mean tags? Known: id, name, rule_ids, tags. "),
        ("---\ntags: [a]\n---\n", 3, "it has no text below its settings. Write the case there. The case is left out."),
        ("---\ntags: [a]\n\nid: storm\n---\nx", 4, 'id is "storm"; another case has that id already. The case is '),
        (b"\xff", 1, "byte 0 is not UTF-8 (invalid start byte). Save the file as UTF-8. The case is left out."),
        ("x" * 262_145, 1, "it has more than 262144 bytes. Shorten it. The case is left out."),
    ],
)
def test_S8_a_broken_case_is_told_with_its_line_and_left_out(
    tmp_path: Path, text: str | bytes, line: int, expected: str
):
    where = f"cases/1.md:{line}: "
    lines = warned(tmp_path, {"cases/1.md": text})
    assert [one[: len(where + expected)] for one in lines] == [where + expected]


def test_S8_a_value_that_cannot_be_read_is_told_once_in_a_file_and_in_its_variant(tmp_path: Path):
    files = {"cases/a.md": "---\nid: 1e999\n---\nx", "cases/a.en.md": "---\nname: 1e999\n---\nx"}
    lines = list_problems(tmp_path / "it", loaded_with(tmp_path, "", files, "en").warnings)
    assert [line.split("; ")[0] for line in lines] == [
        "cases/a.md:2: the number 1e999 is too large",
        "cases/a.en.md:2: the number 1e999 is too large",
    ]


def test_S8_a_case_that_is_no_file_or_leads_out_is_left_out(tmp_path: Path):
    (tmp_path / "secret.md").write_text("secret")
    cases = tmp_path / "it" / "cases"
    (cases / "1.md").mkdir(parents=True)
    (cases / "2.md").symlink_to(tmp_path / "secret.md")
    assert warned(tmp_path, {}) == [
        "cases/1.md: it is not a file. Replace or remove it. The case is left out.",
        "cases/2.md: it leads out of the skill's folder. Put the file itself there. The case is left out.",
    ]


def test_S8_a_case_without_tags_is_never_found_and_that_is_told(tmp_path: Path):
    loaded_skills = loaded_with(tmp_path, "", {"cases/a.md": "Once."})
    assert ids(loaded_skills.skills["it"].cases) == ["a"]
    assert list_problems(tmp_path, loaded_skills.warnings) == [
        "it/cases/a.md:1: it has no tags, so no user's data selects it. Add `tags: [...]`."
    ]


def test_S8_a_file_in_the_place_of_the_cases_is_a_bundled_file(tmp_path: Path):
    skill = one(tmp_path, "", {"cases": "x"})
    assert ([file.path for file in skill.files], skill.cases) == (["cases"], index_cases(()))


def test_S9_a_variant_of_a_case_has_its_text_in_another_language_and_is_no_case_of_its_own(tmp_path: Path):
    files = {
        "cases/a.md": "---\nname: 雨\ntags: [water]\nrule_ids: [r]\n---\n下雨了。",
        "cases/a.en.md": "---\nname: Rain\n---\nIt rained.",
        "cases/b.en.md": "---\ntags: [fire]\n---\nIt burned.",
        "cases/c.fr.md": "Il brûle.",
    }
    chinese, english = one(tmp_path, "", files), one(tmp_path, "", files, "en")
    rain = Case(id="a", name="Rain", content="It rained.")
    assert [case.case for case in chinese.cases.cases] == [Case(id="a", name="雨", content="下雨了。")]
    assert english.cases == index_cases(
        (
            TaggedCase(case=rain, tags=("water",), rule_ids=("r",)),
            TaggedCase(case=Case(id="b", name="b", content="It burned."), tags=("fire",)),
        )
    )
    assert (chinese.files, english.files) == ((), ())
