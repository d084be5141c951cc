"""Long coding sessions: one made from a seed, as pi, Claude Code and Codex write theirs, and a recorded one.

The recorded one is there only where the environment variable TRACES_FOLDER names its folder; no test needs it.
"""

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from random import Random
from typing import Literal, TypeAlias

import pytest

ROOT = "/home/ada/shop"
BEGIN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TURNS = 24
MODEL = "claude-opus-4-5"
SUMMARY = "The cart was rewritten; the tests of its prices still fail."
NAMES = """
    account batch buffer cache cart channel client config cursor customer digest entry event field filter frame header
    index invoice item job key lease limit line lock message order owner parser payment plan price quota 订单 价格 缓存
"""
WORDS = NAMES.split()

Fields: TypeAlias = dict[str, object]


@dataclass(frozen=True, kw_only=True, eq=False)
class TracedSession:
    """A session file with the expected counts. `folds` counts outdated results at its end by rule."""

    name: str
    data: bytes
    root: str
    note: str
    roles: Mapping[str, int]
    errors: int
    unanswered: int
    folds: Mapping[str, int]
    guesses: int


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call of a tool. `about` is a path or a command; an unanswered call has no output."""

    id: str
    tool: Literal["read", "edit", "bash"]
    about: str
    output: str | None
    failed: bool = False


@dataclass(frozen=True, kw_only=True)
class Reply:
    text: str
    calls: tuple[Call, ...] = ()
    tokens: int = 0


@dataclass(frozen=True, kw_only=True)
class Compaction:
    """The place where the agent compacted its page."""


Step: TypeAlias = str | Reply | Compaction


@cache
def sessions() -> tuple[TracedSession, ...]:
    steps = tuple(_Agent(Random(7)).work())
    sessions_made = {"pi": _pi(steps), "claude-code": _claude_code(steps), "codex": _codex(steps)}
    session = [
        _make_session(name, steps, "".join(json.dumps(row) + "\n" for row in rows))
        for name, rows in sessions_made.items()
    ]
    folder = os.environ.get("TRACES_FOLDER")
    return (*session, _recorded(Path(folder))) if folder else tuple(session)


def _recorded(folder: Path) -> TracedSession:
    return TracedSession(
        name="recorded",
        data=(folder / "pi_before-compaction.jsonl").read_bytes(),
        root="/Users/badlogic/workspaces/pi-mono",
        note="2 compactions are ignored: the whole log is read.",
        # 55 messages of the user, and 3 commands the user ran, which its agent told the model as the user's words.
        roles={"assistant": 484, "tool": 448, "user": 55 + 3},
        errors=12,
        unanswered=6,
        folds={"R2": 64, "R8": 175},
        guesses=170,
    )


def _make_session(name: str, steps: Sequence[Step], text: str) -> TracedSession:
    replies = [step for step in steps if isinstance(step, Reply)]
    calls = [call for reply in replies for call in reply.calls]
    answered_calls = [call for call in calls if call.output is not None]
    before = steps[: next(place for place, step in enumerate(steps) if isinstance(step, Compaction))]
    return TracedSession(
        name=name,
        data=text.encode(),
        root=ROOT,
        note="1 compaction is ignored: the whole log is read.",
        roles={
            "assistant": len(replies),
            "tool": len(answered_calls),
            "user": sum(isinstance(step, str) for step in steps),
        },
        errors=sum(call.failed for call in calls),
        unanswered=len(calls) - len(answered_calls),
        folds=_folds(steps, of_reads=name != "codex"),
        guesses=sum(isinstance(step, Reply) for step in before) - 1,
    )


def _folds(steps: Sequence[Step], *, of_reads: bool) -> Mapping[str, int]:
    """Return the number of folds by rule. Codex reads files with commands."""
    done = [
        (_at(number), call)
        for number, step in enumerate(steps)
        if isinstance(step, Reply)
        for call in step.calls
        if call.output is not None and not call.failed
    ]
    commands = [at for at, call in done if call.tool == "bash" or (call.tool == "read" and not of_reads)]
    old = sum(_at(len(steps) - 1) - at > timedelta(minutes=15) for at in commands[:-5])
    reads = Counter(call.about.removeprefix(f"{ROOT}/") for _, call in done if call.tool == "read")
    stale = sum(max(0, count - 5) for count in reads.values())
    return {"R2": stale, "R8": old} if of_reads else {"R8": old}


def _at(step: int) -> datetime:
    return BEGIN + timedelta(seconds=25 * step)


class _Agent:
    """An agent that works on fifteen files."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.files = [f"src/{random.choice(WORDS)}/{random.choice(WORDS)}_{number}.py" for number in range(15)]
        self.calls = 0
        self.characters = 9_000

    def work(self) -> Iterator[Step]:
        for turn in range(TURNS):
            if turn == TURNS * 2 // 3:
                self.characters = 9_000 + len(SUMMARY)
                yield Compaction()
            yield self._say(12)
            for _ in range(self.random.randint(4, 14)):
                yield self._reply(*(self._call() for _ in range(self.random.choice((1, 1, 1, 1, 2, 3)))))
            if turn % 9 == 4:
                yield self._reply(self._call(), self._never_answered())
            else:
                yield self._reply()

    def _say(self, words: int) -> str:
        return self._replace_text(" ".join(self.random.choices(WORDS, k=words)) + ".")

    def _replace_text(self, text: str) -> str:
        self.characters += len(text)
        return text

    def _reply(self, *calls: Call) -> Reply:
        tokens = round(self.characters / 3.2 * self.random.uniform(0.995, 1.005))
        for call in calls:
            self._replace_text(call.about + (call.output or ""))
        silent = bool(calls) and self.random.random() < 0.5
        return Reply(text="" if silent else self._say(8), calls=calls, tokens=tokens)

    def _call(self) -> Call:
        self.calls += 1
        id, roll, failed = f"call_{self.calls}", self.random.random(), self.random.random() < 0.05
        path = self.random.choices(self.files, weights=[1 / (n + 1) for n in range(len(self.files))])[0]
        if roll < 0.3:
            spelling = self.random.choice((path, f"{ROOT}/{path}"))
            return Call(id=id, tool="read", about=spelling, output=self._output(failed, 60), failed=failed)
        if roll < 0.55:
            return Call(id=id, tool="edit", about=path, output=self._output(failed, 1), failed=failed)
        return Call(id=id, tool="bash", about=f"pytest -q {path}", output=self._output(failed, 20), failed=failed)

    def _output(self, failed: bool, lines: int) -> str:
        text = [f"    {' = '.join(self.random.choices(WORDS, k=4))}" for _ in range(self.random.randint(1, lines))]
        return "\n".join(["No such file or directory" if failed else "ok", *text])

    def _never_answered(self) -> Call:
        self.calls += 1
        return Call(id=f"call_{self.calls}", tool="bash", about="make watch", output=None)


