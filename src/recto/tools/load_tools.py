"""Tool loading: built-in tools, an agent folder's `tools.py` (C5), and installed packages."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.machinery import SourceFileLoader
from importlib.metadata import EntryPoint, entry_points
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from traceback import walk_tb
from types import CodeType, FunctionType, ModuleType
from typing import cast

from recto.agents.agent import Agent
from recto.agents.file_input import READING, with_reading
from recto.errors import SettingsError, WireError
from recto.skills.skill import Skill
from recto.tools.builtin.calculator import calculator
from recto.tools.builtin.current_time import current_time
from recto.tools.builtin.recall import recall
from recto.tools.builtin.skill_tools import read_skill_file, use_skill
from recto.tools.commands.terminal_execute import terminal_execute, terminal_jobs
from recto.tools.documents.read_files import file_read, read_documents, read_files
from recto.tools.function import NAME, make_tool
from recto.tools.mark import get_mark
from recto.tools.ports import Tool
from recto.tools.workspace.ace_text_search import ace_text_search
from recto.tools.workspace.filesystem_create import filesystem_create
from recto.tools.workspace.filesystem_edit import filesystem_edit
from recto.tools.workspace.filesystem_read import filesystem_read
from recto.tools.workspace.sandbox_fetch_user_file import sandbox_fetch_user_file

FILE = "tools.py"
PACKAGE = Path(__file__).parents[1].resolve()
GROUP = "recto.tools"
NOT_INSTALLED = (
    "it imports {name}, which is not installed here. Install the package that has it, often of the same name, into the"
    " Python that Recto runs in: {python} -m pip install {name}"
)
BUILT_IN: tuple[Callable[..., object], ...] = (
    current_time,
    calculator,
    recall,
    read_files,
    read_documents,
    sandbox_fetch_user_file,
    filesystem_read,
    filesystem_create,
    filesystem_edit,
    terminal_execute,
    terminal_jobs,
    ace_text_search,
)


def make_built_in_tools() -> tuple[Tool, ...]:
    """Return the tools that every agent may name. Hidden tools are not included."""
    return tuple(map(make_tool, BUILT_IN))


def select_built_in_tools(
    agent_tools: Sequence[str], takes_documents: bool, built_in: Mapping[str, Tool]
) -> tuple[Tool, ...]:
    """Return an agent's built-in tools, each once, with the document tools if it accepts documents (F5, F6)."""
    names = dict.fromkeys(with_reading(agent_tools, takes_documents))
    own_tools = [built_in[name] for name in names]
    hidden = [replace(make_tool(file_read), is_offered=False)] if READING in names else []
    return (*own_tools, *hidden)


def make_agent_tools(agent: Agent, built_in: Mapping[str, Tool]) -> tuple[Tool, ...]:
    """Return an agent's own tools: those of its skills, then those it names."""
    own_tools = select_built_in_tools(agent.tools, agent.file_input.takes_documents, built_in)
    return (*make_skill_tools(agent.skills.values()), *own_tools)


def make_skill_tools(skills: Iterable[Skill]) -> tuple[Tool, ...]:
    """Return the tools that activate a skill and, if any skill has files, read them."""
    all_skills = tuple(skills)
    readers = [make_tool(read_skill_file)] if any(skill.files for skill in all_skills) else []
    return (make_tool(use_skill), *readers) if all_skills else ()


def load_folder_tools(folder: Path) -> tuple[Tool, ...]:
    """Return the tools of an agent's folder: functions marked with `@tool`, else all public typed ones."""
    path = folder.resolve() / FILE
    if not path.is_file():
        return ()
    module = _import_file(path)
    values = cast("dict[str, object]", vars(module)).values()
    functions = dict.fromkeys([value for value in values if inspect.isfunction(value)])
    # Marked functions may be imported from other modules.
    marked = [one for one in functions if get_mark(one)]
    own = [one for one in functions if one.__module__ == module.__name__ and not one.__name__.startswith("_")]
    return tuple(map(make_tool, marked or filter(inspect.get_annotations, own)))


def load_package_tools() -> tuple[Tool, ...]:
    """Return the tools of installed packages: entry points that name a function, a tool, or several of them."""
    points = sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))
    return tuple([tool for point in points for tool in _load_point(point)])


class _UncachedLoader(SourceFileLoader):
    """Loader that reads the source each time and writes no bytecode into the agent's folder."""

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.get_filename(fullname)), self.path)


def _import_file(path: Path) -> ModuleType:
    name = f"recto_tools_{hashlib.sha256(str(path).encode()).hexdigest()[:16]}"
    # Files in this package use cached bytecode, like its other modules.
    loader = SourceFileLoader(name, str(path)) if path.is_relative_to(PACKAGE) else _UncachedLoader(name, str(path))
    spec = spec_from_loader(name, loader)
    if spec is None:
        raise _import_error(path, ImportError(name))
    module = module_from_spec(spec)
    # Register the module, because dataclasses and type hints look it up by name.
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    # User code may raise anything, including SystemExit. Report the file and line to its author.
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise _import_error(path, error) from error
    return module


def _import_error(path: Path, error: BaseException) -> SettingsError:
    # Report the deepest line of the file in the traceback, or the line that cannot be parsed.
    frames = walk_tb(error.__traceback__)
    lines: list[int | None] = [number for frame, number in frames if frame.f_code.co_filename == str(path)]
    if isinstance(error, SyntaxError) and error.filename == str(path):
        lines.append(error.lineno)
    line = f":{lines[-1]}" if lines and lines[-1] else ""
    problem = f"it cannot be imported: {type(error).__name__}: {error}"
    if isinstance(error, ModuleNotFoundError) and error.name:
        problem = NOT_INSTALLED.format(name=error.name.partition(".")[0], python=sys.executable)
    return SettingsError(name=FILE, value=f"{path}{line}", allowed=problem)


def _load_point(point: EntryPoint) -> Iterator[Tool]:
    from recto.tools.client_schema import Schemas  # here: it is slow, and few servers have such packages

    try:
        value = cast("object", point.load())
    # User code may raise anything, including SystemExit.
    except (Exception, SystemExit) as error:
        raise _entry_point_error(point, f"it cannot be loaded: {type(error).__name__}: {error}") from error
    for one in cast("Iterable[object]", value) if isinstance(value, Iterable) else (value,):
        if isinstance(one, FunctionType):
            try:
                yield make_tool(one)
            except SettingsError as error:
                raise _entry_point_error(point, str(error).rstrip(".")) from error
            continue
        if not isinstance(one, Tool):
            raise _entry_point_error(point, f"it names {one!r}; name a function, a tool, or an iterable of them")
        # Check the name and schema of a ready-made tool, because providers must accept them (P11).
        if not NAME.fullmatch(one.name):
            raise _entry_point_error(point, f"tool {one.name!r}: a name is 1 to 64 letters, digits, _ or -, all ASCII")
        try:
            Schemas().admit_now((one.offer,))
        except WireError as error:
            raise _entry_point_error(point, error.problem) from error
        yield one


def _entry_point_error(point: EntryPoint, problem: str) -> SettingsError:
    return SettingsError(name=f"entry point {GROUP}", value=f"{point.name} = {point.value}", allowed=problem)
