"""Values of `AGENT.md` checked as settings: every fault with its line, what is wrong and what is allowed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from recto.agents.file_input import FileInput
from recto.agents.schema_faults import schema_faults
from recto.agents.tables import FREE, OURS, TABLES, AgentTable, FileInputTable, SummaryTable
from recto.config.checked import Form, check, line_of, nearest, told
from recto.config.problem import Fault
from recto.config.yaml_values import Place, Values
from recto.errors import SettingsError
from recto.page import SummarySettings, summary_pieces
from recto.page.tokens import OFFLINE

# What is allowed where a value may be of more than one type.
MIXED: Mapping[Place, str] = {
    ("file_input",): "it is true, false or a table",
    ("history",): "it is `all` or a number of messages, 0 or more",
    ("fold",): "it is `eager`, `off` or a table",
    ("fold", "reads"): "it is true, false or a table",
    ("fold", "terminal"): "it is true, false or a table",
    ("fold", "search"): "it is true, false or a table",
}
FORM = Form(root=AgentTable, tables=TABLES, mixed=MIXED, free=FREE)


def check_settings(found: Values, folder_name: str) -> tuple[AgentTable, tuple[Fault, ...]]:
    """The settings, and every fault in them. What is wrong has its default."""
    table, faults = check(found, FORM)
    return table, (*faults, *_further(table, found, folder_name))


def check_tools(found: Values, table: AgentTable, known: Collection[str]) -> Iterator[Fault]:
    """Tools that are named and do not exist."""
    named = found.values.get("tools", table.tools)
    for number, name in enumerate(named if isinstance(named, list) else ()):
        if isinstance(name, str) and name not in known:
            allowed = "there is no such tool built in" + nearest(name, known)
            yield told(found, ("tools", number), name, f"{allowed}. Those of tools.py need no mention")


def _further(table: AgentTable, found: Values, folder_name: str) -> Iterator[Fault]:
    """What the type of a single value does not tell."""
    if table.name is not None and table.name != folder_name:
        allowed = f"the folder's name decides, and it is {folder_name!r}. Take the line out or rename the folder"
        yield told(found, ("name",), table.name, allowed)
    for name, values in (("tools", table.tools), ("datasets", table.datasets)):
        for number in [number for number, value in enumerate(values) if value in values[:number]]:
            yield told(found, (name, number), values[number], "it is in the list already")
    for name in table.options:
        if name in OURS:
            text = f"options.{name} cannot be given: the page says it itself. Take the line out."
            yield Fault(line=found.names["options", name], text=text)
    if table.output is not None:
        yield from schema_faults(table.output, found, ("output",))
    if table.summary != SummaryTable():
        yield from _summary_faults(table.summary, found)
    if "voice" in found.values and table.voice not in table.voices:
        yield told(found, ("voice",), table.voice, f"voices has none of that name{nearest(table.voice, table.voices)}")


def _summary_faults(table: SummaryTable, found: Values) -> Iterator[Fault]:
    """A request too small for any text would fail only when the first summary is asked for."""
    try:
        summary_pieces((), settings=summary_settings(table, "en"), counter=OFFLINE)
    except SettingsError as error:
        yield Fault(line=line_of(found, ("summary", "tokens")), text=str(error).removeprefix("Setting "))


def file_input(table: FileInputTable) -> FileInput:
    """What files the agent takes."""
    given = table.model_dump(exclude_none=True, exclude={"on", "endings", "urls"})
    endings, urls = tuple(table.endings or ()), tuple(table.urls or ())
    return FileInput(is_on=table.on, endings=endings, urls=urls, **given)


def summary_settings(table: SummaryTable, locale: str) -> SummarySettings:
    """How a summary is asked for, in the agent's language."""
    return SummarySettings(locale=locale, **table.model_dump(exclude_none=True))
