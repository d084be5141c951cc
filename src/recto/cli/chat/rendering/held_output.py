"""Terminal output in whole frames."""

from __future__ import annotations

import contextlib
from collections.abc import Generator

from prompt_toolkit.output.vt100 import Vt100_Output


class HeldOutput(Vt100_Output):
    """Terminal output that can be buffered, so that no partial frame is visible."""

    _is_held = False

    def flush(self) -> None:
        """Flush, unless buffering."""
        if not self._is_held:
            super().flush()

    @contextlib.contextmanager
    def held(self) -> Generator[None]:
        """Buffer all output in this context."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
            self.flush()
