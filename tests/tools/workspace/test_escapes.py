"""R15: no path leads a file tool out of the workspace: not by its spelling, not by links, not in a race."""

import os
import socket
from contextlib import chdir, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.errors import ToolError
from recto.tools.workspace.open_path import names_in, open_path
from recto.tools.workspace.workspaces import Workspace
from tests.tools.runs import repeated, text_of
from tests.tools.workspace.calls import CREATE, EDIT, READ, call, call_error, call_text

SECRET = "the secret of the house"
ROOTS = ("/home/space", "/real/space")


# Spellings


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("./a//b/./c.py", ("a", "b", "c.py")),
        ("src/", ("src",)),
        ("a/../b", ("b",)),
        ("a/b/../..", ()),
        ("/real/space", ()),
        ("//home/space/./a.py", ("a.py",)),
        ("/home/space/../space/a.py", ("a.py",)),
        ("src\\main.py", ("src", "main.py")),
        ("..a/b../~", ("..a", "b..", "~")),
    ],
)
def test_R15_a_path_is_the_names_from_the_workspace_on(path: str, names: tuple[str, ...]):
    assert names_in(path, ROOTS) == names


PIECES = st.sampled_from(("a", "..", ".", "", "\\", "/home/space", "C:", "\0", "..\\..", "／", "．．"))


@given(path=st.lists(PIECES).map("/".join))
def test_R15_no_name_of_a_path_leads_up(path: str):
    with suppress(ToolError):
        names = names_in(path, ROOTS)
        assert not {"", ".", ".."} & {*names}
        assert not [name for name in names if "/" in name or "\0" in name]


# A house with a secret beside the workspace, and ways that seem to lead there


LINKS = {
    "out": "../outside",
    "out-absolute": "{outside}",
    "secret": "../outside/secret.txt",
    "secret-absolute": "{outside}/secret.txt",
    "in/up": "..",
    "in/out": "../../outside",
    "chain-1": "chain-2",
    "chain-2": "in/chain-3",
    "in/chain-3": "../../outside/secret.txt",
    "loop-1": "loop-2",
    "loop-2": "loop-1",
    "self": "self",
    "root": "/",
    "proc": "/proc/self/root",
    "cwd": "/proc/self/cwd",
    "descriptors": "/proc/self/fd",
    "there-and-out": "{space}/../outside/secret.txt",
    "winding": "in/../in/../../outside/secret.txt",
    "null": "/dev/null",
    "sibling": "{space}-other/x",
    "in/git": "../../../../../../../../..{outside}",
    "by-root": "/proc/self/root{outside}",
    "usr": "/usr",
    "devices": "/dev",
}


@pytest.fixture
def space(tmp_path: Path) -> Path:
    space, outside = tmp_path / "space", tmp_path / "outside"
    (space / "in").mkdir(parents=True)
    outside.mkdir()
    (outside / "secret.txt").write_text(SECRET)
    (space / "mine.txt").write_text("mine")
    (space / "in/deep.txt").write_text("deep")
    for name, target in LINKS.items():
        (space / name).symlink_to(target.format(space=space, outside=outside))
    (tmp_path / "space-other").mkdir()
    (tmp_path / "space-other/x").write_text(SECRET)
    os.mkfifo(space / "pipe")
    with socket.socket(socket.AF_UNIX) as one, chdir(space):
        one.bind("socket")
    return space


ESCAPES = [
    *("../outside/secret.txt", "in/../../outside/secret.txt", "./../outside/secret.txt"),
    *("..", "../", "../space-other/x", "/etc/passwd", "//etc/passwd", "/", "/dev/zero", "/dev/stdin"),
    *("/proc/self/root/etc/passwd", "/proc/self/environ"),
    *("..\\outside\\secret.txt", "C:\\Windows\\x", "c:/x", "\\\\server\\share", "in/..\\../x", "in\\../x"),
    *("out/secret.txt", "out-absolute/secret.txt", "secret", "secret-absolute", "in/up/out/secret.txt"),
    *("in/out/secret.txt", "in/up/../../outside/secret.txt", "chain-1", "chain-2", "loop-1", "self", "self/x"),
    *("root/etc/passwd", "proc/etc/passwd", "cwd/x", "descriptors/0", "there-and-out", "winding", "null", "sibling"),
    *("in/git/secret.txt", "by-root/secret.txt", "usr/bin/env", "devices/null", "devices/shm/x"),
    *("pipe", "socket", "pipe/x", "mine.txt/x", "mine.txt/../../outside/secret.txt"),
    *("a\0b", "a\nb", "in/\x1b[2J", "x" * 256, "x/" * 40 + "y", "y" * 5_000, "", "  "),
    *("．．/outside/secret.txt", "‥/outside/secret.txt", "..\u2215outside", "%2e%2e/outside/secret.txt", "~/../../x"),
]


@pytest.mark.parametrize("path", ESCAPES)
def test_R15_no_path_gets_out_by_reading_editing_or_creating(space: Path, path: str):
    results = [
        call(space, READ, filePath=path),
        call(space, READ, filePath=[path, {"path": path, "startLine": 1}]),
        call(space, EDIT, filePath=path, searchContent=SECRET, replaceContent="gone"),
        call(space, CREATE, filePath=f"{path}", content="put there"),
    ]
    text = "".join(map(text_of, results[:3]))
    assert not [one for one in (SECRET, "root:") if one in text]
    assert [text_of(results[0])[:7], text_of(results[2])[:7]] == ["Error: "] * 2
    assert (space.parent / "outside/secret.txt").read_text() == SECRET
    there = [one.name for one in space.parent.rglob("*") if one.is_file() and space not in one.parents]
    assert sorted(there) == ["secret.txt", "x"]
    assert not (space / "mine.txt").is_symlink()


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("secret", "is, or lies behind, a link that leads out of the workspace"),
        ("pipe", "pipe is a pipe."),
        ("socket", "socket is a socket."),
        ("self", "leads through more than 40 links, or round in a circle"),
        ("mine.txt/x", "mine.txt is a file, so nothing lies in it"),
        ("../x", "leads out of the workspace"),
        ("in/..\\x", "has both / and \\ in it"),
    ],
)
def test_R15_a_refused_path_says_why(space: Path, path: str, why: str):
    assert why in call_error(space, READ, filePath=path)