def _pi(steps: Sequence[Step]) -> Iterator[Fields]:
    yield {"type": "session", "version": 3, "id": "s1", "timestamp": BEGIN.isoformat(), "cwd": ROOT}
    parent: str | None = None
    for number, step in enumerate(steps):
        for part, entry in enumerate(_pi_entries(step)):
            id = f"{number}-{part}"
            yield {"id": id, "parentId": parent, "timestamp": _at(number).isoformat(), **entry}
            parent = id


def _pi_entries(step: Step) -> Iterator[Fields]:
    match step:
        case str():
            yield _pi_message("user", [_text(step)])
        case Compaction():
            yield {"type": "compaction", "summary": SUMMARY, "firstKeptEntryId": "0-0", "tokensBefore": 1}
        case Reply():
            calls = [
                {"type": "toolCall", "id": call.id, "name": call.tool, "arguments": _arguments(call, "path")}
                for call in step.calls
            ]
            usage = {"input": 3, "cacheRead": step.tokens - 3, "cacheWrite": 0, "output": 9}
            content = [*([_text(step.text)] if step.text else []), *calls]
            yield _pi_message(
                "assistant", content, api="anthropic-messages", provider="anthropic", model=MODEL, usage=usage
            )
            for call in step.calls:
                if call.output is not None:
                    result = {"toolCallId": call.id, "toolName": call.tool, "isError": call.failed}
                    yield _pi_message("toolResult", [_text(call.output)], **result)


def _pi_message(role: str, content: object, **fields: object) -> Fields:
    return {"type": "message", "message": {"role": role, "content": content, **fields}}


def _text(text: str) -> Fields:
    return {"type": "text", "text": text}


