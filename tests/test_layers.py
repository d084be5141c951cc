"""Layer and style rules: import directions, purity, names, sizes. See CONTRIBUTING.md."""

import ast
import importlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeGuard

import pytest

from recto.models.choose import PROVIDERS
from recto.page.wire.formats import SPEAKERS, WIRES
from recto.testing.answer_bytes import FAKES
from tests import layers
from tests.layers import ROOT, Module

SOURCES = layers.modules_under(ROOT / "src", base=ROOT / "src")
TESTS = layers.modules_under(ROOT / "tests", base=ROOT)

# Exceptions to the size limits, as the failing test prints them: "lines src/recto/page/fold/fold.py:fold": 72. They may
# only shrink: an exception that is too large or no longer needed fails too.
EXCEPTIONS: dict[str, int] = {
    # A tool has a parameter for each argument.
    "parameters src/recto/agents/shipped/vibe/tools.py:collect_birth_info": 12,
    # A command has a parameter for each option.
    "parameters src/recto/cli/fold/fold_command.py:fold_command.fold": 8,
    "parameters src/recto/cli/explain.py:explain": 10,
    "parameters src/recto/cli/calls/explain_run.py:explain": 9,
    "parameters src/recto/cli/serve.py:gateway": 8,
    "parameters src/recto/cli/read.py:read": 8,
    "parameters src/recto/cli/replay/replay_command.py:replay": 11,
    "parameters src/recto/cli/serve.py:serve": 11,
    "parameters src/recto/cli/chat/chat_command.py:chat": 11,
}

# Public type names with two definitions. The set may only shrink.
DUPLICATE_TYPES = frozenset[str]()
# Names that several modules share because they serve one noun: its values, its SQL, its routes, its command.
SHARED_NAMES = frozenset(
    {
        *("agents", "attachments", "calls", "datasets", "events", "external_tools", "history", "messages"),
        *("ports", "routes"),
    }
)

# Modules that may contain a provider's name, and the reason.
PROVIDER_MENTIONS = {
    "src/recto/page/wire/base.py": "the wire of a target that names none",
    "src/recto/cli/fold/report.py": "what sessions in its format are called",
    "src/recto/cli/sessions/reader.py": "files of other programs say who made them by that name",
    "src/recto/cli/sessions/pi.py": "files of other programs say who made them by that name",
    "src/recto/cli/sessions/session.py": "files of other programs say who made them by that name",
}

FUNDING = re.compile(r'"(?:url|funding)": "[^"]*"|"funding": \[[^\]]*\]')
FACADE_NAMES = 28
HEAVY = ("splintr", "typer", "rich", "prometheus_client")

PURE_RUN = """
import sys
import recto.page
from recto import decode, fold

call = {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "a.py"}'}}
messages = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": None, "tool_calls": [call]},
    {"role": "tool", "tool_call_id": "c1", "content": "print(1)"},
]
fold(decode(messages))

def refuse(event, args):
    if event == "open" or event.split(".")[0] in {"os", "shutil", "socket", "subprocess", "urllib"}:
        raise SystemExit(f"recto.page is pure, but did {event} {args!r}")

sys.addaudithook(refuse)
fold(decode(messages))
"""

IMPORT_ONLY = f"""
import sys
import recto
loaded = sorted(set({HEAVY!r}) & sys.modules.keys())
if loaded:
    raise SystemExit("import recto loads " + ", ".join(loaded) + ". Import it inside the function that uses it.")
"""

ASSIGNMENTS = """
class Call:
    def count(self):
        self.number += 1

def good(call: Call):
    call.number = 2
    made = Call()
    made.number = 3

def bad(run, call: Other):
    run.state.files = ()
    call.number = 4
    run.a, run.b[0] = 1, 2
    del run.inputs.quote
    run.said |= {1}
    setattr(run, "files", ())
"""


def test_imports_go_from_higher_layers_to_lower_ones():
    assert_none(layers.upward_imports(SOURCES))


