"""Results of a session under each policy: price, tokens, breaks, evidence, repeated reads, worst point."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import accumulate

from recto.cli.replay.policies import POLICIES, PageChanges, PolicyInputs
from recto.cli.replay.stretches import CallStretch, ReplaySettings, SessionCall, stretches_of
from recto.cli.sessions.rows import ignored_note
from recto.cli.sessions.session import Session, SessionFormat
from recto.conversation.json import load_object
from recto.conversation.messages import AssistantMessage, Message, ToolCall, ToolMessage, texts_of, words_of
from recto.errors import NoPrice, NotAConversation
from recto.models.ports import Usage
from recto.models.prices import price_of
from recto.page.fold.activity import lines_of, read_edit, strings_in
from recto.page.fold.agent_tools import AgentTools, known_tools, rule_for
from recto.page.fold.fold_settings import CostSettings, FoldSettings
from recto.page.fold.observations import read_paths
from recto.page.fold.paths import Project
from recto.page.fold.rules import RULES, is_failure
from recto.page.text.tokens import OFFLINE, TokenCounter, tokens_of

# Line number prefixes of tools: `12→`, `12` and a tab, `00012| `, `12: `.
LINE_NUMBER = re.compile(r"\d+(?:→|\t|\||:)")
ANYWHERE = Project()


@dataclass(frozen=True, kw_only=True)
class PlayedCall:
    """A simulated call: tokens of its page, cached tokens, and True if its page does not extend the previous page."""

    input: int
    cached: int
    breaks: bool

    @property
    def usage(self) -> Usage:
        """Usage of the input, for its price."""
        return Usage(input=self.input, cached=self.cached, cache_written=self.input - self.cached)


def play(stretch: CallStretch, steps: Iterable[PageChanges], counter: TokenCounter = OFFLINE) -> Iterator[PlayedCall]:
    """Simulate each call of a stretch, with the changes of a policy."""
    sizes: list[int] = []
    size = 0
    for call, changes in zip(stretch.calls, steps, strict=True):
        count, prefix_size = len(sizes), size
        new = stretch.tokens[count : call.place]
        sizes += new
        size += sum(new)
        for place, message in changes.items():
            tokens = tokens_of(message, counter)
            size += tokens - sizes[place]
            sizes[place] = tokens
        first = min(changes, default=count)
        breaks = first < count
        prefix = stretch.before + (sum(sizes[:first]) if breaks else prefix_size)
        yield PlayedCall(input=stretch.before + size, cached=0 if call.is_cold else prefix, breaks=breaks)


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Number of lines that edits quote from earlier results, and number of those that are still in the page."""

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
    """Count folded reads of files that the session reads again later. Folding can add at most this many calls."""
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


NONE = "none"
Done = Callable[[], None]


@dataclass(frozen=True, kw_only=True)
class PolicyRun:
    """Results under one policy: price and page size of each call, and totals.

    `folds` counts folded results, `read_again` those of files that were read again later. `full_at` is the first call
    whose page exceeds the window if the session is never compacted, or None.
    """

    prices: tuple[Decimal, ...]
    pages: tuple[int, ...]
    breaks: int
    folds: int
    evidence: Evidence
    read_again: int
    full_at: int | None

    @property
    def price(self) -> Decimal:
        """Price of all pages."""
        return sum(self.prices, Decimal(0))


@dataclass(frozen=True, kw_only=True)
class ReplayedSession:
    """Results of a session by policy. The price of the output, `replies`, is the same under every policy.

    `recorded` is the price of the provider's own counts, if the file has them.
    """

    name: str
    format: SessionFormat
    messages: int
    models: tuple[str, ...]
    replies: Decimal
    recorded: Decimal | None
    runs: Mapping[str, PolicyRun]
    notes: tuple[str, ...] = ()

    @property
    def calls(self) -> int:
        """Number of replayed calls."""
        return len(self.runs[NONE].prices)


