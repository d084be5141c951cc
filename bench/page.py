"""How long a page takes and what it holds, beside a peer. A missed goal is reported, not raised."""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from conversation import Row, Step, converse, more_commands, more_questions, more_reads
from full import full_facts, with_files
from kept_calls import kept_calls
from long_logs import cold_pages, standstills
from peer import Peer, PeerMissing, PeerRun, start_langchain

from recto.conversation.json import as_object, dump, load
from recto.conversation.log import Compacted, Entry
from recto.conversation.memo import clear_caches
from recto.conversation.messages import texts_of
from recto.page.assemble import assemble
from recto.page.facts import Facts
from recto.page.manifest import Manifest
from recto.page.text.tokens import OFFLINE
from recto.page.text.tokens import _tokenizer as tokenizer  # pyright: ignore[reportPrivateUsage] - warmed here, so that it is in no figure
from recto.page.wire import openai
from recto.page.wire.base import Target

MESSAGES, TIMES = 1_640, 10
# A log that a summary stands for, but for its end.
LONG, NEWEST = 4_000, 20
TARGET = Target(wire="openai", model="bench")
# A first page beside the peer's edit, which writes nothing.
COLD_TIMES = 1.5
WARM_MS, FULL_MS, GROWTH, MEMORY = 3.0, 5.0, 12.0, 2.0
# What a log that is kept for its next page remembers, over its text.
REMEMBERED = 3.0
LONG_COLD_MS, LONG_WARM_MS, LONG_MANIFEST, STANDSTILL_MS = 20.0, 3.0, 3.0, 20.0
# A call of a conversation of so many messages: its page has more than 300 kB.
CALL_MESSAGES, REBUILT_MS, COMPARED_MS = 1_000, 20.0, 30.0
# How many steps a warm conversation goes on before it begins again, so that it stays as long as it is said to be.
STEPS_ON = 10
# Waiting processes for each core from which on times mean little.
BUSY = 0.5
GROWS_BY: dict[str, Callable[[Sequence[Row], int], Sequence[Step]]] = {
    "one message added": more_questions,
    "a file read again": more_reads,
    "a command run": more_commands,
}
PEER_DOES_LESS = """\
The peer is LangChain's ClearToolUsesEdit().apply() with the same token counter. It does less: it writes no request
bytes, keeps no manifest and repairs nothing. It changes the messages it is given, so its middleware copies them first;
and it counts all of them at each call."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One thing measured. Without a goal it is shown for comparison."""

    name: str
    value: float
    unit: str
    goal: float | None = None
    note: str = ""

    @property
    def verdict(self) -> str:
        """Whether the goal was met."""
        if self.goal is None:
            return ""
        return "met" if self.value <= self.goal else "MISSED"


@dataclass(frozen=True, kw_only=True)
class Rounds:
    """How often each thing is measured."""

    cold: int
    warm: int
    cold_long: int


class Options(argparse.Namespace):
    """What the command line says."""

    quick: bool
    no_peer: bool
    json: Path | None


def main() -> None:
    """Measure, print, and write the figures down where asked."""
    options = _options()
    rounds = Rounds(cold=2, warm=5, cold_long=1) if options.quick else Rounds(cold=21, warm=100, cold_long=9)
    print(_machine(), flush=True)
    rows = converse(MESSAGES)
    cold_run(converse(MESSAGES, seed=8))  # loads the vocabulary and the code
    figures = [*measure_times(rows, rounds, with_peer=not options.no_peer), *measure_memory(rows)]
    figures += [*measure_full(rows, rounds), *measure_long(rounds), *measure_standstill(rows, rounds)]
    figures += measure_calls(rounds)
    print("\n".join(_line(figure) for figure in figures))
    missed = [figure.name for figure in figures if figure.verdict == "MISSED"]
    print(f"Missed: {'; '.join(missed)}" if missed else "Every goal that was measured is met.")
    if options.json:
        figure_rows = [asdict(figure) | {"verdict": figure.verdict} for figure in figures]
        options.json.write_text(json.dumps(figure_rows, indent=2) + "\n", encoding="utf-8")


