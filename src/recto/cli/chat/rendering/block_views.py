"""Terminal rendering of blocks, calls and approvals with rich.

Control characters from models and tools are replaced, so they cannot control the terminal.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from io import StringIO

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from recto.cli.chat.rendering.chat_words import ChatWords
from recto.cli.chat.rendering.live_run import (
    Block,
    CallDone,
    Ended,
    RunFailure,
    Said,
    ShownCall,
    TakenBack,
    Thought,
    Words,
    arguments_of,
)
from recto.conversation.json import Json, leading_object

# Control characters and Unicode line or direction controls, except tab and newline.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
BLANKS = re.compile(r" +((?:\x1b\[[\d;]*m)*)$")
# Arguments that describe a call best, in order.
TELLING = ("filePath", "command", "pattern", "path", "query", "skill", "url", "expression", "name")
OPEN_LINES, SAID_LINES = 200, 12


class Pen:
    """Renders to terminal text of a given width, with or without colours."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def draw(self, what: RenderableType, width: int) -> str:
        """Render `what` as terminal text."""
        file = StringIO()
        console = Console(
            file=file,
            width=max(width, 20),
            force_terminal=True,
            no_color=bool(self._environment.get("NO_COLOR")),
            legacy_windows=False,
            highlight=False,
            markup=False,
            emoji=False,
            _environ=self._environment,
        )
        # Direct printing of a Text ignores its wrapping; inside a group it does not.
        console.print(Group(what))
        # Trailing spaces would wrap in a narrower window, and end up in copied text.
        lines = [BLANKS.sub(r"\1", line) for line in file.getvalue().split("\n")]
        return "\n".join(lines).strip("\n") + "\n"


def clean(text: str) -> str:
    """Replace control characters."""
    return CONTROL.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n").replace("\t", "    "))


def markdown(text: str) -> RenderableType:
    """Render Markdown."""
    from recto.cli.chat.rendering.answer_markdown import (
        AnswerMarkdown,  # here: it takes its time, and the prompt is there first
    )

    return AnswerMarkdown(clean(text), code_theme="ansi_dark", hyperlinks=False)


def block_view(block: Block, words: ChatWords) -> RenderableType:
    """Render a finished block."""
    match block:
        case Said():
            return _said(block, words)
        case Words(text=text):
            return markdown(text)
        case Thought(text=text):
            return Padding(Text(clean(text.strip()), style="dim italic"), (0, 0, 0, 2))
        case CallDone(call=call):
            return call_line(call)
        case TakenBack():
            return Text(words.taken_back, style="dim")
        case RunFailure(message=message):
            return Text(words.failed.format(message=clean(message)), style="red")
        case Ended(how=how):
            return Text(str(getattr(words, how)), style="yellow")


def _said(said: Said, words: ChatWords) -> Text:
    lines = clean(said.words).splitlines()
    text = Text(f"› {chr(10).join(lines[:SAID_LINES])}", style="bold cyan")
    if len(lines) > SAID_LINES:
        text.append(f"\n… {words.more_lines.format(count=len(lines) - SAID_LINES)}", style="dim")
    for name in said.files:
        text.append(f"  [{clean(name)}]", style="dim")
    return text


def starts_apart(block: Block, before: Block | None) -> bool:
    """Return True if an empty line separates the block from the previous one."""
    match block:
        case Words(joins=True) | Thought(joins=True):
            return False
        case CallDone():
            return not isinstance(before, CallDone)
        case _:
            return True


def call_line(call: ShownCall, mark: str = "●", seconds: float | None = None) -> Text:
    """Render a call in one line: tool, subject, result and duration."""
    # Without colours, only the mark shows a failure.
    mark = "✗" if call.failed else mark
    line = Text(f"{mark} ", style="red" if call.failed else "green" if call.is_settled else "yellow")
    line.append(clean(call.name), style="bold")
    if about := telling(call):
        line.append(f" {about}")
    added, gone = diff_counts(call.result)
    if added or gone:
        line.append(f" +{added}", style="green").append(f" -{gone}", style="red")
    code = (leading_object(call.result) or {}).get("exitCode")
    if isinstance(code, int) and code:
        line.append(f" exit {code}", style="red")
    elif call.result.startswith("Error:"):
        line.append(f" {_one_line(call.result)}", style="red")
    took = call.seconds if call.seconds is not None else seconds
    if took is not None:
        line.append(f"  {took:.1f} s", style="dim")
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


def telling(call: ShownCall) -> str:
    """Summarise the arguments of a call in one line."""
    arguments = arguments_of(call)
    named = next((arguments[name] for name in TELLING if name in arguments), None)
    if named is None:
        named = next((value for value in arguments.values() if isinstance(value, str)), "")
    if isinstance(named, Sequence) and not isinstance(named, str):
        named = ", ".join([str(one.get("path", "")) if isinstance(one, Mapping) else str(one) for one in named])
    return _one_line(str(named))


