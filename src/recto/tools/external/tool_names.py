"""Names of external tools: `files__read`, valid for providers, unique and stable. Pure."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from recto.agents.external_tools import BETWEEN

LONGEST = 64
HASH = 8
_REFUSED = re.compile(r"[^a-zA-Z0-9_-]")


def tool_names(server: str, own_names: Sequence[str], taken: Collection[str] = ()) -> Mapping[str, str]:
    """Return the offered name of each tool of a server, by its name there; none is in `taken`.

    A name that is too long, or that collides after a change, ends in a hash of the original. So it does not depend on
    the order of tools.
    """
    plain = {own: f"{server}{BETWEEN}{_REFUSED.sub('_', own)}" for own in own_names}
    count = Counter(plain.values())
    return {own: _name(server, own, plain[own], count, taken) for own in plain}


def _name(server: str, own: str, plain: str, count: Counter[str], taken: Collection[str]) -> str:
    is_whole = plain == f"{server}{BETWEEN}{own}"
    if len(plain) <= LONGEST and plain not in taken and (is_whole or count[plain] == 1):
        return plain
    digest = hashlib.sha256(f"{server}{BETWEEN}{own}".encode()).hexdigest()[:HASH]
    return f"{plain[: LONGEST - HASH - 1]}_{digest}"
