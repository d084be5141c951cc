"""Files of a skill, merged with their variants for a language.

`NAME.<locale>.<ext>` is the variant of `NAME.<ext>`: `SKILL.en.md`, `sop.en.yaml`, `cases/storm.en.md`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from recto.config.frontmatter import LONGEST, read_document
from recto.config.problem import Fault, FileProblem
from recto.config.yaml_values import Values, YamlPath
from recto.skills.safe_path import UnreadableFile, read_within

VARIANT = re.compile(r"(?P<stem>.+)\.(?P<locale>[a-z]{2}(-[A-Za-z]{2,4})?)(?P<ending>\.[a-z]+)")
# Offset of line numbers in a variant, which distinguishes them from lines of the file. No file has this many lines.
VARIANT_LINES = 1_000_000


@dataclass(frozen=True, kw_only=True)
class FileLanguage:
    """A language, and the names of all files in a folder, including variants."""

    locale: str
    names: Collection[str]

    def variant_of(self, name: str) -> str | None:
        """Return the name of a file's variant, if it exists."""
        stem, dot, ending = name.rpartition(".")
        variant = f"{stem}.{self.locale}{dot}{ending}"
        return variant if variant in self.names else None


@dataclass(frozen=True, kw_only=True)
class LocalizedFile:
    """A file with settings and a body, merged with its variant if it has one."""

    file: Path
    variant: Path | None = None
    settings: Values = Values()
    body: str = ""
    end_line: int = 1

    def problems(self, faults: Iterable[Fault]) -> tuple[FileProblem, ...]:
        """Return the faults as problems of their files, sorted by line."""
        variant = self.variant
        problems = [
            FileProblem(file=variant, line=fault.line - VARIANT_LINES, text=fault.text)
            if variant is not None and fault.line > VARIANT_LINES
            else fault.in_file(self.file)
            for fault in sorted(faults, key=lambda fault: fault.line)
        ]
        return tuple(problems)


def read_localized(folder: Path, file: Path, language: FileLanguage, *, strict: bool) -> LocalizedFile:
    """Read a file. Its variant replaces the body and each setting that the variant contains. Raise UnreadableFile."""
    base = _read(folder, file, strict=strict)
    variant = language.variant_of(file.name)
    if variant is None:
        return base
    try:
        return _over(base, _read(folder, file.with_name(variant), strict=strict))
    except UnreadableFile as error:
        raise UnreadableFile(f"its variant {variant}: {error}") from error


def _read(folder: Path, file: Path, *, strict: bool) -> LocalizedFile:
    document = read_document(read_within(folder, file, LONGEST), strict=strict)
    return LocalizedFile(file=file, settings=document.settings, body=document.body, end_line=document.end_line)


def _over(base: LocalizedFile, variant: LocalizedFile) -> LocalizedFile:
    below, above = base.settings, variant.settings
    settings = Values(
        values={**below.values, **above.values},
        lines=_lines(below.lines, above.lines, above.values),
        names=_lines(below.names, above.names, above.values),
        faults=(*below.faults, *_shift_lines(above.faults)),
        warnings=(*below.warnings, *_shift_lines(above.warnings)),
        unread=(*below.unread, *above.unread),
    )
    body, end_line = (variant.body, variant.end_line + VARIANT_LINES) if variant.body else (base.body, base.end_line)
    return replace(base, variant=variant.file, settings=settings, body=body, end_line=end_line)


def _lines(below: Mapping[YamlPath, int], above: Mapping[YamlPath, int], names: Collection[str]) -> dict[YamlPath, int]:
    base_lines = {place: line for place, line in below.items() if place[0] not in names}
    return {**base_lines, **{place: line + VARIANT_LINES for place, line in above.items()}}


def _shift_lines(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    return tuple([replace(fault, line=fault.line + VARIANT_LINES) for fault in faults])
