"""The tables. Bodies are bytes, kept as they came; times are microseconds since 1970, in UTC."""

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


def micros(time: datetime) -> int:
    """A time as the tables have it."""
    return (time - EPOCH) // MICROSECOND


def moment(number: int) -> datetime:
    """A time from the tables."""
    return EPOCH + timedelta(microseconds=number)


METADATA = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    }
)

# Whom a thread belongs to that is being deleted. No user has an empty name.
NOBODY = ""

THREADS = Table(
    "threads",
    METADATA,
    Column("id", String(36), primary_key=True),
    Column("owner", Text, nullable=False),
    Column("agent", Text),
    Column("title", Text),
    # Who gave the title: `user` or `model`; nobody, where it is the first words said.
    Column("title_by", String(8)),
    Column("skill", Text),
    Column("scenario", Text),
    Column("last_seq", BigInteger, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("updated", BigInteger, nullable=False),
    Column("archived", Boolean, nullable=False, server_default=false()),
    # Names of tools that ask nobody any more in it, as a JSON list.
    Column("agreed", Text, nullable=False, server_default="[]"),
    Index("ix_threads_owner_updated", "owner", "updated"),
)

# Written out, as it stands in the index: a database takes an index only for the words it was made with.
TURNED_BACK = "kind IN ('rolled_back', 'undone')"
STANDS_OUT = "kind IN ('skill_changed', 'compacted')"
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
    # What a message counts, and the name of the counter that counted it. None: nobody has yet.
    Column("tokens", Integer),
    Column("counter", String(32)),
    Index("uq_log_thread_id", "thread", "id", unique=True),
    Index("ix_log_thread_time_seq", "thread", "time", "seq"),
    # What is in view is told from these few.
    Index("ix_log_turned_back", "thread", "seq", sqlite_where=text(TURNED_BACK), postgresql_where=text(TURNED_BACK)),
    # And what holds from far back: a summary, a skill.
    Index("ix_log_stands_out", "thread", "seq", sqlite_where=text(STANDS_OUT), postgresql_where=text(STANDS_OUT)),
    # By themselves: there may be many, each as long as the state is, and one of them is read.
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
    # How often a worker was lost while it had this run.
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
    # Of the request as it was sent; `input` names files by their attachments. None: `input` is the request.
    Column("digest", LargeBinary),
    # The owner's when it was admitted.
    Column("tier", Text, nullable=False, server_default="free"),
    # The order they were admitted in. Ids are made by many machines, whose clocks differ.
    Column("number", BigInteger, nullable=False, server_default="0"),
    Index("uq_runs_owner_name", "owner", "name", unique=True),
    Index("ix_runs_number", "number"),
    Index("ix_runs_thread_number", "thread", "number"),
    Index("ix_runs_status_lease_until", "status", "lease_until"),
    Index("ix_runs_open_owner", "owner", sqlite_where=text(IS_OPEN), postgresql_where=text(IS_OPEN)),
    Index("ix_runs_open_thread", "thread", "number", sqlite_where=text(IS_OPEN), postgresql_where=text(IS_OPEN)),
    Index("ix_runs_ended", "ended", "id", sqlite_where=text(HAS_ENDED), postgresql_where=text(HAS_ENDED)),
    # One run of a thread is active at a time, whoever claims.
    Index(
        "uq_runs_active_thread",
        "thread",
        unique=True,
        sqlite_where=text("status = 'running'"),
        postgresql_where=text("status = 'running'"),
    ),
)

# On SQLite, which has one writer, the next number is one more than the largest.
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
    # Leading segments it has in common with the call before it, then the hashes of the rest.
    Column("shared", Integer, nullable=False),
    Column("hashes", LargeBinary, nullable=False),
    Column("manifest", LargeBinary, nullable=False),
    Column("started", BigInteger, nullable=False),
    Column("first_token", BigInteger),
    Column("ended", BigInteger),
    Column("finish", String(32)),
    Column("usage", LargeBinary),
    # In thousand-millionths of a unit of currency.
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
    # No foreign key: an id that was shown outlives its attachment.
    Column("attachment", String(36)),
    Index("ix_file_refs_attachment", "attachment"),
)

# Bytes in the storage, by a name of their own: the same bytes of a user are there once. Those of two users are two
# blobs, else one of them could tell from its name that the other has them too.
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

# All attachments of a user, added up: nobody counts them for each that comes.
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

# What a skill keeps of a user.
SKILL_DATA = Table(
    "skill_data",
    METADATA,
    Column("owner", Text, ForeignKey("profiles.owner", ondelete="CASCADE"), primary_key=True),
    Column("skill", String(64), primary_key=True),
    Column("body", LargeBinary, nullable=False),
    Column("updated", BigInteger, nullable=False),
)

# What the calls of a user's runs took, by the day they ended on, in UTC.
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

# What folding saved on a day in calls of a user's, by rule (`fold`), and breaks of the prefix by their cause (`break`).
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
    # In thousand-millionths of a unit of currency, as far as prices are known.
    Column("saved", BigInteger),
    Column("cost", BigInteger),
)

# What all servers of a database have to agree on, by name.
NOTES = Table(
    "notes",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
