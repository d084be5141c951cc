"""Evidence metric: quoted lines of edits that are still in the page, and repeated reads."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from recto.cli.replay.policies import PageChanges
from recto.cli.replay.stretches import CallStretch
from recto.cli.sessions.session import Session
from recto.conversation.json import load_object
from recto.conversation.messages import AssistantMessage, Message, ToolCall, ToolMessage, texts_of, words_of
from recto.page.fold.activity import lines_of, read_edit, strings_in
from recto.page.fold.agent_tools import AgentTools
from recto.page.fold.observations import read_paths
from recto.page.fold.paths import Project
from recto.page.fold.rules import is_failure

# Line number prefixes of tools: `12→`, `12` and a tab, `00012| `, `12: `.
LINE_NUMBER = re.compile(r"\d+(?:→|\t|\||:)")
ANYWHERE = Project()


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Number of quoted lines that a result had shown, and of those still in the page."""

    quoted_count: int = 0
    kept_count: int = 0

    def __add__(self, other: Evidence) -> Evidence:
        return Evidence(
            quoted_count=self.quoted_count + other.quoted_count, kept_count=self.kept_count + other.kept_count
        )


def evidence(stretch: CallStretch, steps: Iterable[PageChanges], tools: AgentTools) -> Evidence:
    """Measure the evidence of a stretch under a policy."""
    messages: list[Message] = []
    results, page = set[str](), Counter[str]()
    total = Evidence()
    for call, changes in zip(stretch.calls, steps, strict=True):
        for message in stretch.messages[len(messages) : call.place]:
            messages.append(message)
            page.update(lines_in(message))
            if isinstance(message, ToolMessage):
                results |= lines_in(message)
        for place, message in changes.items():
            page.subtract(lines_in(messages[place]))
            page.update(lines_in(message))
            messages[place] = message
        quotes = quoted_lines(stretch.messages[call.place], tools) & results
        total += Evidence(quoted_count=len(quotes), kept_count=sum(page[line] > 0 for line in quotes))
    return total


def count_read_again(
    session: Session, played: Sequence[tuple[CallStretch, Sequence[PageChanges]]], tools: AgentTools
) -> int:
    """Count folded reads of files that the session reads again later: the most extra calls folding may cost."""
    project, calls = Project(root=session.root), dict[str, ToolCall]()
    reads: dict[int, tuple[str, ...]] = {}
    for place, message in enumerate(session.messages):
        match message:
            case AssistantMessage():
                calls |= {call.id: call for call in message.tool_calls if call.name in tools.reads}
            case ToolMessage() if message.tool_call_id in calls and not is_failure(message):
                reads[place] = read_paths(calls[message.tool_call_id], tools.path_args, project)
            case _:
                continue
    last = {path: place for place, paths in reads.items() for path in paths}
    folds = [
        (stretch.origin + place, stretch.origin + call.place)
        for stretch, steps in played
        for call, changes in zip(stretch.calls, steps, strict=True)
        for place in changes
    ]
    return sum(any(last[path] > call_place for path in reads.get(place, ())) for place, call_place in folds)


def lines_in(message: Message) -> frozenset[str]:
    """Return the stripped lines of a message: text, results with and without line numbers, arguments."""
    match message:
        case ToolMessage():
            lines = [line for text in texts_of(message) for line in lines_of(text)]
            return frozenset([*lines, *[LINE_NUMBER.sub("", line, count=1).strip() for line in lines]])
        case AssistantMessage():
            arguments = [text for call in message.tool_calls for text in strings_in(load_object(call.arguments))]
            return frozenset(
                [line for text in (words_of(message, between="\n"), *arguments) for line in lines_of(text)]
            )
        case _:
            return frozenset([line for text in texts_of(message) for line in lines_of(text)])


def quoted_lines(message: Message, tools: AgentTools) -> frozenset[str]:
    """Return the lines that a reply's edits expect in a file: replaced text, or old lines of a patch."""
    if not isinstance(message, AssistantMessage):
        return frozenset()
    # Patches may also be applied by commands.
    calls = [call for call in message.tool_calls if call.name in tools.edits or call.name in tools.terminal]
    names = [tools.quote_args if call.name in tools.edits else () for call in calls]
    edits = [read_edit(call, quotes, (), ANYWHERE) for call, quotes in zip(calls, names, strict=True)]
    return frozenset([line for edit in edits for line in edit.lines])