def diff_counts(result: str) -> tuple[int, int]:
    """Count added and removed lines of a diff."""
    if "\n@@ " not in result:
        return 0, 0
    lines = result[result.index("\n@@ ") :].splitlines()
    return sum(line.startswith("+") for line in lines), sum(line.startswith("-") for line in lines)


def call_view(call: ShownCall, words: ChatWords) -> RenderableType:
    """Render a call in full: arguments, output, result."""
    parts: list[RenderableType] = [call_line(call)]
    if arguments := arguments_of(call):
        parts += [_heading(words.arguments), arguments_view(arguments, words)]
    if call.output and not call.is_settled:
        parts += [_heading(words.output), _lines(call.output, words)]
    if call.result:
        parts += [_heading(words.result), result_view(call.result, words)]
    return Group(*parts)


def _heading(name: str) -> RenderableType:
    return Padding(Text(name, style="dim"), (0, 0, 0, 2))


def arguments_view(arguments: Mapping[str, Json], words: ChatWords) -> RenderableType:
    """Render all arguments: file changes as a diff, commands as code, the rest by name."""
    diff, rest = proposed_diff(arguments)
    if diff:
        return Group(_named(rest), diff_view(diff, words)) if rest else diff_view(diff, words)
    if isinstance(command := arguments.get("command"), str):
        rest = {name: value for name, value in arguments.items() if name != "command"}
        from rich.syntax import Syntax

        shown = Padding(Syntax(clean(command), "bash", theme="ansi_dark", word_wrap=True), (0, 0, 0, 4))
        return Group(shown, _named(rest)) if rest else shown
    return _named(arguments)


def _named(arguments: Mapping[str, Json]) -> RenderableType:
    lines = [f"{name}: {value if isinstance(value, str) else _json(value)}" for name, value in arguments.items()]
    return Padding(Text(clean("\n".join(lines))), (0, 0, 0, 4))


def _json(value: Json) -> str:
    from recto.conversation.json import dump

    return dump(value).decode()


def proposed_diff(arguments: Mapping[str, Json]) -> tuple[Sequence[str], Mapping[str, Json]]:
    """Return the lines an edit would remove and add, and the remaining arguments. Several edits are separated by
    theirs.
    """
    edits = arguments.get("edits")
    if not isinstance(edits, Sequence) or isinstance(edits, str):
        return _edit_lines(arguments)
    found: list[str] = []
    for edit in edits:
        lines, rest = _edit_lines(edit) if isinstance(edit, Mapping) else ((), edit)
        found += [*([f"@ {_json(rest)}"] if rest else []), *lines]
    return found, {name: value for name, value in arguments.items() if name != "edits"}


def _edit_lines(edit: Mapping[str, Json]) -> tuple[Sequence[str], Mapping[str, Json]]:
    match edit:
        case {"searchContent": str(old), "replaceContent": str(new)}:
            shown, lines = ("searchContent", "replaceContent"), [f"-{line}" for line in old.splitlines()]
        case {"filePath": str(), "content": str(new)}:
            shown, lines = ("content",), list[str]()
        case _:
            return (), edit
    lines += [f"+{line}" for line in new.splitlines()]
    return lines, {name: value for name, value in edit.items() if name not in shown}


def diff_view(lines: Sequence[str], words: ChatWords) -> RenderableType:
    """Render a diff in colour, truncated if long."""
    text = Text()
    for line in lines[:OPEN_LINES]:
        style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
        text.append(f"{clean(line)}\n", style=style)
    text.rstrip()
    if len(lines) > OPEN_LINES:
        text.append(f"\n… {words.more_lines.format(count=len(lines) - OPEN_LINES)}", style="dim")
    return Padding(text, (0, 0, 0, 4))


def result_view(result: str, words: ChatWords) -> RenderableType:
    """Render a result: a diff in colour, the output of a command, or text."""
    found = leading_object(result)
    if found and "exitCode" in found:
        printed = "\n".join([str(found[name]) for name in ("stdout", "stderr") if found.get(name)])
        return _lines(f"{printed.rstrip()}\nexit {found['exitCode']}".strip(), words)
    if "\n@@ " in result:
        return diff_view(result.splitlines(), words)
    return _lines(result, words)


def _lines(text: str, words: ChatWords) -> RenderableType:
    lines = clean(text).rstrip().splitlines()
    shown = Text("\n".join(lines[:OPEN_LINES]))
    if len(lines) > OPEN_LINES:
        shown.append(f"\n… {words.more_lines.format(count=len(lines) - OPEN_LINES)}", style="dim")
    return Padding(shown, (0, 0, 0, 4))


def _one_line(text: str) -> str:
    return clean(" ".join(text.split()))[:200]
