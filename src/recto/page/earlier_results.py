"""Recall (X5): an earlier result of a tool, as the log has it, by its number counted from the newest.

What a page shows comes first, in the order its folds are counted in, so that a receipt names exactly what is given
back; behind it comes what a summary or a window left out of that page, failed results too: no page has them. What was
rolled back is not there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Literal, NamedTuple

from recto.conversation.log import view
from recto.conversation.messages import AssistantMessage, Message, ToolMessage, ToolPart
from recto.page.assemble import prepare
from recto.page.draft import Draft
from recto.page.facts import Facts
from recto.page.fold.activity import never
from recto.page.fold.failures import is_failure
from recto.page.fold.fold_settings import RECALL, FoldKey, FoldSettings
from recto.page.fold.observations import observe_once, parts_by_file
from recto.page.fold.paths import normalise
from recto.page.fold.rules import FoldRule
from recto.page.manifest import Recall
from recto.page.steps.add_error_texts import add_error_texts
from recto.page.steps.repair import repair
from recto.page.steps.strip_ui_hints import strip_ui_hints


class Recalled(NamedTuple):
    """A result that was found: what it says (of a batch read, what it says of the file) and how many there are."""

    parts: tuple[ToolPart, ...]
    of: int
    time: datetime | None


class NotRecalled(NamedTuple):
    """Why there is none: the tool or the file has no results (`known` are those that have), or fewer (`of`) than n.

    `unsorted`: results of this tool are not counted by file.
    """

    problem: Literal["tool", "file", "number", "unsorted"]
    of: int = 0
    known: tuple[str, ...] = ()


def find_result(facts: Facts, asked: Recall) -> Recalled | NotRecalled:
    """The n-th newest result of a tool, of a file where one is named, in all that is in view.

    A failed one that the page shows is not counted where it is never folded (R3); folding by cost does fold it (X2).
    """
    seen, rule = view(facts.log), _rule_for(asked, facts.fold)
    base, draft = prepare(facts, seen)
    whole, in_page = repair(seen.messages), {origin - base.first for origin in draft.origins}
    tools = _tools_with_results(seen.messages, () if facts.fold.cost else in_page)
    if asked.tool not in tools:
        return NotRecalled("tool", known=tools)
    if rule is None:
        return NotRecalled("unsorted")
    project = facts.fold.project
    settings = FoldSettings(rules=(rule,), project=project)
    key = FoldKey(settings=settings, counter=facts.counter, tools=frozenset((asked.tool,)))
    any_key = replace(key, settings=replace(settings, rules=(replace(rule, failed=never),)))
    shown = _newest_first(draft, any_key if facts.fold.cost else key)
    others = _newest_first(whole, any_key)
    found = {
        file: [
            *[origin - base.first for origin in shown.get(file, ())],
            *[origin for origin in others.get(file, ()) if origin not in in_page],
        ]
        for file in {*shown, *others}
    }
    file = None if asked.path is None else normalise(asked.path, project)
    places = found.get(file, [])
    if not places and file is not None:
        return NotRecalled("file", known=tuple(sorted(file for file, places in found.items() if file and places)))
    if not 1 <= asked.n <= len(places):
        return NotRecalled("number", of=len(places))
    return _recalled(seen.messages[places[asked.n - 1]], file, key, len(places))


def _rule_for(asked: Recall, settings: FoldSettings) -> FoldRule | None:
    """What says which results count: the rule that folds them, or one for this tool alone. None: not by file."""
    rules = [rule for rule in settings.rules if asked.tool in rule.tools]
    by_file = [rule for rule in rules if rule.path_args]
    if asked.path is not None:
        return by_file[-1] if by_file else None
    together = [rule for rule in rules if not rule.path_args] or [replace(rule, path_args=()) for rule in by_file]
    return together[-1] if together else FoldRule(name="other", number="", why="", tools=(asked.tool,), placeholder="")


def _tools_with_results(messages: Sequence[Message], in_page: Collection[int]) -> tuple[str, ...]:
    """Recall itself is none of them: what it gave back is asked for where it came from."""
    results = [(place, one) for place, one in enumerate(messages) if isinstance(one, ToolMessage)]
    counted = {one.tool_call_id for place, one in results if place not in in_page or not is_failure(one)}
    replies = [message for message in messages if isinstance(message, AssistantMessage)]
    names = {call.name for reply in replies for call in reply.tool_calls if call.id in counted}
    return tuple(sorted(names - {RECALL}))


def _newest_first(draft: Draft, key: FoldKey) -> Mapping[str | None, Sequence[int]]:
    """The places in the log of what is counted, by file."""
    (by_file,) = observe_once(draft.messages, key).found.values()
    return {file: [draft.origins[one.place] for one in reversed(found.results)] for file, found in by_file.items()}


def _recalled(message: Message, file: str | None, key: FoldKey, of: int) -> Recalled:
    # Hints for people are in no page, so they are not here either; what failed says so, as it did there.
    (shown,) = add_error_texts(strip_ui_hints((message,)).messages).messages
    if not isinstance(shown, ToolMessage):
        raise AssertionError(f"Message {message.id!r} is no result, though it was counted as one.")
    indexes = parts_by_file(shown, key).get(file or "", range(len(shown.parts)))
    return Recalled(parts=tuple([shown.parts[index] for index in indexes]), of=of, time=message.time)
