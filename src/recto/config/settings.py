"""Settings of the server (C2) as one tree, and the limits of a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from recto.config.access_settings import (
    AuthSettings,
    BodyLimits,
    ConnectionLimits,
    GateSettings,
    GatewaySettings,
    NetworkSettings,
    StreamLimits,
)
from recto.config.file_settings import DocumentSettings, OutboundSettings, PictureSettings, PoolSettings, UploadRules
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
from recto.config.table_check import Count, CountOrZero, Seconds, Table
from recto.config.zones import check_zone


class Limits(Table):
    """Limits of a run."""

    steps: Count = Field(default=50, description="Model replies per run.")
    calls: Count = Field(
        default=128, description="Tool calls executed per model reply. Recto reports the rest to the model as not run."
    )
    reply_characters: Count = Field(
        default=1_000_000,
        description="Characters of one reply, including thoughts and tool arguments. A longer reply ends there with "
        "finish `length`.",
    )
    seconds: Seconds = Field(default=1_800, description="Seconds per run.")
    tool_seconds: Seconds = Field(default=120, description="Seconds per tool call.")
    tool_characters: Annotated[int, Field(ge=200)] = Field(default=50_000, description="Characters of a tool result.")
    failures: Count = Field(default=4, description="Consecutive model failures before the run ends.")
    bad_arguments: CountOrZero = Field(
        default=3, description="Consecutive replies with only invalid tool calls before the run ends."
    )
    unusable_replies: CountOrZero = Field(
        default=2, description="Retries of a reply that invents a tool result or contains an unreadable call."
    )
    claims: Count = Field(
        default=20, description="Times a worker may claim a run before Recto gives it up as one that crashes workers."
    )
    compactions: Count = Field(
        default=3, description="Consecutive failed compactions before a run continues without one."
    )
    client_seconds: Seconds = Field(
        default=86_400, description="Seconds a client may take to answer a call of its own tool."
    )
    confirm_seconds: Seconds = Field(default=86_400, description="Seconds a person may take to approve a tool call.")

    def with_given(self, other: Limits) -> Limits:
        """Return a copy of these limits, overridden by the values that were set explicitly in `other`."""
        return self.model_copy(update=explicit_values(other))


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """All settings of a server."""

    host: str = setting("127.0.0.1", "Address to listen on.")
    port: int = setting(8787, "Port; 0 selects any free port.", Range(least=0, most=65_535))
    data: Path = setting(Path("recto-data"), "Folder for the database.")
    agents: Path | None = setting(
        None,
        "Folder that contains one folder per agent of yours. By default `agents` in the current folder, if it "
        "contains agents. `none` uses no folder.",
    )
    workspace: Path | None = setting(
        None,
        "The [folder](coder.md#the-workspace) that agents work in. By default each thread has its own. An agent's "
        "own `workspace` takes precedence.",
    )
    mode: Mode | None = setting(
        None,
        "Which actions [need approval](coder.md#modes): `ask` (edits and commands), `edits` (commands) or `full` "
        "(none). By default `full` in a thread's own folder and `ask` in a configured one. An agent's own `mode` "
        "takes precedence.",
    )
    agent: str | None = setting(None, "The default [agent](#which-agent-answers).", NAME)
    model: str = setting("demo", "The [model](#models) of agents that name none.", NAME)
    timezone: str | None = setting(
        None,
        "Time zone of turns whose request and agent name none, such as `Asia/Shanghai`. By default the machine's "
        "(`TZ`, `/etc/localtime`, `/etc/timezone`, else its clock's offset from UTC).",
        Range(check=check_zone),
    )
    prices: Path | None = setting(None, "A price file that replaces the built-in one.")
    operators: str = setting(
        "local",
        "Comma-separated names of users who may read `/metrics`, assign [tiers](profiles.md#tiers), and see the "
        "endpoint and the provider's error of their model calls.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = setting("warning", "Minimum level of log lines.")
    log_format: Literal["text", "json"] = setting("text", "`text`, or `json` with one object per line.")
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
        "`sqlite:///PATH` (by default in the data folder) or `postgresql://USER:PASSWORD@HOST/DATABASE` (or "
        "`postgres://`), with `recto[postgres]` installed.",
        secrecy="url",
    )
    sqlite: SqliteSettings = SqliteSettings()
    postgres: PostgresSettings = PostgresSettings()
    cleaning: CleaningSettings = CleaningSettings()
    storage_url: str | None = setting(
        None,
        "File storage: by default a folder in the data folder, or `file:///FOLDER`, or "
        "`s3://BUCKET/PREFIX?endpoint=URL&region=REGION`. See [files](files.md#where-files-are-kept).",
        secrecy="url",
    )
    signing_keys: str | None = setting(
        None,
        "Keys that sign file URLs, as `id:secret,id:secret`. By default Recto generates one in the data folder.",
        secrecy="pairs",
    )
    uploads: UploadRules = UploadRules()
    documents: DocumentSettings = DocumentSettings()
    parsers: PoolSettings = PoolSettings()
    outbound: OutboundSettings = OutboundSettings()
    network: NetworkSettings = NetworkSettings()
    pictures: PictureSettings = PictureSettings()
    limits: Limits = Limits()
    # State of the default folder `agents`: its agents are used, it contains no agents, or it does not exist (None).
    agents_here: Literal["used", "empty"] | None = None
    # True if agents that name a model use the server's model instead, as in a trial.
    has_one_model: bool = False
    # The file these settings were read from, if it exists.
    config_file: Path = Path("recto.toml")

    @property
    def run_agent(self) -> str:
        """Agent of a run that does not name one, in a thread without an agent (C4)."""
        return self.agent or "chat"

    @property
    def chat_agent(self) -> str:
        """Agent of a run on `/chat` that does not name one."""
        return self.agent or "vibe"

    @property
    def files_folder(self) -> Path:
        """Folder for files if no external storage is set."""
        return self.data / "files"

    @property
    def parsed_folder(self) -> Path:
        """Folder of cached document texts."""
        return self.data / "parsed"

    @property
    def workspaces_folder(self) -> Path:
        """Folder of the threads' workspaces."""
        return self.data / "workspaces"

    @property
    def snapshots_folder(self) -> Path:
        """Folder of workspace snapshots."""
        return self.data / "snapshots"

    @property
    def placeholders_folder(self) -> Path:
        """Folder for records of placeholders, which exist in workspaces only while commands run."""
        return self.data / "placeholders"


def explicit_values(table: BaseModel) -> dict[str, object]:
    """Return the values that were set explicitly."""
    return {name: getattr(table, name) for name in table.model_fields_set}
