"""Files of a skill's folder. Refuses those that lead out of it, are no file, or cannot be read."""

from __future__ import annotations

from pathlib import Path

LEADS_OUT = "it leads out of the skill's folder. Put the file itself there."
NO_FILE = "it is no file. Put a file in its place, or take it away."


class UnreadableFile(Exception):
    """A file that is not read. Its text says why, and what to do."""


def read_within(folder: Path, file: Path, most: int) -> bytes:
    """The first `most` bytes of a file of the folder, and one more where there are more. Raises UnreadableFile."""
    try:
        real = file.resolve(strict=True)
        if not real.is_relative_to(folder.resolve(strict=True)):
            raise UnreadableFile(LEADS_OUT)
        # Opening a pipe would wait for somebody to write into it.
        if not real.is_file():
            raise UnreadableFile(NO_FILE)
        with real.open("rb") as stream:
            return stream.read(most + 1)
    except OSError as error:
        raise UnreadableFile(f"it cannot be read ({error.strerror}). Put that right, or take it away.") from error
    except (RuntimeError, ValueError) as error:
        raise UnreadableFile("it cannot be read (a link that leads to itself). Take it away.") from error


def leads_out(folder: Path, file: Path) -> bool:
    """Whether a link stands for something outside of the folder, or for nothing."""
    try:
        return not file.resolve(strict=True).is_relative_to(folder.resolve(strict=True))
    except (OSError, RuntimeError, ValueError):
        return True
