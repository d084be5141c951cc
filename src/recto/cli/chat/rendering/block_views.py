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

from recto.cli.chat.rendering import live_run
from recto.cli.translation import _
from recto.conversation.json import Json, dump, leading_object

# Control characters and Unicode line or direction controls, except tab and newline.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
BLANKS = re.compile(r" +((?:\x1b\[[\d;]*m)*)$")
# Arguments that describe a call best, in order.
SUBJECT_ARGUMENTS = ("filePath", "command", "pattern", "path", "query", "skill", "url", "expression", "name")
OPEN_LINES, USER_LINES = 200, 12


class TerminalRenderer:
    """Renders to terminal text of a given width, with or without colours."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def render(self, content: RenderableType, width: int) -> str:
        """Return `content` as terminal text."""
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
        # Print in a group, because rich ignores the wrapping of a Text that is printed directly.
        console.print(Group(content))
        # Trailing spaces would wrap in a narrower window, and end up in copied text.
        lines = [BLANKS.sub(r"\1", line) for line in file.getvalue().split("\n")]
        return "\n".join(lines).strip("\n") + "\n"


def clean(text: str) -> str:
    """Replace control characters."""
    return CONTROL.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n").replace("\t", "    "))


def markdown(text: str) -> RenderableType:
    """Render Markdown."""
    # Import here, so that the slow import does not delay the prompt.
    from recto.cli.chat.rendering.answer_markdown import AnswerMarkdown

    return AnswerMarkdown(clean(text), code_theme="ansi_dark", hyperlinks=False)


def block_view(block: live_run.Block) -> RenderableType:
    """Render a finished block."""
    match block:
        case live_run.UserBlock():
            lines = clean(block.text).splitlines()
            message = Text(f"› {chr(10).join(lines[:USER_LINES])}", style="bold cyan")
            if len(lines) > USER_LINES:
                message.append(_more_lines(len(lines) - USER_LINES), style="dim")
            for name in block.files:
                message.append(f"  [{clean(name)}]", style="dim")
            return message
        case live_run.TextBlock(text=text):
            return markdown(text)
        case live_run.ReasoningBlock(text=text):
            return Padding(Text(clean(text.strip()), style="dim italic"), (0, 0, 0, 2))
        case live_run.CallBlock(call=call):
            return call_line(call)
        case live_run.DiscardBlock():
            return Text(_("(discarded; the model answers again)"), style="dim")
        case live_run.FailureBlock(message=message):
            return Text(_("The run failed: {message}").format(message=clean(message)), style="red")
        case live_run.EndBlock(how=how):
            texts = {
                "cancelled": _("The run was stopped."),
                "length": _("The answer is incomplete: it reached the model's output limit."),
                "refused": _("The model declined to answer."),
                "nothing_to_compact": _("Nothing to summarise."),
            }
            return Text(texts[how], style="yellow")


def _more_lines(count: int) -> str:
    return "\n… " + _("{count} more lines").format(count=count)


def needs_gap(block: live_run.Block, previous: live_run.Block | None) -> bool:
    """Return True if an empty line separates the block from the previous one."""
    match block:
        case live_run.TextBlock(joins=True) | live_run.ReasoningBlock(joins=True):
            return False
        case live_run.CallBlock():
            return not isinstance(previous, live_run.CallBlock)
        case _:
            return True


def call_line(call: live_run.LiveCall, mark: str = "●", seconds: float | None = None) -> Text:
    """Render a call in one line: tool, subject, result and duration."""
    # Without colours, only the mark shows a failure.
    mark = "✗" if call.has_failed else mark
    line = Text(f"{mark} ", style="red" if call.has_failed else "green" if call.is_settled else "yellow")
    line.append(clean(call.name), style="bold")
    if about := summarize_arguments(call):
        line.append(f" {about}")
    additions, deletions = diff_counts(call.result)
    if additions or deletions:
        line.append(f" +{additions}", style="green").append(f" -{deletions}", style="red")
    code = (leading_object(call.result) or {}).get("exitCode")
    if isinstance(code, int) and code:
        line.append(f" exit {code}", style="red")
    elif call.result.startswith("Error:"):
        line.append(f" {_on_one_line(call.result)}", style="red")
    took = call.seconds if call.seconds is not None else seconds
    if took is not None:
        line.append(f"  {took:.1f} s", style="dim")
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


def summarize_arguments(call: live_run.LiveCall) -> str:
    """Summarise the arguments of a call in one line."""
    arguments = live_run.arguments_of(call)
    subject = next((arguments[name] for name in SUBJECT_ARGUMENTS if name in arguments), None)
    if subject is None:
        subject = next((value for value in arguments.values() if isinstance(value, str)), "")
    if isinstance(subject, Sequence) and not isinstance(subject, str):
        subject = ", ".join([str(one.get("path", "")) if isinstance(one, Mapping) else str(one) for one in subject])
    return _on_one_line(str(subject))


def diff_counts(result: str) -> tuple[int, int]:
    """Count added and removed lines of a diff."""
    if "\n@@ " not in result:
        return 0, 0
    lines = result[result.index("\n@@ ") :].splitlines()
    return sum(line.startswith("+") for line in lines), sum(line.startswith("-") for line in lines)


def call_view(call: live_run.LiveCall) -> RenderableType:
    """Render a call in full: arguments, output, result."""
    parts: list[RenderableType] = [call_line(call)]
    if arguments := live_run.arguments_of(call):
        parts += [_heading(_("arguments")), arguments_view(arguments)]
    if call.output and not call.is_settled:
        parts += [_heading(_("output")), _lines(call.output)]
    if call.result:
        parts += [_heading(_("result")), result_view(call.result)]
    return Group(*parts)


def _heading(name: str) -> RenderableType:
    return Padding(Text(name, style="dim"), (0, 0, 0, 2))


def arguments_view(arguments: Mapping[str, Json]) -> RenderableType:
    """Render all arguments: file changes as a diff, commands as code, the rest by name."""
    diff, rest = proposed_diff(arguments)
    if diff:
        return Group(_render_arguments(rest), diff_view(diff)) if rest else diff_view(diff)
    if isinstance(command := arguments.get("command"), str):
        rest = {name: value for name, value in arguments.items() if name != "command"}
        from rich.syntax import Syntax

        code = Padding(Syntax(clean(command), "bash", theme="ansi_dark", word_wrap=True), (0, 0, 0, 4))
        return Group(code, _render_arguments(rest)) if rest else code
    return _render_arguments(arguments)


def _render_arguments(arguments: Mapping[str, Json]) -> RenderableType:
    lines = [
        f"{name}: {value if isinstance(value, str) else dump(value).decode()}" for name, value in arguments.items()
    ]
    return Padding(Text(clean("\n".join(lines))), (0, 0, 0, 4))


def proposed_diff(arguments: Mapping[str, Json]) -> tuple[Sequence[str], Mapping[str, Json]]:
    """Return the diff lines of one or several edits, and the arguments that are not part of the diff.

    The other arguments of each of several edits become a line of the diff.
    """
    edits = arguments.get("edits")
    if not isinstance(edits, Sequence) or isinstance(edits, str):
        return _edit_lines(arguments)
    diff: list[str] = []
    for edit in edits:
        lines, rest = _edit_lines(edit) if isinstance(edit, Mapping) else ((), edit)
        diff += [*([f"@ {dump(rest).decode()}"] if rest else []), *lines]
    return diff, {name: value for name, value in arguments.items() if name != "edits"}


def _edit_lines(edit: Mapping[str, Json]) -> tuple[Sequence[str], Mapping[str, Json]]:
    match edit:
        case {"searchContent": str(old), "replaceContent": str(new)}:
            names, lines = ("searchContent", "replaceContent"), [f"-{line}" for line in old.splitlines()]
        case {"filePath": str(), "content": str(new)}:
            names, lines = ("content",), list[str]()
        case _:
            return (), edit
    lines += [f"+{line}" for line in new.splitlines()]
    return lines, {name: value for name, value in edit.items() if name not in names}


def diff_view(lines: Sequence[str]) -> RenderableType:
    """Render a diff in colour, truncated if long."""
    text = Text()
    for line in lines[:OPEN_LINES]:
        style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
        text.append(f"{clean(line)}\n", style=style)
    text.rstrip()
    if len(lines) > OPEN_LINES:
        text.append(_more_lines(len(lines) - OPEN_LINES), style="dim")
    return Padding(text, (0, 0, 0, 4))


def result_view(result: str) -> RenderableType:
    """Render a result: a diff in colour, the output of a command, or text."""
    output = leading_object(result)
    if output and "exitCode" in output:
        printed = "\n".join([str(output[name]) for name in ("stdout", "stderr") if output.get(name)])
        return _lines(f"{printed.rstrip()}\nexit {output['exitCode']}".strip())
    if "\n@@ " in result:
        return diff_view(result.splitlines())
    return _lines(result)


def _lines(text: str) -> RenderableType:
    lines = clean(text).rstrip().splitlines()
    view = Text("\n".join(lines[:OPEN_LINES]))
    if len(lines) > OPEN_LINES:
        view.append(_more_lines(len(lines) - OPEN_LINES), style="dim")
    return Padding(view, (0, 0, 0, 4))


def _on_one_line(text: str) -> str:
    return clean(" ".join(text.split()))[:200]
