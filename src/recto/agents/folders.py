"""Agents of a folder: each folder in it is an agent, by its name. Refuses to let a broken one keep others away."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from recto.agents.agent import CHAT, Agent, Limits, Sampling
from recto.agents.file_input import OLD_READING, READING, with_reading
from recto.agents.fold_table import with_table
from recto.agents.settings import check_settings, check_tools, file_input, summary_settings
from recto.agents.tables import AgentTable
from recto.config.frontmatter import LONGEST, Document, read_document
from recto.config.problem import Fault, Problem
from recto.config.yaml_values import Place
from recto.errors import SettingsError
from recto.page import CompactSettings, FoldSettings, Prompt
from recto.page.canonical import Json, dump
from recto.page.prompt import render
from recto.page.tokens import OFFLINE

FILE, TOOLS_FILE = "AGENT.md", "tools.py"
SHIPPED = Path(__file__).parent / "shipped"
NAME = re.compile(r"[A-Za-z0-9-][A-Za-z0-9_-]{0,63}")
NAME_RULE = "an agent's name has 1 to 64 letters, digits, - or _, all ASCII, and does not begin with _"
NO_PERSONA = "it has no persona, so the built-in one stands. Say who the agent is."
CHOICES = ("auto", "none", "required")


@dataclass(frozen=True, kw_only=True)
class Toolbox:
    """What tools there are: the names of those built in, and those that an agent's folder has whatever it says.

    The latter raises SettingsError for a folder whose tools cannot be loaded.
    """

    built_in: Collection[str]
    of_folder: Callable[[Path], Collection[str]]


@dataclass(frozen=True, kw_only=True)
class Loaded(Mapping[str, Agent]):
    """The agents that are whole, by name; `folders` has where each is. `broken` are left out, with their problems."""

    agents: Mapping[str, Agent] = field(default_factory=dict[str, Agent])
    folders: Mapping[str, Path] = field(default_factory=dict[str, Path])
    broken: Mapping[str, tuple[Problem, ...]] = field(default_factory=dict[str, tuple[Problem, ...]])
    warnings: tuple[Problem, ...] = ()

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Those of all broken agents."""
        return tuple([problem for problems in self.broken.values() for problem in problems])

    def __getitem__(self, name: str) -> Agent:
        return self.agents[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.agents)

    def __len__(self) -> int:
        return len(self.agents)


def load_agents(folder: Path | None, limits: Limits, tools: Toolbox | None = None) -> Loaded:
    """The shipped agents and those of a folder; one of the same name takes its place, a broken one too.

    An agent's own `limits` stand over those given. Without a toolbox nobody looks whether tools exist.
    """
    shipped = load_folder(SHIPPED, limits, tools)
    if folder is None:
        return shipped
    own = load_folder(folder, limits, tools)
    kept = [name for name in shipped if name not in own.broken]
    return Loaded(
        agents={**{name: shipped[name] for name in kept}, **own.agents},
        folders={**{name: shipped.folders[name] for name in kept}, **own.folders},
        broken={**shipped.broken, **own.broken},
        warnings=(*shipped.warnings, *own.warnings),
    )


def load_folder(folder: Path, limits: Limits, tools: Toolbox | None = None) -> Loaded:
    """The agents of a folder alone. A folder that cannot be read raises SettingsError."""
    try:
        found = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith((".", "_")))
    except OSError as error:
        allowed = f"it cannot be read ({error.strerror}). Name a folder of agents"
        raise SettingsError(name="agents", value=str(folder), allowed=allowed) from error
    read = {path: load_agent(path, limits, tools) for path in found}
    whole = {path: one.agent for path, one in read.items() if not one.problems}
    return Loaded(
        agents={path.name: agent for path, agent in whole.items()},
        folders={path.name: path for path in whole},
        broken={path.name: one.problems for path, one in read.items() if one.problems},
        warnings=tuple([warning for path in whole for warning in read[path].warnings]),
    )


@dataclass(frozen=True, kw_only=True)
class Read:
    """What was read of an agent's folder. With problems the agent is not the one that was meant."""

    agent: Agent
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()


def load_agent(folder: Path, limits: Limits, tools: Toolbox | None = None) -> Read:
    """One agent's folder as a value, with all that is wrong with it."""
    file = folder / FILE
    try:
        has_file, has_tools = file.exists(), (folder / TOOLS_FILE).exists()
        document = read_document(_beginning(file)) if has_file else Document()
    except OSError as error:
        text = f"it cannot be read ({error.strerror}). Put that right, or take it away."
        return Read(agent=CHAT, problems=(Problem(file=file, line=None, text=text),))
    if not (has_file or has_tools):
        text = f"there is neither {FILE} nor {TOOLS_FILE} in it. Write one, or begin its name with _ to leave it out."
        return Read(agent=CHAT, problems=(Problem(file=folder, line=None, text=text),))
    table, faults = check_settings(document.settings, folder.name)
    problems = [Problem(file=file, line=fault.line, text=fault.text) for fault in sorted(faults, key=_line)]
    if not NAME.fullmatch(folder.name):
        problems.append(Problem(file=folder, line=None, text=f"{NAME_RULE}. Rename the folder."))
    problems += _tool_problems(folder, document, table, tools) if tools else ()
    if problems:
        return Read(agent=CHAT, problems=tuple(problems))
    agent = _agent(folder.name, document.body, table, limits)
    warnings = [Problem(file=file, line=fault.line, text=fault.text) for fault in _doubts(agent, document)]
    if not has_file:
        warnings = [Problem(file=folder, line=None, text=f"there is no {FILE} in it: {NO_PERSONA}")]
    return Read(agent=agent, warnings=tuple(warnings))


