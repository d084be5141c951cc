"""What R1-R10 say of a page in OpenAI form, once more, from SPEC.md alone: plain rows, lists, dicts and loops.

It shares no line with recto.page. Rows are those of tests/page/conversations.py: OpenAI's messages, with what a log
knows of them beside that: `timestamp` in milliseconds, `messageStatus` of an error, `path` on a part of a batch read.

`check_page(body, said, settings, now)` holds a request that a model got to all that was said before it.
"""

import json
import ntpath
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from recto.conversation.log import Entry, view
from recto.conversation.messages import AssistantMessage, Text, ToolMessage, UserMessage, words_of
from tests.page.conversations import Row

READ = "[该文件的历史读取内容已压缩,请参看最新读取结果]"
COMMAND = "此命令返回内容已过时"
SEARCH = "本次搜索结果已过时,故精简为占位符"
PATH_ARGS = ("filePath", "path", "file_path")


@dataclass(frozen=True, kw_only=True)
class ToolRule:
    """The results of tools to keep, by number and by age in minutes. None means no age."""

    tools: tuple[str, ...]
    placeholder: str
    keep: int = 5
    minutes: float | None = None


@dataclass(frozen=True, kw_only=True)
class PageSettings:
    """Settings of folding. None means off."""

    reads: ToolRule | None = ToolRule(tools=("filesystem-read",), placeholder=READ)
    commands: ToolRule | None = ToolRule(tools=("terminal-execute",), placeholder=COMMAND, minutes=15)
    searches: ToolRule | None = ToolRule(tools=("ace-text_search",), placeholder=SEARCH, minutes=10)
    path_args: tuple[str, ...] = PATH_ARGS
    root: str | None = None
    case_sensitive: bool = True


# The check


def check_page(body: bytes, log_rows: Sequence[Row], settings: PageSettings, now: float | None = None) -> None:
    """Compare a request with the log, message by message, except for system prompt and reminders."""
    sent_rows = cast("list[Row]", json.loads(body)["messages"])
    expected = expected_page(log_rows, settings, now)
    while sent_rows and sent_rows[0]["role"] == "system" and (not expected or expected[0]["role"] != "system"):
        sent_rows = sent_rows[1:]
    roles = [row["role"] for row in sent_rows]
    assert roles == [row["role"] for row in expected], f"{roles} were sent"
    ids = list[object]()
    for place, (row, wanted_part) in enumerate(zip(sent_rows, expected, strict=True)):
        is_same = calls_of(row) == calls_of(wanted_part) and says_the_same(row, wanted_part)
        assert is_same, f"message {place}, sent {str(row)[:500]}, expected {str(wanted_part)[:500]}"
        if row["role"] == "tool":
            assert [row["tool_call_id"]] == ids[:1], f"message {place} answers {row['tool_call_id']}, but {ids} wait"
            ids = ids[1:]
        else:
            assert not ids, f"calls {ids} are not answered before message {place}"
            ids = [call["id"] for call in calls_in(row)]
    assert not ids, f"calls {ids} at the end are not answered"


def expected_page(log_rows: Sequence[Row], settings: PageSettings, now: float | None = None) -> list[Row]:
    """Return the conversation without orphans, then folded."""
    newest = max([own_time(row) for row in log_rows], default=0)
    return fold(without_orphans(log_rows), settings, newest if now is None else now)


def says_the_same(row: Row, expected: Row) -> bool:
    """Return True if a message has the expected text. Escaped tags in results are equal to plain ones."""
    here, there = texts_of(row), texts_of(expected)
    # A failed result says in words that it failed, before its own.
    if row["role"] == "user" or expected.get("messageStatus") == "error":
        return "".join(here).strip().endswith("".join(there).strip())
    return [text.replace("&lt;", "<") for text in here] == [text.replace("&lt;", "<") for text in there]


# R10: no orphans


