"""The fold rules, one value each: tools, limits, placeholder and options.

Settings tables, options of `recto fold` and the words of its report are built from these values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Literal, TypeAlias

from recto.conversation.json import leading_object
from recto.conversation.locale import language
from recto.conversation.messages import Text, ToolMessage
from recto.errors import SettingsError

Sets: TypeAlias = Literal["on", "tools", "path_args", "keep"]
ERROR_PREFIX = "Error:"
EXIT_CODE_NAMES = ("exitCode", "exit_code", "exitcode", "returncode")


def is_failure(message: ToolMessage) -> bool:
    """Return True for an error result (R3): its status is an error, or its text begins with `Error:`.

    An error in one part of a batch read concerns only the file of that part (R5).
    """
    if message.error is not None:
        return True
    first = next((part for part in message.parts if isinstance(part, Text) and part.text.strip()), None)
    return first is not None and not first.path and is_error_text(first.text)


def is_error_text(text: str) -> bool:
    """Return True if a text reports an error (R3)."""
    return text.lstrip().startswith(ERROR_PREFIX)


def is_failed_command(message: ToolMessage) -> bool:
    """Return True if a command failed (R8): an error result, text on stderr, or a nonzero exit code."""
    if is_failure(message):
        return True
    text = "".join(part.text for part in message.parts if isinstance(part, Text)).strip()
    report = leading_object(text)
    if report is None:
        return False
    levels = [level for level in (report, report.get("metadata")) if isinstance(level, Mapping)]
    codes = [level.get(name) for level in levels for name in EXIT_CODE_NAMES]
    errors = [level.get("stderr") for level in levels]
    return any(isinstance(error, str) and error for error in errors) or any(
        code not in (None, 0, "0", "") for code in codes
    )


@dataclass(frozen=True, kw_only=True)
class RuleOption:
    """A flag of `recto fold`, the rule setting it changes, and its help text."""

    flag: str
    sets: Sets
    help: str


@dataclass(frozen=True, kw_only=True)
class FoldRule:
    """One rule: the newest `keep` results of `tools` stay, and older ones are folded once they exceed `max_age`.

    `name` is the name of its settings table, `number` its id in receipts, and `why` its text in reports. With
    `path_args`, the arguments that name files, results are counted per file (R2); a batch of several files has its own
    number (R5). Results for which `failed` returns True are never folded (R3). A rule that is not `on` must be enabled.
    `in_english` is the English placeholder, if there is one.

    `keep_by_size` lowers `keep` for large files. Each pair is a number of characters, and the `keep` of files whose
    newest result has at least that many.
    """

    name: str
    number: str
    why: str
    tools: tuple[str, ...]
    placeholder: str
    in_english: str = ""
    keep: int = 5
    max_age: timedelta | None = None
    path_args: tuple[str, ...] = ()
    keep_by_size: tuple[tuple[int, int], ...] = ()
    batch_number: str = ""
    batch_why: str = ""
    failed: Callable[[ToolMessage], bool] = is_failure
    on: bool = True
    options: tuple[RuleOption, ...] = ()

    def __post_init__(self) -> None:
        least, allowed = self.least_keep, "at least 1 read of a file must stay" if self.path_args else "it is 0 or more"
        for keep in (self.keep, *(keep for _, keep in self.keep_by_size)):
            if keep < least:
                raise SettingsError(name=f"{self.name}.keep", value=keep, allowed=allowed)
        if self.max_age is not None and self.max_age < timedelta(0):
            raise SettingsError(name=f"{self.name}.minutes", value=self.max_age, allowed="it is 0 or more")

    @property
    def least_keep(self) -> int:
        """The smallest allowed `keep`: 1 for rules that count per file, else 0."""
        return 1 if self.path_args else 0

    @property
    def numbers(self) -> Mapping[str, str]:
        """The ids that receipts of this rule may have, each with its text in reports."""
        batch = {self.batch_number: self.batch_why} if self.batch_number else {}
        return {self.number: self.why, **batch}

    def keep_for(self, size: int) -> int:
        """Return how many results stay for a file whose newest one has `size` characters."""
        return min([self.keep, *(keep for at_least, keep in self.keep_by_size if size >= at_least)])


READS = FoldRule(
    name="reads",
    number="R2",
    why="newer reads",
    batch_number="R5",
    batch_why="newer reads of each",
    tools=("filesystem-read",),
    path_args=("filePath", "path", "file_path"),
    placeholder="[该文件的历史读取内容已压缩,请参看最新读取结果]",
    in_english="[An older read of this file, folded: see the newest one]",
    options=(
        RuleOption(flag="--keep", sets="keep", help="Newest reads of a file that stay."),
        RuleOption(flag="--read-tool", sets="tools", help="Name of a tool that reads files."),
        RuleOption(flag="--path-arg", sets="path_args", help="Its argument that names the file."),
    ),
)
TERMINAL = FoldRule(
    name="terminal",
    number="R8",
    why="old command",
    tools=("terminal-execute",),
    failed=is_failed_command,
    max_age=timedelta(minutes=15),
    placeholder="此命令返回内容已过时",
    in_english="The output of this command is out of date",
    options=(RuleOption(flag="--terminal-tool", sets="tools", help="Name of a tool that runs commands."),),
)
SEARCH = FoldRule(
    name="search",
    number="R9",
    why="old search",
    on=False,
    tools=("ace-text_search",),
    max_age=timedelta(minutes=10),
    placeholder="本次搜索结果已过时,故精简为占位符",
    in_english="The results of this search are out of date, and this line stands for them",
    options=(
        RuleOption(flag="--search-tool", sets="tools", help="Name of a search tool; turns --search on."),
        RuleOption(flag="--search", sets="on", help="Fold old search results too."),
    ),
)
RULES = (READS, TERMINAL, SEARCH)


def rules_in(locale: str, rules: Sequence[FoldRule] = RULES) -> tuple[FoldRule, ...]:
    """Return the rules with placeholders in the locale's language."""
    is_english = language(locale) == "en"
    return tuple([replace(rule, placeholder=(is_english and rule.in_english) or rule.placeholder) for rule in rules])
