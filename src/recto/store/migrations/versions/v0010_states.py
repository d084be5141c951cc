"""An index of state changes, so that reading a thread's state does not read its log."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Add the index of state changes to the log table."""
    is_state = sa.text("kind = 'state_changed'")
    op.create_index("ix_log_states", "log", ["thread", "seq"], sqlite_where=is_state, postgresql_where=is_state)
