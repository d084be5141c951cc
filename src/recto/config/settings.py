"""Settings of the server (C2), one tree: components take its branches. And the limits of a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from recto.config.access_settings import AuthSettings, BodyLimits, ConnectionLimits, GateSettings, StreamLimits
from recto.config.checked import Count, CountOrZero, Seconds, Table
from recto.config.file_settings import DocumentSettings, OutboundSettings, PictureSettings, PoolSettings, UploadRules
from recto.config.gateway_settings import GatewaySettings
from recto.config.run_settings import (
    BackoffSettings,
    Bounds,
    CleaningSettings,
    CommandSettings,
    DispatchSettings,
    ExternalSettings,
    FileToolSettings,
    HubSettings,
    LogCacheSettings,
    Mode,
    PostgresSettings,
    RecorderSettings,
    SchemaLimits,
    SearchSettings,
    SnapshotSettings,
    SqliteSettings,
    SuggestionSettings,
    Timeouts,
    TraceSettings,
    WorkSettings,
)
from recto.config.setting import NAME, Range, setting
from recto.config.zones import find_zone


def _check_zone(name: str) -> str:
    find_zone(name)
    return name


class Limits(Table):
    """What a run may use."""

    steps: Count = Field(default=50, description="Replies of the model in one run.")
    calls: Count = Field(
        default=128, description="Tool calls of one reply that are run; the model is told that more were not."
    )
    reply_characters: Count = Field(
        default=1_000_000,
        description="Characters of one reply, thoughts and arguments of calls too; one that has more ends there, with "
        "finish `length`.",
    )
    seconds: Seconds = Field(default=1_800, description="Seconds of one run.")
    tool_seconds: Seconds = Field(default=120, description="Seconds of one tool call.")
    tool_characters: Annotated[int, Field(ge=200)] = Field(default=50_000, description="Characters of a tool's result.")
    failures: Count = Field(default=4, description="Failures of the model in a row, before a run ends.")
    bad_arguments: CountOrZero = Field(
        default=3, description="Replies in a row whose calls no tool could take, before a run ends."
    )
    unusable_replies: CountOrZero = Field(
        default=2,
        description="How often a reply is asked for again that makes up a tool's result, or has a call that cannot be "
        "read; then the run ends.",
    )
    claims: Count = Field(
        default=20,
        description="How often a run may be taken up before it is given up as one that brings its worker down.",
    )
    compactions: Count = Field(default=3, description="Failed compactions in a row, before a run goes on without.")
    client_seconds: Seconds = Field(
        default=86_400, description="How long a client may take to answer a call of its own tool."
    )
    confirm_seconds: Seconds = Field(
        default=86_400, description="How long a person may take to agree to a call of a tool that asks for it."
    )

    def with_given(self, other: Limits) -> Limits:
        """These, but those that were given of the other in their place."""
        return self.model_copy(update=given(other))


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """Everything a server can be told."""

    host: str = setting("127.0.0.1", "Address to listen on.")
    port: int = setting(8787, "Port; 0 takes any that is free.", Range(least=0, most=65_535))
    data: Path = setting(Path("recto-data"), "Folder for the database.")
    agents: Path | None = setting(
        None,
        "Folder with a folder for each agent of yours; by default `agents` in the current folder, if there are agents "
        "in it. `none` uses no folder.",
    )
    workspace: Path | None = setting(
        None,
        "The [folder](coder.md#the-workspace) that agents work in; by default each thread has one of its own. "
        "An agent's own `workspace` wins.",
    )
    mode: Mode | None = setting(
        None,
        "What [a person has to agree to](coder.md#modes): `ask` (edits and commands), `edits` (commands) or `full` "
        "(nothing); by default `full` in a thread's own folder and `ask` in one that was given. An agent's own `mode` "
        "wins.",
    )
    agent: str | None = setting(None, "The agent that [answers](#which-agent-answers) where nobody is named.", NAME)
    model: str = setting("demo", "The [model](#models) of agents that name none.", NAME)
    timezone: str | None = setting(
        None,
        "Whose days and hours count in a turn whose request and agent name none, such as `Asia/Shanghai`; by default "
        "the machine's (`TZ`, `/etc/localtime`, `/etc/timezone`, else how far its clock is from UTC).",
        Range(check=_check_zone),
    )
    prices: Path | None = setting(None, "A file of prices in place of the one that comes along.")
    operators: str = setting(
        "local",
        "The users, by name, who may read `/metrics`, give [tiers](profiles.md#tiers), and see at their model calls "
        "where these went and what a provider said of a fault.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = setting("warning", "What the log has at least.")
    log_format: Literal["text", "json"] = setting("text", "Lines of text, or `json` with one object a line.")
    auth: AuthSettings = AuthSettings()
    gate: GateSettings = GateSettings()
    connections: ConnectionLimits = ConnectionLimits()
    bodies: BodyLimits = BodyLimits()
    streams: StreamLimits = StreamLimits()
    hub: HubSettings = HubSettings()
    traces: TraceSettings = TraceSettings()
    dispatch: DispatchSettings = DispatchSettings()
    bounds: Bounds = Bounds()
    suggestions: SuggestionSettings = SuggestionSettings()
    gateway: GatewaySettings = GatewaySettings()
    work: WorkSettings = WorkSettings()
    search: SearchSettings = SearchSettings()
    file_tools: FileToolSettings = FileToolSettings()
    snapshots: SnapshotSettings = SnapshotSettings()
    timeouts: Timeouts = Timeouts()
    backoff: BackoffSettings = BackoffSettings()
    recorder: RecorderSettings = RecorderSettings()
    log_cache: LogCacheSettings = LogCacheSettings()
    schemas: SchemaLimits = SchemaLimits()
    external: ExternalSettings = ExternalSettings()
    commands: CommandSettings = CommandSettings()
    database_url: str | None = setting(
        None,
        "`sqlite:///PATH` (by default in the data folder) or `postgresql://USER:PASSWORD@HOST/DATABASE` (`postgres://` "
        "is the same), with `recto[postgres]` installed.",
        secrecy="url",
    )
    sqlite: SqliteSettings = SqliteSettings()
    postgres: PostgresSettings = PostgresSettings()
    cleaning: CleaningSettings = CleaningSettings()
    storage_url: str | None = setting(
        None,
        "Where files are kept: by default a folder in the data folder, or `file:///FOLDER`, or "
        "`s3://BUCKET/PREFIX?endpoint=URL&region=REGION`. See [files](files.md#where-files-are-kept).",
        secrecy="url",
    )
    signing_keys: str | None = setting(
        None,
        "Keys that sign urls of files, as `id:secret,id:secret`; by default one is made in the data folder.",
        secrecy="pairs",
    )
    uploads: UploadRules = UploadRules()
    documents: DocumentSettings = DocumentSettings()
    parsers: PoolSettings = PoolSettings()
    outbound: OutboundSettings = OutboundSettings()
    pictures: PictureSettings = PictureSettings()
    limits: Limits = Limits()
    # The folder `agents` that nobody named: its agents are used, or there are none in it; None where it is not there.
    agents_here: Literal["used", "empty"] | None = None
    # Agents that name a model have this one too: when one is tried.
    has_one_model: bool = False
    # What it was read from, where that is there.
    config_file: Path = Path("recto.toml")

    @property
    def run_agent(self) -> str:
        """Who answers a run that names nobody, in a thread where nobody has answered (C4)."""
        return self.agent or "chat"

    @property
    def chat_agent(self) -> str:
        """The same, of what is said on `/chat`."""
        return self.agent or "vibe"

    @property
    def files_folder(self) -> Path:
        """Where files are kept that are not in a storage of their own."""
        return self.data / "files"

    @property
    def parsed_folder(self) -> Path:
        """Where the texts of documents are kept that were read before."""
        return self.data / "parsed"

    @property
    def workspaces_folder(self) -> Path:
        """Where each thread has a folder to work in."""
        return self.data / "workspaces"

    @property
    def snapshots_folder(self) -> Path:
        """Where files of workspaces are kept as they were."""
        return self.data / "snapshots"

    @property
    def placeholders_folder(self) -> Path:
        """Where it is noted what stands in workspaces only while commands run."""
        return self.data / "placeholders"


def given(table: BaseModel) -> dict[str, object]:
    """What was given of a table, without what has its default."""
    return {name: getattr(table, name) for name in table.model_fields_set}
