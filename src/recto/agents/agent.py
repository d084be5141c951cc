"""An agent as a value: who it is, what it may do, how much it may use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeAlias

from recto.agents.external_tools import McpSettings, OpenApiSettings
from recto.agents.file_input import OFF, FileInput
from recto.config.run_settings import Mode
from recto.config.settings import Limits
from recto.conversation.json import Json
from recto.conversation.messages import CallForm, ToolCalling, ToolOffer
from recto.page.facts import EXECUTE, SELECT, Phase
from recto.page.fold.fold_settings import FoldSettings
from recto.page.prompt.summarise import SummarySettings
from recto.page.prompt.system_prompt import Prompt
from recto.page.steps.compact import CompactSettings
from recto.page.text.tokens import OFFLINE
from recto.skills.directory import use_skill_offer
from recto.skills.skill import Skill

Effort: TypeAlias = Literal["minimal", "low", "medium", "high"]
# Whether what a client no longer shows of a thread is rolled back (P15), or its list is looked at for what is new only.
ClientView: TypeAlias = Literal["roll_back", "ignore"]
# Who takes up a skill: the model alone, or also the words that a user says.
ActivatedBy: TypeAlias = Literal["model", "triggers"]
Titles: TypeAlias = Literal["words", "model"]
DIRECTORY_TOKENS, CASES, VOICE = 1_200, 2, "warm"


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How the model is asked. None leaves it to the model.

    `tool_choice` is `auto`, `none`, `required` or the name of a tool; `output` the JSON Schema an answer must follow,
    as text.
    """

    temperature: float | None = None
    max_tokens: int | None = None
    reasoning_effort: Effort | None = None
    tool_choice: str | None = None
    output: str | None = None


@dataclass(frozen=True, kw_only=True)
class Agent:
    """An agent. `tools` are names; `history` and `budget` as in a page's facts; `options` are fields of the request.

    A person has to agree to calls of tools that `confirm` names. `mcp` and `openapi` are where more tools are found,
    elsewhere. `workspace` is the folder it works in, `mode` what a person has to agree to there; by default the
    server's.

    Without a `model`, a `window` or a `timezone` it has the server's. How it calls tools (`tool_calling`) and who takes
    up its skills (`activation`) is the server's or that of its model, where it does not say; `call_form` is how calls
    in words are written. `titles` says who names a thread. `client_system`
    lets a client's system and developer messages speak as the system prompt; else they are context, with a user's
    authority. `client_view` says what the list of a client's messages means. `file_input` is what its users may
    attach, `quote` a text that all its pages carry (D2), `datasets` the ids of those it brings along. `vision` says
    whether its model sees pictures; None leaves it to what is known of the model.

    With `skills` its pages are those of a phase (S1): `select` while a thread has no skill, then `execute`. The offer
    of `use_skill` has `directory_tokens`, an expert is shown `cases` at most. `voices` are texts of the tone section,
    by the name a request asks for; `voice` is the one without (S11). `profile_schema` is what its users' profile has
    to follow, as JSON; `field_titles` are the headings of its fields. `tiers` has the limits of users of other tiers.
    `variant_of` is the agent that it is in another language. `starters` are words to begin a thread with, for people
    who do not know what to say.
    """

    name: str
    prompt: Prompt
    description: str = ""
    starters: tuple[str, ...] = ()
    model: str | None = None
    window: int | None = None
    sampling: Sampling = Sampling()
    titles: Titles = "words"
    client_system: bool = False
    client_view: ClientView = "roll_back"
    tools: tuple[str, ...] = ()
    confirm: tuple[str, ...] = ()
    mcp: tuple[McpSettings, ...] = ()
    openapi: tuple[OpenApiSettings, ...] = ()
    workspace: Path | None = None
    mode: Mode | None = None
    file_input: FileInput = OFF
    quote: str = ""
    datasets: tuple[str, ...] = ()
    vision: bool | None = None
    history: int | None = None
    budget: int | None = None
    skills: Mapping[str, Skill] = field(default_factory=dict[str, Skill])
    select: Phase = SELECT
    execute: Phase = EXECUTE
    directory_tokens: int = DIRECTORY_TOKENS
    cases: int = CASES
    voices: Mapping[str, str] = field(default_factory=dict[str, str])
    voice: str = VOICE
    profile_schema: str | None = None
    field_titles: Mapping[str, str] = field(default_factory=dict[str, str])
    tiers: Mapping[str, Limits] = field(default_factory=dict[str, Limits])
    locale: str = "en"
    variant_of: str | None = None
    timezone: str | None = None
    tool_calling: ToolCalling | None = None
    call_form: CallForm = "fenced"
    activation: ActivatedBy | None = None
    options: Mapping[str, Json] = field(default_factory=dict[str, Json])
    fold: FoldSettings = FoldSettings()
    compact: CompactSettings = CompactSettings()
    summary: SummarySettings = SummarySettings(locale="en")
    limits: Limits = Limits()

    @cached_property
    def use_skill(self) -> Mapping[str, ToolOffer]:
        """The tool that chooses a skill, by the phase it is offered in: whoever has none cannot leave it."""
        return {
            name: use_skill_offer(
                tuple(self.skills.values()),
                locale=self.locale,
                tokens=self.directory_tokens,
                counter=OFFLINE,
                with_core=name == EXECUTE.name,
            )
            for name in (SELECT.name, EXECUTE.name)
        }

    def compacting(self, window: int) -> CompactSettings:
        """When and how far its conversations are summarised, by its window or that of its model."""
        return replace(self.compact, window=self.window or window)

    def tone_of(self, voice: str | None) -> str:
        """The text of the tone section: the agent's own, and that of a voice."""
        return "\n\n".join(filter(None, (self.prompt.tone, self.voices.get(voice or self.voice, ""))))


# Requests that go through the gateway have their threads under this name, so no agent has it.
GATEWAY = "gateway"
IDENTITY = "You are a helpful assistant. Use the tools you have where they help, and say what you did."
CHAT = Agent(
    name="chat",
    prompt=Prompt(identity=IDENTITY),
    tools=("current_time", "calculator"),
    file_input=FileInput(is_on=True),
)
