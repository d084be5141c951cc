"""Schema and validation of the settings in `AGENT.md`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from ipaddress import IPv4Address
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from recto.agents.agent import CASES, CHAT, DIRECTORY_TOKENS, VOICE, ActivatedBy, ClientView, Effort, Titles
from recto.agents.external_tools import McpTable, OpenApiTable, ServerName, external_faults
from recto.agents.file_input import FileInput, FileMode
from recto.agents.fold_table import CostTable, Fold, on_or_off, rule_table
from recto.agents.profile_schema import schema_faults
from recto.config.problem import Fault
from recto.config.run_settings import Mode
from recto.config.settings import Limits
from recto.config.table_check import (
    ANY,
    Count,
    CountOrZero,
    Table,
    TableForm,
    Zone,
    check,
    line_of,
    matching,
    nearest,
    require,
    value_fault,
)
from recto.config.yaml_values import Values, YamlPath
from recto.conversation.file_formats import format_by_ending
from recto.conversation.messages import CallForm, ToolCalling
from recto.errors import SettingsError
from recto.page.fold.rules import RULES, SEARCH
from recto.page.prompt.summarise import SummarySettings, summary_pieces
from recto.page.text.tokens import OFFLINE
from recto.page.wire.formats import SPEAKERS, WIRES

# Minimum of `directory_tokens`, because the description of `use_skill` alone needs this many.
LEAST_DIRECTORY = 300
MOST_STARTERS, LONGEST_STARTER = 6, 200

MODEL = re.compile(rf"demo|({'|'.join(map(re.escape, SPEAKERS))}):\S(.*\S)?")
*FORMS, LAST_FORM = ("demo", *[f"{provider}:NAME" for provider in SPEAKERS])
MODEL_RULE = f"it is {', '.join(FORMS)} or {LAST_FORM}"
ENDING = re.compile(r"[^\s./\\]{1,20}")
# Pattern for a host, all hosts below a name (*.example.com), or all hosts (*), with an optional port.
LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
HOST = re.compile(rf"(\*|(?P<below>\*\.)?(?P<name>({LABEL}\.)*{LABEL}))(:(?P<port>[0-9]{{1,5}}))?")
HOST_CHARACTERS = 253
PORTS = range(1, 65_536)
# Hosts that end in a number, which programs parse as an address in one of several old spellings.
NUMBER = re.compile(r"(.*\.)?([0-9]+|0x[0-9a-f]*)")
WORD = re.compile(r"[a-z0-9_-]{1,32}")
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
# Fold settings by the name of a mode.
FOLDS = {"eager": {}, "cost": {"mode": "cost", SEARCH.name: True}, "off": {rule.name: False for rule in RULES}}
# Fields of the request that pages set, and that agents cannot set.
OURS = frozenset({"stream"}).union(*[wire.own_fields for wire in WIRES.values()])


def _named_fold(value: object) -> object:
    return FOLDS.get(value, value) if isinstance(value, str) else value


def _number_or_all(value: object) -> object:
    return None if value == "all" else value


def _ending(value: str) -> str:
    ending = value.removeprefix(".").lower()
    if not ENDING.fullmatch(ending):
        raise ValueError("it is a file name ending, such as gpx")
    formats = format_by_ending(ending)
    if formats and formats.kind != "document":
        raise ValueError(f"such files are of kind {formats.kind}, which has its own switch")
    return ending


def _host(value: str) -> str:
    host = value.lower()
    match = HOST.fullmatch(host)
    if not match or len(match[1]) > HOST_CHARACTERS:
        raise ValueError("it is a host such as example.com or example.com:8443, *.example.com for those below, or *")
    if match["port"] and int(match["port"]) not in PORTS:
        raise ValueError(f"ports are {PORTS[0]} to {PORTS[-1]}")
    name = match["name"] or ""
    if NUMBER.fullmatch(name):
        try:
            IPv4Address(f"{match['below'] or ''}{name}")
        except ValueError:
            allowed = "a host that ends in a number is an IPv4 address such as 192.0.2.1, without hosts below it"
            raise ValueError(allowed) from None
    return host


Starter = Annotated[
    str,
    StringConstraints(strip_whitespace=True),
    require(
        lambda value: len(value) <= LONGEST_STARTER and value.splitlines() == [value],
        f"it is one line of 1 to {LONGEST_STARTER} characters",
    ),
]
# Names of voices and tiers.
Name = Annotated[str, matching(WORD, "a name has 1 to 32 lower-case letters, digits, - or _, all ASCII")]


class FileInputTable(Table):
    """Settings of `file_input`. A table enables it."""

    on: bool = True
    documents: bool | None = None
    images: bool | None = None
    audio: bool | None = None
    video: bool | None = None
    endings: list[Annotated[str, AfterValidator(_ending)]] | None = None
    max_files: Count | None = None
    max_bytes: Count | None = None
    mode: FileMode | None = None
    quote_tokens: Count | None = None
    urls: list[Annotated[str, AfterValidator(_host)]] | None = None


class CompactTable(Table):
    """Settings of `compact`."""

    at: Annotated[float, Field(gt=0, le=1)] | None = None
    least: CountOrZero | None = None
    keep: Annotated[float, Field(ge=0, le=1)] | None = None
    last: Annotated[float, Field(ge=0, le=1)] | None = None
    again: Annotated[float, Field(ge=0, le=1)] | None = None


class SummaryTable(Table):
    """Settings of `summary`, the request for a summary."""

    tokens: Count | None = None
    summary_tokens: Count | None = None
    characters_per_message: Count | None = None


class PhaseTable(Table):
    """Settings of `phases.select` and `phases.execute`."""

    history: Annotated[CountOrZero | None, BeforeValidator(_number_or_all)] = None
    budget: Count | None = None


class PhasesTable(Table):
    """Settings of `phases`, for agents with skills."""

    select: PhaseTable = PhaseTable()
    execute: PhaseTable = PhaseTable()


class AgentTable(Table):
    """Settings of an agent. None selects the server's or the model's."""

    name: str | None = None
    description: str = ""
    starters: Annotated[list[Starter], Field(max_length=MOST_STARTERS)] = Field(default_factory=list[str])
    tone: str = ""
    rules: str = ""
    locale: Literal["zh", "en"] = "en"
    timezone: Zone | None = None
    model: Annotated[str, matching(MODEL, MODEL_RULE)] | None = None
    window: Count | None = None
    vision: bool | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    max_tokens: Count | None = None
    reasoning_effort: Effort | None = None
    tools: list[str] = Field(default_factory=lambda: list(CHAT.tools))
    confirm: list[str] = Field(default_factory=list[str])
    mcp: dict[ServerName, McpTable] = Field(default_factory=dict[str, McpTable])
    openapi: dict[ServerName, OpenApiTable] = Field(default_factory=dict[str, OpenApiTable])
    workspace: Annotated[str, Field(min_length=1)] | None = None
    mode: Mode | None = None
    tool_calling: ToolCalling | None = None
    call_form: CallForm = "fenced"
    activation: ActivatedBy | None = None
    tool_choice: Annotated[str, matching(TOOL_NAME, "it is auto, none, required or the name of a tool")] | None = None
    output: dict[str, object] | None = None
    options: dict[str, object] = Field(default_factory=dict[str, object])
    file_input: Annotated[FileInputTable, BeforeValidator(on_or_off)] = FileInputTable(on=False)
    quote: str = ""
    datasets: list[Annotated[str, Field(min_length=1)]] = Field(default_factory=list[str])
    history: Annotated[CountOrZero | None, BeforeValidator(_number_or_all)] = None
    budget: Count | None = None
    phases: PhasesTable = PhasesTable()
    directory_tokens: Annotated[int, Field(ge=LEAST_DIRECTORY)] = DIRECTORY_TOKENS
    cases: Annotated[int, Field(ge=0, le=20)] = CASES
    voices: dict[Name, Annotated[str, Field(min_length=1)]] = Field(default_factory=dict[str, str])
    voice: str = VOICE
    fold: Annotated[Fold, BeforeValidator(_named_fold)] = Fold()
    compact: CompactTable = CompactTable()
    summary: SummaryTable = SummaryTable()
    limits: Limits = Limits()
    tiers: dict[Name, Limits] = Field(default_factory=dict[str, Limits])
    titles: Titles = "words"
    client_system: bool = False
    client_view: ClientView = "roll_back"


# Table at each path, used to suggest names for unknown settings.
TABLES: dict[tuple[str, ...], type[Table]] = {
    (): AgentTable,
    ("mcp", ANY): McpTable,
    ("openapi", ANY): OpenApiTable,
    ("file_input",): FileInputTable,
    ("fold",): Fold,
    ("fold", "cost"): CostTable,
    **{("fold", rule.name): rule_table(rule) for rule in RULES},
    ("compact",): CompactTable,
    ("phases",): PhasesTable,
    ("phases", "select"): PhaseTable,
    ("phases", "execute"): PhaseTable,
    ("summary",): SummaryTable,
    ("limits",): Limits,
    ("tiers", ANY): Limits,
}
# Tables whose values providers define. Null may have a meaning in them.
FREE = ("options", "output")


# Allowed values of settings with several types.
MIXED: Mapping[YamlPath, str] = {
    ("file_input",): "it is true, false or a table",
    ("history",): "it is `all` or a number of messages, 0 or more",
    ("fold",): "it is `eager`, `cost`, `off` or a table",
    **{("fold", rule.name): "it is true, false or a table" for rule in RULES},
}
FORM = TableForm(root=AgentTable, tables=TABLES, mixed=MIXED, free=FREE)


def check_settings(values: Values, folder_name: str) -> tuple[AgentTable, tuple[Fault, ...]]:
    """Return the settings and all faults. Invalid values are replaced by their defaults."""
    table, faults = check(values, FORM)
    return table, (*faults, *_further(table, values, folder_name))


def check_tools(values: Values, table: AgentTable, names: Collection[str]) -> Iterator[Fault]:
    """Yield a fault for each unknown name in `tools`."""
    tool_names = values.values.get("tools", table.tools)
    for number, name in enumerate(tool_names if isinstance(tool_names, list) else ()):
        if isinstance(name, str) and name not in names:
            allowed = "there is no such tool built in" + nearest(name, names)
            yield value_fault(values, ("tools", number), name, f"{allowed}. Tools of tools.py are always available")


def _further(table: AgentTable, parsed_values: Values, folder_name: str) -> Iterator[Fault]:
    """Yield faults that the schema does not find."""
    if table.name is not None and table.name != folder_name:
        allowed = f"the folder's name applies, and it is {folder_name!r}. Remove the line or rename the folder"
        yield value_fault(parsed_values, ("name",), table.name, allowed)
    lists = {"tools": table.tools, "confirm": table.confirm, "datasets": table.datasets, "starters": table.starters}
    for name, values in lists.items():
        for number in [number for number, value in enumerate(values) if value in values[:number]]:
            yield value_fault(parsed_values, (name, number), values[number], "it is in the list twice")
    for name in table.options:
        if name in OURS:
            text = f"options.{name} is not allowed: Recto sets it itself. Remove the line."
            yield Fault(line=parsed_values.names["options", name], text=text)
    yield from external_faults(table.mcp, table.openapi, parsed_values)
    if table.output is not None:
        yield from schema_faults(table.output, parsed_values, ("output",))
    if table.summary != SummaryTable():
        # Check the request size here: a size too small for any text would otherwise fail at the first summary.
        try:
            summary_pieces((), settings=summary_settings(table.summary, "en"), counter=OFFLINE)
        except SettingsError as error:
            yield Fault(line=line_of(parsed_values, ("summary", "tokens")), text=str(error).removeprefix("Setting "))
    if "voice" in parsed_values.values and table.voice not in table.voices:
        yield value_fault(
            parsed_values, ("voice",), table.voice, f"voices has no such name{nearest(table.voice, table.voices)}"
        )


def file_input(table: FileInputTable) -> FileInput:
    """Return the attachments that the agent accepts."""
    values = table.model_dump(exclude_none=True, exclude={"on", "endings", "urls"})
    endings, urls = tuple(table.endings or ()), tuple(table.urls or ())
    return FileInput(is_on=table.on, endings=endings, urls=urls, **values)


def summary_settings(table: SummaryTable, locale: str) -> SummarySettings:
    """Return the settings of summary requests in the agent's language."""
    return SummarySettings(locale=locale, **table.model_dump(exclude_none=True))