def test_no_module_imports_itself_through_others():
    assert_none(layers.cycles(SOURCES))


def test_the_pure_packages_contain_no_impure_statement():
    assert_none(layers.impurities(SOURCES))


def test_X3_the_page_is_pure_when_it_runs():
    assert_runs(PURE_RUN)


def test_subpackages_import_only_those_before_them():
    assert_none(layers.wrong_subpackage_imports(SOURCES))


def test_no_folder_has_too_many_modules():
    assert_none(layers.overfull_folders(SOURCES))


def test_every_public_type_has_a_unique_name():
    duplicates = layers.duplicate_types(SOURCES)
    more = {name: places for name, places in duplicates.items() if name not in DUPLICATE_TYPES}
    assert not more, f"Give each a name of its own: {more}"
    assert_none(
        f"{name} has one definition now. Remove it from DUPLICATE_TYPES."
        for name in sorted(DUPLICATE_TYPES - duplicates.keys())
    )


def test_modules_share_a_name_only_if_they_serve_one_noun():
    duplicates = layers.duplicate_modules(SOURCES)
    assert_none(
        f"{name}: {places}. Give each a name of its own."
        for name, places in duplicates.items()
        if name not in SHARED_NAMES
    )
    assert_none(
        f"{name} is a single module now. Remove it from SHARED_NAMES."
        for name in sorted(SHARED_NAMES - duplicates.keys())
    )


def test_only_listed_modules_contain_a_provider_name():
    mentions = list(layers.provider_names(SOURCES, SPEAKERS))
    assert_none(text for where, text in mentions if where not in PROVIDER_MENTIONS)
    modules = {where for where, _ in mentions}
    assert_none(
        f"{where} names no provider now. Remove it from PROVIDER_MENTIONS."
        for where in PROVIDER_MENTIONS
        if where not in modules
    )


@pytest.mark.parametrize(
    "line",
    [
        'if wire == "anthropic": ...',
        'if wire in ("openai", "other"): ...',
        'x = {"anthropic": 1}[wire]',
        'x = name.startswith("anthropic:")',
        'match wire:\n    case "openai": ...',
    ],
)
def test_a_comparison_with_a_provider_name_is_found(line: str):
    other = Module(name="recto.models.other", path=ROOT / "other.py", where="other.py", text=line)
    assert [where for where, _ in layers.provider_names([other], SPEAKERS)] == ["other.py"]
    own_modules = [replace(other, name=f"recto.page.wire.{SPEAKERS[name]}") for name in SPEAKERS]
    assert len(list(layers.provider_names(own_modules, SPEAKERS))) < len(own_modules)


def test_every_provider_has_a_wire_and_every_wire_a_provider_and_a_fake():
    assert {provider.name: provider.protocol.wire for provider in PROVIDERS} == SPEAKERS
    assert FAKES.keys() == WIRES.keys()


def test_only_its_own_class_changes_the_state_of_a_run():
    assert_none(outside_assignments([module for module in SOURCES if module.package == "worker"]))


def test_a_field_that_is_set_from_outside_is_found():
    module = Module(name="recto.worker.made", path=ROOT / "made.py", where="made.py", text=ASSIGNMENTS)
    what = [problem.split(": ", 1)[1].split(" is set")[0] for problem in outside_assignments([module])]
    expected = ["run.state.files", "call.number", "run.a", "run.inputs.quote", "run.said", "setattr(run, 'files', ())"]
    assert sorted(what) == sorted(expected)


def test_importing_recto_loads_nothing_heavy():
    assert_runs(IMPORT_ONLY)


def test_sizes_keep_their_limits_and_exceptions_only_fall():
    assert_none(layers.size_problems(layers.measures([*SOURCES, *TESTS]), EXCEPTIONS))


def test_modules_and_public_names_have_a_docstring():
    assert_none(layers.missing_docstrings(SOURCES))


def test_no_file_or_class_has_a_vague_name():
    assert_none(layers.vague_names([*SOURCES, *TESTS]))


