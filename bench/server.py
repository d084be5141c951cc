"""How many runs a server answers and how soon, beside the model itself and peers. A missed goal is told, not raised."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import signal
import statistics
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import TypeVar

import uvloop
from goal import Goal
from peer import PeerMissing
from processes import (
    TEXT,
    TOKENS,
    Process,
    cpu_of_command,
    kept_bytecode,
    scratch,
    start_model,
    start_peer,
    start_recto,
    start_stamped,
)
from streams import Plan, Streams, follow
from traffic import Measured, Target, measure

# Below what any clock shows: tokens come one by one, as models write them, as fast as they can be written.
NO_PAUSE = 1e-6
AT_ONCE = (1, 8, 32)
RUNS, LISTS, CHAT = "/api/v1/agent/runs", "/api/v1/agent/ag-ui", "/v1/chat/completions"
DIRECT, RECTO, PYDANTIC, AGNO = "direct", "recto", "pydantic-ai", "agno"
NAMES = (DIRECT, RECTO, PYDANTIC, AGNO)
# The same server, asked as AG-UI's clients do.
AG_UI, LIST_LENGTH = "recto ag-ui", 20
PEERS = {PYDANTIC: ("pydantic_ai", "/"), AGNO: ("agno", "/agui")}
WHO = """\
direct       the model itself, asked over HTTP by the same client: it writes each token by itself, without a pause
recto        POST /api/v1/agent/runs with its SQLite store: the run, its events and the reply are committed
recto ag-ui  POST /api/v1/agent/ag-ui of the same server, with a list of 20 messages before the question
pydantic-ai  its AG-UI adapter; it stores nothing
agno         its AG-UI interface with its SQLite database; it stores the session"""
TIMES_PEER, OF_DIRECT, OF_RUNS, FIRST_MS = 5.0, 0.35, 0.9, 4.0
MEMORY_MB, LATE_MS, READY_SECONDS = 200.0, 150.0, 1.0
REST_MB, HELP_SECONDS, FOLD_SECONDS, COMMAND_SECONDS = 100.0, 0.3, 0.5, 0.6
# How long a server that is ready is left alone before its memory is read.
REST_SECONDS = 3.0
SMALL_SESSION = [
    {"role": "user", "content": "What is in a.py?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.py"}'}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "x = 1\n" * 100},
    {"role": "assistant", "content": "A hundred lines."},
]
# More runs at once than Recto takes when it is not told.
ROOM = 1.2
WARM_UP = 32

ResultT = TypeVar("ResultT")
Results = Mapping[tuple[str, int], Sequence[Measured]]


class Options(argparse.Namespace):
    """What the command line says."""

    only: list[str]
    rounds: int
    seconds: float
    delay: float
    streams: int
    only_streams: bool
    rate: float
    stream_seconds: float
    quick: bool
    profile: bool
    scratch: Path | None
    json: Path | None


def main() -> None:
    """Measure, print, and write the figures down where asked."""
    options = _options()
    print(_machine(), flush=True)
    with scratch(options.scratch) as folder:
        if options.profile:
            _profile(options, Path(folder))
            return
        results: Results = {} if options.only_streams else _throughput(options, Path(folder))
        print("\n".join(_table(results)), flush=True)
        goals = _goals(results)
        if RECTO in options.only:
            goals += _streams(options, Path(folder))
        if RECTO in options.only and not options.only_streams:
            goals += [*_start(options, Path(folder)), *_commands(options, Path(folder))]
    print("\n".join(map(str, goals)))
    missed = [goal.name for goal in goals if goal.verdict == "MISSED"]
    print(f"Missed: {'; '.join(missed)}" if missed else "Every goal that was measured is met.")
    if options.json:
        rows = [
            {"target": name, "at_once": many} | asdict(_middle(samples)) for (name, many), samples in results.items()
        ]
        goal_rows = [asdict(goal) | {"verdict": goal.verdict} for goal in goals]
        options.json.write_text(json.dumps({"runs": rows, "goals": goal_rows}, indent=2) + "\n", encoding="utf-8")


def _options() -> Options:
    parser = argparse.ArgumentParser(description="Measure the server: runs, first words, streams, start; beside peers.")
    parser.add_argument("--only", type=_names, default=list(NAMES), metavar="NAMES", help=f"of {','.join(NAMES)}")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is measured (5)")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement (2)")
    parser.add_argument(
        "--delay", type=float, default=NO_PAUSE, help="seconds between two tokens of the model (none; each is a write)"
    )
    parser.add_argument("--streams", type=int, default=1000, help="open streams; 0 leaves them out (1000)")
    parser.add_argument("--only-streams", action="store_true", help="measure open streams and nothing else")
    parser.add_argument("--rate", type=float, default=5.0, help="words a second of each stream (5)")
    parser.add_argument("--stream-seconds", type=float, default=15.0, help="how long streams are measured (15)")
    parser.add_argument("--quick", action="store_true", help="one round of half a second, no streams, one start")
    parser.add_argument("--profile", action="store_true", help="only tell where Recto's time goes, with 8 runs at once")
    parser.add_argument("--scratch", type=Path, metavar="FOLDER", help="where databases are (the system's for such)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE as JSON")
    options = parser.parse_args(namespace=Options())
    if options.quick:
        options.rounds, options.seconds, options.streams = 1, 0.5, 0
    return options


def _names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := sorted(set(names) - set(NAMES)):
        raise argparse.ArgumentTypeError(f"there is no {', '.join(unknown)}; known: {', '.join(NAMES)}")
    return [name for name in NAMES if name in names]


def _machine() -> str:
    load = os.getloadavg()[0]
    facts = f"Python {platform.python_version()}, {os.cpu_count()} cores, load {load:.1f} before it began."
    return f"{facts} {TOKENS} tokens a run. Medians."


def _throughput(options: Options, folder: Path) -> Results:
    """All servers run at the same time; each is measured in its turn, in another order each round."""
    results: dict[tuple[str, int], list[Measured]] = {}
    with ExitStack() as running:
        model = _enter(running, start_model(folder / "model", options.delay))
        targets = [target for name in options.only for target in _targets(name, running, folder, model.port)]
        for target in targets:
            _measure(target, at_once=WARM_UP, seconds=min(1.0, options.seconds))
        for turn in range(options.rounds):
            place = turn % max(1, len(targets))
            for many in AT_ONCE:
                for target in targets[place:] + targets[:place]:
                    measured = _measure(target, at_once=many, seconds=options.seconds)
                    results.setdefault((target.name, many), []).append(measured)
    return results


def _targets(name: str, running: ExitStack, folder: Path, model: int) -> list[Target]:
    if name == DIRECT:
        return [Target(name=name, port=model, path=CHAT, wire="openai")]
    if name == RECTO:
        process = _enter(running, start_recto(folder / name, model))
        plain = Target(name=RECTO, port=process.port, path=RUNS, wire="agui")
        return [plain, replace(plain, name=AG_UI, path=LISTS, before=LIST_LENGTH)]
    environment, path = PEERS[name]
    try:
        process = _enter(running, start_peer(environment, folder / name, model))
    except PeerMissing as missing:
        print(f"Without {name}: {missing}", flush=True)
        return []
    return [Target(name=name, port=process.port, path=path, wire="agui")]


def _enter(running: ExitStack, process: Process) -> Process:
    running.callback(process.stop)
    return process


def _measure(target: Target, *, at_once: int, seconds: float) -> Measured:
    return _run(lambda: measure(target, at_once=at_once, seconds=seconds, expected=TEXT))


def _run(work: Callable[[], Coroutine[None, None, ResultT]]) -> ResultT:
    """On the loop servers use too: the client must not be what is measured."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work())


