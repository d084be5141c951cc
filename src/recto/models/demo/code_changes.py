"""Python functions, and the changes of one token that may repair them, in a fixed order. It runs and parses no code."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

QUOTED = re.compile(r'("""|\'\'\')[\s\S]*?\1|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|#[^\n]*')
DEFINED = re.compile(r"^([ \t]*)(?:async )?(?:def|class) (\w+)", re.MULTILINE)
USED = re.compile(r"(?<=\.)[A-Za-z_]\w*|\b[A-Za-z_]\w*(?=\()")
NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")
OF_PYTHON = frozenset({*dir(builtins), *keyword.kwlist})
# What is changed is the group of a pattern, which may be empty; the likeliest changes come first.
SWAPS = tuple(
    (re.compile(pattern), new)
    for pattern, new in (
        *((r"[\w)\]]\s*(\+)(?!=)", "-"), (r"[\w)\]]\s*(-)(?![=>])", "+"), (r"(\+=)", "-="), (r"(-=)", "+=")),
        *((r"(?<!<)(<)(?![<=])", "<="), (r"(<=)", "<"), (r"(?<![->])(>)(?![>=])", ">="), (r"(>=)", ">")),
        *((r"(==)", "!="), (r"(!=)", "==")),
        *((r"\brange\([^()\n]*(?:\([^()\n]*\)[^()\n]*)?()\)", " + 1"), (r"\brange\(()[^(),\n]+\)", "1, ")),
        *((r"\brange\(()[^(),\n]*\([^()\n]*\)[^(),\n]*\)", "1, "), (r"\brange\((1, )", "")),
        *((r"[\w)\]]( [-+] 1)\b", ""), (r"\w\[\w+()\]", " - 1"), (r"\w\[\w+()\]", " + 1")),
        *((r"\b(and)\b", "or"), (r"\b(or)\b", "and")),
        *((r"(?<![\w.])(0)(?![\w.])", "1"), (r"(?<![\w.])(1)(?![\w.])", "0")),
        *((r"\b(min)\(", "max"), (r"\b(max)\(", "min"), (r"\b(True)\b", "False"), (r"\b(False)\b", "True")),
        *((r"\b(?:if|while|and|or|return) ()(?!not\b)\w", "not "), (r"\b(not )", ""), (r"\bis ()(?!not\b)", "not ")),
        *((r"(?<!<)(<)(?![<=])", ">"), (r"(?<![->])(>)(?![>=])", "<")),
        *((r"[\w)\]]\s*(\*)(?![*=])", "/"), (r"[\w)\]]\s*(?<!/)(/)(?![/=])", "*"), (r"(//)", "/")),
    )
)


@dataclass(frozen=True, kw_only=True)
class CodeFunction:
    """A function of a file, or a class with all that is in it: its text begins at `start` of the file's."""

    path: str
    name: str
    start: int
    text: str
    is_class: bool


@dataclass(frozen=True, kw_only=True)
class CodeChange:
    """Some lines of a file, and what they become."""

    path: str
    old: str
    new: str

    @property
    def undone(self) -> CodeChange:
        """The way back."""
        return CodeChange(path=self.path, old=self.new, new=self.old)


def functions_in(files: Mapping[str, str]) -> Sequence[CodeFunction]:
    """The functions and classes of files, whose texts are by their paths; those inside of others too."""
    return [one for path, text in files.items() for one in _functions(path, text)]


def _functions(path: str, text: str) -> Iterator[CodeFunction]:
    code = _code_of(text)
    for found in DEFINED.finditer(code):
        inner = len(found[1])
        # The first line behind it that is as far to the left, and does not just close the arguments.
        end = re.compile(rf"^[ \t]{{0,{inner}}}[^\s)]", re.MULTILINE).search(code, found.end())
        until = end.start() if end else len(text)
        is_class = "class " in found[0]
        yield CodeFunction(
            path=path, name=found[2], start=found.start(), text=text[found.start() : until], is_class=is_class
        )


def names_used(text: str) -> Sequence[str]:
    """What is called in some code, and attributes, each once; without what comes with Python."""
    return [name for name in dict.fromkeys(USED.findall(_code_of(text))) if name not in OF_PYTHON]


def reached_from(names: Iterable[str], functions: Sequence[CodeFunction]) -> Sequence[CodeFunction]:
    """Those that go by the names, then those that they use, and so on; whole classes last."""
    found, left = list[CodeFunction](), list(names)
    for name in left:
        new = [one for one in functions if one.name == name and one not in found]
        found += new
        # The loop goes on with what is added here.
        left += [used for one in new for used in names_used(one.text)]
    return sorted(found, key=lambda one: one.is_class)


def changes_of(functions: Sequence[CodeFunction], files: Mapping[str, str]) -> Iterator[CodeChange]:
    """What may repair one of the functions: the likeliest change of each before the next kind of change."""
    codes = [(function, _code_of(function.text)) for function in functions]
    swaps = (
        (function, found.span(1), new)
        for pattern, new in SWAPS
        for function, code in codes
        for found in pattern.finditer(code)
    )
    numbers = (
        (function, found.span(), str(int(found[0]) + step))
        for step in (1, -1)
        for function, code in codes
        for found in NUMBER.finditer(code)
    )
    for function, (start, end), new in chain(swaps, numbers):
        span = function.start + start, function.start + end
        if change := _by_lines(function.path, files[function.path], span, new):
            yield change


def _by_lines(path: str, text: str, span: tuple[int, int], new: str) -> CodeChange | None:
    """A change as whole lines, as many as it takes for both, before and after, to be in the file once."""
    changed = text[: span[0]] + new + text[span[1] :]
    start, end = text.rfind("\n", 0, span[0]) + 1, _line_end(text, span[1])
    while True:
        old, becomes = text[start:end], changed[start : end + len(changed) - len(text)]
        if text.count(old) == 1 == changed.count(becomes):
            return CodeChange(path=path, old=old, new=becomes)
        if start == 0 and end == len(text):
            return None
        start, end = text.rfind("\n", 0, max(start - 1, 0)) + 1, _line_end(text, min(end + 1, len(text)))


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _code_of(text: str) -> str:
    """The text with blanks for strings and comments, every character at its place."""
    return QUOTED.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