def _beginning(file: Path) -> bytes:
    """As much as is read of any file; more of it is refused."""
    with file.open("rb") as stream:
        return stream.read(LONGEST + 1)


def _line(fault: Fault) -> int:
    return fault.line


def _tool_problems(folder: Path, document: Document, table: AgentTable, tools: Toolbox) -> Iterator[Problem]:
    """Tools that do not exist, cannot be loaded, or have a name twice."""
    file, found = folder / FILE, document.settings
    for fault in check_tools(found, table, tools.built_in):
        yield Problem(file=file, line=fault.line, text=fault.text)
    try:
        own = tools.of_folder(folder)
    except SettingsError as error:
        yield _of_tools_file(folder / TOOLS_FILE, error)
        return
    built_in = with_reading(table.tools, file_input(table.file_input).takes_documents)
    taken = (*built_in, OLD_READING) if READING in built_in else built_in
    for name in [name for name in taken if name in own]:
        text = f"the tool {name} is built in and in {TOOLS_FILE} too. Rename yours"
        text += f", or leave {name} out of `tools`." if name in table.tools else ": who takes documents has it."
        line = found.lines.get(("tools",))
        yield Problem(file=file if line else folder / TOOLS_FILE, line=line, text=text)
    choice = table.tool_choice
    if choice is not None and choice not in (*CHOICES, *built_in, *own):
        known = ", ".join((*CHOICES, *built_in, *own))
        text = f'tool_choice is "{choice}"; this agent has no such tool. Known: {known}.'
        yield Problem(file=file, line=found.lines.get(("tool_choice",)), text=text)


def _of_tools_file(file: Path, error: SettingsError) -> Problem:
    """The line is in the value; errors that are not about a line of the file itself are told as they are."""
    what = str(error).removeprefix(f"Setting {error.name} is {error.value!r}; ")
    match = re.fullmatch(rf"(?:(.*) in )?{re.escape(str(file.resolve()))}(?::(\d+))?", str(error.value), re.DOTALL)
    if match is None:
        return Problem(file=file, line=None, text=str(error))
    function, line = match.groups()
    return Problem(file=file, line=int(line) if line else None, text=f"{function}: {what}" if function else what)


def _agent(name: str, persona: str, table: AgentTable, limits: Limits) -> Agent:
    return Agent(
        name=name,
        prompt=Prompt(
            identity=persona or CHAT.prompt.identity,
            tone=table.tone.strip(),
            rules=table.rules.strip(),
        ),
        description=table.description,
        model=table.model,
        window=table.window,
        sampling=_sampling(table),
        titles=table.titles,
        client_system=table.client_system,
        vision=table.vision,
        tools=tuple(table.tools),
        file_input=file_input(table.file_input),
        quote=table.quote,
        datasets=tuple(table.datasets),
        history=table.history,
        budget=table.budget,
        locale=table.locale,
        tool_calling=table.tool_calling,
        # What came from YAML has no other types.
        options=cast("Mapping[str, Json]", table.options),
        fold=with_table(FoldSettings(), table.fold),
        compact=CompactSettings(**table.compact.model_dump(exclude_none=True)),
        summary=summary_settings(table.summary, table.locale),
        limits=replace(limits, **table.limits.model_dump(exclude_none=True)),
    )


def _sampling(table: AgentTable) -> Sampling:
    return Sampling(
        temperature=table.temperature,
        max_tokens=table.max_tokens,
        reasoning_effort=table.reasoning_effort,
        tool_choice=table.tool_choice,
        output=None if table.output is None else dump(table.output).decode(),
    )


def persona_tokens(agent: Agent) -> int:
    """The tokens of an agent's system prompt as it stands in every page."""
    return OFFLINE.count((render(agent.prompt, agent.locale),))[0]


def _doubts(agent: Agent, document: Document) -> Iterator[Fault]:
    """What is allowed and yet hardly meant."""
    lines = document.settings.lines
    if not document.body:
        yield Fault(line=document.end_line, text=NO_PERSONA)
    if agent.history == 0:
        text = "history is 0, so the model sees nothing of what was said before. Leave it out to show all."
        yield Fault(line=lines["history",], text=text)
    if agent.tool_calling == "prompt" and agent.sampling.tool_choice not in (None, "auto"):
        text = "tool_choice does nothing with tool_calling: prompt, which tells of tools in words. Leave it out."
        yield Fault(line=lines["tool_choice",], text=text)
    if agent.budget is not None and (tokens := persona_tokens(agent)) > agent.budget:
        text = f"budget is {agent.budget}, but the persona has {tokens} tokens and is never cut. Raise the budget."
        yield Fault(line=lines["budget",], text=text)
    yield from _file_doubts(agent, lines)


def _file_doubts(agent: Agent, lines: Mapping[Place, int]) -> Iterator[Fault]:
    files = agent.file_input
    mode, urls = ("file_input", "mode"), ("file_input", "urls")
    given = [place for place, is_given in ((mode, files.mode == "always"), (urls, files.urls)) if is_given]
    for place in given if not files.is_on else ():
        text = f"{'.'.join(place)} does nothing with file_input.on: false. Switch that on, or leave it out."
        yield Fault(line=lines[place], text=text)
    if mode not in given or not files.is_on:
        return
    if not files.takes_documents:
        text = "file_input.mode is always, but the agent takes no documents, so no page carries any. Leave it out."
        yield Fault(line=lines[mode], text=text)
    elif agent.quote.strip():
        text = "quote stands where file_input.mode: always puts the documents, so no page carries them. Leave one out."
        yield Fault(line=lines["quote",], text=text)