def _middle(samples: Sequence[Measured]) -> Measured:
    """The median of each figure."""
    rows = [asdict(one) for one in samples]
    return Measured(**{name: statistics.median(row[name] for row in rows) for name in rows[0]})


def _table(results: Results) -> list[str]:
    times = f"{'runs/s':>10}{'first ms':>10}{'end ms':>10}"
    head = f"{'':<14}{'at once':>8}{times}{'bytes':>9}{'events':>8}{'runs/s from - to':>20}"
    rows = [(name, many) for many in AT_ONCE for name in (*NAMES, AG_UI) if (name, many) in results]
    return [WHO, head, *[_row(name, many, results[name, many]) for name, many in rows]]


def _row(name: str, many: int, samples: Sequence[Measured]) -> str:
    middle, rates = _middle(samples), [one.rate for one in samples]
    spread = f"{min(rates):.0f} - {max(rates):.0f}"
    times = f"{middle.rate:>10.1f}{middle.first:>10.2f}{middle.end:>10.2f}"
    return f"{name:<14}{many:>8}{times}{middle.size:>9.0f}{middle.events:>8.1f}{spread:>20}"


def _goals(results: Results) -> list[Goal]:
    middle = {key: _middle(samples) for key, samples in results.items()}
    goals: list[Goal] = []
    for peer, many in [(peer, many) for peer in (PYDANTIC, AGNO, DIRECT) for many in AT_ONCE]:
        ours, theirs = middle.get((RECTO, many)), middle.get((peer, many))
        if ours and theirs:
            goals.append(_ratio(peer, many, ours.rate / theirs.rate))
    for many in AT_ONCE:
        lists, runs = middle.get((AG_UI, many)), middle.get((RECTO, many))
        if lists and runs:
            least, share = 100 * OF_RUNS if many > 1 else None, 100 * lists.rate / runs.rate
            goals.append(Goal(name=f"ag-ui of runs, {many} at once", value=share, unit="%", least=least))
    ours, direct = middle.get((RECTO, 1)), middle.get((DIRECT, 1))
    if ours and direct:
        more = ours.first - direct.first
        goals.append(Goal(name="first token, 1 at once, beyond direct", value=more, unit="ms", most=FIRST_MS))
    return goals


def _ratio(peer: str, many: int, ratio: float) -> Goal:
    if peer == DIRECT:
        least = 100 * OF_DIRECT if many > 1 else None
        return Goal(name=f"recto of direct, {many} at once", value=100 * ratio, unit="%", least=least)
    least = TIMES_PEER if peer == PYDANTIC and many > 1 else None
    return Goal(name=f"recto / {peer}, {many} at once", value=ratio, unit="x", least=least)


