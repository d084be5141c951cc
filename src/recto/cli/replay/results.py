"""Results of a session under each policy: price, tokens, breaks, evidence, repeated reads, worst point."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import accumulate

from recto.cli.replay.evidence import Evidence, count_read_again, evidence
from recto.cli.replay.policies import POLICIES, PageChanges, PolicyInputs
from recto.cli.replay.stretches import CallStretch, ReplaySettings, SessionCall, stretches_of
from recto.cli.sessions.rows import ignored_note
from recto.cli.sessions.session import Session, SessionFormat
from recto.errors import NoPrice, NotAConversation
from recto.models.ports import Usage
from recto.models.prices import price_of
from recto.page.fold.agent_tools import known_tools, rule_for
from recto.page.fold.fold_settings import CostSettings, FoldSettings
from recto.page.fold.paths import Project
from recto.page.fold.rules import RULES
from recto.page.text.tokens import OFFLINE, TokenCounter, tokens_of


@dataclass(frozen=True, kw_only=True)
class PlayedCall:
    """Tokens of a page, cached tokens, and True if it does not extend the previous page."""

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
    """Results of a session by policy. The price of the output, `replies`, is the same under all of them.

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
        # The note on ignored compactions is wrong here: --cut uses them.
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
    """Return the largest loss up to any call, relative to the base price until then."""
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