def test_every_ignore_has_a_code_and_a_reason():
    assert_none(layers.bare_ignores([*SOURCES, *TESTS]))


def test_every_public_name_exists_and_is_documented():
    described = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert_none(wrong_exports("recto", described))


def test_the_package_exports_few_names_and_no_others():
    library = next(module for module in SOURCES if module.name == "recto")
    names = set(exported("recto"))
    assert len(names) <= FACADE_NAMES, f"recto.__all__ has {len(names)} names. Leave {FACADE_NAMES}."
    public_names = {name for name in top_level_names(library.tree) if not name.startswith("_")}
    assert public_names - {"TYPE_CHECKING", "import_module"} == names


def test_every_test_asserts_and_none_is_skipped():
    tests = [module for module in TESTS if module.path.name.startswith("test_")]
    assert_none([*assertionless_tests(tests), *skipped_tests(TESTS)])


def test_spec_numbers_in_test_names_look_like_spec_numbers():
    problems: list[str] = []
    for module in TESTS:
        for name, _ in layers.functions(module.tree):
            parts = name.rpartition(".")[2].split("_")
            words = [word for word in parts if re.fullmatch(r"[A-Z]\d+\w*|[psfdrxc]\d+", word) and parts[0] == "test"]
            wrong = [word for word in words if not re.fullmatch(r"[PSFDRXC]\d+", word)]
            problems += [f"{module.where}: {name}: '{word}' is no SPEC number. They look like R5." for word in wrong]
    assert_none(problems)


def test_no_file_names_this_machine_or_an_address_to_download_from():
    problems: list[str] = []
    for path, text in text_files():
        problems += [
            f"{path}: holds {what}. Take it out." for what, pattern in machine_traces() if pattern.search(text)
        ]
        # Funding links in npm's lock file are addresses too, but nothing is downloaded from them.
        if path.endswith((".lock", "package-lock.json")) and "://" in FUNDING.sub("", text):
            problems.append(f"{path}: holds an address. Run make lock.")
    assert_none(problems)


def assert_none(problems: Iterable[str]) -> None:
    __tracebackhide__ = True
    rules = list(problems)
    assert not rules, "\n" + "\n".join(rules)


def assert_runs(script: str) -> None:
    """Run a script in a new interpreter. Its exit message becomes the failure message."""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def exported(package: str) -> list[str]:
    return list(getattr(importlib.import_module(package), "__all__", ()))


def wrong_exports(package: str, described: str) -> Iterator[str]:
    module = importlib.import_module(package)
    if not exported(package):
        yield f"{package} has no __all__. List its public names."
    for name in exported(package):
        if not hasattr(module, name):
            yield f"{package}.__all__ names {name}, which does not exist. Define it or take it out."
        if not re.search(rf"`(recto\.)?(page\.)?{re.escape(name)}\b", described):
            yield f"{package}.{name} is public. Describe it in docs/api.md, named as `{name}`."


def top_level_names(tree: ast.Module) -> Iterator[str]:
    """Yield the names that a module binds at its top level, also under `if`, without those of __future__."""
    for node in top_level(tree.body):
        match node:
            case ast.ImportFrom(module="__future__"):
                pass
            case ast.Import() | ast.ImportFrom():
                yield from ((alias.asname or alias.name).split(".")[0] for alias in node.names)
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node.name
            case ast.Assign() | ast.AnnAssign():
                yield from (name.id for name in ast.walk(node) if is_assignment(name))
            case _:
                pass


def top_level(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, ast.If):
            yield from top_level([*node.body, *node.orelse])


