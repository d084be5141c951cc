"""R15: searches of a workspace with ripgrep."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from recto.config.run_settings import SearchSettings
from recto.tools.ports import ToolResult
from recto.tools.workspace.ripgrep import (
    BadPattern,
    Program,
    Query,
    Search,
    SearchResult,
    TooManyFiles,
    confine,
    find_ripgrep,
    match_of,
    parse_glob,
)
from recto.tools.workspace.visible_files import find_visible, open_inner
from recto.tools.workspace.workspaces import Workspace
from tests.tools.runs import repeated, text_of
from tests.tools.workspace.calls import call
from tests.waiting import wait_until

FILES: Mapping[str, bytes] = {
    "src/app.py": b"import os\n\ndef main():\n    return os.name\n",
    "src/app.pyi": b"def main() -> str: ...\n",
    "src/web/page.ts": b"export const main = 1\r\nmain\r\n",
    "src/web/.gitignore": b"gen.ts\n!keep.log\n",
    "src/web/gen.ts": b"main\n",
    "src/web/keep.log": b"main\n",
    "notes.log": b"main\n",
    ".gitignore": b"# what is made\n*.log\n/dist/\nnode_modules\n",
    ".github/ci.yml": b"run: main\n",
    ".git/HEAD": b"ref: refs/heads/main\n",
    "dist/main.js": b"main\n",
    "node_modules/x/main.js": b"main\n",
    "deep/dist/main.js": b"main\n",
    "picture.png": b"main\n\x00\x01",
    "late.bin": b"main\n" + b"x\n" * 100_000 + b"\0",
    "latin.txt": b"caf\xe9 main\n",
    "wide.txt": "\ufeffmain Größe\n".encode("utf-16-le"),
    "bom.txt": "\ufeffmain\n".encode(),
    "中文/文.md": "主 main 函数\n".encode(),
    "empty.txt": b"",
    "no_end.txt": b"main",
}
GITS = (".git",)
QUERIES: list[tuple[Query, list[str]]] = [
    (Query(pattern="main()"), ["src/app.py", "src/app.pyi"]),
    (
        Query(pattern=r"^main$", is_regex=True, glob=parse_glob("!*.txt")),
        ["deep/dist/main.js", "src/web/keep.log", "src/web/page.ts"],
    ),
    (Query(pattern=r"Gr\w+e|主", is_regex=True), ["wide.txt", "中文/文.md"]),
    (Query(pattern="main", glob=parse_glob("*.{py,ts}")), ["src/app.py", "src/web/page.ts"]),
    (Query(pattern="main", glob=parse_glob("src/**/*.ts")), ["src/web/page.ts"]),
    (Query(pattern="main", glob=parse_glob("*.log")), ["src/web/keep.log"]),
    (Query(pattern="main", glob=parse_glob("{src/*.py,*/*.md}")), ["src/app.py", "中文/文.md"]),
    (Query(pattern="main", glob=parse_glob("src/"), excluded=("/src/web",)), ["src/app.py", "src/app.pyi"]),
    (
        Query(pattern="main", is_regex=True, glob=parse_glob("!src/**"), excluded=(".git", "*.txt", "/deep")),
        [".github/ci.yml", "中文/文.md"],
    ),
    (Query(pattern="-e"), []),
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    write(folder, FILES)
    (folder / "link.txt").symlink_to("src/app.py")
    (folder / "outside").symlink_to(tmp_path)
    (tmp_path / "secret.txt").write_text("main\n")
    os.mkfifo(folder / "pipe")
    return folder


def write(folder: Path, files: Mapping[str, bytes]) -> None:
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)


def found_by(program: Program, query: Query, folder: Path, limit: int = 10_000) -> SearchResult:
    return Search(query, folder, program).run(most_shown=limit, most_counted=limit)


def match_rows(result: SearchResult) -> list[tuple[str, int, bytes, int]]:
    matches = [(file.path, match_of(message)) for file in result.files for message in file.messages]
    return [(path, one.number, one.line, one.start) for path, one in matches]


def search(folder: Path, pattern: str, settings: SearchSettings | None = None, **more: object) -> ToolResult:
    place = Workspace(folder=folder, search=settings or SearchSettings(), hidden=("recto data [1]",))
    return call(place, "ace-text_search", pattern=pattern, **more)


@pytest.mark.parametrize(("query", "paths"), QUERIES)
def test_R15_a_search_finds_files_by_glob_that_no_gitignore_leaves_out(project: Path, query: Query, paths: list[str]):
    confined = find_ripgrep()
    assert confined.bubblewrap
    alone = Program(path=confined.path, bubblewrap=None)
    for program in (confined, alone):
        assert list(dict.fromkeys(row[0] for row in match_rows(found_by(program, query, project)))) == paths


@pytest.mark.parametrize("bubblewrap", [None, "/bin/false", "/nowhere/bwrap"])
def test_R15_without_a_working_bubblewrap_ripgrep_runs_alone(bubblewrap: str | None):
    confined = find_ripgrep()
    assert confine(confined.path, bubblewrap) == Program(path=confined.path, bubblewrap=None)
    assert confine(confined.path, confined.bubblewrap) == confined


def test_R15_the_answer_has_lines_by_file_in_the_order_of_paths(project: Path):
    assert text_of(search(project, "main", fileGlob="src/**")) == (
        "5 matching lines in 4 files:\n\nsrc/app.py:\n3: def main():\n\nsrc/app.pyi:\n1: def main() -> str: ...\n\n"
        "src/web/keep.log:\n1: main\n\nsrc/web/page.ts:\n1: export const main = 1\n2: main"
    )


@pytest.mark.parametrize("most", [1, 2])
def test_R15_a_last_line_that_ends_like_the_name_of_a_file_is_shown(tmp_path: Path, most: int):
    write(tmp_path, {"a.py": b"def one():\n", "b.py": b"def two():\n"})
    answer = text_of(search(tmp_path, "def", maxResults=most))
    assert ("a.py:\n1: def one():" in answer, "b.py:\n1: def two():" in answer) == (True, most == 2)
    assert ("1 shown, 1 left out." in answer, "b.py" in answer) == (most == 1, most == 2)


LEFT_OUT = "; case counts, and what .gitignore names is left out."


@pytest.mark.parametrize(
    ("pattern", "glob", "problem"),
    [
        ("nowhere", "", f"Searched 16 files{LEFT_OUT}"),
        ("nowhere", "src/*.py", f"Searched 1 file named by 'src/*.py'{LEFT_OUT}"),
        ("main", "src", "It is the name of a file; all files of a folder are src/**."),
        ("main", "*.rs", "What .gitignore names is left out."),
        ("main", "web/*.ts", "It is a path, counted from the workspace; files of such names anywhere are *.ts."),
        ("main", "web/**", "It is a path, counted from the workspace."),
        (
            r"def \w+x",
            "*.py",
            f"Searched 1 file named by '*.py'{LEFT_OUT} The pattern was searched for as it stands; "
            "as a regular expression it is with isRegex.",
        ),
    ],
)
def test_R15_where_nothing_is_found_it_is_said_what_was_searched(project: Path, pattern: str, glob: str, problem: str):
    result = search(project, pattern, fileGlob=glob)
    begins = (
        f"No file matches fileGlob {glob!r}, so nothing was searched."
        if pattern == "main"
        else f"No line has {pattern!r}."
    )
    problem = f"{begins} {problem} Files larger than 16,777,216 bytes are left out."
    assert (result.error, text_of(result)) == (None, problem)


@pytest.mark.parametrize(
    ("pattern", "glob", "begins"),
    [
        ("ma(in", "", "The pattern cannot be searched for: rg: regex parse error:"),
        ("a\nb", "", "The pattern has a line end in it"),
        ("a\0", "", "The pattern or the glob has the character U+0000"),
        ("a", "[a", "fileGlob '[a' is no glob: unclosed character class; missing ']'."),
        ("a", "{a", "fileGlob '{a' is no glob: unclosed alternate group"),
        ("a", "[b-a]", "fileGlob '[b-a]' is no glob: invalid range; 'b' > 'a'."),
    ],
)
def test_R15_a_bad_pattern_or_glob_is_an_error_with_the_reason(project: Path, pattern: str, glob: str, begins: str):
    result = search(project, pattern, fileGlob=glob, isRegex=pattern == "ma(in")
    assert (result.error, text_of(result)[: len(begins)]) == ("error", begins)


def test_R15_what_the_server_keeps_is_not_there_whatever_it_is_called(project: Path):
    write(project, {"recto data [1]/main.txt": b"main\n", "src/recto data [1]/main.txt": b"main\n"})
    assert "\nsrc/recto data [1]/main.txt:\n" in text_of(search(project, "main", fileGlob="*.txt"))
    assert "\nrecto data [1]" not in text_of(search(project, "main"))


def test_R15_of_many_lines_the_first_are_shown_and_the_rest_is_counted(tmp_path: Path):
    write(tmp_path, {f"{number:02}.txt": b"main\n" * 10 for number in range(20)})
    result = text_of(search(tmp_path, "main", maxResults=12))
    assert result.splitlines()[0] == "200 matching lines in 20 files:"
    assert result.count(": main") == 12
    assert result.splitlines()[-1].startswith("12 shown, 188 left out. Search for something rarer, name fewer files ")


def test_R1_of_more_than_is_counted_the_first_by_path_are_found_every_time(tmp_path: Path):
    write(tmp_path, {f"{number % 7}/{number:03}.txt": b"main\n" for number in range(300)})
    results = [found_by(find_ripgrep(), Query(pattern="main"), tmp_path, 20) for _ in range(3)]
    first = [f"{number % 7}/{number:03}.txt" for number in range(0, 300, 7)][:20]
    assert [[file.path for file in one.files][:20] for one in results] == [first] * 3
    assert all(one.is_cut for one in results)


def test_R15_an_answer_is_bounded_and_says_by_how_much(tmp_path: Path):
    long, wide = b"a" * 5_000 + b"main" + b"b" * 5_000 + b"\n", (b"main" + b"x" * 200 + b"\n") * 1_000
    around = f"1: [...] {'a' * 10}main{'b' * 26} [...]"
    for content, settings, first, last in (
        (b"main\n" * 50, SearchSettings(search_count=20, results=5), "More than 20 matching lines; ", "5 shown, more "),
        (long, SearchSettings(line_characters=40), "1 matching line in 1 file:", around),
        (wide, SearchSettings(results=1_000), "1,000 matching lines in 1 file:", "236 shown, 764 left out. "),
    ):
        write(tmp_path, {"a.txt": content})
        answer = text_of(search(tmp_path, "main", settings))
        assert len(answer) <= 50_000
        assert (answer.startswith(first), answer.rpartition("\n")[2].startswith(last)) == (True, True), answer[-200:]


def test_R15_a_search_that_takes_too_long_is_ended(project: Path):
    result = search(project, "main", SearchSettings(seconds=0.0001))
    assert text_of(result).startswith("The search took longer than 0.0001 seconds and was ended.")


def test_R15_a_search_that_is_stopped_ends_its_process(tmp_path: Path):
    os.mkfifo(tmp_path / ".gitignore")
    stuck = Search(Query(pattern="main"), tmp_path, find_ripgrep())

    async def stop_it() -> SearchResult:
        running = asyncio.create_task(asyncio.to_thread(stuck.run, most_shown=1, most_counted=1))
        await wait_until(lambda: stuck.is_running)
        stuck.stop()
        return await running

    with pytest.raises(BadPattern):
        asyncio.run(stop_it())


@pytest.mark.parametrize("glob", ["", "src/**"])
def test_R15_an_empty_workspace_is_said_to_be_empty(tmp_path: Path, glob: str):
    problem = "The workspace is empty, so there is nothing to search."
    assert text_of(search(tmp_path / "none", "main", fileGlob=glob)) == problem
    write(tmp_path, {".git/HEAD": b"main", "recto data [1]/kept": b"main"})
    assert text_of(search(tmp_path, "main", fileGlob=glob)) == problem


def test_R15_where_all_is_left_out_or_too_large_it_is_said_why(tmp_path: Path):
    write(tmp_path, {"src/a.py": b"main main main\n"})
    for glob in ("", "*.py", "src/*.py"):
        assert "larger than 10 bytes" in text_of(search(tmp_path, "main", SearchSettings(file_bytes=10), fileGlob=glob))
    write(tmp_path, {".gitignore": b"*\n"})
    problem = (
        "No file was searched: what is there is named by .gitignore, larger than 16,777,216 bytes, or no plain file."
    )
    assert text_of(search(tmp_path, "main")) == problem


def test_R15_a_settings_file_of_ripgreps_own_changes_nothing(project: Path, monkeypatch: pytest.MonkeyPatch):
    (project / "config").write_text("--no-ignore\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(project / "config"))
    assert "dist/main.js" not in text_of(search(project, "main", fileGlob="dist/**"))


@pytest.mark.full
def test_R15_a_folder_that_becomes_a_link_while_it_is_searched_leads_nowhere(project: Path):
    outside, place = project.parent / "theirs", project / "swapped"
    write(outside, {f"{number}.txt": b"a secret\n" for number in range(50)})
    write(place, {f"{number}.txt": b"main\n" for number in range(50)})

    def swap() -> None:
        place.rename(project / "aside")
        place.symlink_to(outside)
        place.unlink()
        (project / "aside").rename(place)

    with repeated(swap):
        results = [found_by(find_ripgrep(), Query(pattern="a secret"), project) for _ in range(30)]
    assert [match_rows(one) for one in results] == [[]] * 30


# Listed entries


def test_R15_a_folder_that_is_ignored_is_listed_by_name_only(tmp_path: Path):
    files = (
        "made/deep/a.log",
        "made/deep/.gitignore",
        "made/.git/x",
        ".recto-0.part",
        "kept/b.log",
        "kept/c",
        "logs/d.log",
    )
    write(tmp_path, {**dict.fromkeys(files, b"*"), ".gitignore": b"made/\n*.log\n", "kept/hidden/e": b""})
    (tmp_path / "empty/inner").mkdir(parents=True)
    (tmp_path / "link.log").symlink_to("kept")
    with open_inner(str(tmp_path)) as top:
        by_program = {
            under: [one.path for one in find_visible(tmp_path, ["kept/hidden"], 30, under).entries(top, under=under)]
            for under in ((), ("made",), ("made", "deep"), ("gone",))
        }
    assert by_program == {
        (): [".gitignore", "empty", "empty/inner", "kept", "kept/c", "logs"],
        ("made",): ["made/deep", "made/deep/.gitignore", "made/deep/a.log"],
        ("made", "deep"): ["made/deep/.gitignore", "made/deep/a.log"],
        ("gone",): [],
    }


def visible_paths(folder: Path, *excluded: str, depth: int = 128) -> list[str]:
    with open_inner(str(folder)) as top:
        return [one.path for one in find_visible(folder, excluded, 30, depth=depth).entries(top, depth=depth)]


def test_R15_rules_decide_about_links_and_folders_as_about_files(tmp_path: Path):
    write(tmp_path, {".gitignore": b"*.log\nmade/\n/sub/one\n", "sub/.gitignore": b"*\n!two\n!three/\n", "sub/a": b""})
    for path in ("x.log", "made", "made.txt", "sub/one", "sub/two", "sub/five", "sub/three/four"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).symlink_to("nowhere")
    for path in ("deep/x.log/inner", "deep/made", "deep/inner/empty", "sub/no/two"):
        (tmp_path / path).mkdir(parents=True)
    # Rules for folders name no link.
    folders = ["deep", "deep/inner", "deep/inner/empty"]
    paths = [".gitignore", *folders, "made", "made.txt", "sub", "sub/three", "sub/two"]
    assert visible_paths(tmp_path) == paths
    assert visible_paths(tmp_path, depth=1) == [path for path in paths if "/" not in path]


def test_R15_a_folder_with_excluded_files_alone_is_listed(tmp_path: Path):
    write(
        tmp_path, {"sub/.git": b"gitdir: ../x", "data/hidden/x": b"", "deep/in/.recto-0.part": b"", "logs/x.log": b""}
    )
    write(tmp_path, {".gitignore": b"*.log\n"})
    assert visible_paths(tmp_path, "data/hidden") == [".gitignore", "data", "deep", "deep/in", "logs", "sub"]


@pytest.mark.parametrize("is_confined", [True, False])
def test_R15_the_files_of_a_place_follow_the_rules_above_it_in_the_workspace(tmp_path: Path, is_confined: bool):
    write(tmp_path, {".gitignore": b"*.py\n", "work/.gitignore": b"*.log\n/a/b/x\n", "work/a/.gitignore": b"y\n"})
    write(tmp_path / "work/a/b", dict.fromkeys(("1.py", "2.log", "x", "y", "c/z", "c/d/e"), b""))
    confined = find_ripgrep()
    program = confined if is_confined else Program(path=confined.path, bubblewrap=None)
    paths = [program.list_files(tmp_path / "work", (), 30, place="a/b", depth=depth) for depth in (1, 2)]
    assert paths == [{"a/b/1.py"}, {"a/b/1.py", "a/b/c/z"}]


def test_R15_too_many_files_end_a_listing(tmp_path: Path):
    write(tmp_path, {f"{number}.txt": b"" for number in range(30)})
    assert len(find_ripgrep().list_files(tmp_path, (), 30, most=30)) == 30
    with pytest.raises(TooManyFiles):
        find_ripgrep().list_files(tmp_path, (), 30, most=29)


@pytest.mark.full
def test_R15_too_many_links_or_rules_end_a_listing(tmp_path: Path):
    (tmp_path / "links").mkdir()
    for number in range(50_001):
        (tmp_path / f"links/{number}").symlink_to("x")
    write(tmp_path, {f"rules/{number}/.gitignore": b"#" * 1_000_000 for number in range(68)})
    for name in ("links", "rules"):
        with pytest.raises(TooManyFiles):
            find_visible(tmp_path, (), 30, (name,))


def test_R15_files_that_take_too_long_to_list_are_an_error(tmp_path: Path):
    os.mkfifo(tmp_path / ".gitignore")
    with pytest.raises(TimeoutError, match="could not be listed in 0"):
        find_visible(tmp_path, (), 0.1)
