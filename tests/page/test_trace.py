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
from tests.long_session import EACH_SESSION, Known
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
def session(known: Known) -> Session:
    return read_session(known.data, source=known.name)


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
def test_R10_no_orphan_reaches_any_page_and_the_providers_types_take_them(known: Known, wire: WireName):
    messages, fold, found = session(known).messages, fold_settings(session(known)), list[str]()
    views = [log for _, log in calls(messages)]
    for number, log in enumerate((*views, messages)):
        page, manifest = set_page(log, wire, fold)
        body = parse(page)
        found += [*orphans(body, wire), *gaps(page, manifest)]
        if number % 10 == 0 or log is messages:
            found += [*lies(manifest, log), *breaches(body, wire)]
    assert len(views) == known.roles["assistant"]
    assert found == []


def unanswered(messages: Sequence[Message]) -> Counter[str]:
    """How many calls of each message never got a result."""
    answered = {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}
    asking = (message for message in messages if isinstance(message, AssistantMessage))
    return Counter(message.id for message in asking for call in message.tool_calls if call.id not in answered)


@EACH_SESSION
@EACH_WIRE
def test_R10_each_of_the_calls_that_never_got_a_result_is_told(known: Known, wire: WireName):
    messages = session(known).messages
    _, manifest = set_page(messages, wire, fold_settings(session(known)))
    reported: Counter[str] = Counter()
    for part in manifest.parts:
        lost = re.search(r"(\d+) of \d+ calls never got a result", part.reason)
        if lost and part.rule == "R10":
            reported[part.source] += int(lost[1])
    assert reported == unanswered(messages)
    assert reported.total() == known.unanswered


def successes(messages: Sequence[Message], tools: Sequence[str]) -> Iterator[tuple[Mapping[str, object], ToolMessage]]:
    """Results of tools that went well, each with the arguments of its call, told the plain way."""
    asked: dict[str, Mapping[str, object]] = {}
    for message in messages:
        if isinstance(message, AssistantMessage):
            named = [call for call in message.tool_calls if call.name in tools]
            asked |= {call.id: load_object(call.arguments) or {} for call in named}
        elif isinstance(message, ToolMessage) and message.tool_call_id in asked and not failed(message):
            yield asked[message.tool_call_id], message


def failed(message: ToolMessage) -> bool:
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    return message.error is not None or "".join(texts[:1]).lstrip().startswith("Error:")


@EACH_SESSION
@EACH_WIRE
def test_R2_R8_reads_and_commands_that_newer_ones_stand_for_are_folded(known: Known, wire: WireName):
    read, messages, tools = session(known), session(known).messages, session(known).tools
    _, manifest = set_page(messages, wire, fold_settings(read))
    receipts = list(manifest.receipts)
    folded = Counter(path for receipt in receipts if receipt.rule == "R2" for path in receipt.paths)
    paths = (str(arguments[tools.path_args[0]]) for arguments, _ in successes(messages, tools.reads))
    reads = Counter(path.removeprefix(f"{read.root}/") for path in paths)
    assert folded == {path: count - 5 for path, count in reads.items() if count > 5}

    now = max(message.time for message in messages if message.time)
    commands = [message for _, message in successes(messages, tools.terminal)][:-5]
    old = {message.id for message in commands if message.time and now - message.time > timedelta(minutes=15)}
    assert {receipt.message for receipt in receipts if receipt.rule == "R8"} == old
    assert Counter(receipt.rule for receipt in receipts) == known.folds
    assert manifest.tokens_after < manifest.tokens_before * 0.75


@dataclass(frozen=True, kw_only=True)
class Guess:
    """One call: what the provider reported, what we counted, and what we expected after the call before."""

    reported: int
    counted: int
    expected: int


def guesses(session: Session, wire: WireName) -> Iterator[Guess]:
    """Every call but the first, up to the first compaction, where the agent's own page was cut and ours is not."""
    last: Calibration | None = None
    target = Target(wire=wire, model=MODELS[wire])
    for answer, log in calls(session.messages):
        used = session.usages.get(answer.id)
        if used is None:
            continue
        reported = used.input
        if last is not None and reported < last.reported_count / 2:
            return
        page, manifest = assemble(Facts(log=log, target=target, fold=WHOLE, last=last))
        if last is not None:
            assert manifest.tokens.estimated
            yield Guess(reported=reported, counted=manifest.tokens_after, expected=manifest.tokens.tokens)
        last = Calibration(digest=page.digest, own_count=manifest.tokens_after, reported_count=reported)


@EACH_SESSION
@EACH_WIRE
def test_an_estimate_is_nearer_to_what_the_provider_reports_than_the_bare_count(known: Known, wire: WireName):
    found = list(guesses(session(known), wire))
    calibrated = [abs(guess.expected - guess.reported) for guess in found]
    bare = [abs(guess.counted - guess.reported) for guess in found]
    relative = [error / guess.reported for error, guess in zip(calibrated, found, strict=True)]
    assert len(found) == known.guesses
    assert sum(calibrated) / len(found) < sum(bare) / len(found)
    assert sum(relative) / len(found) < 0.10
