"""Messages of other agents' requests that this process has read lately. Losing them costs time and nothing else."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import NamedTuple

from recto.conversation.messages import Message

# A message as a value takes about so many times the characters it was written in.
WEIGHT = 4


class ItemKey(NamedTuple):
    """Whose conversation, and what it goes by up to a message."""

    owner: str
    head: str


class RememberedItems:
    """Messages by the conversation that they end, those asked for last at the end; so many bytes of them.

    Long requests are read in threads of their own.
    """

    def __init__(self, most: int = 0) -> None:
        self._most = most
        self._size = 0
        self._known = OrderedDict[ItemKey, tuple[int, tuple[Message, ...]]]()
        self._lock = Lock()

    def find(self, key: ItemKey) -> tuple[Message, ...] | None:
        """The messages that end a conversation, where they are known."""
        with self._lock:
            known = self._known.get(key)
            if known is None:
                return None
            self._known.move_to_end(key)
            return known[1]

    def keep(self, key: ItemKey, characters: int, messages: tuple[Message, ...]) -> None:
        """Know them from now on. The oldest go, where there are too many."""
        with self._lock:
            self._size += characters * WEIGHT - self._known.pop(key, (0,))[0]
            self._known[key] = characters * WEIGHT, messages
            while self._size > self._most:
                _, (gone, _) = self._known.popitem(last=False)
                self._size -= gone

    def forget(self) -> None:
        """Have nothing left of anybody."""
        with self._lock:
            self._known.clear()
            self._size = 0
