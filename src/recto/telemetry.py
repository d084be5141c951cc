"""What a page did, told to people who run Recto: log lines and metrics. Decides nothing."""

from __future__ import annotations

import logging
from collections import Counter as Tally

from prometheus_client import CollectorRegistry, Counter

from recto.page import Manifest

LOGGER = logging.getLogger("recto.page")


class PageTelemetry:
    """Logs and counts folds (R11): a debug line for each file, an info line for each call, two counters."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._folds = Counter(
            "recto_folds", "Tool results replaced by a line in a page.", ["rule", "tool"], registry=registry
        )
        self._saved = Counter(
            "recto_fold_tokens_saved", "Tokens that folding kept out of pages.", ["rule", "tool"], registry=registry
        )

    def record(self, manifest: Manifest) -> None:
        """Tell of one page."""
        receipts = list(manifest.receipts)
        by_file = Tally((receipt.tool, ", ".join(receipt.paths)) for receipt in receipts)
        for (tool, paths), count in by_file.items():
            LOGGER.debug("folded %s %s: %d", tool, paths or "-", count)
        for result in manifest.left_alone:
            LOGGER.debug("left alone %s: %s", result.message.tool_call_id, result.reason)
        for receipt in receipts:
            self._folds.labels(receipt.rule, receipt.tool).inc()
            saved = receipt.tokens_before - receipt.tokens_after
            self._saved.labels(receipt.rule, receipt.tool).inc(max(0, saved))
        saved = sum(receipt.tokens_before - receipt.tokens_after for receipt in receipts)
        LOGGER.info(
            "page of %d tokens, %d results folded, %d tokens saved", manifest.tokens_after, len(receipts), saved
        )
