"""Problems in files that users write. They are collected and reported together, never raised."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from recto.conversation.json import Json


@dataclass(frozen=True, kw_only=True)
class FileProblem:
    """A problem or warning in a line of a file, counted from 1, or in the whole file."""

    file: Path
    line: int | None = None
    text: str

    def __str__(self) -> str:
        where = f"{self.file}" if self.line is None else f"{self.file}:{self.line}"
        return f"{where}: {self.text}"

    def row(self) -> dict[str, Json]:
        """Return the problem as JSON."""
        return {"file": str(self.file), "line": self.line, "text": self.text}


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A problem in a line of a text, counted from 1, before the file is known."""

    line: int
    text: str

    def in_file(self, file: Path) -> FileProblem:
        """Return this fault as a problem of a file."""
        return FileProblem(file=file, line=self.line, text=self.text)
