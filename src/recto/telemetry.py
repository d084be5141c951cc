"""Log lines and metrics of pages, runs and model calls, for operators."""

from __future__ import annotations

import logging
from collections import Counter as Tally
from collections.abc import Callable, Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from recto.page.manifest import Manifest, Receipt
from recto.page.savings import FOLD, Saving

LOGGER = logging.getLogger("recto.page")
BRIEF = (0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5)
SHORT = (0.005, 0.02, 0.1, 0.5, 2, 10, 60, 300)
UNKNOWN, DONE, FAILED = "unknown", "done", "failed"
# Tool errors that are metric labels. Other errors have arbitrary names and count as `failed`.
FAILURES = ("timeout", "invalid_arguments", "unknown_tool")
BILLION = 1_000_000_000
LONG = (0.1, 0.5, 1, 2, 5, 10, 30, 60, 300, 1_800)


class PageTelemetry:
    """Log lines and metrics of pages (R11): a debug line for each folded file, an info line for each call.

    The metrics cover savings and costs of folding, broken prefixes, and the time to assemble a page.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._folds = Counter(
            "recto_folds", "Tool results replaced by a line in a page.", ["rule", "tool", "agent"], registry=registry
        )
        self._saved = Counter(
            "recto_fold_tokens_saved", "Tokens kept out of pages.", ["rule", "tool", "agent"], registry=registry
        )
        money = ["rule", "agent", "currency"]
        self._price_saved = Counter(
            "recto_fold_price_saved", "What these tokens would have cost.", money, registry=registry
        )
        self._price_spent = Counter(
            "recto_fold_price_spent", "What folding had written to a cache again.", money, registry=registry
        )
        self._steps = Counter("recto_fold_steps", "Steps of folding by cost.", ["cause", "agent"], registry=registry)
        self._breaks = Counter(
            "recto_prefix_breaks", "Pages that break a cached prefix.", ["cause", "agent"], registry=registry
        )
        self._again = Counter(
            "recto_prefix_break_tokens", "Tokens behind such breaks.", ["cause", "agent"], registry=registry
        )
        self._seconds = Histogram("recto_page_seconds", "Time to assemble a page.", buckets=BRIEF, registry=registry)

    def record_page_time(self, seconds: float) -> None:
        """Record the time to assemble a page."""
        self._seconds.observe(seconds)

    def record_step(self, agent: str, cause: str) -> None:
        """Count a step of folding by cost."""
        self._steps.labels(cause, agent).inc()

    def record_savings(self, agent: str, savings: Sequence[Saving], currency: str) -> None:
        """Count the savings of folding in an answered call, and broken prefixes."""
        for saving in savings:
            if saving.kind == FOLD:
                labels = saving.name, agent, currency
                self._price_saved.labels(*labels).inc(max(0, saving.benefit or 0) / BILLION)
                self._price_spent.labels(*labels).inc((saving.cost or 0) / BILLION)
            else:
                self._breaks.labels(saving.name, agent).inc()
                self._again.labels(saving.name, agent).inc(saving.tokens)

    def record_page(self, manifest: Manifest, agent: str = "") -> None:
        """Log and count the folded results of a page."""
        receipts = list(manifest.receipts)
        if LOGGER.isEnabledFor(logging.DEBUG):
            _log_folds(receipts, manifest)
        # Add up first, because a page may have hundreds of receipts of few tools.
        folds, savings_tally = Tally[tuple[str, str]](), Tally[tuple[str, str]]()
        for receipt in receipts:
            folds[receipt.rule, receipt.tool] += 1
            savings_tally[receipt.rule, receipt.tool] += max(0, receipt.tokens_before - receipt.tokens_after)
        for labels, count in folds.items():
            self._folds.labels(*labels, agent).inc(count)
            self._saved.labels(*labels, agent).inc(savings_tally[labels])
        difference = sum(receipt.tokens_before - receipt.tokens_after for receipt in receipts)
        LOGGER.info(
            "page of %d tokens, %d results folded, %d tokens saved", manifest.tokens_after, len(receipts), difference
        )


def _log_folds(receipts: Sequence[Receipt], manifest: Manifest) -> None:
    by_file = Tally((receipt.tool, ", ".join(receipt.paths)) for receipt in receipts)
    for (tool, paths), count in by_file.items():
        LOGGER.debug("folded %s %s: %d", tool, paths or "-", count)
    for result in manifest.left_alone:
        LOGGER.debug("left alone %s: %s", result.message.tool_call_id, result.reason)


class Telemetry:
    """Metrics of runs, model calls, tokens, prices and failures. No label names a user."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.page = PageTelemetry(registry)
        self._runs = Counter("recto_runs", "Runs that ended.", ["agent", "outcome"], registry=registry)
        self._run_seconds = Histogram(
            "recto_run_seconds", "From a run's start to its end.", ["agent"], buckets=LONG, registry=registry
        )
        self._waited = Histogram(
            "recto_queue_seconds", "From a run's admission to its start.", buckets=SHORT, registry=registry
        )
        self._calls = Counter("recto_model_calls", "Model calls.", ["model", "result"], registry=registry)
        self._first = Histogram(
            "recto_first_token_seconds", "Until a model's first token.", ["model"], buckets=LONG, registry=registry
        )
        self._tokens = Counter("recto_tokens", "Tokens as models report them.", ["model", "kind"], registry=registry)
        self._price = Counter("recto_price", "Price of model calls.", ["model", "currency"], registry=registry)
        self._tools = Counter("recto_tool_calls", "Tool calls.", ["tool", "result"], registry=registry)
        self._streams = Gauge("recto_open_streams", "Open event streams.", registry=registry)
        self._active = Gauge("recto_active_runs", "Active runs.", registry=registry)
        self._errors = Counter("recto_errors", "Errors, by class.", ["kind"], registry=registry)

    def watch(self, *, streams: Callable[[], int], active: Callable[[], int]) -> None:
        """Read the numbers of open streams and active runs from these functions."""
        self._streams.set_function(streams)
        self._active.set_function(active)

    def record_tool_call(self, tool: str | None, error: str | None) -> None:
        """Count a tool call. None stands for an unknown tool, because models may call any name."""
        self._tools.labels(tool or UNKNOWN, DONE if error is None else error if error in FAILURES else FAILED).inc()

    def record_run_start(self, waited: float) -> None:
        """Record the seconds that a run waited before it started."""
        self._waited.observe(max(0.0, waited))

    def record_run_end(self, agent: str, outcome: str, seconds: float) -> None:
        """Count a run that ended, and record its duration."""
        self._runs.labels(agent, outcome).inc()
        self._run_seconds.labels(agent).observe(max(0.0, seconds))

    def record_call(self, model: str, tokens: Mapping[str, int], first: float | None) -> None:
        """Count an answered model call, its tokens, and the time to its first token."""
        self._calls.labels(model, "replied").inc()
        for kind, count in tokens.items():
            self._tokens.labels(model, kind).inc(count)
        if first is not None:
            self._first.labels(model).observe(max(0.0, first))

    def record_cost(self, model: str, currency: str, price: float) -> None:
        """Add the price of a model call."""
        self._price.labels(model, currency).inc(price)

    def record_failed_call(self, model: str, error: Exception) -> None:
        """Count a failed model call."""
        self._calls.labels(model, "failed").inc()
        self.record_error(error)

    def record_stopped_call(self, model: str) -> None:
        """Count a model call that was stopped before its reply was complete."""
        self._calls.labels(model, "broken_off").inc()

    def record_error(self, error: Exception) -> None:
        """Count an error by its class."""
        self._errors.labels(type(error).__name__).inc()
