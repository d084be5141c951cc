"""Where tools come from: built in, `tools.py` in an agent's folder (C5), and installed packages."""

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
from types import CodeType, FunctionType, ModuleType
from typing import cast

from recto.agents.agent import Agent
from recto.agents.file_input import READING, with_reading
from recto.errors import SettingsError, WireError
from recto.skills.skill import Skill
from recto.tools.builtin.calculator import calculator
from recto.tools.builtin.current_time import current_time
from recto.tools.builtin.read_skill_file import read_skill_file
from recto.tools.builtin.recall import recall
from recto.tools.builtin.use_skill import use_skill
from recto.tools.commands.terminal_execute import terminal_execute
from recto.tools.commands.terminal_jobs import terminal_jobs
from recto.tools.documents.read_documents import read_documents
from recto.tools.documents.read_files import file_read, read_files
from recto.tools.function import NAME, tool_from
from recto.tools.mark import mark_of
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


def tools_built_in() -> tuple[Tool, ...]:
    """The tools every agent may have. Hidden ones are not among them: nobody can name them."""
    return tuple(map(tool_from, BUILT_IN))


def tools_for(agent_tools: Sequence[str], takes_documents: bool, built_in: Mapping[str, Tool]) -> tuple[Tool, ...]:
    """The built-in tools of an agent, each once: those it names, and to read documents where it takes any (F5, F6)."""
    names = dict.fromkeys(with_reading(agent_tools, takes_documents))
    named = [built_in[name] for name in names]
    hidden = [replace(tool_from(file_read), is_offered=False)] if READING in names else []
    return (*named, *hidden)


def tools_of_agent(agent: Agent, built_in: Mapping[str, Tool]) -> tuple[Tool, ...]:
    """The tools of ours that an agent has: those of skills, then those it names."""
    named = tools_for(agent.tools, agent.file_input.takes_documents, built_in)
    return (*tools_of_skills(agent.skills.values()), *named)


def tools_of_skills(skills: Iterable[Skill]) -> tuple[Tool, ...]:
    """The tools that come with skills: to take one up, and to read what they bring along, where one brings anything."""
    found = tuple(skills)
    reading = [tool_from(read_skill_file)] if any(skill.files for skill in found) else []
    return (tool_from(use_skill), *reading) if found else ()


def tools_of_folder(folder: Path) -> tuple[Tool, ...]:
    """The tools of an agent's folder: functions marked with `@tool`, else all public typed ones its file defines."""
    path = folder.resolve() / FILE
    if not path.is_file():
        return ()
    functions = _functions(_imported(path))
    marked = [function for function in functions if mark_of(function)]
    return tuple(map(tool_from, marked or filter(_is_typed, functions)))


def tools_of_packages() -> tuple[Tool, ...]:
    """The tools of installed packages: entry points that name a function, a tool, or several of them."""
    points = sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))
    return tuple([tool for point in points for tool in _tools_of_point(point)])


class _Uncached(SourceFileLoader):
    """Reads the source each time and writes no bytecode into the agent's folder."""

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.get_filename(fullname)), self.path)


def _imported(path: Path) -> ModuleType:
    name = f"recto_tools_{hashlib.sha256(str(path).encode()).hexdigest()[:16]}"
    # Those that come with this package have bytecode beside them, as all of it has.
    loader = SourceFileLoader(name, str(path)) if path.is_relative_to(PACKAGE) else _Uncached(name, str(path))
    spec = spec_from_loader(name, loader)
    if spec is None:
        raise _broken(path, ImportError(name))
    module = module_from_spec(spec)
    # Dataclasses and type hints look their module up by name.
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    # The file is somebody else's code: whatever it raises, the person who wrote it reads where.
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise _broken(path, error) from error
    return module


def _functions(module: ModuleType) -> list[FunctionType]:
    """Marked functions wherever they come from, and the module's own public ones; each once, as the file has them."""
    values = cast("dict[str, object]", vars(module)).values()
    found = dict.fromkeys([value for value in values if inspect.isfunction(value)])
    return [function for function in found if mark_of(function) or _is_own(function, module)]


def _is_own(function: FunctionType, module: ModuleType) -> bool:
    return function.__module__ == module.__name__ and not function.__name__.startswith("_")


def _is_typed(function: FunctionType) -> bool:
    return bool(inspect.get_annotations(function))


def _broken(path: Path, error: BaseException) -> SettingsError:
    line = f":{found}" if (found := _line(path, error)) else ""
    problem = f"it cannot be imported: {type(error).__name__}: {error}"
    if isinstance(error, ModuleNotFoundError) and error.name:
        problem = NOT_INSTALLED.format(name=error.name.partition(".")[0], python=sys.executable)
    return SettingsError(name=FILE, value=f"{path}{line}", allowed=problem)


def _line(path: Path, error: BaseException) -> int | None:
    """The line of the file that the error comes from: the deepest one, or the one that cannot be parsed."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return error.lineno
    lines = list[int]()
    trace = error.__traceback__
    while trace is not None:
        lines += [trace.tb_lineno] if trace.tb_frame.f_code.co_filename == str(path) else []
        trace = trace.tb_next
    return lines[-1] if lines else None


def _tools_of_point(point: EntryPoint) -> Iterator[Tool]:
    try:
        value = cast("object", point.load())
    # An installed package is somebody else's code, as above.
    except (Exception, SystemExit) as error:
        raise _broken_point(point, f"it cannot be loaded: {type(error).__name__}: {error}") from error
    for one in cast("Iterable[object]", value) if isinstance(value, Iterable) else (value,):
        if not isinstance(one, Tool | FunctionType):
            raise _broken_point(point, f"it names {one!r}; name a function, a tool, or an iterable of them")
        yield _checked(point, one) if isinstance(one, Tool) else _tool_of_point(point, one)


def _checked(point: EntryPoint, tool: Tool) -> Tool:
    """A tool that a package made itself, if providers take it (P11)."""
    from recto.tools.client_schema import Schemas

    if not NAME.fullmatch(tool.name):
        raise _broken_point(point, f"tool {tool.name!r}: a name is 1 to 64 letters, digits, _ or -, all ASCII")
    try:
        Schemas().admit_now((tool.offer,))
    except WireError as error:
        raise _broken_point(point, error.problem) from error
    return tool


def _tool_of_point(point: EntryPoint, function: FunctionType) -> Tool:
    try:
        return tool_from(function)
    except SettingsError as error:
        raise _broken_point(point, str(error).rstrip(".")) from error


def _broken_point(point: EntryPoint, problem: str) -> SettingsError:
    return SettingsError(name=f"entry point {GROUP}", value=f"{point.name} = {point.value}", allowed=problem)
