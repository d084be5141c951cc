"""State of the active run and a pure update per event. Finished content becomes blocks to print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from recto.cli.chat.rendering.markdown_blocks import Tail, take_all, take_whole
from recto.conversation.json import Json, Object, leading_object, load_object

# Newest characters to keep of a call's output and result.
MOST_OUTPUT, MOST_RESULT = 4_000, 40_000
# Calls that can be opened.
MOST_CALLS = 30
PROGRESS = "-progress"
# Rough estimate for the spinner, until the provider has counted.
CHARACTERS_A_TOKEN = 4


@dataclass(frozen=True, kw_only=True)
class ShownCall:
    """A tool call as far as it was received. `output` is its progress output."""

    id: str
    name: str
    arguments: str = ""
    message: str = ""
    started: float = 0.0
    ended: float | None = None
    output: str = ""
    result: str = ""
    is_settled: bool = False

    @property
    def seconds(self) -> float | None:
        """Duration in seconds, if both ends were seen."""
        return self.ended - self.started if self.ended is not None and self.started else None

    @property
    def is_denied(self) -> bool:
        """True if the user denied the call."""
        from recto.conversation.interrupts import DENIAL  # here: the prompt does not wait for all of a conversation

        return self.result.startswith(DENIAL.format(name=self.name))

    @property
    def failed(self) -> bool:
        """True if the result is an error, a denial or a non-zero exit code."""
        if self.result.startswith("Error:") or self.is_denied:
            return True
        code = (leading_object(self.result) or {}).get("exitCode")
        return isinstance(code, int) and code != 0


@dataclass(frozen=True, kw_only=True)
class Said:
    """A user message with the names of its files."""

    words: str
    files: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Words:
    """A piece of an answer. With `joins`, it continues the previous block."""

    text: str
    joins: bool = False


@dataclass(frozen=True, kw_only=True)
class Thought:
    """A piece of the model's reasoning."""

    text: str
    joins: bool = False


@dataclass(frozen=True, kw_only=True)
class CallDone:
    """A call with its result."""

    call: ShownCall


@dataclass(frozen=True, kw_only=True)
class TakenBack:
    """The text of a message was discarded; a new attempt follows."""


@dataclass(frozen=True, kw_only=True)
class RunFailure:
    """Error message of a failed run."""

    message: str


@dataclass(frozen=True, kw_only=True)
class Ended:
    """End of a run without a complete answer."""

    how: Literal["cancelled", "length", "refused", "nothing_to_compact"]


Block: TypeAlias = Said | Words | Thought | CallDone | TakenBack | RunFailure | Ended
ENDS: Mapping[str, Ended] = {
    "length": Ended(how="length"),
    "refused": Ended(how="refused"),
    "nothing_to_compact": Ended(how="nothing_to_compact"),
}


@dataclass(frozen=True, kw_only=True)
class LiveRun:
    """State of the active run and its newest calls. `shown` is True once a part of `message` was printed."""

    words: Tail = Tail()
    thought: Tail = Tail()
    message: str = ""
    shown: bool = False
    calls: Mapping[str, ShownCall] = field(default_factory=dict[str, ShownCall])
    progress: str = ""
    characters: int = 0
    usage: Mapping[str, Json] = field(default_factory=dict[str, Json])

    @property
    def tokens(self) -> int:
        """Estimated tokens received so far."""
        return self.characters // CHARACTERS_A_TOKEN

    @property
    def at_work(self) -> Sequence[ShownCall]:
        """Calls without a result."""
        return [call for call in self.calls.values() if not call.is_settled]


RunStep: TypeAlias = tuple[LiveRun, tuple[Block, ...]]


def take_event(run: LiveRun, event: Object, now: float) -> RunStep:
    """Apply an event; return the new state and the finished blocks."""
    match event:
        case {"type": "RUN_STARTED"}:
            # Calls that waited for approval start now.
            calls = {id: call if call.is_settled else replace(call, started=now) for id, call in run.calls.items()}
            return replace(run, words=Tail(), thought=Tail(), characters=0, progress="", usage={}, calls=calls), ()
        case {"type": "TEXT_MESSAGE_START", "messageId": str(id)}:
            return replace(run, message=id, shown=False), ()
        case {"type": "TEXT_MESSAGE_CONTENT", "delta": str(said)}:
            return _say(run, said)
        case {"type": "REASONING_MESSAGE_CONTENT", "delta": str(said)}:
            return _think(run, said)
        case {"type": "TEXT_MESSAGE_END" | "REASONING_MESSAGE_END"}:
            return _settle(run)
        case {"type": "CUSTOM", "name": "recto.discarded"}:
            left = {id: call for id, call in run.calls.items() if call.is_settled}
            return replace(run, words=Tail(), thought=Tail(), calls=left), (TakenBack(),) if run.shown else ()
        case {"type": "RUN_FINISHED" | "RUN_ERROR"}:
            return _end(run, event)
        case {"type": str(type)} if type.startswith(("TOOL_CALL", "ACTIVITY")):
            return _take_call(run, event, now)
        case _:
            return run, ()


def _say(run: LiveRun, said: str) -> RunStep:
    chunks, rest = take_whole(run.words.with_more(said))
    blocks = tuple([Words(text=chunk.text, joins=chunk.joins) for chunk in chunks])
    shown = run.shown or bool(blocks)
    return replace(run, words=rest, characters=run.characters + len(said), shown=shown), blocks


def _think(run: LiveRun, said: str) -> RunStep:
    chunks, rest = take_whole(run.thought.with_more(said))
    blocks = tuple([Thought(text=chunk.text, joins=chunk.joins) for chunk in chunks])
    return replace(run, thought=rest, characters=run.characters + len(said)), blocks