def _machine() -> str:
    facts = f"Python {platform.python_version()}, {os.cpu_count()} cores. Times are medians."
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if busy <= BUSY * (os.cpu_count() or 1):
        return facts
    return f"{facts} The machine is busy (load {busy:.1f}): these are not its best, ratios are safer than times."


def _options() -> Options:
    parser = argparse.ArgumentParser(description="Measure the page: time, growth and memory, beside a peer.")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--no-peer", action="store_true", help="leave the peer out")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE as JSON")
    return parser.parse_args(namespace=Options())


def measure_times(rows: Sequence[Row], rounds: Rounds, *, with_peer: bool) -> list[Figure]:
    """Cold and warm, of a conversation and of one ten times as long."""
    cold, figures = measure_cold(rows, rounds.cold, with_peer=with_peer)
    warm = {name: warm_runs(rows, more(rows, rounds.warm)) for name, more in GROWS_BY.items()}
    print(f"Measuring {TIMES} times the messages ...", flush=True)
    long = converse(TIMES * MESSAGES)
    growth = [_growth("cold", cold, [cold_run(long) for _ in range(rounds.cold_long)])]
    for name, more in GROWS_BY.items():
        figures.append(_figure(f"warm, {name}", warm[name], goal=WARM_MS))
        growth.append(_growth(f"warm, {name}", warm[name], warm_runs(long, more(long, rounds.warm))))
    return [*figures, *growth]


def measure_cold(rows: Sequence[Row], count: int, *, with_peer: bool) -> tuple[list[float], list[Figure]]:
    """Seconds of each cold run, and the figures beside the peer's. Run in turns, so that noise falls on both."""
    _, manifest = assemble(Facts(log=openai.decode(rows), target=TARGET))
    _describe(manifest)
    peer = _start_peer(rows, manifest) if with_peer else None
    ours, theirs = list[float](), list[PeerRun]()
    for _ in range(count):
        ours.append(cold_run(rows))
        theirs += [peer.run("cold")] if peer else []
    if not peer:
        return ours, [_figure("cold", ours)]
    _describe_peer(theirs[0], manifest)
    more = {kind: [peer.run(kind).seconds for _ in range(count)] for kind in ("again", "copied")}
    peer.stop()
    beside = _figure("peer, cold", [run.seconds for run in theirs])
    return ours, [
        _figure("cold", ours, goal=COLD_TIMES * beside.value),
        beside,
        _figure("peer, again", more["again"]),
        _figure("peer, cold, as its middleware runs", more["copied"]),
    ]


def cold_run(rows: Sequence[Row]) -> float:
    """Seconds of the first page of messages nobody has seen, with no table that remembers their words."""
    log = openai.decode(rows)
    tokenizer(OFFLINE.name).clear_cache()
    clear_caches()
    gc.collect()
    return _seconds(log)


def warm_runs(rows: Sequence[Row], steps: Sequence[Step]) -> list[float]:
    """Seconds of each page of a conversation that grows by a step at a time, and begins again before it grew much."""
    start_log = log = openai.decode(rows)
    seconds: list[float] = []
    for number, step in enumerate(steps):
        if number % STEPS_ON == 0:
            log = start_log
            assemble(Facts(log=log, target=TARGET))
        log = (*log, *openai.decode(step))
        seconds.append(_seconds(log))
    return seconds


def _seconds(log: Sequence[Entry]) -> float:
    begin = time.perf_counter()
    result = assemble(Facts(log=log, target=TARGET))
    seconds = time.perf_counter() - begin
    del result  # freed outside the clock, as the peer's messages are
    return seconds


