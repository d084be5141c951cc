"""Evidence metric: quoted lines of edits that are still in the page, and repeated reads."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from recto.cli.replay.policies import PageChanges
from recto.cli.replay.stretches import CallStretch
from recto.cli.sessions.session import Session
from recto.conversation.json import load_object
from recto.conversation.messages import AssistantMessage, Message, ToolCall, ToolMessage, texts_of, words_of
from recto.page.fold.agent_tools import AgentTools
from recto.page.fold.failures import is_failure
from recto.page.fold.observations import read_paths
from recto.page.fold.paths import Project
from recto.page.fold.quotes import lines_of, read_edit, strings_in

# Line number prefixes of tools: `12→`, `12` and a tab, `00012| `, `12: `.
NUMBERED = re.compile(r"\d+(?:→|\t|\||:)")
ANYWHERE = Project()


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Number of quoted lines that a result had shown, and of those still in the page."""

    quoted: int = 0
    kept: int = 0

    def __add__(self, other: Evidence) -> Evidence:
        return Evidence(quoted=self.quoted + other.quoted, kept=self.kept + other.kept)


def evidence(stretch: CallStretch, steps: Iterable[PageChanges], tools: AgentTools) -> Evidence:
    """Measure the evidence of a stretch under a policy."""
    shown: list[Message] = []
    results, page = set[str](), Counter[str]()
    found = Evidence()
    for call, changes in zip(stretch.calls, steps, strict=True):
        for message in stretch.messages[len(shown) : call.place]:
            shown.append(message)
            page.update(lines_in(message))
            if isinstance(message, ToolMessage):
                results |= lines_in(message)
        for place, message in changes.items():
            page.subtract(lines_in(shown[place]))
            page.update(lines_in(message))
            shown[place] = message
        quoted = quoted_lines(stretch.messages[call.place], tools) & results
        found += Evidence(quoted=len(quoted), kept=sum(page[line] > 0 for line in quoted))
    return found


def count_read_again(
    session: Session, played: Sequence[tuple[CallStretch, Sequence[PageChanges]]], tools: AgentTools
) -> int:
    """Count folded reads of files that the session reads again later: the most extra calls folding may cost."""
    reads = _reads(session, tools)
    last = {path: place for place, paths in reads.items() for path in paths}
    folded = [
        (stretch.origin + place, stretch.origin + call.place)
        for stretch, steps in played
        for call, changes in zip(stretch.calls, steps, strict=True)
        for place in changes
    ]
    return sum(any(last[path] > asked for path in reads.get(place, ())) for place, asked in folded)


def _reads(session: Session, tools: AgentTools) -> Mapping[int, tuple[str, ...]]:
    """Return the files read by each result, by place."""
    project, calls = Project(root=session.root), dict[str, ToolCall]()
    found: dict[int, tuple[str, ...]] = {}
    for place, message in enumerate(session.messages):
        match message:
            case AssistantMessage():
                calls |= {call.id: call for call in message.tool_calls if call.name in tools.reads}
            case ToolMessage() if message.tool_call_id in calls and not is_failure(message):
                found[place] = read_paths(calls[message.tool_call_id], tools.path_args, project)
            case _:
                continue
    return found


def lines_in(message: Message) -> frozenset[str]:
    """Return the stripped lines of a message: text, results with and without line numbers, arguments."""
    match message:
        case ToolMessage():
            lines = [line for text in texts_of(message) for line in lines_of(text)]
            return frozenset([*lines, *[NUMBERED.sub("", line, count=1).strip() for line in lines]])
        case AssistantMessage():
            given = [text for call in message.tool_calls for text in strings_in(load_object(call.arguments))]
            return frozenset([line for text in (words_of(message, between="\n"), *given) for line in lines_of(text)])
        case _:
            return frozenset([line for text in texts_of(message) for line in lines_of(text)])


def quoted_lines(message: Message, tools: AgentTools) -> frozenset[str]:
    """Return the lines that a reply's edits expect in a file: replaced text, or old lines of a patch."""
    if not isinstance(message, AssistantMessage):
        return frozenset()
    return frozenset([line for call in message.tool_calls for line in _quoted(call, tools)])


def _quoted(call: ToolCall, tools: AgentTools) -> tuple[str, ...]:
    if call.name in tools.edits:
        return read_edit(call, tools.quote_args, (), ANYWHERE).lines
    # Patches may also be applied by commands.
    return read_edit(call, (), (), ANYWHERE).lines if call.name in tools.terminal else ()