# Links inside


def test_R15_a_link_that_stays_inside_is_followed_for_reading_and_editing_and_stays_a_link(space: Path):
    (space / "near").symlink_to("in/deep.txt")
    (space / "far").symlink_to(space / "in")
    assert "1→deep" in call_text(space, READ, filePath="near")
    assert "1→deep" in call_text(space, READ, filePath="far/deep.txt")
    assert "1→mine" in call_text(space, READ, filePath="in/up/in/../mine.txt")
    call_text(space, EDIT, filePath="near", searchContent="deep", replaceContent="deeper")
    assert ((space / "in/deep.txt").read_text(), (space / "near").is_symlink()) == ("deeper", True)
    call_text(space, CREATE, filePath="far/new.txt", content="x")
    assert (space / "in/new.txt").read_text() == "x"


def test_R15_a_hard_link_outside_keeps_what_it_had(space: Path):
    os.link(space.parent / "outside/secret.txt", space / "shared.txt")
    call_text(space, EDIT, filePath="shared.txt", searchContent="secret", replaceContent="talk")
    assert (space / "shared.txt").read_text() == "the talk of the house"
    assert (space.parent / "outside/secret.txt").read_text() == SECRET


# What is hidden, and what is guarded


@pytest.fixture
def guarded(space: Path) -> Workspace:
    for path in ("data/key.txt", ".git/hooks/pre-commit"):
        (space / path).parent.mkdir(parents=True, exist_ok=True)
        (space / path).write_text(SECRET)
    (space / "to-key").symlink_to("data/key.txt")
    (space / "to-hook").symlink_to(".git/hooks/pre-commit")
    return Workspace(folder=space, is_own=False, most_bytes=0, hidden=("data",), guarded=(".git/hooks", ".git/config"))


@pytest.mark.parametrize("path", ["data/key.txt", "to-key", "in/../data/key.txt", "in/up/data/key.txt"])
def test_R15_what_is_hidden_is_as_good_as_missing(guarded: Workspace, path: str):
    there = call_error(guarded, READ, filePath=path)
    assert there.startswith(f"There is no {'/'.join(names_in(path, ()))} in the workspace.")
    assert call_error(guarded, EDIT, filePath=path, searchContent="x", replaceContent="y") == there
    assert call(guarded, CREATE, filePath=path, content="x").error
    assert (guarded.folder / "data/key.txt").read_text() == SECRET
    assert "data" not in call_text(guarded, READ, filePath=".").replace("to-key -> data/key.txt", "")
    assert "data/" not in call_error(guarded, READ, filePath="dat")


@pytest.mark.parametrize("path", [".git/hooks/pre-commit", "to-hook", "in/up/.git/hooks/pre-commit"])
def test_R15_what_is_guarded_is_read_and_not_changed(guarded: Workspace, path: str):
    assert SECRET in call_text(guarded, READ, filePath=path)
    why = call_error(guarded, EDIT, filePath=path, searchContent=SECRET, replaceContent="x")
    assert why.startswith(".git/hooks/pre-commit is kept as it is")


@pytest.mark.parametrize("path", [".git/config", ".git/hooks/new", ".git/commondir", "sub/.GIT/config", "data/new"])
def test_R15_nothing_is_made_where_it_is_guarded_or_hidden(guarded: Workspace, path: str):
    assert "is kept as it is" in call_error(guarded, CREATE, filePath=path, content="x")
    assert not (guarded.folder / path).exists()


# Races


def test_R15_a_folder_that_is_swapped_by_a_link_leads_no_tool_out(space: Path):
    (space / "aside").mkdir()
    (space / "aside/secret.txt").write_text("of the workspace")

    def swap() -> None:
        """Make `way` a link to the outside, nothing, and a folder."""
        with suppress(OSError):
            (space / "way").symlink_to("../outside")
        with suppress(OSError):
            (space / "way").unlink()
        with suppress(OSError):
            (space / "aside").rename(space / "way")
        with suppress(OSError):
            (space / "way").rename(space / "aside")

    edit = {"filePath": "way/secret.txt", "searchContent": SECRET, "replaceContent": "x"}
    with repeated(swap):
        texts = [call(space, READ, filePath="way/secret.txt") for _ in range(60)]
        texts += [call(space, EDIT, **edit) for _ in range(30)]
        texts += [call(space, CREATE, filePath="way/new.txt", content="x") for _ in range(30)]
    assert not [one for one in texts if SECRET in text_of(one)]
    outside = space.parent / "outside"
    assert [one.name for one in outside.iterdir()] == ["secret.txt"]
    assert (outside / "secret.txt").read_text() == SECRET


def test_R15_no_descriptor_stays_open(space: Path):
    own = Path("/proc/self/fd")
    before = len([*own.iterdir()])
    workspace = Workspace(folder=space)
    for path in ESCAPES:
        with suppress(ToolError), open_path(workspace, names_in(path, (str(space),))) as descriptor:
            assert descriptor.names
    assert (len([*own.iterdir()]), len(ESCAPES) >= 60) == (before, True)
