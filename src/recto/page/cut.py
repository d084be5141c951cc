"""Cutting a text to a number of tokens, with a mark where it was cut."""

from __future__ import annotations

from recto.page.tokens import TokenCounter


def cut_to(text: str, tokens: int, mark: str, counter: TokenCounter) -> str:
    """The longest beginning of a text that is within `tokens`, mark included; the whole text where it is.

    Where not even the mark fits, nothing is left.
    """
    if counter.count((text,))[0] <= tokens:
        return text
    fits, fails = -1, len(text)
    while fails - fits > 1:
        middle = (fits + fails) // 2
        if counter.count((text[:middle] + mark,))[0] <= tokens:
            fits = middle
        else:
            fails = middle
    return text[:fits] + mark if fits >= 0 else ""
