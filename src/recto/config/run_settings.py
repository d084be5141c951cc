"""Settings of runs: how models are called, how runs are worked on, what of them waits, is kept and is cleaned away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from recto.config.setting import COUNT, COUNT_OR_ZERO, DAYS, SECONDS, SECONDS_OR_ZERO, Range, setting
from recto.conversation.messages import ToolCalling
from recto.errors import SettingsError

# What a person has to agree to: all that changes files or runs commands; commands alone; nothing.
Mode: TypeAlias = Literal["ask", "edits", "full"]
Synchronous: TypeAlias = Literal["NORMAL", "FULL"]


@dataclass(frozen=True, kw_only=True)
class Timeouts:
    """How long a model may take."""

    connect: float = setting(10.0, "Seconds until a model is connected.", SECONDS, name="model_connect_seconds")
    first_byte: float = setting(
        120.0, "Seconds beside that until a model's reply begins.", SECONDS, name="model_first_byte_seconds"
    )
    between_bytes: float = setting(
        60.0, "Seconds between two pieces of a model's reply.", SECONDS, name="model_between_seconds"
    )

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 < value < float("inf"):
                raise SettingsError(name=f"timeouts.{name}", value=value, allowed="it is a number of seconds above 0")


@dataclass(frozen=True, kw_only=True)
class BackoffSettings:
    """How long to wait before a failed model call is made again. `cap` is the longest wait of our own."""

    base: float = setting(
        0.5, "The first pause before a failed model call is made again.", SECONDS_OR_ZERO, name="retry_seconds"
    )
    cap: float = 20.0
    retry_after_cap: float = setting(
        60.0, "The longest pause a model may ask for.", SECONDS_OR_ZERO, name="retry_after_seconds"
    )

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 <= value < float("inf"):
                raise SettingsError(name=f"backoff.{name}", value=value, allowed="it is a number of seconds, 0 or more")


@dataclass(frozen=True, kw_only=True)
class WorkSettings:
    """What models take, and what is kept for runs."""

    window: int = setting(128_000, "Tokens the model can take.", COUNT)
    vision: bool | None = setting(
        None,
        "Whether the models see pictures; by default those of OpenAI, Anthropic and Google do and others do not. "
        "An agent's own `vision` wins.",
    )
    tool_calling: ToolCalling | None = setting(
        None,
        "How tools are offered by agents that do not say it: `native`, `prompt` (in words) or `auto` (natively, and "
        "calls in words are [understood](models.md#small-and-local-models)); by default `auto` with `compatible:` "
        "models and `native` with others.",
    )
    quotes_at_once: int = setting(2, "How many quotes of documents (mode `always`) are put together at a time.", COUNT)
    workspace_bytes: int = setting(2**30, "Bytes the workspace of one thread may hold; 0 is no limit.", COUNT_OR_ZERO)
    profile_bytes: int = setting(
        262_144,
        "Bytes of all that is kept of one user in their [profile](profiles.md), what skills keep included.",
        Range(least=1_000),
    )
    state_bytes: int = setting(
        65_536, "Bytes of the state that a thread shares with its clients; beyond it 422.", Range(least=1_000)
    )


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """What a [search](coder.md#search) in a workspace may take, and how much of it is shown."""

    results: int = setting(
        100,
        "Lines a [search](coder.md#search) shows that does not say how many.",
        COUNT,
        name="search_results",
    )
    counted: int = setting(10_000, "Matching lines that a search counts; it stops there.", COUNT, name="search_counted")
    line_characters: int = setting(
        300, "Characters that a search shows of one line, around the match.", Range(least=40), name="search_characters"
    )
    file_bytes: int = setting(
        16 * 2**20, "Bytes of a file that is searched; larger ones are passed over.", COUNT, name="search_file_bytes"
    )
    seconds: float = setting(30.0, "Seconds a search may take.", SECONDS, name="search_seconds")


@dataclass(frozen=True, kw_only=True)
class FileToolSettings:
    """What one [read or edit](coder.md#files) of the coder may take, and how much of it is shown."""

    read_files: int = setting(50, "Paths that one [read](coder.md#files) may name.", COUNT, name="read_files_at_once")
    line_characters: int = setting(
        2_000, "Characters that a read or a diff shows of one line.", COUNT, name="read_line_characters"
    )
    listing_entries: int = setting(300, "Entries that the listing of a folder shows.", COUNT)
    edits: int = setting(100, "Edits that one call may make in a file.", COUNT, name="edits_at_once")
    edit_bytes: int = setting(2**25, "Bytes of a file that is edited; larger ones are not.", COUNT)
    symbol_bytes: int = setting(
        262_144, "Bytes of a source that is read with its symbols; larger ones are without.", COUNT_OR_ZERO
    )
    symbol_seconds: float = setting(2.0, "Seconds that finding the symbols of a source may take.", SECONDS)
    symbol_memory_bytes: int = setting(2**30, "Bytes of memory for the process that finds symbols.", Range(least=2**27))


@dataclass(frozen=True, kw_only=True)
class SnapshotSettings:
    """What is kept of files, so that they can be [put back](threads.md#files-put-back) as they were."""

    kept: int = setting(
        50,
        "Turns of a thread whose files can be [put back](threads.md#files-put-back), and up to ten more; 0 keeps none.",
        COUNT_OR_ZERO,
        name="kept_turns",
    )
    files: int = setting(
        50_000, "Files of a workspace that are kept for that; where there are more, none is.", COUNT, name="kept_files"
    )
    file_bytes: int = setting(
        10 * 2**20, "Bytes of a file that is kept for that; larger ones are not.", COUNT, name="kept_file_bytes"
    )
    thread_bytes: int = setting(
        2**30, "Bytes kept for that of one thread, compressed; beyond it files are not.", COUNT, name="kept_bytes"
    )


@dataclass(frozen=True, kw_only=True)
class TraceSettings:
    """Where spans of runs go, and what is in them."""

    endpoint: str | None = setting(
        None,
        "Where [spans](telemetry.md#spans) of runs are sent: the address of a collector that speaks OTLP over HTTP, "
        "such as `http://127.0.0.1:4318`, with `recto[otel]` installed. `OTEL_EXPORTER_OTLP_ENDPOINT` is heeded too.",
        name="otlp_endpoint",
        secrecy="url",
    )
    content: bool = setting(
        False,
        "Whether spans have what users, models and tools said. Whoever reads spans reads it too.",
        name="trace_content",
    )


@dataclass(frozen=True, kw_only=True)
class DispatchSettings:
    """How many runs are worked on at once, and how long stopping may take.

    `grace` is for running steps to finish; what is left after it is broken off and handed back. `look` is how often the
    queue is looked at unasked, `pause` how long a run rests that the store could not be written for, and the longest
    between two tries to hand one back or to renew. `share` and `lease` are what a server claims runs with.
    """

    slots: int = setting(200, "Runs worked on at once; others wait.", COUNT_OR_ZERO, name="runs")
    share: int = setting(
        0,
        "Runs of one user worked on at once (0: a quarter of `runs`); next is the oldest of whoever has the fewest at "
        "work.",
        COUNT_OR_ZERO,
        name="user_slots",
    )
    lease: float = setting(
        10.0,
        "How long a worker that gives no sign of life keeps its runs; it gives one three times in it. Another server "
        "goes on with the runs of one that was killed after that time.",
        SECONDS,
        name="lease_seconds",
    )
    grace: float = setting(
        7.0, "How long running steps may take to finish when the server stops.", SECONDS_OR_ZERO, name="grace_seconds"
    )
    look: float = 1.0
    pause: float = 1.0

    @property
    def slots_of_user(self) -> int:
        """How many runs of one user are worked on at once."""
        return self.share or max(1, self.slots // 4)


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What may wait and what one user may have. 0 sets no limit."""

    thread_queue: int = setting(50, "Runs that may wait for one thread; 0 is no limit.", COUNT_OR_ZERO)
    queue: int = setting(10_000, "Runs that may wait in the whole server; 0 is no limit.", COUNT_OR_ZERO)
    user_runs: int = setting(200, "Runs of one user at work or waiting; beyond it 429; 0 is no limit.", COUNT_OR_ZERO)
    user_tokens: int = setting(0, "Tokens of one user a day (UTC); beyond it 429; 0 is no limit.", COUNT_OR_ZERO)


@dataclass(frozen=True, kw_only=True)
class SuggestionSettings:
    """What [suggestions](copilotkit.md#suggestions) may cost. `pause` is how long one waits for its client to leave."""

    is_on: bool = setting(
        True, "Whether [suggestions](copilotkit.md#suggestions) are made for CopilotKit's chat.", name="suggestions"
    )
    per_minute: int = setting(
        20,
        "Suggestions of one user a minute that the model is asked for; 0 is no limit.",
        COUNT_OR_ZERO,
        name="user_suggestions",
    )
    at_once: int = setting(
        2,
        "Suggestions of one user that are made at a time; a newer one ends the oldest.",
        COUNT,
        name="suggestions_at_once",
    )
    input_tokens: int = setting(
        4_000,
        "Tokens of the history, the context and the instruction that a suggestion is asked for with.",
        Range(least=200),
        name="suggestion_input_tokens",
    )
    output_tokens: int = setting(
        1_000, "Tokens the model may write for one suggestion.", COUNT, name="suggestion_output_tokens"
    )
    seconds: float = setting(20.0, "Seconds a suggestion may take.", SECONDS, name="suggestion_seconds")
    pause: float = setting(
        0.2,
        "Seconds before the model is asked: of the many that a page asks for as it loads, most are given up by then.",
        SECONDS_OR_ZERO,
        name="suggestion_pause_seconds",
    )


# For whoever admits runs without a server.
UNBOUNDED = Bounds(thread_queue=0, queue=0, user_runs=0, user_tokens=0)


@dataclass(frozen=True, kw_only=True)
class RecorderSettings:
    """How deltas are committed. A model that says more than `most` characters meanwhile has to wait for it."""

    interval: float = setting(
        0.04,
        "How long deltas are gathered before they are committed; the first goes at once.",
        SECONDS_OR_ZERO,
        name="event_seconds",
    )
    characters: int = setting(
        8_192, "How many characters of deltas are gathered before they are committed.", COUNT, name="event_characters"
    )
    most: int = 262_144


@dataclass(frozen=True, kw_only=True)
class HubSettings:
    """How readers get events.

    `tail` is how many of a run's newest events stay in memory, `page` how many are read at once; `look` is how often
    the store is asked for runs that another process works on.
    """

    heartbeat: float = setting(
        15.0, "After how much silence a stream gets a comment.", SECONDS, name="heartbeat_seconds"
    )
    bytes: int = setting(
        65_536,
        "How much of a run's events is read at once for a reader, and waits for a slow one.",
        COUNT,
        name="stream_bytes",
    )
    tail: int = 16
    page: int = 256
    look: float = 1.0


@dataclass(frozen=True, kw_only=True)
class LogCacheSettings:
    """Threads kept in memory for their next run. Logs of fewer than `long` entries are always read whole."""

    threads: int = setting(256, "Threads kept in memory for their next run.", COUNT, name="log_cache_threads")
    entries: int = setting(
        1_000_000,
        "Entries of those threads all together; their bytes are what bounds them.",
        COUNT,
        name="log_cache_entries",
    )
    bytes: int = setting(
        128 * 2**20, "Bytes of those threads all together, with what pages remember.", COUNT, name="log_cache_bytes"
    )
    long: int = 256


@dataclass(frozen=True, kw_only=True)
class SchemaLimits:
    """What the [tools a client brings](clients.md#tools-of-the-client) with one run may be. Beyond it 422."""

    client_tools: int = setting(
        128, "[Tools a client brings](clients.md#tools-of-the-client) with one run; beyond it 422.", COUNT_OR_ZERO
    )
    schema_bytes: int = setting(262_144, "Bytes of the schemas of a client's tools together.", COUNT)
    schema_depth: int = setting(64, "Levels of each schema of a client's tools.", Range(least=1, most=128))
    pattern_bytes: int = setting(4 * 2**20, "Bytes all patterns of a client's tools compile to.", COUNT_OR_ZERO)
    schema_cache_bytes: int = setting(64 * 2**20, "Memory for compiled schemas of clients' tools.", COUNT)


@dataclass(frozen=True, kw_only=True)
class ExternalSettings:
    """What [tools that live elsewhere](external-tools.md) may cost."""

    start_seconds: float = setting(
        30.0,
        "Seconds until a server of [tools elsewhere](external-tools.md) is up and has said which it has.",
        SECONDS,
        name="external_start_seconds",
    )
    wait_seconds: float = setting(
        5.0,
        "How long a run waits for such a server that is being reached; then it goes on without its tools.",
        SECONDS_OR_ZERO,
        name="external_wait_seconds",
    )
    retry_seconds: float = setting(
        60.0, "The longest pause before one that was lost is tried again.", SECONDS, name="external_retry_seconds"
    )
    tools: int = setting(128, "Tools that are taken of one server.", COUNT, name="external_tools")
    description_characters: int = setting(
        2_000, "Characters of the description of such a tool.", COUNT, name="external_description_characters"
    )
    message_bytes: int = setting(
        32 * 2**20, "Bytes of one message or answer of theirs.", Range(least=1_000), name="external_message_bytes"
    )
    file_bytes: int = setting(
        4 * 2**20, "Bytes of pictures and sounds in one result of theirs.", COUNT_OR_ZERO, name="external_file_bytes"
    )
    scratch_bytes: int = setting(
        512 * 2**20,
        "Bytes that one started here may write to its temporary folder, and to its home; they are memory.",
        COUNT,
        name="external_scratch_bytes",
    )


@dataclass(frozen=True, kw_only=True)
class CommandSettings:
    """What [commands](coder.md#commands) of agents may cost, and what their [sandbox](coder.md#the-sandbox) has."""

    seconds: float = setting(
        600.0,
        "Seconds a [command](coder.md#commands) may take, within the `tool_seconds` of its agent.",
        SECONDS,
        name="command_seconds",
    )
    memory_bytes: int = setting(
        2 * 2**30, "Bytes in memory that a command may have, with all it starts.", COUNT, name="command_memory_bytes"
    )
    processes: int = setting(
        256, "Processes that a command may have at a time.", Range(least=8), name="command_processes"
    )
    file_bytes: int = setting(
        2**30, "Bytes of one file that a command writes.", Range(least=4_096), name="command_file_bytes"
    )
    open_files: int = setting(
        1_024, "Files that each process of a command may have open.", Range(least=16), name="command_open_files"
    )
    scratch_bytes: int = setting(
        512 * 2**20,
        "Bytes that a command may write to its own `/tmp`, and to its shared memory; they are memory.",
        Range(least=4_096),
        name="command_scratch_bytes",
    )
    output_bytes: int = setting(
        64 * 2**20, "Bytes that a command may print; then it is ended.", Range(least=1_000), name="command_output_bytes"
    )
    outputs: int = setting(
        20, "Files of whole outputs that are kept in a workspace; older ones go.", COUNT, name="command_outputs"
    )
    at_once: int = setting(16, "Commands that run at a time, beside jobs; others wait.", COUNT, name="commands_at_once")
    thread_jobs: int = setting(4, "[Jobs](coder.md#jobs) of one thread that run at a time.", COUNT_OR_ZERO)
    jobs: int = setting(32, "Jobs of all threads that run at a time.", COUNT_OR_ZERO)
    job_seconds: float = setting(3_600.0, "Seconds a job may take.", SECONDS)
    network: bool = setting(
        False,
        "Whether commands in the [sandbox](coder.md#the-sandbox) have the network that the server has.",
        name="sandbox_network",
    )
    readable: str = setting(
        "",
        "Folders outside `/usr` that commands in the sandbox may read besides, with commas between them, such as "
        "`/opt/node`; programs in a `bin` there are found.",
        name="sandbox_readable",
    )
    environment: str = setting(
        "",
        "Names of variables of the server's environment that commands get, with commas between them.",
        name="sandbox_environment",
    )


@dataclass(frozen=True, kw_only=True)
class SqliteSettings:
    """How SQLite is used: `group` writes are committed at once, `readers` read at a time."""

    synchronous: Synchronous = setting(
        "NORMAL", "Of database and files: `NORMAL` survives the death of the process, `FULL` a power cut too."
    )
    waiting: int = setting(
        10_000, "Writes that may wait for SQLite; more are refused with 503.", COUNT, name="waiting_writes"
    )
    near_bytes: int = setting(
        65_536,
        "Writes to SQLite of fewer bytes are made on the event loop, larger ones by a thread; 0: all, for slow disks.",
        COUNT_OR_ZERO,
        name="near_write_bytes",
    )
    group: int = 500
    readers: int = 4


@dataclass(frozen=True, kw_only=True)
class PostgresSettings:
    """How PostgreSQL is used: how many connections, and how long to wait for one."""

    connections: int = setting(
        10, "Connections to PostgreSQL at most, beside one for leases.", COUNT, name="database_connections"
    )
    wait_seconds: float = 30


@dataclass(frozen=True, kw_only=True)
class CleaningSettings:
    """What is cleaned away, and when."""

    event_days: float = setting(30.0, "How long events of ended runs are kept; 0 is for ever.", DAYS)
    call_days: float = setting(0.0, "How long model calls are kept; 0 is for ever.", DAYS)
    thread_days: float = setting(0.0, "How long untouched threads are kept; 0 is for ever.", DAYS)
    cleaning_seconds: float = setting(3_600.0, "How often it is looked what is too old.", SECONDS)
