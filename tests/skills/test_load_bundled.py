"""S5: bundled files of a skill are listed and read on demand, and nothing outside of its folder ever is."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recto.errors import ToolError
from recto.skills.bundled import READ_BYTES, read_bundled
from recto.skills.load_skills import load_skills
from recto.skills.skill import BundledFile, Skill
from tests.skills.skill_folders import PLAIN, Files, a_skill, list_problems, loaded_with, one

SECRET = b"secret"
TREE: Files = {"scripts/run.py": "print(1)", "LICENSE.txt": "free", "scripts/lib/a.py": "", "reference/run.md": "how"}


def refusal(skill: Skill, path: str) -> str:
    with pytest.raises(ToolError) as raised:
        read_bundled(skill, path)
    return str(raised.value)


def test_S5_every_other_file_is_listed_by_its_path(tmp_path: Path):
    hidden = {".git/config": "x", "__pycache__/a.pyc": "x", "scripts/.env": "x", "a/b/c/d/e/f/g/h/deep.txt": "x"}
    skill = one(
        tmp_path, "", {**TREE, **hidden, "a/b/c/d/e/f/g/h.txt": "12", "guide.en.md": "g", "a\nb.txt": "x", "a\\b": "x"}
    )
    assert skill.files == (
        BundledFile(path="LICENSE.txt", size=4),
        BundledFile(path="a/b/c/d/e/f/g/h.txt", size=2),
        BundledFile(path="guide.en.md", size=1),
        BundledFile(path="reference/run.md", size=3),
        BundledFile(path="scripts/lib/a.py", size=0),
        BundledFile(path="scripts/run.py", size=8),
    )


def test_S5_links_are_listed_where_they_stay_inside(tmp_path: Path):
    (tmp_path / "secret.txt").write_bytes(SECRET)
    folder = a_skill(tmp_path / "skills", files={"a/real.txt": "real"})
    (folder / "inside.txt").symlink_to("a/real.txt")
    (folder / "outside.txt").symlink_to("../../secret.txt")
    (folder / "nowhere.txt").symlink_to("nothing")
    (folder / "around").symlink_to("..")
    (folder / "a" / "again").symlink_to("../a")
    os.mkfifo(folder / "pipe")
    skill = load_skills(tmp_path / "skills").skills["it"]
    assert [file.path for file in skill.files] == ["a/real.txt", "inside.txt"]
    assert read_bundled(skill, "inside.txt") == b"real"
    for path in ("outside.txt", "nowhere.txt", "around/it/a/real.txt/x", "pipe", "around/../secret.txt"):
        assert refusal(skill, path).startswith(f"Skill 'it' has no file {path!r}. ")


def test_S5_more_files_than_are_listed_are_a_warning(tmp_path: Path):
    loaded_skills = loaded_with(tmp_path, "", {f"data/{number:03}.txt": "x" for number in range(500)})
    assert (len(loaded_skills.skills["it"].files), loaded_skills.warnings) == (500, ())
    loaded_skills = loaded_with(tmp_path, "", {"zoo.txt": "x"})
    assert [file.path for file in loaded_skills.skills["it"].files][-1] == "data/499.txt"
    expected = "it: it has more than 500 files; those after the first 500 are not listed to the model."
    assert list_problems(tmp_path, loaded_skills.warnings) == [expected]
    assert read_bundled(loaded_skills.skills["it"], "zoo.txt") == b"x"


@pytest.mark.parametrize(
    ("path", "raw"),
    [
        ("scripts/run.py", b"print(1)"),
        ("./scripts//run.py", b"print(1)"),
        ("scripts/lib/a.py", b""),
        ("SKILL.md", PLAIN.format(name="it", settings="").encode()),
    ],
)
def test_S5_a_bundled_file_is_read_by_its_path(tmp_path: Path, path: str, raw: bytes):
    assert read_bundled(one(tmp_path, "", TREE), path) == raw


@pytest.mark.parametrize(
    ("path", "there_are"),
    [
        ("it/scripts/run.py", "Did you mean: scripts/run.py"),
        ("/scripts/run.py", "Did you mean: scripts/run.py"),
        ("scripts/runs.py", "Did you mean: scripts/run.py, scripts/lib/a.py"),
        ("scripts", "Did you mean: scripts/lib/a.py, scripts/run.py"),
        ("zzz", "Its files: LICENSE.txt, reference/run.md, scripts/lib/a.py, scripts/run.py"),
        ("", "Its files: LICENSE.txt, reference/run.md, scripts/lib/a.py, scripts/run.py"),
    ],
)
def test_S5_a_path_that_leads_nowhere_is_told_with_near_ones(tmp_path: Path, path: str, there_are: str):
    expected = f"Skill 'it' has no file {path!r}. {there_are}. Ask for one of them by its path as it stands."
    assert refusal(one(tmp_path, "", TREE), path) == expected


def test_S5_a_path_from_the_root_is_none_of_a_skill_even_where_it_leads_to_one(tmp_path: Path):
    folder = a_skill(tmp_path, files=TREE)
    skill = load_skills(tmp_path).skills["it"]
    assert refusal(skill, str(folder / "LICENSE.txt")).startswith("Skill 'it' has no file ")


def test_S5_a_skill_without_files_says_so_and_many_are_not_all_listed(tmp_path: Path):
    assert "Its files: none but SKILL.md." in refusal(one(tmp_path), "x")
    skill = one(tmp_path, "", {f"{number:02}.txt": "x" for number in range(25)})
    assert refusal(skill, "zzzzzzzz").endswith(
        "18.txt, 19.txt and 5 more. Ask for one of them by its path as it stands."
    )


def test_S5_a_file_that_is_too_large_or_gone_is_told(tmp_path: Path):
    skill = one(tmp_path, "", {"most.bin": b"x" * READ_BYTES, "more.bin": b"x" * (READ_BYTES + 1), "gone.txt": "x"})
    (tmp_path / "it" / "gone.txt").unlink()
    assert len(read_bundled(skill, "most.bin")) == READ_BYTES
    expected = "'more.bin' of skill 'it' has more than 1048576 bytes, too many to read. Go on without it."
    assert refusal(skill, "more.bin") == expected
    assert refusal(skill, "gone.txt").startswith("'gone.txt' of skill 'it': it cannot be read (No such file or ")


OUTSIDE = (
    "../secret.txt",
    "scripts/../../secret.txt",
    "..",
    "/etc/passwd",
    "//etc/passwd",
    "scripts\\..\\..\\secret.txt",
)
HIDDEN = (".hidden", "scripts/.hidden", "__pycache__/a.pyc")
ODD = ("scripts/run.py\0", "\udc80", "a\nb", "x" * 300, "x/" * 1_000, "x" * 100_000)


@pytest.mark.parametrize("path", (*OUTSIDE, *HIDDEN, *ODD))
def test_S5_nothing_outside_of_the_folder_and_nothing_hidden_is_read(tmp_path: Path, path: str):
    (tmp_path / "secret.txt").write_bytes(SECRET)
    skill = one(tmp_path / "skills", "", {**TREE, **dict.fromkeys(HIDDEN, SECRET)})
    text = refusal(skill, path)
    assert text.startswith("Skill 'it' has no file ")
    assert len(text) < 400


STEPS = st.sampled_from(("..", ".", "", "a", "link", "out", "secret.txt", "real.txt", "it", "skills", "/", "~", "\0"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=st.lists(STEPS, max_size=6).map("/".join) | st.text(max_size=20))
def test_S5_whatever_path_is_asked_for_the_answer_comes_from_the_folder(tmp_path: Path, path: str):
    folder = tmp_path / "skills" / "it"
    if not folder.exists():
        (tmp_path / "secret.txt").write_bytes(SECRET)
        a_skill(tmp_path / "skills", files={"a/real.txt": "real"})
        (folder / "link").symlink_to("a")
        (folder / "out").symlink_to("../..")
    skill = load_skills(tmp_path / "skills").skills["it"]
    try:
        raw = read_bundled(skill, path)
    except ToolError as error:
        assert str(error)
    else:
        assert raw == b"real"
