"""Agents as values: persona, tools, skills, limits."""

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
# Treatment of messages that a client no longer shows: roll back the thread (P15), or ignore the difference.
ClientView: TypeAlias = Literal["roll_back", "ignore"]
# Activation of skills: by the model alone, or also by triggers in a user's message.
ActivatedBy: TypeAlias = Literal["model", "triggers"]
Titles: TypeAlias = Literal["words", "model"]
DIRECTORY_TOKENS, CASES, VOICE = 1_200, 2, "warm"


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Sampling parameters; None leaves them to the model.

    `tool_choice` is `auto`, `none`, `required` or the name of a tool; `output` is the JSON Schema of answers, as text.
    """

    temperature: float | None = None
    max_tokens: int | None = None
    reasoning_effort: Effort | None = None
    tool_choice: str | None = None
    output: str | None = None


@dataclass(frozen=True, kw_only=True)
class Agent:
    """An agent. None selects the server's setting.

    For `vision`, `tool_calling` and `activation`, None selects the model's default.
    """

    name: str
    description: str = ""
    # Suggested first messages.
    starters: tuple[str, ...] = ()

    # Prompt. With `client_system`, a client's system and developer messages extend the prompt. Otherwise they are
    # context with a user's authority. `voices` are texts of the tone section by name; `voice` is the default (S11).
    prompt: Prompt
    voices: Mapping[str, str] = field(default_factory=dict[str, str])
    voice: str = VOICE
    client_system: bool = False
    client_view: ClientView = "roll_back"

    # Language. `variant_of` is the name of the agent that this one translates.
    locale: str = "en"
    variant_of: str | None = None
    timezone: str | None = None

    # Model. `options` are fields of the request. `call_form` is the form of calls written as text.
    model: str | None = None
    window: int | None = None
    vision: bool | None = None
    sampling: Sampling = Sampling()
    options: Mapping[str, Json] = field(default_factory=dict[str, Json])
    tool_calling: ToolCalling | None = None
    call_form: CallForm = "fenced"
    titles: Titles = "words"

    # Tools, by name. Calls of the tools in `confirm` need approval. `mode` selects which actions in `workspace` need
    # approval.
    tools: tuple[str, ...] = ()
    confirm: tuple[str, ...] = ()
    mcp: tuple[McpSettings, ...] = ()
    openapi: tuple[OpenApiSettings, ...] = ()
    workspace: Path | None = None
    mode: Mode | None = None

    # Files and knowledge. `quote` is a text that all pages contain (D2); `datasets` are ids of knowledge bases.
    file_input: FileInput = OFF
    quote: str = ""
    datasets: tuple[str, ...] = ()

    # Skills. Pages belong to a phase (S1): `select` while a thread has no skill, `execute` afterwards.
    # `directory_tokens` limits the offer of `use_skill`, and `cases` limits the cases of an expert.
    skills: Mapping[str, Skill] = field(default_factory=dict[str, Skill])
    select: Phase = SELECT
    execute: Phase = EXECUTE
    directory_tokens: int = DIRECTORY_TOKENS
    cases: int = CASES
    activation: ActivatedBy | None = None

    # User profiles: their JSON Schema, as text, and the headings of the fields.
    profile_schema: str | None = None
    field_titles: Mapping[str, str] = field(default_factory=dict[str, str])

    # Pages. `history` and `budget` have the same meaning as in the facts of a page.
    history: int | None = None
    budget: int | None = None
    fold: FoldSettings = FoldSettings()
    compact: CompactSettings = CompactSettings()
    summary: SummarySettings = SummarySettings(locale="en")

    # Limits of a run. `tiers` contains the limits for users in other tiers.
    limits: Limits = Limits()
    tiers: Mapping[str, Limits] = field(default_factory=dict[str, Limits])

    @cached_property
    def use_skill(self) -> Mapping[str, ToolOffer]:
        """Return the offers of `use_skill` by phase. Only the phase `execute` offers to deactivate a skill."""
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
        """Return the compaction settings for the agent's window. Without one, use the given window."""
        return replace(self.compact, window=self.window or window)

    def tone_of(self, voice: str | None) -> str:
        """Return the text of the tone section: the agent's own text and the text of a voice."""
        return "\n\n".join(filter(None, (self.prompt.tone, self.voices.get(voice or self.voice, ""))))


# Agent name of the gateway's threads. The name is reserved.
GATEWAY = "gateway"
IDENTITY = "You are a helpful assistant. Use the tools you have where they help, and say what you did."
CHAT = Agent(
    name="chat",
    prompt=Prompt(identity=IDENTITY),
    tools=("current_time", "calculator"),
    file_input=FileInput(is_on=True),
)
