"""Where a thread's state was changed is found without reading its log."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add it."""
    is_state = sa.text("kind = 'state_changed'")
    op.create_index("ix_log_states", "log", ["thread", "seq"], sqlite_where=is_state, postgresql_where=is_state)
