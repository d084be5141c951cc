"""The tables. Bodies are bytes, stored as received; times are microseconds since 1970, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Sequence,
    String,
    Table,
    Text,
    false,
    text,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def to_micros(time: datetime) -> int:
    """Return a time as stored."""
    return (time - EPOCH) // MICROSECOND


def from_micros(number: int) -> datetime:
    """Return a stored time."""
    return EPOCH + timedelta(microseconds=number)


METADATA = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    }
)

# Owner of a thread that is being deleted. No user has an empty name.
DETACHED = ""

THREADS = Table(
    "threads",
    METADATA,
    Column("id", String(36), primary_key=True),
    Column("owner", Text, nullable=False),
    Column("agent", Text),
    Column("title", Text),
    # Author of the title: `user` or `model`. NULL if the title is the first user message.
    Column("title_by", String(8)),
    Column("skill", Text),
    Column("scenario", Text),
    Column("last_seq", BigInteger, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("updated", BigInteger, nullable=False),
    Column("archived", Boolean, nullable=False, server_default=false()),
    # Names of tools that need no confirmation in this thread, as a JSON list.
    Column("agreed", Text, nullable=False, server_default="[]"),
    Index("ix_threads_owner_updated", "owner", "updated"),
)

# Conditions of queries and of partial indexes. A database uses a partial index only if both texts are equal.
IS_ROLLBACK = "kind IN ('rolled_back', 'undone')"
IS_LASTING = "kind IN ('skill_changed', 'compacted')"
IS_STATE = "kind = 'state_changed'"

LOG = Table(
    "log",
    METADATA,
    Column("thread", String(36), ForeignKey("threads.id", ondelete="CASCADE"), primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("id", Text, nullable=False),
    Column("kind", String(32), nullable=False),
    Column("run", String(36)),
    Column("time", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
    # Tokens of a message, and the name of the counter. NULL if the message is not counted yet.
    Column("tokens", Integer),
    Column("counter", String(32)),
    Index("uq_log_thread_id", "thread", "id", unique=True),
    Index("ix_log_thread_time_seq", "thread", "time", "seq"),
    # Index of the few rows that determine the view of a log.
    Index("ix_log_turned_back", "thread", "seq", sqlite_where=text(IS_ROLLBACK), postgresql_where=text(IS_ROLLBACK)),
    # Index of summaries and skill changes, which may be far back in the log.
    Index("ix_log_stands_out", "thread", "seq", sqlite_where=text(IS_LASTING), postgresql_where=text(IS_LASTING)),
    # Separate index of states: there may be many large states, but only one is read.
    Index("ix_log_states", "thread", "seq", sqlite_where=text(IS_STATE), postgresql_where=text(IS_STATE)),
)

IS_OPEN, HAS_ENDED = "status <> 'ended'", "ended IS NOT NULL"

RUNS = Table(
    "runs",
    METADATA,
    Column("id", String(36), primary_key=True),
    Column("owner", Text, nullable=False),
    Column("name", String(128), nullable=False),
    Column("thread", String(36), ForeignKey("threads.id", ondelete="CASCADE"), nullable=False),
    Column("agent", Text, nullable=False),
    Column("input", LargeBinary, nullable=False),
    Column("response_id", String(36), nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("status", String(16), nullable=False),
    Column("entered", Boolean, nullable=False),
    Column("fence", Integer, nullable=False),
    # Number of claims whose worker was lost.
    Column("losses", Integer, nullable=False),
    Column("node", String(36)),
    Column("boot", String(36)),
    Column("lease_until", BigInteger),
    Column("started", BigInteger),
    Column("ended", BigInteger),
    Column("cancel", Text),
    Column("failures", Integer, nullable=False),
    Column("too_long", Integer, nullable=False),
    Column("can_compact", Boolean, nullable=False),
    Column("calls", Integer, nullable=False),
    Column("last_event", Integer, nullable=False),
    Column("outcome", String(32)),
    Column("error", Text),
    Column("usage", LargeBinary),
    # Digest of the request as sent; `input` identifies files by their attachments. NULL if `input` is the request as
    # sent.
    Column("digest", LargeBinary),
    # The owner's tier at admission.
    Column("tier", Text, nullable=False, server_default="free"),
    # Admission order. Ids do not give this order, because the clocks of machines differ.
    Column("number", BigInteger, nullable=False, server_default="0"),
    Index("uq_runs_owner_name", "owner", "name", unique=True),
    Index("ix_runs_number", "number"),
    Index("ix_runs_thread_number", "thread", "number"),
    Index("ix_runs_status_lease_until", "status", "lease_until"),
    Index("ix_runs_open_owner", "owner", sqlite_where=text(IS_OPEN), postgresql_where=text(IS_OPEN)),
    Index("ix_runs_open_thread", "thread", "number", sqlite_where=text(IS_OPEN), postgresql_where=text(IS_OPEN)),
    Index("ix_runs_ended", "ended", "id", sqlite_where=text(HAS_ENDED), postgresql_where=text(HAS_ENDED)),
    # At most one run of a thread is active.
    Index(
        "uq_runs_active_thread",
        "thread",
        unique=True,
        sqlite_where=text("status = 'running'"),
        postgresql_where=text("status = 'running'"),
    ),
)

# SQLite has one writer, so the maximum plus one is a safe next number.
RUN_NUMBERS = Sequence("run_numbers", metadata=METADATA)

EVENTS = Table(
    "events",
    METADATA,
    Column("run", String(36), ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("body", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)

CALLS = Table(
    "calls",
    METADATA,
    Column("run", String(36), ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("purpose", String(16), nullable=False),
    Column("model", Text, nullable=False),
    Column("digest", String(64), nullable=False),
    # Number of leading segments shared with the previous call, and the hashes of the following segments.
    Column("shared", Integer, nullable=False),
    Column("hashes", LargeBinary, nullable=False),
    Column("manifest", LargeBinary, nullable=False),
    Column("started", BigInteger, nullable=False),
    Column("first_token", BigInteger),
    Column("ended", BigInteger),
    Column("finish", String(32)),
    Column("usage", LargeBinary),
    # In billionths of a unit of currency.
    Column("price", BigInteger),
    Column("error", Text),
)

SEGMENTS = Table(
    "segments",
    METADATA,
    Column("thread", String(36), ForeignKey("threads.id", ondelete="CASCADE"), primary_key=True),
    Column("hash", LargeBinary(32), primary_key=True),
    Column("data", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)

FILE_REFS = Table(
    "file_refs",
    METADATA,
    Column("thread", String(36), ForeignKey("threads.id", ondelete="CASCADE"), primary_key=True),
    Column("id", Text, primary_key=True),
    Column("body", LargeBinary, nullable=False),
    Column("created", BigInteger, nullable=False),
    # No foreign key: a file id outlives its attachment.
    Column("attachment", String(36)),
    Index("ix_file_refs_attachment", "attachment"),
)

# Bytes in the storage. Equal files of one user share a blob. Files of different users never do, because the name would
# reveal that another user has the same file.
BLOBS = Table(
    "blobs",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("created", BigInteger, nullable=False),
    Index("uq_blobs_owner_sha256", "owner", "sha256", unique=True),
)

ATTACHMENTS = Table(
    "attachments",
    METADATA,
    Column("id", String(36), primary_key=True),
    Column("owner", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("mime_type", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("blob", Text, ForeignKey("blobs.name", onupdate="CASCADE"), nullable=False),
    Column("created", BigInteger, nullable=False),
    Index("ix_attachments_owner_created_id", "owner", "created", "id"),
    Index("ix_attachments_created_id", "created", "id"),
    Index("ix_attachments_blob", "blob"),
)

# Total bytes and number of a user's attachments, so that an upload does not have to count them.
FILE_TOTALS = Table(
    "file_totals",
    METADATA,
    Column("owner", Text, primary_key=True),
    Column("bytes", BigInteger, nullable=False),
    Column("files", BigInteger, nullable=False),
)

DATASETS = Table(
    "datasets",
    METADATA,
    Column("id", String(36), primary_key=True),
    Column("owner", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("updated", BigInteger, nullable=False),
    Index("ix_datasets_owner", "owner"),
)

DATASET_SHARES = Table(
    "dataset_shares",
    METADATA,
    Column("dataset", String(36), ForeignKey("datasets.id", ondelete="CASCADE"), primary_key=True),
    Column("user", Text, primary_key=True),
    Index("ix_dataset_shares_user", "user"),
)

PROFILES = Table(
    "profiles",
    METADATA,
    Column("owner", Text, primary_key=True),
    Column("tier", Text, nullable=False),
    Column("updated", BigInteger, nullable=False),
)

PROFILE_FIELDS = Table(
    "profile_fields",
    METADATA,
    Column("owner", Text, ForeignKey("profiles.owner", ondelete="CASCADE"), primary_key=True),
    Column("field", String(64), primary_key=True),
    Column("body", LargeBinary, nullable=False),
    Column("updated", BigInteger, nullable=False),
)

# Data that a skill stores about a user.
SKILL_DATA = Table(
    "skill_data",
    METADATA,
    Column("owner", Text, ForeignKey("profiles.owner", ondelete="CASCADE"), primary_key=True),
    Column("skill", String(64), primary_key=True),
    Column("body", LargeBinary, nullable=False),
    Column("updated", BigInteger, nullable=False),
)

# Usage of a user's calls by the day (UTC) on which they ended.
SPENDING = Table(
    "spending",
    METADATA,
    Column("owner", Text, primary_key=True),
    Column("day", String(10), primary_key=True),
    Column("input", BigInteger, nullable=False),
    Column("output", BigInteger, nullable=False),
    Column("cached", BigInteger, nullable=False),
    Column("calls", BigInteger, nullable=False),
    Column("price", BigInteger),
)

# Tokens that folding saved in a user's calls per day and rule (`fold`), and prefix breaks by cause (`break`).
SAVINGS = Table(
    "savings",
    METADATA,
    Column("owner", Text, primary_key=True),
    Column("day", String(10), primary_key=True),
    Column("agent", Text, primary_key=True),
    Column("kind", String(8), primary_key=True),
    Column("name", String(32), primary_key=True),
    Column("calls", BigInteger, nullable=False),
    Column("tokens", BigInteger, nullable=False),
    # In billionths of a unit of currency, as far as prices are known.
    Column("saved", BigInteger),
    Column("cost", BigInteger),
)

# Values by name that all servers of a database share.
NOTES = Table("notes", METADATA, Column("name", Text, primary_key=True), Column("value", Text, nullable=False))
