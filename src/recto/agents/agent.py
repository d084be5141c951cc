"""An agent as a value: who it is, what it may do, how much it may use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from recto.page import CompactSettings, FoldSettings, Prompt, SummarySettings
from recto.page.canonical import Json
from recto.page.facts import ToolCalling


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a run may use: replies of the model, seconds from its start, seconds and characters of each tool.

    `failures` of the model in a row, replies in a row whose calls no tool could take, and `claims`: how often a run may
    be taken up again before it is given up as one that brings its worker down.
    """

    steps: int = 50
    seconds: float = 1_800
    tool_seconds: float = 120
    tool_characters: int = 50_000
    failures: int = 4
    bad_arguments: int = 3
    claims: int = 20
    compactions: int = 3


@dataclass(frozen=True, kw_only=True)
class Agent:
    """An agent. `tools` are names; `history` and `budget` as in a page's facts; `options` are fields of the request."""

    name: str
    prompt: Prompt
    tools: tuple[str, ...] = ()
    history: int | None = None
    budget: int | None = None
    locale: str = "en"
    tool_calling: ToolCalling = "native"
    options: Mapping[str, Json] = field(default_factory=dict[str, Json])
    fold: FoldSettings = FoldSettings()
    compact: CompactSettings = CompactSettings()
    summary: SummarySettings = SummarySettings(locale="en")
    limits: Limits = Limits()


IDENTITY = "You are a helpful assistant. Use the tools you have where they help, and say what you did."
CHAT = Agent(
    name="chat",
    prompt=Prompt(identity=IDENTITY),
    tools=("current_time", "calculator"),
)