def _arguments(call: Call, path: str) -> Fields:
    if call.tool == "bash":
        return {"command": call.about}
    old, new = ("oldText", "newText") if path == "path" else ("old_string", "new_string")
    changed = {old: "ok", new: "fine"} if call.tool == "edit" else {}
    return {path: call.about, **changed}


def _claude_code(steps: Sequence[Step]) -> Iterator[Fields]:
    parent: str | None = None
    for number, step in enumerate(steps):
        for part, row in enumerate(_claude_rows(step, f"reply_{number}")):
            uuid = f"{number}-{part}"
            envelope = {"isSidechain": False, "sessionId": "s1", "cwd": ROOT, "timestamp": _at(number).isoformat()}
            above = {"parentUuid": None, "logicalParentUuid": parent} if "subtype" in row else {"parentUuid": parent}
            yield {"uuid": uuid, **above, **envelope, **row}
            parent = uuid


def _claude_rows(step: Step, id: str) -> Iterator[Fields]:
    match step:
        case str():
            yield {"type": "user", "message": {"role": "user", "content": step}}
        case Compaction():
            yield {"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted"}
            yield {"type": "user", "isCompactSummary": True, "message": {"role": "user", "content": SUMMARY}}
        case Reply():
            names = {"read": "Read", "edit": "Edit", "bash": "Bash"}
            usage = {"input_tokens": 3, "cache_read_input_tokens": step.tokens - 3, "output_tokens": 9}
            reply = {"id": id, "type": "message", "role": "assistant", "model": MODEL, "usage": usage}
            calls = [
                {"type": "tool_use", "id": call.id, "name": names[call.tool], "input": _arguments(call, "file_path")}
                for call in step.calls
            ]
            # A row for each block, as Claude Code writes them.
            for block in [*([_text(step.text)] if step.text else []), *calls]:
                yield {"type": "assistant", "message": {**reply, "content": [block]}}
            for call in step.calls:
                if call.output is not None:
                    result = {"type": "tool_result", "tool_use_id": call.id, "content": call.output}
                    failed = {"is_error": True} if call.failed else {}
                    yield {"type": "user", "message": {"role": "user", "content": [{**result, **failed}]}}


def _codex(steps: Sequence[Step]) -> Iterator[Fields]:
    yield {"timestamp": BEGIN.isoformat(), "type": "session_meta", "payload": {"id": "s1", "cwd": ROOT}}
    total = 0
    for number, step in enumerate(steps):
        total += step.tokens if isinstance(step, Reply) else 0
        for row in _codex_rows(step, total):
            yield {"timestamp": _at(number).isoformat(), **row}


def _codex_rows(step: Step, total: int) -> Iterator[Fields]:
    match step:
        case str():
            yield _item("message", role="user", content=[{"type": "input_text", "text": step}])
        case Compaction():
            yield {"type": "compacted", "payload": {"message": SUMMARY}}
        case Reply():
            if step.text:
                yield _item("message", role="assistant", content=[{"type": "output_text", "text": step.text}])
            yield from map(_codex_call, step.calls)
            info = {"total_token_usage": {"total_tokens": total}, "last_token_usage": {"input_tokens": step.tokens}}
            yield {"type": "event_msg", "payload": {"type": "token_count", "info": info}}
            for call in step.calls:
                if call.output is not None:
                    head = f"Exit code: {int(call.failed)}\nWall time: 0.1 seconds\nOutput:\n"
                    kind = "custom_tool_call_output" if call.tool == "edit" else "function_call_output"
                    yield _item(kind, call_id=call.id, output=head + call.output)


def _codex_call(call: Call) -> Fields:
    if call.tool == "edit":
        patch = f"*** Begin Patch\n*** Update File: {call.about}\n@@\n-ok\n+fine\n*** End Patch"
        return _item("custom_tool_call", name="apply_patch", call_id=call.id, input=patch)
    command = f"sed -n 1,200p {call.about}" if call.tool == "read" else call.about
    arguments = json.dumps({"command": ["bash", "-lc", command]})
    return _item("function_call", name="shell", call_id=call.id, arguments=arguments)


def _item(kind: str, **fields: object) -> Fields:
    return {"type": "response_item", "payload": {"type": kind, **fields}}


# A decorator: what it marks is run with each of them.
EACH_SESSION = pytest.mark.parametrize("traced", sessions(), ids=lambda traced: traced.name)
