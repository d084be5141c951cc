"""Long coding sessions, replayed call by call: no orphan, no gap, bodies the providers take, counts that come true."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache

import pytest

from recto.cli.sessions.reader import read_session
from recto.cli.sessions.session import Session
from recto.conversation.json import load_object
from recto.conversation.messages import AssistantMessage, Message, Text, ToolMessage
from recto.page.assemble import Facts, assemble
from recto.page.body import Page
from recto.page.fold.fold_settings import FoldSettings
from recto.page.fold.paths import Project
from recto.page.fold.rules import READS, TERMINAL
from recto.page.manifest import Manifest
from recto.page.text.tokens import Calibration
from recto.page.wire.base import Target, WireName
from recto.page.wire.formats import WIRES
from tests.long_session import EACH_SESSION, TracedSession
from tests.page.oracles import breaches
from tests.page.page_rules import gaps, lies, orphans, parse

pytestmark = pytest.mark.full

# Of Gemini one that takes calls of others as they are.
MODELS: dict[WireName, str] = {
    "openai": "claude-opus-4-5",
    "openai-responses": "claude-opus-4-5",
    "anthropic": "claude-opus-4-5",
    "gemini": "gemini-2.5-pro",
}
EACH_WIRE = pytest.mark.parametrize("wire", WIRES)
WHOLE = FoldSettings(reads=None, terminal=None)


@cache
def read_traced(traced: TracedSession) -> Session:
    return read_session(traced.data, source=traced.name)


def fold_settings(session: Session) -> FoldSettings:
    tools = session.tools
    reads = replace(READS, tools=tools.reads, path_args=tools.path_args) if tools.reads else None
    return FoldSettings(
        reads=reads,
        terminal=replace(
            TERMINAL, tools=tools.terminal, keep=5, max_age=TERMINAL.max_age, placeholder=TERMINAL.placeholder
        ),
        project=Project(root=session.root),
    )


def set_page(log: Sequence[Message], wire: WireName, fold: FoldSettings) -> tuple[Page, Manifest]:
    options = {"max_tokens": 64} if wire == "anthropic" else {}
    return assemble(Facts(log=log, target=Target(wire=wire, model=MODELS[wire]), options=options, fold=fold))


def calls(messages: Sequence[Message]) -> Iterator[tuple[AssistantMessage, tuple[Message, ...]]]:
    """Every answer of the model, with all that came before it."""
    for place, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            yield message, tuple(messages[:place])


@EACH_SESSION
@EACH_WIRE
def test_R10_no_orphan_reaches_any_page_and_the_providers_types_take_them(traced: TracedSession, wire: WireName):
    messages, fold, results = read_traced(traced).messages, fold_settings(read_traced(traced)), list[str]()
    views = [log for _, log in calls(messages)]
    for number, log in enumerate((*views, messages)):
        page, manifest = set_page(log, wire, fold)
        arguments_by_call = parse(page)
        results += [*orphans(arguments_by_call, wire), *gaps(page, manifest)]
        if number % 10 == 0 or log is messages:
            results += [*lies(manifest, log), *breaches(arguments_by_call, wire)]
    assert len(views) == traced.roles["assistant"]
    assert results == []


def unanswered(messages: Sequence[Message]) -> Counter[str]:
    """How many calls of each message never got a result."""
    answer_ids = {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}
    asking = (message for message in messages if isinstance(message, AssistantMessage))
    return Counter(message.id for message in asking for call in message.tool_calls if call.id not in answer_ids)


@EACH_SESSION
@EACH_WIRE
def test_R10_each_of_the_calls_that_never_got_a_result_is_told(traced: TracedSession, wire: WireName):
    messages = read_traced(traced).messages
    _, manifest = set_page(messages, wire, fold_settings(read_traced(traced)))
    report_counts: Counter[str] = Counter()
    for part in manifest.parts:
        match = re.search(r"(\d+) of \d+ calls never got a result", part.reason)
        if match and part.rule == "R10":
            report_counts[part.source] += int(match[1])
    assert report_counts == unanswered(messages)
    assert report_counts.total() == traced.unanswered


def successes(messages: Sequence[Message], tools: Sequence[str]) -> Iterator[tuple[Mapping[str, object], ToolMessage]]:
    """Results of tools that went well, each with the arguments of its call, told the plain way."""
    arguments_by_call: dict[str, Mapping[str, object]] = {}
    for message in messages:
        if isinstance(message, AssistantMessage):
            names = [call for call in message.tool_calls if call.name in tools]
            arguments_by_call |= {call.id: load_object(call.arguments) or {} for call in names}
        elif isinstance(message, ToolMessage) and message.tool_call_id in arguments_by_call and not failed(message):
            yield arguments_by_call[message.tool_call_id], message


def failed(message: ToolMessage) -> bool:
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    return message.error is not None or "".join(texts[:1]).lstrip().startswith("Error:")


@EACH_SESSION
@EACH_WIRE
def test_R2_R8_reads_and_commands_that_newer_ones_stand_for_are_folded(traced: TracedSession, wire: WireName):
    read, messages, tools = read_traced(traced), read_traced(traced).messages, read_traced(traced).tools
    _, manifest = set_page(messages, wire, fold_settings(read))
    receipts = list(manifest.receipts)
    counts = Counter(path for receipt in receipts if receipt.rule == "R2" for path in receipt.paths)
    paths = (str(arguments[tools.path_args[0]]) for arguments, _ in successes(messages, tools.reads))
    reads = Counter(path.removeprefix(f"{read.root}/") for path in paths)
    assert counts == {path: count - 5 for path, count in reads.items() if count > 5}

    now = max(message.time for message in messages if message.time)
    commands = [message for _, message in successes(messages, tools.terminal)][:-5]
    old = {message.id for message in commands if message.time and now - message.time > timedelta(minutes=15)}
    assert {receipt.message for receipt in receipts if receipt.rule == "R8"} == old
    assert Counter(receipt.rule for receipt in receipts) == traced.folds
    assert manifest.tokens_after < manifest.tokens_before * 0.75


@dataclass(frozen=True, kw_only=True)
class Guess:
    """One call: what the provider reported, what we counted, and what we expected after the call before."""

    report_tokens: int
    own_count: int
    expected: int


def guesses(session: Session, wire: WireName) -> Iterator[Guess]:
    """Every call but the first, up to the first compaction, where the agent's own page was cut and ours is not."""
    last: Calibration | None = None
    target = Target(wire=wire, model=MODELS[wire])
    for answer, log in calls(session.messages):
        usage = session.usages.get(answer.id)
        if usage is None:
            continue
        report_tokens = usage.input
        if last is not None and report_tokens < last.reported_count / 2:
            return
        page, manifest = assemble(Facts(log=log, target=target, fold=WHOLE, last=last))
        if last is not None:
            assert manifest.tokens.estimated
            yield Guess(report_tokens=report_tokens, own_count=manifest.tokens_after, expected=manifest.tokens.tokens)
        last = Calibration(digest=page.digest, own_count=manifest.tokens_after, reported_count=report_tokens)


@EACH_SESSION
@EACH_WIRE
def test_an_estimate_is_nearer_to_what_the_provider_reports_than_the_bare_count(traced: TracedSession, wire: WireName):
    results = list(guesses(read_traced(traced), wire))
    calibrated = [abs(guess.expected - guess.report_tokens) for guess in results]
    bare = [abs(guess.own_count - guess.report_tokens) for guess in results]
    relative = [error / guess.report_tokens for error, guess in zip(calibrated, results, strict=True)]
    assert len(results) == traced.guesses
    assert sum(calibrated) / len(results) < sum(bare) / len(results)
    assert sum(relative) / len(results) < 0.10
