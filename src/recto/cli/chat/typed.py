"""What was typed: commands, files that are named, pasted text as chips, two presses of Esc. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

COMMAND = re.compile(r"^/([a-z]+)(?:\s+(.*))?$", re.DOTALL)
# A file: @ at the beginning of a word, or behind a character of a script that has no blanks, and the path.
WIDE_MARKS = "，。；：！？（）「」『』【】《》、…"
AT = rf"(?<![^\s{WIDE_MARKS}\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af\uff00-\uffef])@"
# A path with blanks, or with marks of a sentence that would end it, stands in quotes.
FILE = re.compile(rf'{AT}(?:"([^"\n]+)"|([^\s{WIDE_MARKS}]+))')
AFTER = ".,;:!?)]}\"'"
BEGUN = re.compile(rf'{AT}(?:"([^"\n]*)|([^"\s{WIDE_MARKS}]*))$')


# A name, and bytes.
PastedFile: TypeAlias = tuple[str, bytes]


@dataclass(frozen=True, kw_only=True)
class TypedCommand:
    """A command and what stands behind it."""

    name: str
    rest: str = ""


@dataclass(frozen=True, kw_only=True)
class TypedMessage:
    """Words for the agent, and the paths that are named in them."""

    words: str
    paths: tuple[str, ...] = ()
    # Pastes that go along as files, and all of it as it stood in the input.
    pasted: Sequence[PastedFile] = ()
    typed: str = ""


def read_typed(text: str) -> TypedCommand | TypedMessage | None:
    """What somebody means who typed this; None where it is nothing."""
    text = text.strip()
    if not text:
        return None
    if found := COMMAND.match(text):
        return TypedCommand(name=f"/{found[1]}", rest=(found[2] or "").strip())
    paths = [one[1] or one[2].rstrip(AFTER) for one in FILE.finditer(text)]
    return TypedMessage(words=text, paths=tuple(dict.fromkeys(filter(None, paths))))


def path_begun(before: str) -> str | None:
    """The path that is being typed behind an @, where one is."""
    found = BEGUN.search(before)
    return (found[1] or found[2] or "") if found else None


def path_typed(path: str) -> str:
    """A path as it stands behind an @: in quotes where it would end too soon."""
    return path if FILE.fullmatch(f"@{path}") and path == path.rstrip(AFTER) else f'"{path}"'


def is_double(before: float | None, now: float, milliseconds: int) -> bool:
    """Whether a second press came soon enough behind the first."""
    return before is not None and (now - before) * 1000 <= milliseconds


@dataclass(frozen=True, kw_only=True)
class Pastes:
    """Long texts that were pasted: in the input each is a chip, when it is sent the text itself."""

    texts: Mapping[str, str] = field(default_factory=dict[str, str])

    def add(self, text: str, lines: int, label: Callable[[int, int], str]) -> tuple[Pastes, str]:
        """The text as the input shows it: a chip where it has more than so many lines."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        count = text.count("\n") + 1
        if count <= lines:
            return self, text
        chip = label(len(self.texts) + 1, count)
        return replace(self, texts={**self.texts, chip: text}), chip

    def expand(self, text: str) -> str:
        """What was meant."""
        for chip, pasted in self.texts.items():
            text = text.replace(chip, pasted)
        return text

    def send(self, text: str, most: int) -> tuple[str, Sequence[PastedFile]]:
        """What is sent: of a message that would have more characters than `most`, the longest pastes are files."""
        files = list[PastedFile]()
        within = {chip: pasted for chip, pasted in self.texts.items() if chip in text}
        for chip in sorted(within, key=lambda chip: len(within[chip]), reverse=True):
            if len(Pastes(texts=within).expand(text)) <= most:
                break
            files.append((f"pasted-{list(self.texts).index(chip) + 1}.txt", within.pop(chip).encode()))
        return Pastes(texts=within).expand(text), files


def matching(names: Sequence[str], begun: str) -> Sequence[str]:
    """The paths that go on what was begun: those that begin so, then those that have it in them."""
    low = begun.lower()
    first = [name for name in names if name.lower().startswith(low)]
    return [*first, *[name for name in names if low in name.lower() and name not in first]]
