"""What of a folder is listed: all but what its `.gitignore` files leave out. It reads them as ripgrep does.

Links are listed and never followed: every folder is opened by its name in the one before, so no race leads outside.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import NamedTuple, TypeAlias

from recto.tools.workspace.workspace_files import FOLDER, GIT

GITIGNORE = ".gitignore"
# What is in it is git's own, and changes with every command.
# What a file is called until it is finished: nobody's work.
PARTS = ".recto-*.part"
LONGEST_GITIGNORE = 1_000_000
DEEPEST = 128
READ_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
BOM = "\ufeff"
# What may stand in a glob for something else.
SPECIAL = re.compile(r"([\\*?\[\]{}!# ,])")


class BadGlob(ValueError):
    """A glob that means nothing, with the reason in ripgrep's words."""


class ListedEntry(NamedTuple):
    """A file, a link or a folder that is listed. `folder` is what it is in, open for as long as it is the newest."""

    path: str
    name: str
    found: os.stat_result
    folder: int

    @property
    def is_file(self) -> bool:
        """Whether it is a plain file."""
        return stat.S_ISREG(self.found.st_mode)

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder, and no link to one."""
        return stat.S_ISDIR(self.found.st_mode)

    @property
    def is_link(self) -> bool:
        """Whether it is a link, wherever it leads."""
        return stat.S_ISLNK(self.found.st_mode)


@dataclass(frozen=True, kw_only=True)
class IgnoreRules:
    """The rules of one `.gitignore`: the last that names a path says whether it is left out."""

    files: re.Pattern[bytes] | None = None
    folders: re.Pattern[bytes] | None = None
    of_files: tuple[bool, ...] = ()
    of_folders: tuple[bool, ...] = ()

    def leave_out(self, path: str, *, is_folder: bool) -> bool | None:
        """Whether a path, counted from where the rules stand, is left out; None where no rule names it."""
        regex, verdicts = (self.folders, self.of_folders) if is_folder else (self.files, self.of_files)
        found = regex.fullmatch(os.fsencode(path)) if regex else None
        return verdicts[found.lastindex - 1] if found and found.lastindex else None


NO_RULES = IgnoreRules()


def listed(
    top: int,
    *,
    left_out: IgnoreRules = NO_RULES,
    under: Sequence[str] = (),
    depth: int = DEEPEST,
) -> Generator[ListedEntry]:
    """What is in an open folder, or in one `under` it, in the order of its names: a folder before what is in it.

    What `left_out` names is not there, whatever a `.gitignore` says. Folders that are `depth` deep are not looked into.
    What cannot be opened, or is gone by now, has nothing in it. Of a folder that rules leave out, whoever names it is
    shown all.
    """
    with suppress(OSError), ExitStack() as opened:
        way = _Way(folder=opened.enter_context(_closing(os.dup(top))))
        way.read_rules()
        is_left_out = False
        for name in under:
            is_left_out = is_left_out or way.leaves_out(way.prefix + name, is_folder=True)
            way = way.into(name, opened)
        if is_left_out:
            way.rules = ()
        yield from _walk(way, left_out, depth)


def _walk(way: _Way, left_out: IgnoreRules, depth: int) -> Generator[ListedEntry]:
    for name, found in way.entries():
        path, is_folder = way.prefix + name, stat.S_ISDIR(found.st_mode)
        verdict = left_out.leave_out(path, is_folder=is_folder)
        if way.leaves_out(path, is_folder=is_folder) if verdict is None else verdict:
            continue
        yield ListedEntry(path, name, found, way.folder)
        if is_folder and depth > 1:
            with suppress(OSError), ExitStack() as opened:
                yield from _walk(way.into(name, opened), left_out, depth - 1)


def is_ignored(path: str, rules: Mapping[str, IgnoreRules]) -> bool:
    """Whether a file is left out, or a folder on the way to it, by rules that are given by the path of their file."""
    names, known = path.split("/"), list[tuple[int, IgnoreRules]]()
    for depth in range(len(names)):
        prefix = "".join(f"{name}/" for name in names[:depth])
        if prefix + GITIGNORE in rules:
            known.append((len(prefix), rules[prefix + GITIGNORE]))
        if _leave_out(known, prefix + names[depth], is_folder=depth < len(names) - 1):
            return True
    return False


def _leave_out(rules: Sequence[tuple[int, IgnoreRules]], path: str, *, is_folder: bool) -> bool:
    for start, one in reversed(rules):
        verdict = one.leave_out(path[start:], is_folder=is_folder)
        if verdict is not None:
            return verdict
    return False


@dataclass(kw_only=True)
class _Way:
    """An open folder, and the rules of those on the way to it, the nearest last, each with where it stands."""

    folder: int
    prefix: str = ""
    rules: tuple[tuple[int, IgnoreRules], ...] = field(default=())

    def entries(self) -> list[tuple[str, os.stat_result]]:
        """What is in it, in the order of the names' bytes."""
        found = list[tuple[str, os.stat_result]]()
        with suppress(OSError), os.scandir(self.folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    found.append((entry.name, entry.stat(follow_symlinks=False)))
        return sorted(found, key=lambda one: os.fsencode(one[0]))

    def leaves_out(self, path: str, *, is_folder: bool) -> bool:
        return _leave_out(self.rules, path, is_folder=is_folder)

    def into(self, name: str, opened: ExitStack) -> _Way:
        folder = os.open(name, FOLDER, dir_fd=self.folder)
        opened.enter_context(_closing(folder))
        way = _Way(folder=folder, prefix=f"{self.prefix}{name}/", rules=self.rules)
        way.read_rules()
        return way

    def read_rules(self) -> None:
        text = _read_small(self.folder, GITIGNORE)
        if text:
            self.rules = (*self.rules, (len(self.prefix), rules_in(text)))


@contextmanager
def _closing(descriptor: int) -> Generator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _read_small(folder: int, name: str) -> bytes:
    try:
        file = os.open(name, READ_FILE, dir_fd=folder)
    except OSError:
        return b""
    with _closing(file):
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return b""
        return os.read(file, LONGEST_GITIGNORE)


def rules_in(content: bytes) -> IgnoreRules:
    """The rules that the content of a `.gitignore` is."""
    return rules_of(_lines(content[:LONGEST_GITIGNORE]))


def _lines(text: bytes) -> list[str]:
    """The lines up to the first that is no text."""
    lines = list[str]()
    for line in text.split(b"\n"):
        try:
            lines.append(line.decode())
        except UnicodeDecodeError:
            break
    return [lines[0].removeprefix(BOM), *lines[1:]] if lines else []


def rules_of(lines: Iterable[str]) -> IgnoreRules:
    """The rules that the lines of a `.gitignore` are. One that means nothing is passed over."""
    rules = [rule for line in lines if (rule := _rule(line))]
    rules.reverse()
    of_files = [rule for rule in rules if not rule.only_folders]
    return IgnoreRules(
        files=_any_of(of_files),
        folders=_any_of(rules),
        of_files=tuple(not rule.keeps for rule in of_files),
        of_folders=tuple(not rule.keeps for rule in rules),
    )


class _Rule(NamedTuple):
    regex: bytes
    keeps: bool
    only_folders: bool


def _any_of(rules: Sequence[_Rule]) -> re.Pattern[bytes] | None:
    return re.compile(b"|".join(b"(" + rule.regex + b")" for rule in rules), re.DOTALL) if rules else None


def _rule(line: str) -> _Rule | None:
    if line.startswith("#"):
        return None
    if not line.endswith("\\ "):
        line = line.rstrip()
    if not line:
        return None
    keeps = line.startswith("!")
    line = line[1:] if keeps or line.startswith(("\\!", "\\#")) else line
    anchored, line = line.startswith("/"), line.removeprefix("/")
    only_folders = line.endswith("/")
    if only_folders:
        line = line[:-1].removesuffix("\\")
    if not anchored and "/" not in line and line != "**":
        line = f"**/{line}"
    try:
        return _Rule(glob_regex(f"{line}/*" if line.endswith("/**") else line), keeps, only_folders)
    except BadGlob:
        return None


def never_listed(paths: Iterable[str]) -> tuple[str, ...]:
    """Rules that leave out these paths, git's own folder and files that are not finished yet."""
    return (GIT, PARTS, *(f"/{escaped(path)}" for path in paths))


def escaped(path: str) -> str:
    """A path as a glob that names nothing else."""
    return SPECIAL.sub(r"\\\1", path)


def glob_regex(glob: str) -> bytes:
    """The regular expression of a glob over whole paths, as bytes. It has no groups that capture.

    Globs and names are written by anybody, and Python holds up all its threads while it matches. So nothing that a star
    stands for is tried twice: what comes after it is taken where it is found first, and not looked for again.
    """
    wholes = _without_braces(_Glob(glob).tokens())
    return b"(?:" + b"|".join(_without_retries(tokens) for tokens in wholes) + b")"


# In this order: what is nearest is tried first.
PREFIX, SUFFIX, BETWEEN = b"(?:/??|.*?/)", b"/.*?", b"(?:/|/.*?/)"
STAR, ANY, SEPARATOR = b"[^/]*", b"[^/]", b"/"
# What braces may multiply to, and the prefixes that only braces put after something else: those are tried again.
MOST_WHOLES, MOST_INNER_PREFIXES = 64, 2


class _Braces(NamedTuple):
    branches: list[list[_Token]]


_Token: TypeAlias = bytes | _Braces


def _without_braces(tokens: Iterable[_Token]) -> list[list[bytes]]:
    """Each way to choose one branch of all braces."""
    wholes = list[list[bytes]]([[]])
    for token in tokens:
        ways = [[token]] if isinstance(token, bytes) else _ways(token)
        wholes = [[*before, *way] for before in wholes for way in ways]
        if len(wholes) > MOST_WHOLES:
            raise BadGlob(f"more than {MOST_WHOLES} combinations of alternates")
    return wholes


def _ways(braces: _Braces) -> list[list[bytes]]:
    return [way for branch in braces.branches for way in _without_braces(branch)] or [[]]


def _without_retries(tokens: Sequence[bytes]) -> bytes:
    if tokens[1:].count(PREFIX) > MOST_INNER_PREFIXES:
        raise BadGlob("too many ** in alternates")
    parts = list[list[bytes]]([[b""]])
    for token in tokens:
        if token in (PREFIX, SUFFIX, BETWEEN):
            parts.append([token])
        else:
            parts[-1].append(token)
    regex = b""
    for (first, *names), after in zip_longest(parts, parts[1:]):
        part = first + b"/".join(map(_name_regex, _split(names, SEPARATOR)))
        # Whatever comes between it and the next, the sooner it ends the more is left for that.
        regex += b"(?>" + part + b"(?=/))" if after and after[0] in (SUFFIX, BETWEEN) else part
    return regex


def _name_regex(tokens: Sequence[bytes]) -> bytes:
    first, *others = (b"".join(part) for part in _split(tokens, STAR))
    middle = b"".join(b"(?>[^/]*?" + part + b")" for part in others[:-1])
    return first + middle + (STAR + others[-1] if others else b"")


def _split(tokens: Sequence[bytes], at: bytes) -> list[list[bytes]]:
    parts = list[list[bytes]]([[]])
    for token in tokens:
        if token == at:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


class _Glob:
    """Reads one glob. `_open` has the branches of each brace that is open, the newest branch last."""

    def __init__(self, glob: str) -> None:
        self._glob = glob
        self._at = 0
        self._open: list[list[list[_Token]]] = [[[]]]

    def tokens(self) -> Sequence[_Token]:
        while (sign := self._next()) is not None:
            self._take(sign)
        if len(self._open) > 1:
            raise BadGlob("unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)")
        tokens = self._open[0][0]
        return [b".*"] if tokens == [PREFIX] else tokens

    def _take(self, sign: str) -> None:
        match sign:
            case "?":
                self._add(ANY)
            case "*":
                self._star()
            case "[":
                self._class()
            case "{":
                self._open.append([[]])
            case "}":
                self._close()
            case "," if len(self._open) > 1:
                self._open[-1].append([])
            case "\\":
                self._escape()
            case "/":
                self._add(SEPARATOR)
            case _:
                self._add(re.escape(os.fsencode(sign)))

    def _next(self) -> str | None:
        self._at += 1
        return self._glob[self._at - 1] if self._at <= len(self._glob) else None

    def _peek(self) -> str | None:
        return self._glob[self._at] if self._at < len(self._glob) else None

    def _add(self, *tokens: _Token) -> None:
        self._open[-1][-1] += tokens

    def _escape(self) -> None:
        sign = self._next()
        if sign is None:
            raise BadGlob("dangling '\\'")
        self._add(re.escape(os.fsencode(sign)))

    def _close(self) -> None:
        if len(self._open) == 1:
            raise BadGlob("unopened alternate group; missing '{' (maybe escape '}' with '[}]'?)")
        branches = [branch for branch in self._open.pop() if branch]
        self._add(_Braces(branches))

    def _star(self) -> None:
        before = self._glob[self._at - 2] if self._at > 1 else None
        if self._peek() != "*":
            self._add(STAR)
            return
        self._next()
        after, tokens = self._peek(), self._open[-1][-1]
        if not tokens:
            self._add(*((PREFIX,) if after in (None, "/") else (STAR, STAR)))
            if after == "/":
                self._next()
            return
        is_last = after is None or (after in (",", "}") and len(self._open) > 1)
        if before != "/" or not (is_last or after == "/"):
            self._add(STAR, STAR)
            return
        if after == "/":
            self._next()
        last = tokens.pop()
        self._add(last if last in (PREFIX, SUFFIX) else SUFFIX if is_last else BETWEEN)

    def _class(self) -> None:
        is_negated = self._peek() in ("!", "^")
        if is_negated:
            self._next()
        ranges, first, in_range = list[tuple[str, str]](), True, False
        while (sign := self._next()) != "]" or first:
            if sign is None:
                raise BadGlob("unclosed character class; missing ']'")
            if in_range:
                ranges[-1] = (ranges[-1][0], sign)
                _check_range(*ranges[-1])
                in_range = False
            elif sign == "-" and not first:
                in_range = True
            else:
                ranges.append((sign, sign))
            first = False
        ranges += [("-", "-")] if in_range else []
        inside = b"".join(_class_part(*one) for one in ranges)
        self._add(b"(?!/)[" + (b"^" if is_negated else b"") + inside + b"]")


def _check_range(low: str, high: str) -> None:
    if high < low:
        raise BadGlob(f"invalid range; '{low}' > '{high}'")


def _class_part(low: str, high: str) -> bytes:
    if low == high:
        return b"".join(b"\\x%02x" % one for one in os.fsencode(low))
    # Names are compared by their bytes: a range that goes beyond ASCII takes all that do.
    return b"\\x%02x-\\x%02x" % (min(ord(low), 0x80), ord(high) if high.isascii() else 0xFF)
