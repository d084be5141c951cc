"""R15: what of a folder is listed; rules and names may be anything, and nobody waits for them."""

import os
from pathlib import Path

import pytest

from recto.tools.workspace.ignored import BadGlob, glob_regex, listed, never_listed, rules_of
from recto.tools.workspace.workspace_files import FOLDER

# Each takes Python's `re` years where stars are written as they are.
GLOBS = [
    "*a" * 30 + "*b",
    "**/a/" * 30 + "b",
    "**/*a*a*a*a*b/" * 8 + "*c",
    "{*a,*b}" * 6 + "c",
    "a{**/a}{**/a}*a*a*a*b",
    "*" * 500 + "b",
]
PATHS = ["a" * 255, "a/" * 127 + "c", ("a" * 254 + "/") * 16 + "a" * 10]


@pytest.mark.parametrize("glob", GLOBS)
def test_R15_no_glob_takes_long_whatever_it_is_held_against(glob: str):
    rules = rules_of([glob])
    assert [rules.leave_out(path, is_folder=False) for path in PATHS] == [None] * 3


@pytest.mark.parametrize("glob", ["{a,b}" * 7, "a{**/a}{**/a}{**/a}"])
def test_R15_a_glob_that_multiplies_is_none(glob: str):
    with pytest.raises(BadGlob):
        glob_regex(glob)


def test_R15_of_a_folder_that_is_ignored_all_is_listed_to_who_names_it(tmp_path: Path):
    for path in ("made/deep/a.log", "made/deep/.gitignore", "made/.git/x", ".recto-0.part", "kept/b.log", "kept/c"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("*")
    (tmp_path / ".gitignore").write_text("made/\n*.log\n")
    top = os.open(tmp_path, FOLDER)
    rules = rules_of(never_listed(["kept/hidden"]))
    found = {
        under: [one.path for one in listed(top, left_out=rules, under=under)]
        for under in ((), ("made",), ("made", "deep"), ("gone",))
    }
    os.close(top)
    assert found == {
        (): [".gitignore", "kept", "kept/c"],
        ("made",): ["made/deep"],
        ("made", "deep"): ["made/deep/.gitignore", "made/deep/a.log"],
        ("gone",): [],
    }
