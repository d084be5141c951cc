"""Tests of the documentation: links resolve, commands run, tables match the code."""

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from threading import Timer

import pytest

from recto.api.problems import CODES, STATUS
from recto.api.server import ROUTES
from recto.conversation.input import input_rules as refuse
from recto.testing.process import ServerProcess
from recto.worker.finish import INTERNAL, WHY
from tests.layers import ROOT
from tests.support.client import TOKEN

READMES = ("README.md", "README.zh-CN.md")
GUIDES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
RUNNABLE = [*READMES, *GUIDES]
READ_FIRST = ("README.md",)
LINKED = [*RUNNABLE, "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]

SHELLS = {"sh", "console"}
SERVE, CURL = ("recto serve", "recto gateway --port"), "curl "
COMMANDS = ("recto ", "python ", CURL)
# The default address of a server, as documents give it.
ADDRESS = "http://127.0.0.1:8787"
# Removed from commands: another server may use this port.
PORT = " --port 8787"
SECONDS = 120
README_WORDS, CHANGELOG_WORDS, DECISION_WORDS = 900, 400, 350
CONCEPTS, SECTIONS = 12, ["Context", "Decision", "Consequences"]
TOO_LARGE = "RunAgentInput payload exceeds size limit"
FENCE = re.compile(
    r"^(?P<fence>```+|~~~+)(?P<language>[\w-]*)[^\n]*\n(?P<text>.*?)^(?P=fence)[ \t]*$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block."""

    language: str
    text: str


@pytest.mark.parametrize("document", LINKED)
def test_every_relative_link_resolves(document: str):
    wrong = [f"{document}: {link}: {reason}" for link in links(document) if (reason := broken(document, link))]
    assert not wrong, "\n" + "\n".join(wrong)


def test_the_flow_links_functions():
    functions = [link for link in links("docs/flow.md") if re.search(r"src/recto/.*\.py#", link)]
    assert functions, "docs/flow.md links no function. Link each step as [name](../src/recto/PACKAGE/FILE.py#name)."


@pytest.mark.parametrize(
    ("document", "limit"),
    [
        *((readme, README_WORDS) for readme in READMES),
        ("CHANGELOG.md", CHANGELOG_WORDS),
        *((guide, DECISION_WORDS) for guide in GUIDES if guide.startswith("docs/decisions/0")),
    ],
)
def test_a_short_document_stays_short(document: str, limit: int):
    words = len(read(document).split())
    assert words <= limit, f"{document} has {words} words of at most {limit}. Move some to a guide."


def test_both_readmes_have_the_same_headings_and_code():
    english, chinese = map(read, READMES)
    assert heading_levels(english) == heading_levels(chinese), "Give both READMEs the same headings, level by level."
    assert list(blocks(english)) == list(blocks(chinese)), "Give both READMEs the same fenced blocks, letter by letter."


@pytest.mark.full
@pytest.mark.parametrize(
    "document", [pytest.param(one, marks=() if one in READ_FIRST else pytest.mark.full) for one in RUNNABLE]
)
def test_every_command_in_a_document_runs(document: str, tmp_path: Path):
    lay_out(tmp_path)
    lines = commands(read(document))
    servers = [command for command in lines if command.startswith(SERVE)]
    for command in servers:
        code, output = serve(command, tmp_path)
        assert "listening on http://127.0.0.1:" in output, f"{document}: `{command}` does not listen:\n{output}"
        assert code == 0, f"{document}: `{command}`, stopped by SIGTERM, ended with {code}:\n{output}"
    requests = [command for command in lines if CURL in command]
    for command in lines:
        if command not in servers and command not in requests:
            check_done(document, command, run(command, tmp_path))
    with server_of(tmp_path) if requests else nullcontext() as server:
        for command in requests:
            url = server.url if server else ADDRESS
            check_done(document, command, run(command.replace(CURL, f"{CURL}-f ").replace(ADDRESS, url), tmp_path))


def test_the_index_lists_all_decisions_with_their_titles():
    rows = re.findall(r"^\| \[(\d+)\]\((.*?)\) \| (.*) \|$", read("docs/decisions/README.md"), flags=re.MULTILINE)
    files = sorted(path.name for path in (ROOT / "docs/decisions").glob("0*.md"))
    assert [(number, name) for number, name, _ in rows] == [(str(int(name[:4])), name) for name in files]
    for number, name, title in rows:
        assert read(f"docs/decisions/{name}").startswith(f"# {number}. {title}\n")
        assert re.findall(r"^## (.*)$", read(f"docs/decisions/{name}"), re.MULTILINE) == SECTIONS


def test_the_concepts_are_twelve_words_that_the_code_uses():
    concepts = re.findall(r"^## (.*)$", read("docs/concepts.md"), re.MULTILINE)
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")).lower()
    words = [word for concept in concepts for word in concept.lower().split()]
    assert [word for word in words if not re.search(rf"(?<![a-z]){word}", code)] == []
    assert len(concepts) == len(set(concepts)) == CONCEPTS


def test_the_server_guide_has_every_route():
    rows = re.findall(r"^\| `([A-Z]+ /[^`?]*)` \|", read("docs/server.md"), flags=re.MULTILINE)
    assert rows == sorted(rows, key=[f"{route.method} {route.path}" for route in ROUTES].index)
    assert sorted(rows) == sorted(f"{route.method} {route.path}" for route in ROUTES)


def test_P2_the_server_guide_has_every_input_rule_in_order():
    problem = re.findall(r"^\| .* \| 4\d\d \| `(.*)` \|$", read("docs/server.md"), flags=re.MULTILINE)
    assert problem == [
        TOO_LARGE,
        refuse.NO_UUID,
        refuse.LONG_RUN_ID,
        refuse.MANY_MESSAGES,
        refuse.LONG_WORDS,
        refuse.NOT_ONE_USER,
        refuse.NOT_USER_FIRST,
        refuse.NO_IMAGE,
        refuse.NO_URL,
        refuse.HAS_DATA,
        refuse.NOT_SIGNED,
    ]


def test_the_server_guide_has_every_problem_code_under_its_status():
    rows = re.findall(r"^\| (\d{3}) \| (`.*?`) \|", read("docs/server.md"), flags=re.MULTILINE)
    problem = {(int(status), code) for status, codes in rows for code in re.findall(r"`(\w+)`", codes)}
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src/recto/api").rglob("*.py"))
    match = re.findall(r'(?:problem\(|Rejection\(status=)(\d{3}), (?:code=)?"(\w+)"', source)
    codes = {(int(status), code) for status, code in match} | {*STATUS.values()}
    assert problem == codes | {(status, code) for status, code in CODES.items()}


def test_the_server_guide_has_every_error_code_of_a_run():
    match = re.search(r"`RUN_ERROR` has one of these codes: (.*?) for older clients", read("docs/server.md"))
    assert match is not None
    assert set(re.findall(r"`(\w+)`", match[1])) == {*WHY, INTERNAL, "cancelled"}
    table = read("docs/clients.md").partition("| `code` of `RUN_ERROR` |")[2].partition("\n\n")[0]
    assert set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (.*?) \|", table, re.MULTILINE)))) == {
        *WHY,
        INTERNAL,
        "cancelled",
    }


@pytest.mark.parametrize("document", LINKED)
def test_every_make_target_exists(document: str):
    targets = set(re.findall(r"^([a-z][\w-]*):", read("Makefile"), flags=re.MULTILINE))
    wrong = sorted(set(make_targets(read(document))) - targets)
    assert not wrong, f"{document} names {wrong}, which the Makefile does not have."


def read(document: str) -> str:
    path = ROOT / document
    assert path.is_file(), f"{document} is missing. Write it."
    return path.read_text(encoding="utf-8")


def links(document: str) -> list[str]:
    """Return the targets of links to files, outside code."""
    text = re.sub(r"`[^`\n]*`", "``", outside_blocks(read(document)))
    targets: list[str] = re.findall(r"\[[^\]]*\]\(<?([^)\s>]+)", text)
    return [target for target in targets if not re.match(r"[a-z]+:|#", target)]


def broken(document: str, link: str) -> str | None:
    """Return the fault of a link, or None."""
    target, _, name = link.partition("#")
    path = (ROOT / document).parent / target
    if not path.exists():
        return "no such file. Correct the link."
    if path.suffix == ".py" and name and name not in defined_names(ast.parse(path.read_text(encoding="utf-8"))):
        return f"{target} defines no {name} at its top level. Name a function, a class, a constant or Class.method."
    if path.suffix == ".md" and name and name not in anchors(path.read_text(encoding="utf-8")):
        return f"{target} has no heading for #{name}. Correct the link."
    return None


def anchors(text: str) -> set[str]:
    """Return the anchors of all headings."""
    headings: list[str] = re.findall(r"^#{1,6} (.*)$", outside_blocks(text), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def defined_names(tree: ast.Module | ast.ClassDef, prefix: str = "") -> set[str]:
    names: set[str] = set()
    for node in tree.body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                names.add(prefix + node.name)
            case ast.ClassDef():
                names |= {prefix + node.name, *defined_names(node, f"{prefix}{node.name}.")}
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(prefix + name)
            case ast.Assign():
                names |= {prefix + target.id for target in node.targets if isinstance(target, ast.Name)}
            case _:
                pass
    return names


def blocks(text: str) -> Iterator[Block]:
    for match in FENCE.finditer(text):
        yield Block(language=match["language"], text=match["text"])


def outside_blocks(text: str) -> str:
    return FENCE.sub("", text)


def heading_levels(text: str) -> list[int]:
    return [len(marks) for marks in re.findall(r"^(#{1,6}) ", outside_blocks(text), flags=re.MULTILINE)]


def lay_out(folder: Path) -> None:
    """Fill the folder in which the commands run with the examples."""
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    session = folder / "examples" / "session.json"
    if session.exists():
        shutil.copy(session, folder)


def commands(text: str) -> list[str]:
    """Return the lines of shell blocks that call recto, python or curl, also in a pipe."""
    lines = (line for block in blocks(text) if block.language in SHELLS for line in shell_lines(block))
    return [line for line in lines if any(part.strip().startswith(COMMANDS) for part in line.split("|"))]


def shell_lines(block: Block) -> list[str]:
    """Return the command lines of a block: in a console block, those after `$ `."""
    lines = [line.strip() for line in block.text.replace("\\\n", " ").splitlines()]
    if block.language == "console":
        lines = [line for line in lines if line.startswith("$ ")]
    return [line.removeprefix("$ ") for line in lines]


def serve(command: str, folder: Path) -> tuple[int, str]:
    """Start a server and stop it after its first line. Return its exit code and output."""
    with subprocess.Popen(
        ["sh", "-c", f"exec {command.replace(PORT, '')}"],
        cwd=folder,
        env={**environment(), "RECTO_PORT": "0"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as server:
        late = Timer(SECONDS, server.kill)
        late.start()
        first = server.stdout.readline() if server.stdout else ""
        server.terminate()
        rest, _ = server.communicate()
        late.cancel()
    return server.returncode, first + rest


def server_of(folder: Path) -> ServerProcess:
    """Return a server that uses the agents and the keys (recto-data/NAME.key) that earlier commands created."""
    keys = {file.stem: file.read_text(encoding="utf-8").strip() for file in folder.glob("recto-data/*.key")}
    settings = {"RECTO_API_KEYS": ",".join(f"{name}:{key}" for name, key in keys.items())} if keys else {}
    flags = ["--agents", str(folder / "agents")] if (folder / "agents").exists() else []
    return ServerProcess.serve(folder / "server", settings, *flags)


def check_done(document: str, command: str, done: subprocess.CompletedProcess[str]) -> None:
    output = f"{done.stdout}{done.stderr}"
    assert done.returncode == 0, f"{document}: `{command}` ended with {done.returncode}:\n{output}"


def environment() -> dict[str, str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    others = {name: value for name, value in os.environ.items() if not name.startswith("RECTO_")}
    return {**others, "PATH": path, "RECTO_TOKEN": TOKEN}


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def make_targets(text: str) -> Iterator[str]:
    """Yield the target of every `make ...` in code, inline or in a block."""
    lines = [line for block in blocks(text) for line in shell_lines(block)]
    lines += re.findall(r"`([^`\n]+)`", outside_blocks(text))
    for line in lines:
        words = line.split("#")[0].split()
        if words[:1] == ["make"]:
            yield from (word for word in words[1:] if re.fullmatch(r"[a-z][\w-]*", word))
