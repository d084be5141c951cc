"""C5: a developer's own tools from an agent's folder or an installed package."""

import asyncio
import importlib
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from recto.conversation.messages import ToolCall
from recto.errors import SettingsError
from recto.tools.call import call_tool
from recto.tools.load_tools import load_folder_tools, load_package_tools, make_built_in_tools, select_built_in_tools
from recto.tools.mark import Mark
from recto.tools.ports import Tool
from recto.tools.registry import Registry
from tests.layers import ROOT
from tests.tools.runs import context, text_of

MARKED = '''
from __future__ import annotations
from dataclasses import dataclass
from recto import ToolContext, ToolError, tool

@dataclass
class Place:
    city: str

@tool(confirm=True)
def book(place: Place, context: ToolContext) -> str:
    """Book a room."""
    return f"{place.city} for {context.owner}"

@tool
def _cancel() -> None: ...

def shout(words: str) -> str:
    return words.upper()
'''

UNMARKED = """
from json import dumps
from textwrap import dedent as dedented

def second(words: str) -> str:
    return dumps(words)

async def first() -> str:
    return "1"

def _private(words: str) -> str:
    return words

def untyped(words):
    return words

again = _alias = second
"""


def folder_with(folder: Path, source: str | bytes) -> Path:
    (folder / "tools.py").write_bytes(source.encode() if isinstance(source, str) else source)
    return folder


def names(tools: tuple[Tool, ...]) -> list[str]:
    return [tool.name for tool in tools]


# An agent's folder


def test_C5_marked_functions_are_the_tools(tmp_path: Path):
    assert load_folder_tools(tmp_path) == ()
    tools = load_folder_tools(folder_with(tmp_path, MARKED))
    assert names(tools) == ["book", "_cancel"]
    assert tools[0].mark.confirm
    tool_call = ToolCall(id="c1", name="book", arguments='{"place": {"city": "Ulm"}}')
    assert text_of(asyncio.run(call_tool(Registry(tools), tool_call, context()))) == "Ulm for ann"


def test_C5_F8_the_tools_the_guide_shows_work_and_act_elsewhere(tmp_path: Path):
    guide = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    code_blocks = re.findall(r"^```python\n(.*?)^```$", guide, flags=re.MULTILINE | re.DOTALL)
    size, plan, book = load_folder_tools(
        folder_with(tmp_path, "\n".join([one for one in code_blocks if "@tool" in one]))
    )
    assert '"properties":{"stop"' in plan.offer.parameters
    assert '"day":{"description":"The day of arrival.","format":"date","type":"string"}' in book.offer.parameters
    assert book.offer.description.endswith("guests first.\n\nReturns:\n    The number of the booking.")
    wrong = [warning for tool in (size, plan, book) for warning in tool.warnings]
    assert wrong == []
    assert (size.name, size.mark.external, size.mark.safe_to_repeat) == ("size", True, True)
    marks = re.findall(r"^\| `(\w+)` \|", guide.partition("| `@tool(...)` |")[2].partition("\n\n")[0], re.MULTILINE)
    assert marks == [field.name for field in fields(Mark)]


def test_C5_without_a_mark_the_public_typed_functions_of_the_file_are(tmp_path: Path):
    assert names(load_folder_tools(folder_with(tmp_path, UNMARKED))) == ["second", "first"]


def test_C5_two_folders_do_not_meet_and_a_changed_file_is_read_anew(tmp_path: Path):
    one, two = tmp_path / "one", tmp_path / "two"
    for folder, name in ((one, "a"), (two, "b")):
        folder.mkdir()
        assert names(load_folder_tools(folder_with(folder, f"def {name}() -> None: ..."))) == [name]
    folder_with(one, "def c() -> None: ...")
    assert names(load_folder_tools(one)) == ["c"]
    assert [path.name for path in one.iterdir()] == ["tools.py"]


@pytest.mark.parametrize(
    ("source", "line", "reason"),
    [
        ("x = 1\ndef (:\n", 2, "SyntaxError"),
        ("\n\nimport nowhere.to_be_found\n", 3, f"that Recto runs in: {sys.executable} -m pip install nowhere."),
        ("def f():\n    return 1 / 0\n\nf()\n", 2, "ZeroDivisionError"),
        ("import sys\nsys.exit(1)\n", 2, "SystemExit"),
    ],
)
def test_C5_a_broken_file_is_named_with_its_line(tmp_path: Path, source: str, line: int, reason: str):
    with pytest.raises(SettingsError) as caught_error:
        load_folder_tools(folder_with(tmp_path, source))
    assert f"tools.py:{line}'" in str(caught_error.value)
    assert reason in str(caught_error.value)
    assert not [one for one in sys.modules.values() if getattr(one, "__file__", "") == str(tmp_path / "tools.py")]


