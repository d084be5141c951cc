"""Every error Recto raises on purpose. Each says what happened, to what, and what to do.

RectoError
├── WireError        text from outside is not the format it claims to be
├── CannotCarry      a wire format has no place for what it was asked to carry
├── SettingsError    a setting has a value that means nothing
└── NotAConversation a file holds no conversation Recto can read
"""

from __future__ import annotations


class RectoError(Exception):
    """The root: catch it to catch everything Recto raises on purpose."""


class WireError(RectoError):
    """Text from outside is not the format it claims to be. `where` names the field."""

    def __init__(self, *, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}")
        self.where = where
        self.problem = problem


class CannotCarry(RectoError):
    """A wire format has no place for this. Fit the conversation to the wire first."""

    def __init__(self, *, wire: str, what: str) -> None:
        super().__init__(f"The {wire} format cannot carry {what}.")
        self.wire = wire
        self.what = what


class SettingsError(RectoError):
    """A setting has a value that means nothing."""

    def __init__(self, *, name: str, value: object, allowed: str) -> None:
        super().__init__(f"Setting {name} is {value!r}; {allowed}.")
        self.name = name
        self.value = value


class NotAConversation(RectoError):
    """A file holds no conversation Recto can read."""

    def __init__(self, *, source: str, problem: str) -> None:
        super().__init__(f"{source}: {problem}")
        self.source = source
        self.problem = problem
