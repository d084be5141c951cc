"""Reads pictures of pages with tesseract, where it is installed. Refuses languages it does not have."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

PROGRAM = "tesseract"
LIST_SECONDS = 20
_CHINESE = r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]"
# Tesseract sets Chinese characters apart as if they were words.
_GAP = re.compile(rf"(?<={_CHINESE}) +(?={_CHINESE})")


@dataclass(frozen=True, kw_only=True)
class PageReader:
    """Reads pages in the languages that were asked for."""

    program: str
    languages: tuple[str, ...]

    def read(self, picture: bytes, seconds: float) -> str | None:
        """The text of a page in a PGM; None where it could not be read, or not in time."""
        command = [self.program, "stdin", "stdout", "-l", "+".join(self.languages)]
        output = _run(command, picture, seconds)
        return None if output is None else _GAP.sub("", output.decode("utf-8", "replace")).replace("\f", "").strip()


def reader_for(wanted: str) -> PageReader | None:
    """One for languages joined by `+`, without those tesseract lacks; None where none is left."""
    program = shutil.which(PROGRAM) if wanted else None
    listed = _run([program, "--list-langs"], b"", LIST_SECONDS) if program else None
    if program is None or listed is None:
        return None
    known = frozenset(listed.decode("utf-8", "replace").split("\n")[1:])
    languages = tuple(one for one in dict.fromkeys(wanted.split("+")) if one in known)
    return PageReader(program=program, languages=languages) if languages else None


def _run(command: Sequence[str], data: bytes, seconds: float) -> bytes | None:
    # More threads than one only get in each other's way on a page.
    environment = {**os.environ, "OMP_THREAD_LIMIT": "1"}
    try:
        done = subprocess.run(  # noqa: S603 - the languages are known ones, and nothing else comes from outside
            command, input=data, capture_output=True, timeout=seconds, check=True, env=environment
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout
