"""Reading of files within a skill's folder, without following links out of it."""

from __future__ import annotations

from pathlib import Path

LEADS_OUT = "it leads out of the skill's folder. Put the file itself there."
NO_FILE = "it is not a file. Replace or remove it."


class UnreadableFile(Exception):
    """An unreadable file. The error text contains the reason and a remedy."""


def read_within(folder: Path, file: Path, most: int) -> bytes:
    """Return up to `most + 1` bytes of a file of the folder, so that callers can detect a larger file.

    Raise UnreadableFile if the file cannot be read or is outside the folder.
    """
    try:
        real = file.resolve(strict=True)
        if not real.is_relative_to(folder.resolve(strict=True)):
            raise UnreadableFile(LEADS_OUT)
        # Reject other kinds of files, because opening a pipe would wait for a writer.
        if not real.is_file():
            raise UnreadableFile(NO_FILE)
        with real.open("rb") as stream:
            return stream.read(most + 1)
    except OSError as error:
        raise UnreadableFile(f"it cannot be read ({error.strerror}). Fix or remove it.") from error
    except (RuntimeError, ValueError) as error:
        raise UnreadableFile("it cannot be read (a link to itself). Remove it.") from error


def leads_out(folder: Path, file: Path) -> bool:
    """Return True if a path leads out of the folder or does not exist."""
    try:
        return not file.resolve(strict=True).is_relative_to(folder.resolve(strict=True))
    except (OSError, RuntimeError, ValueError):
        return True
