"""R15: whatever the tree, its `.gitignore` files, the glob and the pattern, Python finds what ripgrep finds."""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from recto.tools.workspace.ignored import BadGlob
from recto.tools.workspace.plain_search import search
from recto.tools.workspace.ripgrep import Query, Search, file_glob, match_of, ripgrep
from recto.tools.workspace.workspace_files import FOLDER

pytestmark = pytest.mark.full

Tree = dict[str, bytes]
NAMES = st.sampled_from(["a", "b", "ab", "a.py", "b.py", "ü.txt", ".x", "a b", "[a]", "a,b", "{a}"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
CONTENTS = st.one_of(
    st.sampled_from([b"", b"a\0a\n", "\ufeffa\nü".encode(), "\ufeffa\r\nb".encode("utf-16-le"), b"a\xffb\n"]),
    st.lists(st.sampled_from(["a", "b", " ", "ab", "ü", "\r", "\n", "\r\n", "A"]), max_size=12).map(
        lambda words: "".join(words).encode()
    ),
)
GLOBS = st.one_of(
    st.sampled_from(
        ["*", "**", "a", "*.py", "a*", "?", "[ab]", "[!a]", "a/", "**/a", "a/**", "a/*/b", "\\[a\\]", "a b"]
    ),
    st.text("ab*?/[]!-^.{},\\ ü", min_size=1, max_size=8),
)
RULES = st.builds(
    "{}{}{}".format, st.sampled_from(["", "", "!", "/", "!/"]), GLOBS, st.sampled_from(["", "", "/", " "])
)
IGNORED = st.lists(st.one_of(RULES, st.sampled_from(["# a", "\\!a", ""])), max_size=4).map(
    lambda lines: "\n".join(lines).encode()
)
PATTERNS = st.one_of(
    st.tuples(st.sampled_from(["a", "b", "ab", "ü", " ", "a.", "*", "-x"]), st.just(False)),
    st.tuples(
        st.sampled_from(["a", "^a", "a$", "^$", "^", "a.b", r"\bb", r"a\s", "[^a]", "a|ü", "(?i)a", r"\W$", "^.b?"]),
        st.just(True),
    ),
)


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    tree = draw(st.dictionaries(PATHS, CONTENTS, min_size=1, max_size=10))
    folders = sorted({path.rpartition("/")[0] for path in tree})
    for folder in draw(st.lists(st.sampled_from(folders), max_size=3)):
        tree[f"{folder}/.gitignore".removeprefix("/")] = draw(IGNORED)
    return tree


def build(root: Path, tree: Tree) -> None:
    """Where a name is to be a file and a folder, the first has it."""
    for path, content in tree.items():
        parents = [root / parent for parent in Path(path).parents]
        if (root / path).is_dir() or any(parent.is_file() for parent in parents):
            continue
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)


def by_ripgrep(query: Query, root: Path) -> list[tuple[str, int, bytes]]:
    program = ripgrep()
    assert program
    found = Search(query, root, program).run(shown=1_000, counted=1_000)
    return [(file.path, *match_of(message)[:2]) for file in found.files for message in file.messages]


def by_python(query: Query, root: Path) -> Iterator[tuple[str, int, bytes]]:
    top = os.open(root, FOLDER)
    try:
        for path, lines in search(query.as_plain, top):
            yield from [(path, one.number, one.line.rstrip(b"\r\n")) for one in lines]
    finally:
        os.close(top)


def assert_the_same(tree: Tree, query: Query) -> None:
    with TemporaryDirectory() as folder:
        build(Path(folder), tree)
        assert list(by_python(query, Path(folder))) == by_ripgrep(query, Path(folder))


@given(tree=trees())
@settings(deadline=None)
def test_R15_what_gitignore_files_leave_out_is_the_same(tree: Tree):
    content = {path: text if path.endswith(".gitignore") else b"x" for path, text in tree.items()}
    assert_the_same(content, Query(pattern="", is_regex=True))


@given(tree=trees(), glob=GLOBS, negated=st.booleans())
@settings(deadline=None)
def test_R15_what_a_glob_names_is_the_same(tree: Tree, glob: str, negated: bool):
    assume(negated or not glob.startswith("!"))
    try:
        wanted = file_glob(f"!{glob}" if negated else glob)
    except BadGlob:
        assume(False)
        return
    content = {path: text if path.endswith(".gitignore") else b"x" for path, text in tree.items()}
    assert_the_same(content, Query(pattern="x", glob=wanted))


@given(tree=trees(), pattern=PATTERNS)
@example(tree={"a": b"a\r\r\nb\r"}, pattern=("^$", True))
@settings(deadline=None)
def test_R15_the_lines_that_match_are_the_same(tree: Tree, pattern: tuple[str, bool]):
    # A byte that is no text is a character to Python, and none to Rust.
    assume(not pattern[1] or not any(b"\xff" in content.removeprefix(b"\xff\xfe") for content in tree.values()))
    assert_the_same(tree, Query(pattern=pattern[0], is_regex=pattern[1]))
