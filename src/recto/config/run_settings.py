"""Settings of runs: model calls, tools, dispatch, storage and cleanup."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from recto.config.setting import COUNT, COUNT_OR_ZERO, DAYS, SECONDS, SECONDS_OR_ZERO, Range, setting
from recto.conversation.messages import ToolCalling
from recto.errors import SettingsError

# Modes by the actions that need approval. `ask`: edits and commands; `edits`: commands; `full`: none.
Mode: TypeAlias = Literal["ask", "edits", "full"]
Synchronous: TypeAlias = Literal["NORMAL", "FULL"]


@dataclass(frozen=True, kw_only=True)
class Timeouts:
    """Timeouts of model calls."""

    connect: float = setting(10.0, "Seconds to connect to a model.", SECONDS, name="model_connect_seconds")
    first_byte: float = setting(
        120.0, "Further seconds until a model's reply begins.", SECONDS, name="model_first_byte_seconds"
    )
    between_bytes: float = setting(
        60.0, "Seconds between two chunks of a model's reply.", SECONDS, name="model_between_seconds"
    )

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 < value < float("inf"):
                raise SettingsError(name=f"timeouts.{name}", value=value, allowed="it is a number of seconds above 0")


@dataclass(frozen=True, kw_only=True)
class BackoffSettings:
    """Pauses between attempts of a model call. `cap` is the longest pause without a `Retry-After`."""

    base: float = setting(
        0.5, "Seconds before the first retry of a failed model call.", SECONDS_OR_ZERO, name="retry_seconds"
    )
    cap: float = 20.0
    retry_after_cap: float = setting(
        60.0, "Longest `Retry-After` of a model that Recto waits for.", SECONDS_OR_ZERO, name="retry_after_seconds"
    )

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 <= value < float("inf"):
                raise SettingsError(name=f"backoff.{name}", value=value, allowed="it is a number of seconds, 0 or more")


@dataclass(frozen=True, kw_only=True)
class WorkSettings:
    """Model capabilities and quotas of runs."""

    window: int = setting(128_000, "Tokens of the model's context window.", COUNT)
    vision: bool | None = setting(
        None,
        "Send pictures to the models. By default true for models of OpenAI, Anthropic and Google. An agent's own "
        "`vision` takes precedence.",
    )
    tool_calling: ToolCalling | None = setting(
        None,
        "How agents that do not configure it offer tools: `native`, `prompt` (as text) or `auto` (native, and "
        "calls written as text are [parsed](models.md#small-and-local-models)). By default `auto` for "
        "`compatible:` models and `native` for others.",
    )
    quotes_at_once: int = setting(2, "Document quotes (mode `always`) composed at once.", COUNT)
    workspace_bytes: int = setting(2**30, "Bytes of a thread's workspace; 0 sets no limit.", COUNT_OR_ZERO)
    profile_bytes: int = setting(
        262_144, "Bytes of a user's [profile](profiles.md), including skill data.", Range(least=1_000)
    )
    state_bytes: int = setting(
        65_536, "Bytes of the state that a thread shares with its clients; more receive 422.", Range(least=1_000)
    )


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """Limits of a [search](coder.md#search) in a workspace."""

    results: int = setting(
        100, "Default number of lines that a [search](coder.md#search) returns.", COUNT, name="search_results"
    )
    search_count: int = setting(
        10_000, "Matching lines after which a search stops counting.", COUNT, name="search_counted"
    )
    line_characters: int = setting(
        300, "Characters of a line that a search returns, around the match.", Range(least=40), name="search_characters"
    )
    file_bytes: int = setting(
        16 * 2**20, "Bytes of a searched file; larger files are skipped.", COUNT, name="search_file_bytes"
    )
    seconds: float = setting(30.0, "Seconds per search.", SECONDS, name="search_seconds")


@dataclass(frozen=True, kw_only=True)
class FileToolSettings:
    """Limits of a [read or edit](coder.md#files) of the coder."""

    read_files: int = setting(50, "Paths per [read](coder.md#files).", COUNT, name="read_files_at_once")
    line_characters: int = setting(
        2_000, "Characters of a line in a read or a diff.", COUNT, name="read_line_characters"
    )
    listing_entries: int = setting(300, "Entries of a folder listing.", COUNT)
    edits: int = setting(100, "Edits of a file per call.", COUNT, name="edits_at_once")
    edit_bytes: int = setting(2**25, "Bytes of an edited file; larger files are rejected.", COUNT)
    symbol_bytes: int = setting(
        262_144, "Bytes of a source file whose symbols are listed; larger files are read without.", COUNT_OR_ZERO
    )
    symbol_seconds: float = setting(2.0, "Seconds to find the symbols of a source file.", SECONDS)
    symbol_memory_bytes: int = setting(2**30, "Bytes of memory for the process that finds symbols.", Range(least=2**27))


@dataclass(frozen=True, kw_only=True)
class SnapshotSettings:
    """Limits of the file snapshots that [restore](threads.md#files-put-back) a workspace."""

    turns: int = setting(
        50,
        "Turns of a thread whose files can be [restored](threads.md#files-put-back), plus up to ten; 0 disables it.",
        COUNT_OR_ZERO,
        name="kept_turns",
    )
    files: int = setting(
        50_000, "Files per workspace snapshot; a workspace with more is not saved.", COUNT, name="kept_files"
    )
    file_bytes: int = setting(
        10 * 2**20, "Bytes of a file in a snapshot; larger files are not saved.", COUNT, name="kept_file_bytes"
    )
    thread_bytes: int = setting(
        2**30, "Compressed bytes of a thread's snapshots; beyond it no files are saved.", COUNT, name="kept_bytes"
    )


@dataclass(frozen=True, kw_only=True)
class TraceSettings:
    """Export of spans."""

    endpoint: str | None = setting(
        None,
        "Collector for [spans](telemetry.md#spans) of runs, OTLP over HTTP, such as `http://127.0.0.1:4318`, with "
        "`recto[otel]` installed. `OTEL_EXPORTER_OTLP_ENDPOINT` works too.",
        name="otlp_endpoint",
        secrecy="url",
    )
    content: bool = setting(
        False,
        "Include the content of messages and tool calls in spans. Everyone who reads the spans can read it.",
        name="trace_content",
    )


@dataclass(frozen=True, kw_only=True)
class DispatchSettings:
    """Dispatch of runs to workers, and shutdown.

    After `grace` seconds the dispatcher cancels running steps and releases their runs. `look` is the polling interval
    of the queue. `pause` is the pause of a run after a failed store write, and the longest pause between attempts to
    release or renew. `share` limits a user's concurrent runs. `lease` is the duration of a claim.
    """

    slots: int = setting(200, "Concurrent runs; others wait.", COUNT_OR_ZERO, name="runs")
    share: int = setting(
        0,
        "Concurrent runs per user (0: a quarter of `runs`). The oldest run of the user with the fewest active "
        "runs is next.",
        COUNT_OR_ZERO,
        name="user_slots",
    )
    lease: float = setting(
        10.0,
        "Seconds without a sign of life before a worker loses its runs; workers renew three times per lease. "
        "Another server then continues the runs.",
        SECONDS,
        name="lease_seconds",
    )
    grace: float = setting(
        7.0, "Seconds that running steps may take to finish at shutdown.", SECONDS_OR_ZERO, name="grace_seconds"
    )
    look: float = 1.0
    pause: float = 1.0

    @property
    def slots_of_user(self) -> int:
        """Maximum number of concurrent runs of one user."""
        return self.share or max(1, self.slots // 4)


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Limits of waiting runs, and limits of one user. 0 sets no limit."""

    thread_queue: int = setting(50, "Runs that may wait per thread; 0 sets no limit.", COUNT_OR_ZERO)
    queue: int = setting(10_000, "Runs that may wait on the whole server; 0 sets no limit.", COUNT_OR_ZERO)
    user_runs: int = setting(200, "Active or waiting runs per user; more receive 429; 0 sets no limit.", COUNT_OR_ZERO)
    user_tokens: int = setting(0, "Tokens per user per day (UTC); more receive 429; 0 sets no limit.", COUNT_OR_ZERO)


@dataclass(frozen=True, kw_only=True)
class SuggestionSettings:
    """Limits of [suggestions](copilotkit.md#suggestions). `pause` gives a client time to cancel."""

    is_on: bool = setting(
        True, "Generate [suggestions](copilotkit.md#suggestions) for CopilotKit's chat.", name="suggestions"
    )
    per_minute: int = setting(
        20,
        "Suggestions per user per minute that call the model; 0 sets no limit.",
        COUNT_OR_ZERO,
        name="user_suggestions",
    )
    at_once: int = setting(
        2, "Concurrent suggestions per user; a newer one cancels the oldest.", COUNT, name="suggestions_at_once"
    )
    input_tokens: int = setting(
        4_000,
        "Tokens of history, context and instruction in a suggestion request.",
        Range(least=200),
        name="suggestion_input_tokens",
    )
    output_tokens: int = setting(
        1_000, "Tokens the model may generate per suggestion.", COUNT, name="suggestion_output_tokens"
    )
    seconds: float = setting(20.0, "Seconds per suggestion.", SECONDS, name="suggestion_seconds")
    pause: float = setting(
        0.2,
        "Seconds to wait before calling the model; a loading page requests many suggestions and cancels most of them.",
        SECONDS_OR_ZERO,
        name="suggestion_pause_seconds",
    )


# No limits, for callers that admit runs without a server.
UNBOUNDED = Bounds(thread_queue=0, queue=0, user_runs=0, user_tokens=0)


@dataclass(frozen=True, kw_only=True)
class RecorderSettings:
    """Buffering of deltas. If a model writes more than `most` characters before a commit, it waits for the commit."""

    interval: float = setting(
        0.04,
        "Seconds that deltas are buffered before a commit; the first is committed at once.",
        SECONDS_OR_ZERO,
        name="event_seconds",
    )
    characters: int = setting(8_192, "Characters of deltas buffered before a commit.", COUNT, name="event_characters")
    most: int = 262_144


@dataclass(frozen=True, kw_only=True)
class HubSettings:
    """Delivery of events to readers.

    `tail` is the number of a run's newest events in memory. `page` is the number of events read together. `look` is the
    polling interval for runs of other processes.
    """

    heartbeat: float = setting(
        15.0, "Seconds of silence before a stream receives a comment.", SECONDS, name="heartbeat_seconds"
    )
    bytes: int = setting(
        65_536,
        "Bytes of a run's events read at once for a reader and buffered for a slow one.",
        COUNT,
        name="stream_bytes",
    )
    tail: int = 16
    page: int = 256
    look: float = 1.0


@dataclass(frozen=True, kw_only=True)
class LogCacheSettings:
    """Threads cached for their next run. Logs shorter than `long` entries are always read whole."""

    threads: int = setting(256, "Threads cached for their next run.", COUNT, name="log_cache_threads")
    entries: int = setting(
        1_000_000, "Entries of all cached threads; bytes are the effective limit.", COUNT, name="log_cache_entries"
    )
    bytes: int = setting(
        128 * 2**20, "Bytes of all cached threads, including their page caches.", COUNT, name="log_cache_bytes"
    )
    long: int = 256


@dataclass(frozen=True, kw_only=True)
class SchemaLimits:
    """Limits of [client tools](clients.md#tools-of-the-client) per run."""

    client_tools: int = setting(
        128, "[Client tools](clients.md#tools-of-the-client) per run; more receive 422.", COUNT_OR_ZERO
    )
    schema_bytes: int = setting(262_144, "Bytes of all schemas of a client's tools.", COUNT)
    schema_depth: int = setting(64, "Nesting depth of a client tool's schema.", Range(least=1, most=128))
    pattern_bytes: int = setting(
        4 * 2**20, "Without effect: arguments are not checked against patterns.", COUNT_OR_ZERO
    )
    schema_cache_bytes: int = setting(64 * 2**20, "Bytes of the cache of compiled client schemas.", COUNT)


@dataclass(frozen=True, kw_only=True)
class ExternalSettings:
    """Limits of [external tools](external-tools.md)."""

    start_seconds: float = setting(
        30.0,
        "Seconds until a server of [external tools](external-tools.md) has started and listed its tools.",
        SECONDS,
        name="external_start_seconds",
    )
    wait_seconds: float = setting(
        5.0,
        "Seconds a run waits for a connecting server before it continues without its tools.",
        SECONDS_OR_ZERO,
        name="external_wait_seconds",
    )
    retry_seconds: float = setting(
        60.0, "Longest pause before the next attempt to reconnect.", SECONDS, name="external_retry_seconds"
    )
    tools: int = setting(128, "Tools per server.", COUNT, name="external_tools")
    description_characters: int = setting(
        2_000, "Characters of an external tool's description.", COUNT, name="external_description_characters"
    )
    message_bytes: int = setting(
        32 * 2**20, "Bytes of one message or response of a server.", Range(least=1_000), name="external_message_bytes"
    )
    file_bytes: int = setting(
        4 * 2**20, "Bytes of images and audio in one result.", COUNT_OR_ZERO, name="external_file_bytes"
    )
    scratch_bytes: int = setting(
        512 * 2**20,
        "Bytes a local server may write to its temporary folder, and to its home; both are in memory.",
        COUNT,
        name="external_scratch_bytes",
    )


@dataclass(frozen=True, kw_only=True)
class CommandSettings:
    """Limits of [commands](coder.md#commands) and their [sandbox](coder.md#the-sandbox)."""

    seconds: float = setting(
        600.0,
        "Seconds per [command](coder.md#commands), within the agent's `tool_seconds`.",
        SECONDS,
        name="command_seconds",
    )
    memory_bytes: int = setting(
        2 * 2**30, "Bytes of memory of a command and its child processes.", COUNT, name="command_memory_bytes"
    )
    processes: int = setting(256, "Processes per command.", Range(least=8), name="command_processes")
    file_bytes: int = setting(
        2**30, "Bytes of one file written by a command.", Range(least=4_096), name="command_file_bytes"
    )
    open_files: int = setting(1_024, "Open files per process of a command.", Range(least=16), name="command_open_files")
    scratch_bytes: int = setting(
        512 * 2**20,
        "Bytes a command may write to its own `/tmp`, and to its shared memory; both are in memory.",
        Range(least=4_096),
        name="command_scratch_bytes",
    )
    output_bytes: int = setting(
        64 * 2**20, "Bytes of output after which Recto ends a command.", Range(least=1_000), name="command_output_bytes"
    )
    outputs: int = setting(
        20, "Full output files kept in a workspace; older ones are deleted.", COUNT, name="command_outputs"
    )
    at_once: int = setting(16, "Concurrent commands, not counting jobs; others wait.", COUNT, name="commands_at_once")
    thread_jobs: int = setting(4, "Concurrent [jobs](coder.md#jobs) per thread.", COUNT_OR_ZERO)
    jobs: int = setting(32, "Concurrent jobs in total.", COUNT_OR_ZERO)
    job_seconds: float = setting(3_600.0, "Seconds per job.", SECONDS)
    network: bool = setting(
        False, "Give commands in the [sandbox](coder.md#the-sandbox) the server's network.", name="sandbox_network"
    )
    readable: str = setting(
        "",
        "Comma-separated folders outside `/usr` that commands in the sandbox may also read, such as `/opt/node`. "
        "Programs in their `bin` are on the path.",
        name="sandbox_readable",
    )
    environment: str = setting(
        "", "Comma-separated environment variables that commands inherit from the server.", name="sandbox_environment"
    )


@dataclass(frozen=True, kw_only=True)
class SqliteSettings:
    """SQLite: up to `group` writes share a commit; `readers` is the number of read connections."""

    synchronous: Synchronous = setting(
        "NORMAL",
        "Durability of database and files: `NORMAL` survives a crash of the process, `FULL` also a power failure.",
    )
    waiting: int = setting(10_000, "Writes that may wait for SQLite; more receive 503.", COUNT, name="waiting_writes")
    near_bytes: int = setting(
        65_536,
        "Bytes below which SQLite writes run on the event loop instead of a thread; 0 always uses the thread, for "
        "slow disks.",
        COUNT_OR_ZERO,
        name="near_write_bytes",
    )
    group: int = 500
    readers: int = 4


@dataclass(frozen=True, kw_only=True)
class PostgresSettings:
    """PostgreSQL connections and the wait for one."""

    connections: int = setting(
        10, "Connections to PostgreSQL, plus one for leases.", COUNT, name="database_connections"
    )
    wait_seconds: float = 30


@dataclass(frozen=True, kw_only=True)
class CleaningSettings:
    """Retention and cleanup interval."""

    event_days: float = setting(30.0, "Days to keep events of finished runs; 0 keeps them forever.", DAYS)
    call_days: float = setting(0.0, "Days to keep model calls; 0 keeps them forever.", DAYS)
    thread_days: float = setting(0.0, "Days to keep unchanged threads; 0 keeps them forever.", DAYS)
    cleaning_seconds: float = setting(3_600.0, "Seconds between two cleanups.", SECONDS)
