"""The ace-text_search tool (R15, R9): finds lines in the files of the workspace with ripgrep."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Annotated

from pydantic import Field

from recto.errors import ToolError
from recto.tools.daemon_thread import run_in_thread
from recto.tools.mark import tool
from recto.tools.ports import ToolContext
from recto.tools.workspace import ripgrep
from recto.tools.workspace.workspace_files import GIT, Workspace, require_folder

NAME = "ace-text_search"
SHOWN_CHARACTERS = 100
NO_WORKSPACE = "This server gives threads no workspace, so there is nothing to search."
# Characters reserved for the head and the last line of an answer.
HEAD = 400
ONE_LINE = "The pattern has a line end in it, and lines are searched one by one. Search for one of the lines."
BAD_GLOB = "fileGlob {glob!r} is no glob: {reason}. Write one such as *.py, src/**/*.ts, *.{{js,jsx}} or !tests/**."
BAD_PATTERN = "The pattern cannot be searched for: {reason}\nMend it, or search for it as it stands: isRegex false."
EMPTY = "The workspace is empty, so there is nothing to search."
NO_FILES = "No file matches fileGlob {glob!r}, so nothing was searched.{hint}"
LARGER = " Files larger than {bytes:,} bytes are left out."
A_NAME = " It is the name of a file; all files of a folder are {glob}/**."
PATHS = " It is a path, counted from the workspace."
ANYWHERE = " It is a path, counted from the workspace; files of such names anywhere are {name}."
IGNORED = " What .gitignore names is left out."
NONE = "No file was searched: what is there is named by .gitignore, larger than {bytes:,} bytes, or no plain file."
NOTHING = "No line has {pattern!r}. Searched {files}{where}; case counts, and what .gitignore names is left out.{hint}"
AS_IT_STANDS = " The pattern was searched for as it stands; as a regular expression it is with isRegex."
# Parts of regular expressions that are hardly ever meant literally.
EXPRESSION = re.compile(r"\.[*+]|\||\\[A-Za-z.()\[\]]|^\^|\$$")
FEWER = "Search for something rarer, or name fewer files with fileGlob."
FEWER_OR_MORE = "Search for something rarer, name fewer files with fileGlob, or ask for more with maxResults."
LATE = "The search took longer than {seconds:g} seconds and was ended. Name fewer files by fileGlob, or a rarer word."


@tool(name=NAME, safe_to_repeat=True, reads=True)
async def ace_text_search(
    pattern: Annotated[
        str, Field(min_length=1, max_length=10_000, description="What a line has to have. Case counts.")
    ],
    context: ToolContext,
    fileGlob: Annotated[
        str, Field(max_length=1_000, description="Only in these files: *.py, src/**/*.ts, *.{js,jsx}, !tests/**")
    ] = "",
    isRegex: Annotated[bool, Field(description="Whether the pattern is a regular expression.")] = False,
    maxResults: Annotated[int | None, Field(ge=1, description="How many lines to show.")] = None,
) -> str:
    """Find lines in the files of the workspace. Files that .gitignore names are left out, and so are binary ones."""
    workspace = context.workspace
    if workspace is None:
        raise ToolError(NO_WORKSPACE)
    settings = workspace.search
    query = _query(pattern, fileGlob, workspace, is_regex=isRegex)
    most = min(maxResults or settings.results, settings.search_count)
    result = await _search(query, fileGlob, workspace, most)
    if not result.files:
        return _explain_nothing(query, fileGlob, workspace, result)
    # Format the matching lines by file, as many as requested and as fit.
    room = context.characters - HEAD
    lines, length = list[str](), 0
    for line in _lines(result, settings.line_characters):
        length += len(line) + 1
        if len(lines) == most or (length > room and lines):
            break
        lines.append(line)
    count, limit = len(lines), settings.search_count
    head, rest = f"More than {limit:,} matching lines; the first by path:", f"more than {limit - count:,}"
    if not result.is_cut:
        head = f"{_count(result.total, 'matching line')} in {_count(len(result.files), 'file')}:"
        rest = f"{result.total - count:,}"
    if result.is_cut or result.total > count:
        # Suggest maxResults only if it was reached: a larger value does not lengthen a full answer.
        lines.append(f"\n{count:,} shown, {rest} left out. {FEWER_OR_MORE if count == most else FEWER}")
    return "\n".join([head, *lines])


def _query(pattern: str, glob: str, workspace: Workspace, *, is_regex: bool) -> ripgrep.Query:
    if "\n" in pattern or "\r" in pattern:
        raise ToolError(ONE_LINE)
    if "\0" in pattern + glob:
        raise ToolError("The pattern or the glob has the character U+0000, which no text has. Leave it out.")
    return ripgrep.Query(
        pattern=pattern,
        is_regex=is_regex,
        glob=ripgrep.parse_glob(glob) if glob else None,
        excluded=ripgrep.exclusion_globs(workspace.hidden),
        file_bytes=workspace.search.file_bytes,
    )


async def _search(query: ripgrep.Query, glob: str, workspace: Workspace, most: int) -> ripgrep.SearchResult:
    settings, folder = workspace.search, workspace.folder
    require_folder(workspace)
    # A thread's own folder does not exist before the first write.
    if not folder.is_dir():
        return ripgrep.SearchResult()
    program = await run_in_thread(ripgrep.find_ripgrep, name=NAME)
    search = ripgrep.Search(query, folder, program)
    try:
        async with asyncio.timeout(settings.seconds):
            return await run_in_thread(
                partial(search.run, most_shown=most, most_counted=settings.search_count), name=NAME
            )
    except TimeoutError as error:
        raise ToolError(LATE.format(seconds=settings.seconds)) from error
    except ripgrep.BadGlob as error:
        raise ToolError(BAD_GLOB.format(glob=glob[:SHOWN_CHARACTERS], reason=error)) from error
    except ripgrep.BadPattern as error:
        raise ToolError(BAD_PATTERN.format(reason=error)) from error
    finally:
        search.stop()


def _explain_nothing(query: ripgrep.Query, glob: str, workspace: Workspace, result: ripgrep.SearchResult) -> str:
    if not result.searched:
        names = list[str]()
        with suppress(FileNotFoundError):
            names = [entry.name for entry in os.scandir(workspace.folder)]
        if all(name in (GIT, *workspace.hidden) for name in names):
            return EMPTY
        if not query.glob:
            return NONE.format(bytes=query.file_bytes)
        no_files = NO_FILES.format(glob=glob[:SHOWN_CHARACTERS], hint=_hint(query.glob))
        return no_files + LARGER.format(bytes=query.file_bytes)
    where = f" named by {glob[:SHOWN_CHARACTERS]!r}" if glob else ""
    hint = AS_IT_STANDS if not query.is_regex and EXPRESSION.search(query.pattern) else ""
    files = _count(result.searched, "file")
    nothing = NOTHING.format(pattern=query.pattern[:SHOWN_CHARACTERS], files=files, where=where, hint=hint)
    return nothing + LARGER.format(bytes=query.file_bytes)


def _hint(glob: ripgrep.FileGlob) -> str:
    """Return the likely problem of a glob that matches no file."""
    if glob.is_negated:
        return ""
    if not glob.is_name:
        return PATHS if glob.name == "*" else ANYWHERE.format(name=glob.name)
    return IGNORED if re.search(r"[*?\[{]", glob.name) else A_NAME.format(glob=glob.name)


def _lines(result: ripgrep.SearchResult, most: int) -> Iterator[str]:
    """Yield the matching lines. The first line of each file follows its path. Cut a long line to the part around the
    match.
    """
    for file in result.files:
        # Keep the path on one line, because file names may contain line ends and invalid bytes.
        path = file.path.encode(errors="surrogateescape").decode(errors="replace")
        heading = f"\n{path if path.isprintable() else repr(path)}:\n"
        for message in file.messages:
            match = ripgrep.match_of(message)
            text = match.line.decode(errors="replace")
            if len(text) > most:
                start = len(match.line[: match.start].decode(errors="replace"))
                begin = max(0, min(start - most // 4, len(text) - most))
                end = begin + most
                text = f"{'[...] ' if begin else ''}{text[begin:end]}{' [...]' if end < len(text) else ''}"
            yield f"{heading}{match.number}: {text}"
            heading = ""


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