def _streams(options: Options, folder: Path) -> list[Goal]:
    """Recto with many streams; the model itself before it, so that the client's own part is known."""
    if not options.streams:
        return []
    plan = Plan(streams=options.streams, rate=options.rate, seconds=options.stream_seconds)
    with ExitStack() as running:
        model = _enter(running, start_stamped(folder / "stamped", options.rate))
        direct = Target(name=DIRECT, port=model.port, path=CHAT, wire="openai")
        print(_describe(DIRECT, _run(lambda: follow(direct, model, plan))), flush=True)
        room = {"RECTO_RUNS": str(round(ROOM * options.streams))}
        process = _enter(running, start_recto(folder / "streams", model.port, room))
        recto = Target(name=RECTO, port=process.port, path=RUNS, wire="agui")
        streams = _run(lambda: follow(recto, process, plan))
        print(_describe(RECTO, streams), flush=True)
    share = streams.words / streams.expected
    return [
        Goal(name=f"{plan.streams} streams, still open", value=streams.open, unit="", least=plan.streams),
        Goal(name=f"{plan.streams} streams, words that came", value=100 * share, unit="%", least=98),
        Goal(name=f"{plan.streams} streams, a word late, p99", value=streams.p99, unit="ms", most=LATE_MS),
        Goal(name=f"{plan.streams} streams, memory, peak", value=streams.memory, unit="MB", most=MEMORY_MB),
    ]


def _describe(name: str, streams: Streams) -> str:
    late = f"late p50 {streams.p50:.1f}, p99 {streams.p99:.1f}, most {streams.most:.1f} ms"
    memory = f"memory {streams.memory_before:.0f} MB before, peak {streams.memory:.0f} MB"
    return f"{name}, {streams.open} streams: {streams.words} words of {streams.expected}; {late}; {memory}"


def _start(options: Options, folder: Path) -> list[Goal]:
    """Seconds from the start of the process until it is ready, each time with a new data folder; then its memory."""
    seconds, cpu, memory = list[float](), list[float](), list[float]()
    bytecode = kept_bytecode(folder / "bytecode")
    with ExitStack() as running:
        model = _enter(running, start_model(folder / "model", 0.0))
        # The first compiles all modules, as an installation does, and is not counted.
        for number in range(options.rounds + 1):
            process = start_recto(folder / f"start-{number}", model.port, bytecode)
            seconds.append(process.ready)
            cpu.append(process.cpu())
            time.sleep(REST_SECONDS)
            memory.append(process.memory()[0])
            process.stop()
    ready, worked, rest = (statistics.median(samples[1:]) for samples in (seconds, cpu, memory))
    return [
        Goal(name="ready, new data folder", value=ready, unit="s", most=READY_SECONDS),
        Goal(name="ready, CPU", value=worked, unit="s"),
        Goal(name="memory at rest", value=rest, unit="MB", most=REST_MB),
    ]


def _commands(options: Options, folder: Path) -> list[Goal]:
    """Seconds of processor time of commands that need no server; of one, the data folder of a server before."""
    session, agents, data = folder / "session.json", folder / "agents", folder / "start-0" / "data"
    (agents / "shop").mkdir(parents=True)
    (agents / "shop" / "AGENT.md").write_text("You sell milk and bread, and know what is in stock.\n", encoding="utf-8")
    session.write_text(json.dumps(SMALL_SESSION), encoding="utf-8")
    goals = list[Goal]()
    for name, arguments, most in (
        ("recto --help", ["--help"], HELP_SECONDS),
        ("recto fold of a small file", ["fold", str(session)], FOLD_SECONDS),
        ("recto read of a small file", ["read", str(session)], COMMAND_SECONDS),
        ("recto agents check of one", ["agents", "check", str(agents), "--offline"], COMMAND_SECONDS),
        ("recto agents explain chat", ["agents", "explain", "chat"], COMMAND_SECONDS),
        ("recto agents explain vibe", ["agents", "explain", "vibe"], COMMAND_SECONDS),
        ("recto serve --check", ["serve", "--check", "--data", str(data)], COMMAND_SECONDS),
        ("recto user tier", ["user", "tier", "somebody", "gold", "--data", str(data)], COMMAND_SECONDS),
    ):
        seconds = [cpu_of_command(arguments, folder / "bytecode") for _ in range(options.rounds + 1)]
        goals.append(Goal(name=f"{name}, CPU", value=statistics.median(seconds[1:]), unit="s", most=most))
    return goals


def _profile(options: Options, folder: Path) -> None:
    with ExitStack() as running:
        model = _enter(running, start_model(folder / "model", options.delay))
        process = start_recto(folder / RECTO, model.port, script="profiled.py")
        target = Target(name=RECTO, port=process.port, path=RUNS, wire="agui")
        measured = _measure(target, at_once=8, seconds=options.seconds)
        process.stop(signal.SIGINT)
    print(f"{measured.runs} runs with 8 at once; under the profiler each takes several times as long.")
    print((folder / RECTO / "said.txt").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
