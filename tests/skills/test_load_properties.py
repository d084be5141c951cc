"""S5: whatever is in folders of skills, they load or are told of, twice the same, and never take long."""

import random
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from recto.skills.load_skills import load_skills
from tests.skills.skill_folders import a_skill, pieces, random_folder


def assert_told(folder: Path, locale: str) -> None:
    """One skill or its problems, never both; each with a file that is there, and a line that is in it. Twice alike."""
    loaded_skills = load_skills(folder, locale)
    assert len(loaded_skills.skills) + len(loaded_skills.broken) == 1
    problems = [problem for problems in loaded_skills.broken.values() for problem in problems]
    assert bool(problems) == bool(loaded_skills.broken)
    for problem in (*problems, *loaded_skills.warnings):
        assert problem.file.is_relative_to(folder)
        assert problem.text
        assert "\n" not in problem.text
        assert problem.line is None or 1 <= problem.line <= lines_of(problem.file)
    assert load_skills(folder, locale) == loaded_skills


def lines_of(file: Path) -> int:
    return file.read_bytes().replace(b"\r\n", b"\n").replace(b"\r", b"\n").count(b"\n") + 1


@given(seed=st.integers(0, 2**32))
def test_S5_a_random_folder_is_a_skill_or_is_told_of(seed: int):
    with TemporaryDirectory() as folder:
        a_skill(Path(folder), "it", files=random_folder(random.Random(seed)))
        assert_told(Path(folder), ("zh", "en")[seed % 2])


@given(head=pieces, body=pieces, raw=st.binary(max_size=40))
def test_S5_any_text_between_the_lines_is_a_skill_or_is_told_of(head: str, body: str, raw: bytes):
    text = f"---\ndescription: It.\n{head}\n---\n{body}"
    files = {"sop.yaml": body.encode(), "cases/a.md": raw, "cases/b.md": f"---\n{head}\n---\nx".encode()}
    with TemporaryDirectory() as folder:
        a_skill(Path(folder), "it", text, files)
        assert_told(Path(folder), "zh")
