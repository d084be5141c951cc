"""What is written to the terminal, in whole frames."""

from __future__ import annotations

import contextlib
from collections.abc import Generator

from prompt_toolkit.output.vt100 import Vt100_Output


class HeldOutput(Vt100_Output):
    """Writes to the terminal; while it is held, all in one piece at the end: nobody sees half of it."""

    _is_held = False

    def flush(self) -> None:
        """Write what there is, unless it is held."""
        if not self._is_held:
            super().flush()

    @contextlib.contextmanager
    def held(self) -> Generator[None]:
        """Hold what is written."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
            self.flush()
