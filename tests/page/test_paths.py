"""R4: two spellings of one file get one name, and two files never the same."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.page.fold.paths import Project, normalise
from tests.page.log_strategies import projects, spelled_paths

WINDOWS = "F:/Projects/snow-cli"
POSIX = "/srv/app"
ANCHOR = re.compile(r"//?|[A-Za-z]:/")
SHARE = "\\\\server\\share\\app"

# What is inside the root, by root: every spelling and the one name it has.
INSIDE = [
    (POSIX, "src/a.py", "src/a.py"),
    (POSIX, "./src/a.py", "src/a.py"),
    (POSIX, "././src/./a.py", "src/a.py"),
    (POSIX, "src//a.py", "src/a.py"),
    (POSIX, "src\\a.py", "src/a.py"),
    (POSIX, ".\\src\\a.py", "src/a.py"),
    (POSIX, "src/x/", "src/x"),
    (POSIX, "src/x//", "src/x"),
    (POSIX, "src/x/.", "src/x"),
    (POSIX, "src/x", "src/x"),
    (POSIX, "src/../src/a.py", "src/a.py"),
    (POSIX, "../app/src/a.py", "src/a.py"),
    (POSIX, "../../srv/app/src/a.py", "src/a.py"),
    (POSIX, "/srv/app/src/a.py", "src/a.py"),
    (POSIX, "/srv/app/./src/../src/a.py", "src/a.py"),
    (POSIX, "/srv/other/../app/src/a.py", "src/a.py"),
    (POSIX, "//srv//app//src/a.py", "src/a.py"),
    (POSIX, "\\srv\\app\\src\\a.py", "src/a.py"),
    (POSIX + "/", "/srv/app/src/a.py", "src/a.py"),
    (POSIX + "/./", "src/a.py", "src/a.py"),
    (POSIX, "/srv/app", "."),
    (POSIX, "/srv/app/", "."),
    (POSIX, ".", "."),
    (POSIX, "./", "."),
    (POSIX, "src/..", "."),
    (POSIX, "文档/说明.md", "文档/说明.md"),
    (POSIX, "/srv/app/文档/./说明.md", "文档/说明.md"),
    (POSIX, "...", "..."),
    (POSIX, "..a/b", "..a/b"),
    (POSIX, ".hidden", ".hidden"),
    ("/", "/etc/hosts", "etc/hosts"),
    ("/", "etc/hosts", "etc/hosts"),
    ("/", "../etc/hosts", "etc/hosts"),
    ("/工作", "/工作/a.py", "a.py"),
    (WINDOWS, "src/components/Button.tsx", "src/components/Button.tsx"),
    (WINDOWS, "F:/Projects/snow-cli/src/components/Button.tsx", "src/components/Button.tsx"),
    (WINDOWS, "f:/Projects/snow-cli/src/components/Button.tsx", "src/components/Button.tsx"),
    (WINDOWS, "F:\\Projects\\snow-cli\\src\\components\\Button.tsx", "src/components/Button.tsx"),
    (WINDOWS, "F:\\Projects/snow-cli\\src/components\\", "src/components"),
    (WINDOWS, "/Projects/snow-cli/src/a.ts", "src/a.ts"),
    (WINDOWS, "F:/Projects/snow-cli", "."),
    (WINDOWS, "..\\snow-cli\\src\\a.ts", "src/a.ts"),
    ("f:\\Projects\\snow-cli\\", "F:/Projects/snow-cli/src/a.ts", "src/a.ts"),
    ("f:/Projects/snow-cli", "src\\a.ts", "src/a.ts"),
    ("F:/", "f:\\a.ts", "a.ts"),
    ("F:", "F:/a.ts", "a.ts"),
    (SHARE, "\\\\server\\share\\app\\src\\a.ts", "src/a.ts"),
    (SHARE, "//server/share/app/src/a.ts", "src/a.ts"),
    (SHARE, "src\\a.ts", "src/a.ts"),
    ("work/app", "src/a.py", "src/a.py"),
    ("work/app", "../app/src/a.py", "src/a.py"),
]

OUTSIDE = [
    (POSIX, "../x.py", "../x.py"),
    (POSIX, "src/../../x.py", "../x.py"),
    (POSIX, "/etc//hosts", "/etc/hosts"),
    (POSIX, "//etc/hosts", "/etc/hosts"),
    (POSIX, "c:/../../x.py", "../x.py"),
    (POSIX, "/etc/./ssh/../hosts/", "/etc/hosts"),
    (POSIX, "/srv/application/a.py", "/srv/application/a.py"),
    (POSIX, "/srv", "/srv"),
    (POSIX, "/", "/"),
    (POSIX, "/..", "/"),
    (POSIX, "/SRV/app/a.py", "/SRV/app/a.py"),
    (WINDOWS, "C:/Projects/snow-cli/a.ts", "C:/Projects/snow-cli/a.ts"),
    (WINDOWS, "c:\\Windows\\..\\Temp\\a.txt", "C:/Temp/a.txt"),
    (WINDOWS, "F:/Projects/snow-cli-2/a.ts", "F:/Projects/snow-cli-2/a.ts"),
    (WINDOWS, "F:/Projects", "F:/Projects"),
    (WINDOWS, "F:/../..", "F:/"),
    (WINDOWS, "..\\other\\a.ts", "../other/a.ts"),
    (WINDOWS, "/etc/hosts", "/etc/hosts"),
    (WINDOWS, "\\\\server\\share\\a.ts", "//server/share/a.ts"),
    (SHARE, "\\\\server\\other\\a.ts", "//server/other/a.ts"),
    (SHARE, "C:\\a.ts", "C:/a.ts"),
]

# A drive means nothing on a disk whose root is no drive: there it is a folder's name.
DRIVES_ON_POSIX = [
    (POSIX, "F:/Projects/a.ts", "F:/Projects/a.ts"),
    (POSIX, "f:/Projects/a.ts", "f:/Projects/a.ts"),
    (POSIX, "F:\\Projects\\a.ts", "F:/Projects/a.ts"),
    (POSIX, "/srv/app/F:/Projects/a.ts", "F:/Projects/a.ts"),
]

NO_ROOT = [
    (None, "./src/a.py", "src/a.py"),
    (None, "src\\x\\", "src/x"),
    (None, "src/../../a.py", "../a.py"),
    (None, "/srv/app/../app/a.py", "/srv/app/a.py"),
    (None, "f:\\Projects\\a.ts", "F:/Projects/a.ts"),
    (None, "F:/Projects/a.ts", "F:/Projects/a.ts"),
    (None, "\\\\server\\share\\a.ts", "//server/share/a.ts"),
    (None, "./", "."),
    (None, "SRC/A.py", "SRC/A.py"),
    ("", "./src/a.py", "src/a.py"),
]

ANY_CASE = [
    (POSIX, "SRC/A.py", "src/a.py"),
    (POSIX, "/SRV/App/Src/A.py", "src/a.py"),
    (POSIX, "/ETC/Hosts", "/etc/hosts"),
    (WINDOWS, "F:\\Projects\\SNOW-CLI\\Src\\Button.TSX", "src/button.tsx"),
    ("f:/projects/SNOW-cli", "F:/Projects/snow-cli/src/a.ts", "src/a.ts"),
    (WINDOWS, "C:/Temp/A.txt", "c:/temp/a.txt"),
    (POSIX, "STRASSE/É.md", "strasse/é.md"),
    (POSIX, "straße/é.md", "strasse/é.md"),
    (None, "F:\\A.ts", "f:/a.ts"),
]


@pytest.mark.parametrize(("root", "path", "name"), [*INSIDE, *OUTSIDE, *DRIVES_ON_POSIX, *NO_ROOT])
def test_R4_a_path_has_one_name(root: str | None, path: str, name: str):
    assert normalise(path, Project(root=root)) == name


@pytest.mark.parametrize(("root", "path", "name"), ANY_CASE)
def test_R4_on_a_disk_that_ignores_case_names_do_too(root: str | None, path: str, name: str):
    assert normalise(path, Project(root=root, case_sensitive=False)) == name


def test_R4_case_is_kept_unless_the_disk_ignores_it():
    project = Project(root=WINDOWS)
    assert normalise("Src/A.ts", project) != normalise("src/a.ts", project)
    assert normalise("F:/projects/snow-cli/a.ts", project) == "F:/projects/snow-cli/a.ts"


@given(path=spelled_paths(), project=projects())
def test_R4_the_name_of_a_name_is_itself(path: str, project: Project):
    name = normalise(path, project)
    assert normalise(name, project) == name


@given(path=spelled_paths(), project=projects(), text=st.sampled_from(["./", ".\\", "././"]))
def test_R4_a_leading_dot_and_the_kind_of_slash_change_nothing(path: str, project: Project, text: str):
    name = normalise(path, project)
    assert normalise(path.replace("/", "\\"), project) == name
    assert not path.strip("/\\") or normalise(path + "/", project) == name
    if not path.startswith(("/", "\\")) and path[1:2] != ":":
        assert normalise(text + path, project) == name


@given(path=spelled_paths(), project=projects())
def test_R4_a_name_has_no_dots_doubled_slashes_or_slash_at_its_end(path: str, project: Project):
    name = normalise(path, project)
    steps = name.split("/")
    assert "\\" not in name
    assert name == "." or "." not in steps
    assert ".." not in steps[steps.count("..") :]
    assert not name.endswith("/") or ANCHOR.fullmatch(name)
