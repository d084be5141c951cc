"""What is wrong with a file somebody wrote, and where. Refuses to be raised: all problems of it are told together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from recto.conversation.json import Json


@dataclass(frozen=True, kw_only=True)
class FileProblem:
    """A text about a line of a file, counted from 1; without a line it is about the whole. Warnings are such too."""

    file: Path
    line: int | None
    text: str

    def __str__(self) -> str:
        where = f"{self.file}" if self.line is None else f"{self.file}:{self.line}"
        return f"{where}: {self.text}"

    def row(self) -> dict[str, Json]:
        """The problem as JSON."""
        return {"file": str(self.file), "line": self.line, "text": self.text}


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A text about a line of a text, counted from 1, before anybody has said what file it is in."""

    line: int
    text: str
