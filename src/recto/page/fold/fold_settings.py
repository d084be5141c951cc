"""Settings of folding (R11): which tools, how many results stay, how old one may be, what stands in its place."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache

from recto.errors import SettingsError
from recto.page.fold.paths import Project
from recto.page.text.tokens import TokenCounter

READ_PLACEHOLDER = "[该文件的历史读取内容已压缩,请参看最新读取结果]"
TERMINAL_PLACEHOLDER = "此命令返回内容已过时"
SEARCH_PLACEHOLDER = "本次搜索结果已过时,故精简为占位符"


@dataclass(frozen=True, kw_only=True)
class ReadRule:
    """Reads of files (R2): per file the newest `keep` stay.

    `keep_by_size` lowers that for large files: pairs of characters and keep; a file whose newest read has at least
    that many characters keeps only so many.
    """

    tools: tuple[str, ...] = ("filesystem-read",)
    path_args: tuple[str, ...] = ("filePath", "path", "file_path")
    keep: int = 5
    keep_by_size: tuple[tuple[int, int], ...] = ()
    placeholder: str = READ_PLACEHOLDER

    def __post_init__(self) -> None:
        for keep in (self.keep, *(keep for _, keep in self.keep_by_size)):
            if keep < 1:
                raise SettingsError(name="reads.keep", value=keep, allowed="at least 1 read of a file must stay")

    def keep_for(self, size: int) -> int:
        """How many reads stay of a file whose newest read has `size` characters."""
        return min([self.keep, *(keep for at_least, keep in self.keep_by_size if size >= at_least)])


@dataclass(frozen=True, kw_only=True)
class AgeRule:
    """Results that go stale with time (R8, R9): the newest `keep` stay, older ones while they are young enough."""

    tools: tuple[str, ...]
    keep: int
    max_age: timedelta
    placeholder: str

    def __post_init__(self) -> None:
        if self.keep < 0:
            raise SettingsError(name="keep", value=self.keep, allowed="it is 0 or more")
        if self.max_age < timedelta(0):
            raise SettingsError(name="minutes", value=self.max_age, allowed="it is 0 or more")


TERMINAL = AgeRule(tools=("terminal-execute",), keep=5, max_age=timedelta(minutes=15), placeholder=TERMINAL_PLACEHOLDER)
SEARCH = AgeRule(tools=("ace-text_search",), keep=5, max_age=timedelta(minutes=10), placeholder=SEARCH_PLACEHOLDER)


@dataclass(frozen=True, kw_only=True)
class FoldSettings:
    """What folding does. None switches a rule off; searches are off unless asked for."""

    reads: ReadRule | None = ReadRule()
    terminal: AgeRule | None = TERMINAL
    search: AgeRule | None = None
    project: Project = Project()


@dataclass(frozen=True, kw_only=True, eq=False)
class FoldKey:
    """Settings and a counter as one thing that is cheap to look things up by; equal ones are the same one."""

    settings: FoldSettings
    counter: TokenCounter
    tools: frozenset[str]


@lru_cache(maxsize=64)
def fold_key(settings: FoldSettings, counter: TokenCounter) -> FoldKey:
    """The key of these settings and this counter."""
    rules = (settings.reads, settings.terminal, settings.search)
    tools = frozenset(tool for rule in rules if rule for tool in rule.tools)
    return FoldKey(settings=settings, counter=counter, tools=tools)
