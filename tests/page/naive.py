"""R2-R9 once more, from SPEC.md alone: plain rows, plain loops, no caches, no line shared with recto.page."""

import json
import ntpath
import posixpath
from collections.abc import Iterator
from typing import cast

from tests.page.conversations import Row
from tests.page.random_conversations import Case, Options

READ = "[该文件的历史读取内容已压缩,请参看最新读取结果]"
COMMAND = "此命令返回内容已过时"
SEARCH = "本次搜索结果已过时,故精简为占位符"


def fold(case: Case) -> list[Row]:
    """The rows as they go into the page."""
    rows, options = case.rows, case.options
    folded = [dict(row) for row in rows]
    for index, part in stale_reads(rows, options):
        if part is None:
            folded[index]["content"] = READ
        else:
            blocks = cast("list[Row]", folded[index]["content"])
            folded[index]["content"] = [{**b, "text": READ} if n == part else b for n, b in enumerate(blocks)]
    for index in stale_results(rows, "terminal-execute", options):
        folded[index]["content"] = COMMAND
    if options.search:
        for index in stale_results(rows, "ace-text_search", options):
            folded[index]["content"] = SEARCH
    return folded


# Reads


def stale_reads(rows: list[Row], options: Options) -> Iterator[tuple[int, int | None]]:
    """Each stale read by its place; with the place of a part where it was read part by part."""
    files_of = {index: files_read(rows, index, options) for index in range(len(rows))}
    for index, files in files_of.items():
        stale = {path for path in files if count_newer(rows, files_of, index, path) >= options.keep_reads}
        parts = parts_of(rows[index])
        if not parts and files and stale == files:
            yield index, None
        for place, (path, text) in parts.items():
            if one_name(path, options) in stale and not is_error_text(text):
                yield index, place


def count_newer(rows: list[Row], files_of: dict[int, set[str]], index: int, path: str) -> int:
    newer = 0
    for other, files in files_of.items():
        if path in files and (time_of(rows, other), other) > (time_of(rows, index), index):
            newer += 1
    return newer


def files_read(rows: list[Row], index: int, options: Options) -> set[str]:
    """The files a row counts as a successful read of."""
    row = rows[index]
    if tool_of(rows, index) != "filesystem-read" or row.get("messageStatus") == "error":
        return set()
    named = paths_named(arguments_of(rows, index))
    if not named:
        return set()
    parts = parts_of(row)
    if parts:
        return {one_name(path, options) for path, text in parts.values() if not is_error_text(text)}
    if is_error_text(text_of(row)):
        return set()
    return {one_name(path, options) for path in named}


def parts_of(row: Row) -> dict[int, tuple[str, str]]:
    """Path and text of each part that answers for a path, by its place."""
    content = row.get("content")
    if row["role"] != "tool" or not isinstance(content, list):
        return {}
    blocks = cast("list[dict[str, str]]", content)
    return {place: (block["path"], block["text"]) for place, block in enumerate(blocks) if "path" in block}


def paths_named(arguments: object) -> list[str]:
    if not isinstance(arguments, dict):
        return []
    for name in ("filePath", "path", "file_path"):
        value = cast("dict[str, object]", arguments).get(name)
        items = cast("list[object]", value) if isinstance(value, list) else [value]
        paths = [path for item in items if (path := path_in(item)).strip()]
        if paths:
            return paths
    return []


def path_in(item: object) -> str:
    if isinstance(item, dict):
        item = cast("dict[str, object]", item).get("path")
    return item if isinstance(item, str) else ""


def one_name(path: str, options: Options) -> str:
    """R4 by the standard library: the root says which kind of path it is."""
    root = options.root
    kind = posixpath if root and root.startswith("/") else ntpath
    text = path.replace("\\", "/")
    name = kind.normpath(text)
    if root:
        whole = kind.normpath(kind.join(root, text)).replace("\\", "/")
        start = kind.normpath(root).replace("\\", "/")
        if same(whole[: len(start)], start, options) and whole[len(start) : len(start) + 1] in ("", "/"):
            name = whole[len(start) + 1 :] or "."
    name = name.replace("\\", "/")
    if kind is ntpath and name[1:2] == ":":
        name = name[0].upper() + name[1:]
    return name if options.case_sensitive else name.casefold()


def same(one: str, other: str, options: Options) -> bool:
    if not options.case_sensitive:
        return one.casefold() == other.casefold()
    # A drive has no case.
    return one[1:] == other[1:] and one[:1].upper() == other[:1].upper()


# Commands and searches


def stale_results(rows: list[Row], tool: str, options: Options) -> list[int]:
    search = tool == "ace-text_search"
    keep = 5 if search else options.keep_commands
    minutes = 10 if search else options.command_minutes
    good = [n for n in range(len(rows)) if tool_of(rows, n) == tool and not has_failed(rows[n], search)]
    good.sort(key=lambda index: (time_of(rows, index), index))
    now = options.now if options.now is not None else max(own_time(row) for row in rows) if rows else 0
    older = good[: len(good) - keep] if len(good) > keep else []
    return [index for index in older if time_of(rows, index) > 0 and now - time_of(rows, index) > minutes * 60_000]


def has_failed(row: Row, search: bool) -> bool:
    if row.get("messageStatus") == "error" or is_error_text(text_of(row)):
        return True
    report = parsed(text_of(row))
    if search or not isinstance(report, dict):
        return False
    found = cast("dict[str, object]", report)
    inner = found.get("metadata")
    levels = [found, cast("dict[str, object]", inner)] if isinstance(inner, dict) else [found]
    for level in levels:
        if level.get("stderr"):
            return True
        codes = [level[name] for name in ("exitCode", "exit_code") if name in level]
        if any(str(code) != "0" for code in codes):
            return True
    return False


# Rows


def tool_of(rows: list[Row], index: int) -> str | None:
    """The tool a result is of: that of the nearest call before it with its id."""
    function = function_of(rows, index)
    return None if function is None else function["name"]


def arguments_of(rows: list[Row], index: int) -> object:
    function = function_of(rows, index)
    return None if function is None else parsed(function["arguments"])


def function_of(rows: list[Row], index: int) -> dict[str, str] | None:
    if rows[index]["role"] != "tool":
        return None
    for row in reversed(rows[:index]):
        for call in reversed(cast("list[Row]", row.get("tool_calls", []))):
            if call["id"] == rows[index]["tool_call_id"]:
                return cast("dict[str, str]", call["function"])
    return None


def parsed(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None


def text_of(row: Row) -> str:
    content = row.get("content")
    if isinstance(content, list):
        return "".join(block["text"] for block in cast("list[dict[str, str]]", content))
    return str(content or "")


def is_error_text(text: str) -> bool:
    return text.strip().startswith("Error:")


def time_of(rows: list[Row], index: int) -> int:
    """Its own time, or that of the nearest message before it that has one; 0 for none."""
    return next((own_time(row) for row in reversed(rows[: index + 1]) if own_time(row)), 0)


def own_time(row: Row) -> int:
    return cast("int", row.get("timestamp", 0))