def without_orphans(log_rows: Sequence[Row]) -> list[Row]:
    """Return all texts, and answered calls followed by their results in order."""
    waiting = dict[object, tuple[int, int]]()
    answers = dict[tuple[int, int], Row]()
    for place, row in enumerate(log_rows):
        # Of two calls of one id in a message the first counts; one of an older message is never answered.
        first = {call["id"]: (place, number) for number, call in reversed([*enumerate(calls_in(row))])}
        waiting |= first
        if row["role"] == "tool" and row["tool_call_id"] in waiting:
            answers[waiting.pop(row["tool_call_id"])] = row
    kept_rows = list[Row]()
    for place, row in enumerate(log_rows):
        if row["role"] in ("user", "system", "developer"):
            kept_rows.append(row)
        elif row["role"] == "assistant":
            calls = [call for number, call in enumerate(calls_in(row)) if (place, number) in answers]
            if calls or "".join(texts_of(row)).strip():
                kept_rows.append({**row, "tool_calls": calls})
            kept_rows += [answers[place, number] for number in range(len(calls_in(row))) if (place, number) in answers]
    return kept_rows


# R2-R9: what is old


def fold(rows: Sequence[Row], settings: PageSettings, now: float) -> list[Row]:
    """Return the rows with placeholders for outdated results."""
    new_rows = [dict(row) for row in rows]
    functions, times = functions_of(rows), times_of(rows)
    if settings.reads:
        for place, part in stale_reads(rows, functions, times, settings, settings.reads):
            if part is None:
                new_rows[place]["content"] = settings.reads.placeholder
            else:
                blocks = cast("list[Row]", new_rows[place]["content"])
                hidden = {**blocks[part], "text": settings.reads.placeholder}
                new_rows[place]["content"] = [*blocks[:part], hidden, *blocks[part + 1 :]]
    rules = [(settings.commands, False), (settings.searches, True)]
    for rule, is_search in [(rule, is_search) for rule, is_search in rules if rule]:
        of_rule = [place for place, function in functions.items() if function["name"] in rule.tools]
        good = [place for place in of_rule if not has_failed(rows[place], is_search)]
        for place in old_results(good, times, rule, now):
            new_rows[place]["content"] = rule.placeholder
    return new_rows


def old_results(places: Sequence[int], times: Sequence[float], rule: ToolRule, now: float) -> list[int]:
    """Return the results that are too old and have enough newer ones."""
    sorted_places = sorted(places, key=lambda place: (times[place], place))
    older = sorted_places[: max(len(sorted_places) - rule.keep, 0)]
    return [place for place in older if times[place] and now - times[place] > (rule.minutes or 0) * 60_000]


def stale_reads(
    rows: Sequence[Row],
    functions: Mapping[int, Mapping[str, str]],
    times: Sequence[float],
    settings: PageSettings,
    rule: ToolRule,
) -> list[tuple[int, int | None]]:
    """Return the place of each stale read, with its part if it was read part by part."""
    files = dict[int, set[str]]()
    reads = dict[str, list[int]]()
    for place, function in functions.items():
        if function["name"] in rule.tools:
            files[place] = files_read(rows[place], function["arguments"], settings)
            for file in files[place]:
                reads.setdefault(file, []).append(place)
    fresh = set[tuple[str, int]]()
    for file, places in reads.items():
        places.sort(key=lambda place: (times[place], place))
        fresh.update((file, place) for place in places[-rule.keep :])
    stale = list[tuple[int, int | None]]()
    for place, added in files.items():
        parts = parts_of(rows[place])
        if not parts and added and all((file, place) not in fresh for file in added):
            stale.append((place, None))
        for part, (path, text) in parts.items():
            file = one_name(path, settings)
            if file in added and (file, place) not in fresh and not is_error_text(text):
                stale.append((place, part))
    return stale


def files_read(row: Row, arguments: str, settings: PageSettings) -> set[str]:
    """Return the files that a result has read successfully."""
    paths = paths_named(parse(arguments), settings)
    if not paths or row.get("messageStatus") == "error":
        return set()
    parts = parts_of(row)
    if parts:
        return {one_name(path, settings) for path, text in parts.values() if not is_error_text(text)}
    return set() if is_error_text("".join(texts_of(row))) else {one_name(path, settings) for path in paths}


def parts_of(row: Row) -> dict[int, tuple[str, str]]:
    """Return path and text of each part with a path, by its place."""
    content = row.get("content")
    blocks = cast("list[dict[str, str]]", content) if isinstance(content, list) else []
    return {place: (block["path"], block["text"]) for place, block in enumerate(blocks) if "path" in block}


def paths_named(arguments: object, settings: PageSettings) -> list[str]:
    if not isinstance(arguments, dict):
        return []
    for name in settings.path_args:
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


