"""Where a text may be cut: never inside what people see as one character. Refuses to say how much is wanted."""

from __future__ import annotations

import re

# Places inside what people see as one character: pairs of halves, accents, variations, skin tones, joined signs.
_PAIR = re.compile(r"(?<=[\ud800-\udbff])[\udc00-\udfff]")
_INSIDE = re.compile(_PAIR.pattern + r"|[\u0300-\u036f\ufe00-\ufe0f\u200d\U0001f3fb-\U0001f3ff]|(?<=\u200d)|(?<=\r)\n")
# No character people write is longer; text made of accents only is cut all the same.
LONGEST_CHARACTER = 16


def boundary(text: str, limit: int) -> int:
    """The nearest place at or before the limit that splits no character people see."""
    for place in range(limit, max(0, limit - LONGEST_CHARACTER), -1):
        if not _INSIDE.match(text, place):
            return place
    return limit - 1 if _PAIR.match(text, limit) else limit