def _settle(run: LiveRun) -> RunStep:
    """Finish the open text and reasoning."""
    thought = [Thought(text=chunk.text, joins=chunk.joins) for chunk in take_all(run.thought)]
    words = [Words(text=chunk.text, joins=chunk.joins) for chunk in take_all(run.words)]
    blocks = (*thought, *words)
    return replace(run, words=Tail(), thought=Tail(), shown=run.shown or bool(blocks)), blocks


def _end(run: LiveRun, event: Object) -> RunStep:
    run, blocks = _settle(run)
    match event:
        case {"usage": [Mapping() as usage, *_]}:
            run = replace(run, usage=usage)
        case _:
            pass
    run = replace(run, progress="")
    match event:
        case {"type": "RUN_ERROR", "message": str(message)}:
            return run, (*blocks, RunFailure(message=message))
        case {"outcome": {"type": "cancelled"}}:
            return run, (*blocks, Ended(how="cancelled"))
        case {"result": {"finish": str(finish)}} if finish in ENDS:
            return run, (*blocks, ENDS[finish])
        case _:
            return run, blocks


def _take_call(run: LiveRun, event: Object, now: float) -> RunStep:
    match event:
        case {"type": "TOOL_CALL_START", "toolCallId": str(id), "toolCallName": str(name)}:
            run, blocks = _settle(run)
            message = str(event.get("parentMessageId") or "")
            return _with(run, ShownCall(id=id, name=name, message=message, started=now)), blocks
        case {"type": "TOOL_CALL_ARGS", "toolCallId": str(id), "delta": str(said)} if id in run.calls:
            call = run.calls[id]
            counted = replace(run, characters=run.characters + len(said))
            return _with(counted, replace(call, arguments=call.arguments + said)), ()
        case {"type": "TOOL_CALL_RESULT", "toolCallId": str(id), "content": content}:
            call = run.calls.get(id) or ShownCall(id=id, name="?")
            done = replace(call, ended=now, result=result_text(content), is_settled=True)
            return replace(_with(run, done), progress=""), (CallDone(call=done),)
        case {"type": "ACTIVITY_SNAPSHOT", "messageId": str(id), "content": Mapping() as content}:
            return _take_progress(run, id.partition(PROGRESS)[0], content), ()
        case _:
            return run, ()


def _take_progress(run: LiveRun, call: str, content: Object) -> LiveRun:
    """Apply progress: output lines of a call, or a progress line."""
    text = content.get("text")
    if call in run.calls and isinstance(text, str):
        return _with(run, replace(run.calls[call], output=text[-MOST_OUTPUT:]))
    total = f"/{content['total']}" if "total" in content else ""
    line = f"{content.get('label', '')} {content.get('done', '')}{total} {content.get('unit', '')}".strip()
    return replace(run, progress="" if content.get("status") == "ended" else line)


def _with(run: LiveRun, call: ShownCall) -> LiveRun:
    calls = {**{id: one for id, one in run.calls.items() if id != call.id}, call.id: call}
    return replace(run, calls=dict(list(calls.items())[-MOST_CALLS:]))


def result_text(content: Json) -> str:
    """Return a result as text, with placeholders for other parts."""
    if isinstance(content, str):
        return content[:MOST_RESULT]
    parts = content if isinstance(content, Sequence) else ()
    texts = [_part_text(part) for part in parts if isinstance(part, Mapping)]
    return "\n".join(texts)[:MOST_RESULT]


def _part_text(part: Object) -> str:
    return str(part["text"]) if "text" in part else f"[{part.get('type')}]"


def take_messages(run: LiveRun, messages: Sequence[Object]) -> RunStep:
    """Apply stored messages; they give the same blocks as their events."""
    blocks: list[Block] = []
    for message in messages:
        run, more = _take_message(run, message)
        blocks += more
    return run, tuple(blocks)


def _take_message(run: LiveRun, message: Object) -> RunStep:
    match message:
        case {"role": "user", "content": content}:
            return run, (said_in(content),)
        case {"role": "assistant"}:
            content = message.get("content")
            words = (Words(text=content),) if isinstance(content, str) and content.strip() else ()
            for call in calls_in(message):
                run = _with(run, call)
            return run, words
        case {"role": "tool", "toolCallId": str(id), "content": content}:
            call = run.calls.get(id) or ShownCall(id=id, name="?")
            done = replace(call, result=result_text(content), is_settled=True)
            return _with(run, done), (CallDone(call=done),)
        case _:
            return run, ()


def calls_in(message: Object) -> Sequence[ShownCall]:
    """Return the calls of an assistant message."""
    rows = message.get("toolCalls")
    found: list[ShownCall] = []
    for row in rows if isinstance(rows, Sequence) else ():
        match row:
            case {"id": str(id), "function": {"name": str(name), "arguments": str(arguments)}}:
                found.append(ShownCall(id=id, name=name, arguments=arguments, message=str(message.get("id"))))
            case _:
                pass
    return found


def said_in(content: Json) -> Said:
    """Return the text and file names of a user message."""
    if isinstance(content, str):
        return Said(words=content)
    parts = [part for part in content if isinstance(part, Mapping)] if isinstance(content, Sequence) else []
    words = "\n".join([str(part["text"]) for part in parts if part.get("type") == "text"])
    return Said(words=words, files=tuple([_file_name(part) for part in parts if part.get("type") != "text"]))


def _file_name(part: Object) -> str:
    match part:
        case {"metadata": {"filename": str(name)}}:
            return name
        case _:
            return str(part.get("type"))


def arguments_of(call: ShownCall) -> Object:
    """Return the arguments of a call, empty while incomplete."""
    return load_object(call.arguments) or {}