def one_name(path: str, settings: PageSettings) -> str:
    """Return the normalized name of a path (R4). The root tells the kind of path."""
    root = settings.root
    kind = posixpath if root and root.startswith("/") else ntpath
    text = path.replace("\\", "/")
    name = kind.normpath(text)
    if root:
        whole = kind.normpath(kind.join(root, text)).replace("\\", "/")
        start = kind.normpath(root).replace("\\", "/")
        if same(whole[: len(start)], start, settings) and whole[len(start) : len(start) + 1] in ("", "/"):
            name = whole[len(start) + 1 :] or "."
    name = name.replace("\\", "/")
    if kind is ntpath and name[1:2] == ":":
        name = name[0].upper() + name[1:]
    return name if settings.case_sensitive else name.casefold()


def same(one: str, other: str, settings: PageSettings) -> bool:
    if not settings.case_sensitive:
        return one.casefold() == other.casefold()
    # A drive has no case.
    return one[1:] == other[1:] and one[:1].upper() == other[:1].upper()


def has_failed(row: Row, is_search: bool) -> bool:
    text = "".join(texts_of(row))
    if row.get("messageStatus") == "error" or is_error_text(text):
        return True
    # Behind a report there may be a notice of ours.
    report = None if is_search else parse(text.partition("\n\n(")[0])
    if not isinstance(report, dict):
        return False
    fields = cast("dict[str, object]", report)
    inner = fields.get("metadata")
    levels = [fields, cast("dict[str, object]", inner)] if isinstance(inner, dict) else [fields]
    for level in levels:
        codes = [level[name] for name in ("exitCode", "exit_code", "returncode") if level.get(name)]
        if level.get("stderr") or any(str(code) != "0" for code in codes):
            return True
    return False


# Rows


def rows_of(log: Sequence[Entry]) -> list[Row]:
    """Return the visible entries of a log as rows."""
    return [row for entry in view(log).entries for row in row_of(entry)]


def row_of(entry: Entry) -> list[Row]:
    """Return a message as a row, and nothing for other entries."""
    time: Row = {"timestamp": entry.time.timestamp() * 1_000} if entry.time else {}
    match entry:
        case UserMessage():
            return [{"role": "user", "content": words_of(entry), **time}]
        case AssistantMessage():
            functions = [(call.id, {"name": call.name, "arguments": call.arguments}) for call in entry.tool_calls]
            calls = [{"id": id, "function": function} for id, function in functions]
            return [{"role": "assistant", "content": words_of(entry), "tool_calls": calls, **time}]
        case ToolMessage():
            parts = [part for part in entry.parts if isinstance(part, Text)]
            blocks = [{"text": part.text} | ({"path": part.path} if part.path else {}) for part in parts]
            status: Row = {} if entry.error is None else {"messageStatus": "error"}
            return [{"role": "tool", "tool_call_id": entry.tool_call_id, "content": blocks, **status, **time}]
        case _:
            return []


def functions_of(rows: Sequence[Row]) -> dict[int, Mapping[str, str]]:
    """Return the function of each result: the nearest call before it with its id (R6)."""
    calls, results = dict[object, Mapping[str, str]](), dict[int, Mapping[str, str]]()
    for place, row in enumerate(rows):
        for call in calls_in(row):
            calls[call["id"]] = cast("Mapping[str, str]", call["function"])
        if row["role"] == "tool" and row["tool_call_id"] in calls:
            results[place] = calls[row["tool_call_id"]]
    return results


def times_of(rows: Sequence[Row]) -> list[float]:
    """Return the time of each row, or of the nearest earlier row with one; 0 if there is none (R7)."""
    times, last = list[float](), 0.0
    for row in rows:
        last = own_time(row) or last
        times.append(last)
    return times


def own_time(row: Row) -> float:
    return cast("float", row.get("timestamp", 0))


def calls_in(row: Row) -> list[Row]:
    return cast("list[Row]", row.get("tool_calls") or [])


def calls_of(row: Row) -> list[tuple[str, str]]:
    functions = [cast("Mapping[str, str]", call["function"]) for call in calls_in(row)]
    return [(function["name"], function["arguments"]) for function in functions]


def texts_of(row: Row) -> list[str]:
    """Return the texts of a message, part by part."""
    content = row.get("content") or ""
    if isinstance(content, str):
        return [content] if content else []
    return [block["text"] for block in cast("list[dict[str, str]]", content) if block["text"]]


def is_error_text(text: str) -> bool:
    return text.strip().startswith("Error:")


def parse(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None