def measure_full(rows: Sequence[Row], rounds: Rounds) -> list[Figure]:
    """A whole agent's page, warm: 200 skills, 500 cases, 50 files, a quote, reminders, and the whole history."""
    log = with_files(openai.decode(rows))
    seconds: list[float] = []
    assemble(full_facts(log))
    for step in more_questions(rows, rounds.warm):
        log = (*log, *openai.decode(step))
        begin = time.perf_counter()
        result = assemble(full_facts(log))
        seconds.append(time.perf_counter() - begin)
        del result
    return [_figure("full assembly, warm", seconds, goal=FULL_MS)]


def measure_long(rounds: Rounds) -> list[Figure]:
    """A long log of which little is shown: a page should cost what it shows. Cold, it is read from a store too."""
    rows = converse(LONG)
    log = _summarised(rows)
    pages = cold_pages(log, TARGET, rounds.cold)
    read = 1000 * statistics.median([page.read for page in pages])
    cold = _figure(f"{LONG:,} messages, {NEWEST} shown, cold", [page.whole for page in pages], goal=LONG_COLD_MS)
    cold = replace(cold, note=f"{cold.note}; {read:.2f} to read {pages[0].entries} entries")
    assemble(Facts(log=log, target=TARGET))
    warm: list[float] = []
    for step in more_questions(rows, rounds.warm):
        log = (*log, *openai.decode(step))
        warm.append(_seconds(log))
    _, manifest = assemble(Facts(log=_summarised(rows), target=TARGET))
    manifest_rows = manifest.rows()
    ratio = len(dump(manifest_rows)) / len(dump([row for row in manifest_rows if row["span"]]))
    name, note = (
        f"{LONG:,} messages, {NEWEST} shown",
        f"{len(dump(manifest_rows)) / 1e3:.1f} kB in {len(manifest_rows)} parts",
    )
    return [
        cold,
        _figure(f"{name}, warm", warm, goal=LONG_WARM_MS),
        Figure(name="its manifest, beside what is shown", value=ratio, unit="x", goal=LONG_MANIFEST, note=note),
    ]


def measure_standstill(rows: Sequence[Row], rounds: Rounds) -> list[Figure]:
    """How long everybody else waits while the server sets the first page of a long log. The least: others work too."""
    waits = standstills(openai.decode(rows), rounds.cold_long)
    name, note = (
        f"standstill, cold page of {MESSAGES:,}",
        f"median {1000 * statistics.median(waits):.2f}, of {len(waits)}",
    )
    return [Figure(name=name, value=1000 * min(waits), unit="ms", goal=STANDSTILL_MS, note=note)]


def measure_calls(rounds: Rounds) -> list[Figure]:
    """A call as it is kept: put together again and held against its digest, and compared with the one before."""
    rows = converse(CALL_MESSAGES)
    before = openai.decode(rows)
    after = (*before, *[entry for step in more_reads(rows, 1) for entry in openai.decode(step)])
    result = kept_calls(before, after, TARGET, rounds.cold)
    note = f"{result.bytes / 1e3:.0f} kB in {result.parts:,} parts"
    rebuilt = _figure(f"call of {CALL_MESSAGES:,} messages, rebuilt", result.rebuilt, goal=REBUILT_MS)
    compared = _figure("two such calls, compared", result.compared, goal=COMPARED_MS)
    return [replace(figure, note=f"{figure.note}; {note}") for figure in (rebuilt, compared)]


def _summarised(rows: Sequence[Row]) -> tuple[Entry, ...]:
    log = openai.decode(rows)
    upto = log[-NEWEST - 1].id
    return (*log, Compacted(id="summary", upto=upto, summary="What was asked for, tried and found so far."))


