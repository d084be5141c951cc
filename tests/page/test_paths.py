"""R4: two spellings of one file get one name, and two files never the same."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.page.fold.paths import Project, normalise
from tests.naive_pages import PageSettings, one_name
from tests.page.log_strategies import projects, spelled_paths

WINDOWS = "F:/Projects/snow-cli"
POSIX = "/srv/app"
ANCHOR = re.compile(r"//?|[A-Za-z]:/")
SHARE = "\\\\server\\share\\app"
# The standard library reads these as other paths than people mean.
ODD_ROOTS = ("/", ".", "work/app")
ODD_PATH = re.compile(r"[/\\]{2}|[A-Za-z]:[/\\]*$")


@pytest.mark.parametrize(
    ("root", "path", "name"),
    [
        (POSIX, "./src/x/", "src/x"),
        (POSIX, "../../srv/app/src/a.py", "src/a.py"),
        (POSIX, "//srv//app//src/a.py", "src/a.py"),
        (POSIX, "\\srv\\app\\src\\a.py", "src/a.py"),
        (POSIX + "/./", "src/a.py", "src/a.py"),
        (POSIX, "/srv/app", "."),
        (POSIX, "文档/说明.md", "文档/说明.md"),
        (POSIX, "..a/...", "..a/..."),
        ("/", "/etc/hosts", "etc/hosts"),
        ("/", "../etc/hosts", "etc/hosts"),
        (WINDOWS, "f:\\Projects/snow-cli\\src/a.ts", "src/a.ts"),
        (WINDOWS, "/Projects/snow-cli/src/a.ts", "src/a.ts"),
        ("F:/", "f:\\a.ts", "a.ts"),
        ("F:", "F:/a.ts", "a.ts"),
        (SHARE, "//server/share/app/src/a.ts", "src/a.ts"),
        ("work/app", "../app/src/a.py", "src/a.py"),
        # Outside the root
        (POSIX, "src/../../x.py", "../x.py"),
        (POSIX, "//etc/hosts", "/etc/hosts"),
        (POSIX, "/srv/application/a.py", "/srv/application/a.py"),
        (POSIX, "/..", "/"),
        (WINDOWS, "C:/Projects/snow-cli/a.ts", "C:/Projects/snow-cli/a.ts"),
        (WINDOWS, "F:/../..", "F:/"),
        (WINDOWS, "F:/projects/snow-cli/a.ts", "F:/projects/snow-cli/a.ts"),
        (WINDOWS, "\\\\server\\share\\a.ts", "//server/share/a.ts"),
        (SHARE, "\\\\server\\other\\a.ts", "//server/other/a.ts"),
        # A drive means nothing on a disk whose root is no drive: there it is a folder's name.
        (POSIX, "f:\\Projects\\a.ts", "f:/Projects/a.ts"),
        (POSIX, "/srv/app/F:/Projects/a.ts", "F:/Projects/a.ts"),
        # Without a root
        (None, "src/../../A.py", "../A.py"),
        (None, "f:\\Projects\\a.ts", "F:/Projects/a.ts"),
        (None, "\\\\server\\share\\a.ts", "//server/share/a.ts"),
        ("", "./src/a.py", "src/a.py"),
    ],
)
def test_R4_a_path_has_one_name(root: str | None, path: str, name: str):
    assert normalise(path, Project(root=root)) == name


@pytest.mark.parametrize(
    ("root", "path", "name"),
    [
        (POSIX, "/SRV/App/Src/A.py", "src/a.py"),
        (POSIX, "/ETC/Hosts", "/etc/hosts"),
        ("f:/projects/SNOW-cli", "F:\\Projects\\snow-cli\\src\\a.ts", "src/a.ts"),
        (POSIX, "straße/É.md", "strasse/é.md"),
        (None, "F:\\A.ts", "f:/a.ts"),
    ],
)
def test_R4_on_a_disk_that_ignores_case_names_do_too(root: str | None, path: str, name: str):
    assert normalise(path, Project(root=root, case_sensitive=False)) == name


@given(
    path=spelled_paths().filter(lambda path: not ODD_PATH.match(path)),
    project=projects().filter(lambda project: project.root not in ODD_ROOTS),
)
def test_R4_the_name_is_what_the_standard_library_makes_of_it(path: str, project: Project):
    settings = PageSettings(root=project.root, case_sensitive=project.case_sensitive)
    assert normalise(path, project) == one_name(path, settings)


@given(path=spelled_paths(), project=projects(), text=st.sampled_from(["./", ".\\", "././"]))
def test_R4_a_leading_dot_and_the_kind_of_slash_change_nothing(path: str, project: Project, text: str):
    name = normalise(path, project)
    assert normalise(path.replace("/", "\\"), project) == name
    assert not path.strip("/\\") or normalise(path + "/", project) == name
    if not path.startswith(("/", "\\")) and path[1:2] != ":":
        assert normalise(text + path, project) == name


@given(path=spelled_paths(), project=projects())
def test_R4_a_name_is_its_own_and_has_no_dots_doubled_slashes_or_slash_at_its_end(path: str, project: Project):
    name = normalise(path, project)
    assert normalise(name, project) == name
    steps = name.split("/")
    assert "\\" not in name
    assert name == "." or "." not in steps
    assert ".." not in steps[steps.count("..") :]
    assert not name.endswith("/") or ANCHOR.fullmatch(name)
