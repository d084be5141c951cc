"""Lookup for the recall tool (X5): an earlier result by its number counted from the newest.

Results in the page have the lowest numbers, in the order of its receipts, so the number in a receipt finds the folded
result. Results that a summary or window left out have higher numbers and include failed ones. Rolled-back results are
not found.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Literal, NamedTuple

from recto.conversation.log import view
from recto.conversation.messages import AssistantMessage, Message, ToolMessage, ToolPart
from recto.page.assemble import prepare_messages
from recto.page.draft import Draft
from recto.page.facts import Facts
from recto.page.fold.activity import never_fails
from recto.page.fold.fold_settings import RECALL, FoldKey, FoldSettings
from recto.page.fold.observations import observe_once, parts_by_file
from recto.page.fold.paths import normalise
from recto.page.fold.rules import FoldRule, is_failure
from recto.page.manifest import Recall
from recto.page.steps.repair import repair
from recto.page.steps.result_texts import add_error_texts, strip_ui_hints


class Recalled(NamedTuple):
    """A recalled result. `of` is the number of results. `parts` of a batch read are those of the requested file."""

    parts: tuple[ToolPart, ...]
    of: int
    time: datetime | None


class NotRecalled(NamedTuple):
    """The reason that no result was found.

    `alternatives` are tools or files that have results. `of` is the number of results if it is less than n. `unsorted`
    means that results of this tool are not counted by file.
    """

    problem: Literal["tool", "file", "number", "unsorted"]
    of: int = 0
    alternatives: tuple[str, ...] = ()


def find_result(facts: Facts, recall: Recall) -> Recalled | NotRecalled:
    """Return the n-th newest result of a tool, and of a file if one is named, in the current view.

    Folding by rules ignores failed results (R3), so those in the page are not counted. Folding by cost folds them (X2),
    so they are counted.
    """
    log_view, rule = view(facts.log), _rule_for(recall, facts.fold)
    base, draft = prepare_messages(facts, log_view)
    whole, in_page = repair(log_view.messages), {origin - base.first for origin in draft.origins}
    tools = _tools_with_results(log_view.messages, () if facts.fold.cost else in_page)
    if recall.tool not in tools:
        return NotRecalled("tool", alternatives=tools)
    if rule is None:
        return NotRecalled("unsorted")
    project = facts.fold.project
    settings = FoldSettings(rules=(rule,), project=project)
    key = FoldKey(settings=settings, counter=facts.counter, tools=frozenset((recall.tool,)))
    any_key = replace(key, settings=replace(settings, rules=(replace(rule, failed=never_fails),)))
    page_places = _newest_first(draft, any_key if facts.fold.cost else key)
    others = _newest_first(whole, any_key)
    places_by_file = {
        file: [
            *[origin - base.first for origin in page_places.get(file, ())],
            *[origin for origin in others.get(file, ()) if origin not in in_page],
        ]
        for file in {*page_places, *others}
    }
    file = None if recall.path is None else normalise(recall.path, project)
    places = places_by_file.get(file, [])
    if not places and file is not None:
        return NotRecalled(
            "file", alternatives=tuple(sorted(file for file, places in places_by_file.items() if file and places))
        )
    if not 1 <= recall.n <= len(places):
        return NotRecalled("number", of=len(places))
    message = log_view.messages[places[recall.n - 1]]
    # Change the result as a page does: remove UI hints and add the error text of a failure.
    (result,) = add_error_texts(strip_ui_hints((message,)).messages).messages
    if not isinstance(result, ToolMessage):
        raise AssertionError(f"Message {message.id!r} is no result, though it was counted as one.")
    indexes = parts_by_file(result, key).get(file or "", range(len(result.parts)))
    return Recalled(parts=tuple([result.parts[index] for index in indexes]), of=len(places), time=message.time)


def _rule_for(recall: Recall, settings: FoldSettings) -> FoldRule | None:
    """Return the rule that counts the results of this tool, or a new rule if there is none.

    Return None if `recall` names a file but the tool's results are not counted by file.
    """
    rules = [rule for rule in settings.rules if recall.tool in rule.tools]
    by_file = [rule for rule in rules if rule.path_args]
    if recall.path is not None:
        return by_file[-1] if by_file else None
    together = [rule for rule in rules if not rule.path_args] or [replace(rule, path_args=()) for rule in by_file]
    return together[-1] if together else FoldRule(name="other", number="", why="", tools=(recall.tool,), placeholder="")


def _tools_with_results(messages: Sequence[Message], in_page: Collection[int]) -> tuple[str, ...]:
    """Return the tools with results. Exclude recall, because its results belong to the tools it recalled."""
    results = [(place, one) for place, one in enumerate(messages) if isinstance(one, ToolMessage)]
    call_ids = {one.tool_call_id for place, one in results if place not in in_page or not is_failure(one)}
    replies = [message for message in messages if isinstance(message, AssistantMessage)]
    names = {call.name for reply in replies for call in reply.tool_calls if call.id in call_ids}
    return tuple(sorted(names - {RECALL}))


def _newest_first(draft: Draft, key: FoldKey) -> Mapping[str | None, Sequence[int]]:
    """Return the log places of counted results by file, newest first."""
    (by_file,) = observe_once(draft.messages, key).by_rule.values()
    return {file: [draft.origins[one.place] for one in reversed(series.results)] for file, series in by_file.items()}
