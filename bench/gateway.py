"""What the gateway adds to a request, beside the same request to the model itself, in turns: first byte, and whole.

A conversation grows by a call and its result with every request, as an agent's does. A missed goal is told, not raised.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import platform
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from goal import Goal
from processes import Process, scratch, start_model, start_recto
from traffic import TOKEN

ROUNDS, MESSAGES, CHARACTERS = 60, 20, 2_000
ADDED_MILLISECONDS = 3.0
PATH = "/v1/chat/completions"
Message = dict[str, object]


class Options(argparse.Namespace):
    """What the command line says."""

    rounds: int
    messages: int
    json: Path | None


@dataclass(frozen=True, kw_only=True)
class Took:
    """Seconds of one request: until its answer began, and until it was whole."""

    first: float
    whole: float


def main() -> None:
    """Measure, print, and write the figures down where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="requests of each kind")
    parser.add_argument("--messages", type=int, default=MESSAGES, help="of the conversation at its begin")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE as JSON")
    options = parser.parse_args(namespace=Options())
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}.", flush=True)
    with scratch(None) as folder:
        model = start_model(Path(folder) / "model", 0.0)
        gateway = start_recto(Path(folder) / "gateway", model.port, what="gateway")
        try:
            goals = [*measure(model.port, gateway, options)]
        finally:
            gateway.stop()
            model.stop()
    print("\n".join(map(str, goals)))
    if options.json:
        options.json.write_text(json.dumps({"goals": [asdict(goal) for goal in goals]}, indent=2) + "\n")


def measure(model: int, gateway: Process, options: Options) -> Iterator[Goal]:
    """Ask both in turns, in a conversation that grows."""
    talk = conversation(options.messages)
    direct, gateway_connection = [http.client.HTTPConnection("127.0.0.1", port) for port in (model, gateway.port)]
    first, before = ask(gateway_connection, talk), gateway.cpu()
    plain, through = list[Took](), list[Took]()
    for number in range(options.rounds):
        talk += exchange(options.messages + number)
        plain.append(ask(direct, talk))
        through.append(ask(gateway_connection, talk))
    cpu = 1_000 * (gateway.cpu() - before) / options.rounds
    size = len(json.dumps(talk))
    print(f"{len(talk)} messages and {size / 1_000:,.0f} kB at the end; {options.rounds} requests of each kind.")
    added = beyond([one.first for one in through], [one.first for one in plain])
    yield Goal(name="first byte, beyond direct, median", value=added, unit="ms", most=ADDED_MILLISECONDS)
    whole = beyond([one.whole for one in through], [one.whole for one in plain])
    yield Goal(name="whole reply, beyond direct, median", value=whole, unit="ms", most=ADDED_MILLISECONDS)
    yield Goal(name="CPU of the gateway, a request", value=cpu, unit="ms")
    yield Goal(name="first byte, direct, median", value=1_000 * median(one.first for one in plain), unit="ms")
    yield Goal(name="first byte of the first request", value=1_000 * first.first, unit="ms")


def beyond(these: Sequence[float], those: Sequence[float]) -> float:
    """How many milliseconds these took longer, at the median of each pair."""
    return 1_000 * median(one - other for one, other in zip(these, those, strict=True))


def median(values: Iterable[float]) -> float:
    """The one in the middle."""
    return statistics.median(list(values))


def conversation(messages: int) -> list[Message]:
    """What an agent has said and read so far."""
    conversation: list[Message] = [
        {"role": "system", "content": "You edit code."},
        {"role": "user", "content": "Make it work."},
    ]
    return conversation + [message for number in range(messages // 2) for message in exchange(number)]


def exchange(number: int) -> list[Message]:
    """A call, and its result."""
    function = {"name": "bash", "arguments": json.dumps({"command": f"sed -n {number}p a.py"})}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    words = f"{number}: value = compute({number})\n" * (CHARACTERS // 30)
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": words},
    ]


def ask(connection: http.client.HTTPConnection, talk: Sequence[Message]) -> Took:
    """One request, streamed."""
    body = json.dumps({"model": "x", "stream": True, "messages": talk}).encode()
    headers = {"content-type": "application/json", "authorization": f"Bearer {TOKEN}"}
    begin = time.perf_counter()
    connection.request("POST", PATH, body, headers)
    answer = connection.getresponse()
    answer.read(1)
    first = time.perf_counter() - begin
    rest = answer.read()
    if answer.status != 200 or not rest.endswith(b"[DONE]\n\n"):
        raise SystemExit(f"The answer was {answer.status}: {rest[-200:]!r}")
    return Took(first=first, whole=time.perf_counter() - begin)


if __name__ == "__main__":
    main()
