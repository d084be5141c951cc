"""What the demo model does with files: it finds them in a reminder and shows how each begins. It knows no more."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import unescape
from typing import Literal, TypeAlias

from recto.conversation.json import Json, load

Language: TypeAlias = Literal["zh", "en"]

READER = "read_files"
# As many as it may ask for at once.
MOST_FILES = 20
LINES_SHOWN = 3
LINE_SHOWN = 120
FILE = re.compile(r"^<file>\n<id>(.*)</id>\n<name>(.*)</name>\n<type>document</type>$", re.MULTILINE)
FILE_WORDS = re.compile(
    r"\b(?:files?|documents?|attach\w*|uploads?|uploaded|read|summar\w*|content)\b|文件|文档|附件|上传|读|总结|摘要|内容",
    re.IGNORECASE,
)
PART = re.compile(r"\[characters .*\]\n")
FAILURE = "Error: "

OPENING = {
    "en": "I am the demo model, so I only show how each file begins.",
    "zh": "我是演示模型，只能展示每个文件的开头。",
}
BEGINS = {"en": "{name} begins:", "zh": "{name} 的开头："}
UNREAD = {"en": "{name} could not be read: {reason}", "zh": "{name} 无法读取：{reason}"}


def documents_in(reminder: str) -> Mapping[str, str]:
    """The documents a reminder tells of: names by id."""
    found = [(unescape(id), unescape(name)) for id, name in FILE.findall(reminder)]
    return dict(found[:MOST_FILES])


def wants_files(words: str) -> bool:
    """Whether words ask about files."""
    return bool(FILE_WORDS.search(words))


def tell_files(result: str, language: Language) -> str | None:
    """How each file begins, by what the tool answered; None where that is no list of files."""
    try:
        rows = load(result)
    except ValueError:
        return None
    told = [_told(row, language) for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return "\n\n".join((OPENING[language], *told)) if told else None


def _told(row: Mapping[str, Json], language: Language) -> str:
    name, content = str(row.get("name") or row.get("id") or "?"), str(row.get("content") or "")
    if content.startswith(FAILURE):
        return UNREAD[language].format(name=name, reason=content.removeprefix(FAILURE))
    text = PART.sub("", content, count=1) if PART.match(content) else content
    lines = [line for line in text.splitlines() if line.strip()][:LINES_SHOWN]
    shown = [line if len(line) <= LINE_SHOWN else f"{line[:LINE_SHOWN]}..." for line in lines]
    return "\n".join((BEGINS[language].format(name=name), *shown))
