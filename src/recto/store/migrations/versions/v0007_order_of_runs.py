"""A number for the order of runs, assigned by the database.

Ids do not give an order, because several machines make them.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
# Earlier versions ordered runs by id.
IN_ORDER = """
UPDATE runs SET number = ordered.number
FROM (SELECT id, row_number() OVER (ORDER BY id) AS number FROM runs) AS ordered WHERE ordered.id = runs.id
"""


def upgrade() -> None:
    """Add the number and set it for existing runs."""
    op.add_column("runs", sa.Column("number", sa.BigInteger(), server_default="0", nullable=False))
    op.execute(IN_ORDER)
    if op.get_bind().dialect.name == "postgresql":
        op.execute("CREATE SEQUENCE run_numbers")
        op.execute("SELECT setval('run_numbers', (SELECT coalesce(max(number), 0) + 1 FROM runs))")
    is_open = sa.text("status <> 'ended'")
    op.drop_index("ix_runs_thread_id", "runs")
    op.drop_index("ix_runs_open_thread", "runs")
    op.create_index("ix_runs_number", "runs", ["number"])
    op.create_index("ix_runs_thread_number", "runs", ["thread", "number"])
    op.create_index("ix_runs_open_thread", "runs", ["thread", "number"], sqlite_where=is_open, postgresql_where=is_open)