def is_assignment(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def assertionless_tests(modules: Sequence[Module]) -> Iterator[str]:
    for module in modules:
        for name, function in layers.functions(module.tree):
            is_test = name.split(".")[-1].startswith("test_")
            if is_test and not any(map(asserts, ast.walk(function))):
                yield f"{module.where}:{function.lineno}: {name} asserts nothing. Assert what its name says."


def asserts(node: ast.AST) -> bool:
    match node:
        case ast.Assert():
            return True
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in {"raises", "warns"} or name.startswith(("assert_", "check", "expect"))
        case _:
            return False


def skipped_tests(modules: Sequence[Module]) -> Iterator[str]:
    ways = {"skip", "skipif", "xfail", "importorskip"}
    for module in modules:
        for node in ast.walk(module.tree):
            match node:
                case ast.Attribute(attr=name, value=ast.Name(id="pytest" | "mark") | ast.Attribute(attr="mark")):
                    names = {name}
                case ast.ImportFrom(module="pytest"):
                    names = {alias.name for alias in node.names}
                case _:
                    continue
            if names & ways:
                yield f"{module.where}:{node.lineno}: a test is skipped or expected to fail. Fix it or delete it."


def text_files() -> Iterator[tuple[str, str]]:
    """Yield every text file that is in the repository or about to be added."""
    for name in project_files():
        path = ROOT / name
        if path.is_file() and not path.is_symlink():
            raw = path.read_bytes()
            if b"\0" not in raw:
                yield name, raw.decode("utf-8", errors="replace")


def project_files() -> list[str]:
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    if shutil.which("git") and (ROOT / ".git").exists():
        done = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True)
        return sorted(filter(None, done.stdout.split("\0")))
    # An unpacked source archive has no git: take every file that no tool has made.
    generated = {".venv", "node_modules", "__pycache__", ".ruff_cache", ".pytest_cache", ".hypothesis", ".envs"}
    paths = [path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file()]
    return sorted(path.as_posix() for path in paths if not generated & set(path.parts))


def machine_traces() -> list[tuple[str, re.Pattern[str]]]:
    traces = [
        ("a download address", re.compile(r'resolved": *"http')),
        ("a package index", re.compile(r"index-url[ =]+\S*://")),
    ]
    shared = {Path("/"), Path(tempfile.gettempdir()).resolve()}
    # Match at the start of a path only: neither `some/root` nor `F:/work` names this machine.
    start = r"(?<![\w./-])(?<!\b[A-Za-z]:)"
    for what, path in (("a home folder", Path.home()), ("the folder of the checkout", ROOT.parent)):
        if path.resolve() not in shared:
            traces.append((what, re.compile(rf"{start}{re.escape(str(path))}(?![\w-])")))
    return traces


def outside_assignments(modules: Sequence[Module]) -> Iterator[str]:
    """Yield assignments to a field of an object other than `self`, unless its annotated class is in the same module."""
    for module in modules:
        classes = {node.name: node for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef)}
        parts = [part for one in (module.tree, *classes.values()) for part in one.body]
        # Check classes member by member, because names of one method do not apply in another.
        for part in (part for part in parts if not isinstance(part, ast.ClassDef)):
            mine = {"self", "cls", *(name for node in ast.walk(part) if (name := typed_name(node, classes)))}
            for node in (node for node in ast.walk(part) if sets_field(node, mine)):
                yield f"{module.where}:{node.lineno}: {ast.unparse(node)} is set. Give its class a method for that."


def sets_field(node: ast.AST, mine: Collection[str]) -> TypeGuard[ast.expr]:
    """Return True if the node sets or deletes a field of an object that is not in `mine`."""
    match node:
        case ast.Attribute(ctx=ast.Load()):
            return False
        case ast.Attribute(value=ast.Name(id=name)):
            return name not in mine
        case ast.Attribute() | ast.Call(func=ast.Name(id="setattr") | ast.Attribute(attr="__setattr__")):
            return True
        case _:
            return False


def typed_name(node: ast.AST, classes: Collection[str]) -> str | None:
    """Return the name that a parameter or an assignment gives to an object of one of these classes."""
    match node:
        case ast.arg(arg=name, annotation=ast.Name(id=kind)) if kind in classes:
            return name
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id=kind))) if kind in classes:
            return name
        case _:
            return None