def test_C5_a_file_that_is_no_text_and_a_function_that_cannot_be_a_tool_are_named(tmp_path: Path):
    with pytest.raises(SettingsError, match=r"tools\.py"):
        load_folder_tools(folder_with(tmp_path, b"\xff\xfe\0"))
    with pytest.raises(SettingsError, match=r"half in .*tools\.py:2'; parameter 'b' has no type hint"):
        load_folder_tools(folder_with(tmp_path, "\ndef half(a: int, b): ...\n"))


# Installed packages


MODULE = """
from dataclasses import replace
from recto.tools.function import make_tool
def one() -> None: ...
def two() -> None: ...
made = make_tool(one)
def with_offer(**changed): return replace(made, offer=replace(made.offer, **changed))
"""


def install(monkeypatch: pytest.MonkeyPatch, folder: Path, module: str, source: str, points: str) -> None:
    (folder / f"{module}.py").write_text(source)
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[recto.tools]\n{points}\n")
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    importlib.invalidate_caches()


def test_C5_packages_offer_a_function_a_tool_or_several(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    points = "a = offering_tools:one\nb = offering_tools:made\nc = offering_tools:several"
    install(monkeypatch, tmp_path, "offering_tools", f"{MODULE}several = [two, made]", points)
    assert names(load_package_tools()) == ["one", "one", "two", "one"]


@pytest.mark.parametrize(
    ("module", "source", "reason"),
    [
        ("tools_missing", "", "AttributeError"),
        ("tools_raising", "1 / 0", "ZeroDivisionError"),
        ("tools_of_number", "it = 3", "it names 3"),
        ("tools_of_text", "it = 'abc'", "it names 'a'"),
        ("tools_misnamed", f"{MODULE}it = with_offer(name='a b')", "tool 'a b': a name is 1"),
        ("tools_no_schema", f"{MODULE}it = with_offer(parameters='[]')", "no JSON Schema: []"),
        ("tools_untyped", "def it(a): ...", "parameter 'a' has no type hint"),
    ],
)
def test_C5_a_broken_entry_point_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, module: str, source: str, reason: str
):
    install(monkeypatch, tmp_path, module, source, f"search = {module}:it")
    with pytest.raises(SettingsError) as caught_error:
        load_package_tools()
    assert f"'search = {module}:it'" in str(caught_error.value)
    assert reason in str(caught_error.value)


# Built in


BUILT_IN = [
    *("current_time", "calculator", "recall", "read_files", "read_documents", "sandbox_fetch_user_file"),
    *("filesystem-read", "filesystem-create", "filesystem-edit", "terminal-execute", "terminal-jobs"),
    "ace-text_search",
]


def test_the_built_in_tools_are_offered_and_safe_to_repeat_unless_they_change_what_is_there():
    tools = make_built_in_tools()
    assert names(tools) == BUILT_IN
    assert all(tool.is_offered and not tool.mark.external for tool in tools)
    once = [tool.name for tool in tools if not tool.mark.safe_to_repeat]
    assert once == ["filesystem-create", "filesystem-edit", "terminal-execute"]


@pytest.mark.parametrize(
    ("tool_names", "takes_documents", "had"),
    [
        ((), False, []),
        (("calculator",), True, ["calculator", "read_files", "file_read"]),
        (("read_files", "calculator"), True, ["read_files", "calculator", "file_read"]),
        (("read_files",), False, ["read_files", "file_read"]),
    ],
)
def test_F5_who_takes_documents_can_read_them_and_nothing_is_had_twice(
    tool_names: tuple[str, ...], takes_documents: bool, had: list[str]
):
    assert names(select_built_in_tools(tool_names, takes_documents, Registry(make_built_in_tools()))) == had


def test_F6_the_tool_of_old_logs_is_had_and_not_offered():
    tools = Registry(select_built_in_tools((), True, Registry(make_built_in_tools())))
    assert [offer.name for offer in tools.offers(tools)] == ["read_files"]
    assert (tools["file_read"].is_offered, tools["file_read"].mark.safe_to_repeat) == (False, True)


def test_importing_what_developers_need_is_light():
    check = "import sys, recto.tools; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
