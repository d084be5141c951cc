"""Where the bytes of a document come from, and whose fault it is when they do not. Keeps none of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Callable
from typing import TypeAlias

Pieces: TypeAlias = Callable[[], AsyncIterable[bytes]]


class Source:
    """The bytes of a document, and what went wrong with them: that is no fault of the document."""

    def __init__(self, make: Pieces) -> None:
        self._make = make
        self.failure: Exception | None = None

    async def pieces(self) -> AsyncGenerator[bytes]:
        """The bytes, once."""
        made = self._make()
        try:
            async for piece in made:
                yield piece
        except Exception as error:
            self.failure = error
            raise
        finally:
            if isinstance(made, AsyncGenerator):
                await made.aclose()