def measure_memory(rows: Sequence[Row]) -> list[Figure]:
    """What one cold page leaves alive: with all that its log remembers, with its body joined, and each by itself."""
    log = openai.decode(load(dump(rows)))  # texts of its own, which nobody else keeps alive or has counted before
    gc.collect()
    tracemalloc.start()
    page, manifest = assemble(Facts(log=log, target=TARGET))
    with_log = _traced_bytes()
    body = page.body
    with_body, text = _traced_bytes(), _text_bytes(body)
    log_text = sum(len(one.encode()) for message in log for one in texts_of(message))
    del log, body
    alone = _traced_bytes()
    tracemalloc.stop()
    remembered = _remembered(rows)
    log_note = f"{remembered / len(rows) / 1e3:.2f} kB an entry, beside {log_text / 1e6:.2f} MB of text"
    note = f"{alone / 1e6:.2f} MB for {text / 1e6:.2f} MB of text in {len(manifest.parts):,} parts"
    return [
        Figure(name="memory, page and manifest", value=alone / text, unit="x", goal=MEMORY, note=note),
        Figure(name="memory, with what the log remembers", value=with_log / text, unit="x"),
        Figure(
            name="memory, a kept log, beside its text",
            value=remembered / log_text,
            unit="x",
            goal=REMEMBERED,
            note=log_note,
        ),
        Figure(name="memory, and with the body joined", value=with_body / text, unit="x"),
    ]


def _remembered(rows: Sequence[Row]) -> int:
    """What its pages leave in a log that goes on for a while, once they are gone."""
    log = openai.decode(load(dump(rows)))
    steps = [openai.decode(step) for step in more_commands(rows, STEPS_ON)]
    gc.collect()
    tracemalloc.start()
    for step in ((), *steps):
        log = (*log, *step)
        assemble(Facts(log=log, target=TARGET))
    size = _traced_bytes()
    tracemalloc.stop()
    return size


def _traced_bytes() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def _text_bytes(body: bytes) -> int:
    messages = openai.decode(as_object(load(body), "body")["messages"])
    return sum(len(text.encode()) for message in messages for text in texts_of(message))


def _describe(manifest: Manifest) -> None:
    fold_count = sum(1 for part in manifest.parts if part.decision == "folded")
    messages = sum(1 for part in manifest.parts if part.kind == "message")
    before, after = manifest.tokens_before, manifest.tokens_after
    print(f"{messages:,} messages, {before:,} tokens; {fold_count} folded, {after:,} tokens stay.", flush=True)


def _start_peer(rows: Sequence[Row], manifest: Manifest) -> Peer | None:
    result_count = sum(1 for part in manifest.parts if part.role == "tool" and part.decision in ("kept", "repaired"))
    try:
        peer = start_langchain(rows, keep=result_count)
    except PeerMissing as missing:
        print(f"Without the peer: {missing}", flush=True)
        return None
    print(PEER_DOES_LESS)
    return peer


def _describe_peer(run: PeerRun, manifest: Manifest) -> None:
    ours = sum(part.tokens_before for part in manifest.parts if part.kind == "message")
    counts = "the same tokens" if run.tokens == ours else f"OTHER TOKENS ({run.tokens:,}, ours {ours:,})"
    print(f"The peer cleared {run.cleared} results and counted {counts}.", flush=True)


def _figure(name: str, seconds: Sequence[float], *, goal: float | None = None) -> Figure:
    middle, late = 1000 * statistics.median(seconds), 1000 * statistics.quantiles(seconds, n=20)[-1]
    note = f"p95 {late:.2f}, least {1000 * min(seconds):.2f}, of {len(seconds)}"
    return Figure(name=name, value=middle, unit="ms", goal=goal, note=note)


def _growth(name: str, short: Sequence[float], long: Sequence[float]) -> Figure:
    less, more = statistics.median(short), statistics.median(long)
    note = f"{1000 * more:.2f} ms to {1000 * less:.2f} ms"
    return Figure(name=f"{TIMES}x messages, {name}", value=more / less, unit="x", goal=GROWTH, note=note)


def _line(figure: Figure) -> str:
    goal = "" if figure.goal is None else f"goal <= {figure.goal:.4g} {figure.unit}"
    return (
        f"{figure.name:<36}{figure.value:>9.2f} {figure.unit:<3} {goal:<17} {figure.verdict:<8}{figure.note}".rstrip()
    )


if __name__ == "__main__":
    main()