def replay_session(session: Session, name: str, settings: ReplaySettings, done: Done = lambda: None) -> ReplayedSession:
    """Replay a session under `none` and each policy; call `done` after each."""
    stretches = stretches_of(session, settings)
    if not stretches:
        raise NotAConversation(source=name, problem="it contains no reply of a model, so there is no call to replay")
    is_cut = bool(session.compactions) and settings.cut
    whole = stretches_of(session, replace(settings, cut=False)) if is_cut else stretches
    runs: dict[str, PolicyRun] = {}
    for policy in dict.fromkeys((NONE, *settings.policies)):
        runs[policy] = _run(session, policy, stretches, whole, settings)
        done()
    calls = [call for stretch in stretches for call in stretch.calls]
    prices = [
        price_of(settings.model or session.models.get(id, session.model), usage, settings.prices)
        for id, usage in session.usages.items()
    ]
    known_prices = [price for price in prices if price is not None]
    count, notes = len(session.compactions), session.notes
    if is_cut:
        times = "once" if count == 1 else f"{count} times"
        # Drop the note on ignored compactions, because --cut uses them.
        others = [note for note in notes if note not in ignored_note(count, "compaction")]
        notes = (f"The agent compacted the session {times}; each time all policies restart.", *others)
    elif count:
        notes = (*notes, "With --cut, the replay restarts at compactions.")
    return ReplayedSession(
        name=name,
        format=session.format,
        messages=len(session.messages),
        models=tuple(dict.fromkeys(call.model for call in calls)),
        replies=sum([_price(call, Usage(output=call.output), settings) for call in calls], Decimal(0)),
        recorded=sum(known_prices, Decimal(0)) if known_prices and len(known_prices) == len(prices) else None,
        runs=runs,
        notes=notes,
    )


def _run(
    session: Session,
    policy: str,
    stretches: Sequence[CallStretch],
    whole: Sequence[CallStretch],
    settings: ReplaySettings,
) -> PolicyRun:
    tools = known_tools(session.tools)
    rules = tuple([rule_for(rule, tools) for rule in RULES])
    cost = CostSettings(edits=tools.edits, quotes=tools.quote_args)
    fold = FoldSettings(rules=rules, project=Project(root=session.root), cost=cost)
    inputs = PolicyInputs(settings=settings, fold=fold)
    steps = [list(POLICIES[policy](stretch, inputs)) for stretch in stretches]
    both = list(zip(stretches, steps, strict=True))
    calls = [call for stretch in stretches for call in stretch.calls]
    played = [page for stretch, changes in both for page in play(stretch, changes, settings.counter)]
    pages = tuple([page.input for page in played])
    if whole is stretches:
        uncut = pages
    else:
        policy_steps = [(one, POLICIES[policy](one, inputs)) for one in whole]
        uncut = tuple([page.input for one, changes in policy_steps for page in play(one, changes, settings.counter)])
    return PolicyRun(
        prices=tuple([_price(call, page.usage, settings) for call, page in zip(calls, played, strict=True)]),
        pages=pages,
        breaks=sum(page.breaks for page in played),
        folds=sum(len(changes) for of_stretch in steps for changes in of_stretch),
        evidence=sum([evidence(stretch, changes, tools) for stretch, changes in both], Evidence()),
        read_again=count_read_again(session, both, tools),
        full_at=next((number for number, tokens in enumerate(uncut, 1) if tokens > settings.window), None),
    )


def _price(call: SessionCall, usage: Usage, settings: ReplaySettings) -> Decimal:
    price = price_of(call.model, usage, settings.prices)
    if price is None:
        raise NoPrice(model=call.model, tokens=usage.input)
    return price


def share_saved(run: PolicyRun, base: PolicyRun) -> float:
    """Return the share of the price that a policy saves; negative if it costs more."""
    return float(1 - run.price / base.price) if base.price else 0.0


def worst_point(run: PolicyRun, base: PolicyRun) -> float:
    """Return the largest relative loss against `base`, comparing the total prices up to each call."""
    both = zip(accumulate(run.prices), accumulate(base.prices), strict=True)
    return max([float(ours / theirs) - 1 for ours, theirs in both if theirs], default=0.0)


def total(runs: Sequence[PolicyRun]) -> PolicyRun:
    """Add up runs of several sessions. `full_at` stays per session."""
    return PolicyRun(
        prices=tuple([price for run in runs for price in run.prices]),
        pages=tuple([page for run in runs for page in run.pages]),
        breaks=sum(run.breaks for run in runs),
        folds=sum(run.folds for run in runs),
        evidence=sum([run.evidence for run in runs], Evidence()),
        read_again=sum(run.read_again for run in runs),
        full_at=None,
    )
