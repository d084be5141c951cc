"""State of the active run and a pure update per event. Finished content becomes blocks to print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from recto.cli.chat.rendering.markdown_blocks import Chunk, Tail, split_all, split_complete
from recto.conversation.json import Json, Object, leading_object, load_object

# Maximum characters to keep of a call: the end of its output, and the beginning of its result.
MOST_OUTPUT, MOST_RESULT = 4_000, 40_000
# Maximum number of newest calls that the user can open.
MOST_CALLS = 30
PROGRESS = "-progress"
# Rough estimate for the spinner, until the provider has counted.
CHARACTERS_A_TOKEN = 4


@dataclass(frozen=True, kw_only=True)
class LiveCall:
    """A tool call as far as it was received. `output` is its progress output."""

    id: str
    name: str
    arguments: str = ""
    start_time: float = 0.0
    end_time: float | None = None
    output: str = ""
    result: str = ""
    is_settled: bool = False

    @property
    def seconds(self) -> float | None:
        """Duration in seconds, if start and end are known."""
        return self.end_time - self.start_time if self.end_time is not None and self.start_time else None

    @property
    def has_failed(self) -> bool:
        """True if the result is an error, a denial or a non-zero exit code."""
        from recto.conversation.interrupts import DENIAL  # slow to import; the prompt appears first

        if self.result.startswith(("Error:", DENIAL.format(name=self.name))):
            return True
        code = (leading_object(self.result) or {}).get("exitCode")
        return isinstance(code, int) and code != 0


@dataclass(frozen=True, kw_only=True)
class UserBlock:
    """A user message with the names of its files."""

    text: str
    files: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TextBlock:
    """A piece of an answer. With `joins`, it continues the previous block."""

    text: str
    joins: bool = False


@dataclass(frozen=True, kw_only=True)
class ReasoningBlock:
    """A piece of the model's reasoning."""

    text: str
    joins: bool = False


@dataclass(frozen=True, kw_only=True)
class CallBlock:
    """A call with its result."""

    call: LiveCall


@dataclass(frozen=True, kw_only=True)
class DiscardBlock:
    """Marker that the text of a message was discarded and a new attempt follows."""


@dataclass(frozen=True, kw_only=True)
class FailureBlock:
    """Error message of a failed run."""

    message: str


@dataclass(frozen=True, kw_only=True)
class EndBlock:
    """End of a run without a complete answer."""

    how: Literal["cancelled", "length", "refused", "nothing_to_compact"]


Block: TypeAlias = UserBlock | TextBlock | ReasoningBlock | CallBlock | DiscardBlock | FailureBlock | EndBlock
ENDS: Mapping[str, EndBlock] = {
    "length": EndBlock(how="length"),
    "refused": EndBlock(how="refused"),
    "nothing_to_compact": EndBlock(how="nothing_to_compact"),
}


@dataclass(frozen=True, kw_only=True)
class LiveRun:
    """State of the active run and its newest calls. `is_printed` is true if a part of the message was printed."""

    answer: Tail = Tail()
    reasoning: Tail = Tail()
    is_printed: bool = False
    calls: Mapping[str, LiveCall] = field(default_factory=dict[str, LiveCall])
    progress: str = ""
    characters: int = 0

    @property
    def tokens(self) -> int:
        """Estimated tokens received so far."""
        return self.characters // CHARACTERS_A_TOKEN

    @property
    def running_calls(self) -> Sequence[LiveCall]:
        """Calls without a result."""
        return [call for call in self.calls.values() if not call.is_settled]


RunStep: TypeAlias = tuple[LiveRun, tuple[Block, ...]]


def apply_event(run: LiveRun, event: Object, now: float) -> RunStep:
    """Apply an event; return the new state and the finished blocks."""
    match event:
        case {"type": "RUN_STARTED"}:
            # Calls that waited for approval start now.
            calls = {id: call if call.is_settled else replace(call, start_time=now) for id, call in run.calls.items()}
            return replace(run, answer=Tail(), reasoning=Tail(), characters=0, progress="", calls=calls), ()
        case {"type": "TEXT_MESSAGE_START"}:
            return replace(run, is_printed=False), ()
        case {"type": "TEXT_MESSAGE_CONTENT", "delta": str(text)}:
            chunks, rest = split_complete(run.answer.append(text))
            is_printed = run.is_printed or bool(chunks)
            run = replace(run, answer=rest, characters=run.characters + len(text), is_printed=is_printed)
            return run, _text_blocks(chunks)
        case {"type": "REASONING_MESSAGE_CONTENT", "delta": str(text)}:
            chunks, rest = split_complete(run.reasoning.append(text))
            return replace(run, reasoning=rest, characters=run.characters + len(text)), _reasoning_blocks(chunks)
        case {"type": "TEXT_MESSAGE_END" | "REASONING_MESSAGE_END"}:
            return _settle(run)
        case {"type": "CUSTOM", "name": "recto.discarded"}:
            blocks = (DiscardBlock(),) if run.is_printed else ()
            calls = {id: call for id, call in run.calls.items() if call.is_settled}
            return replace(run, answer=Tail(), reasoning=Tail(), calls=calls), blocks
        case {"type": "RUN_FINISHED" | "RUN_ERROR"}:
            run, blocks = _settle(run)
            match event:
                case {"type": "RUN_ERROR", "message": str(message)}:
                    blocks = (*blocks, FailureBlock(message=message))
                case {"outcome": {"type": "cancelled"}}:
                    blocks = (*blocks, EndBlock(how="cancelled"))
                case {"result": {"finish": str(finish)}} if finish in ENDS:
                    blocks = (*blocks, ENDS[finish])
                case _:
                    pass
            return replace(run, progress=""), blocks
        case {"type": str(type)} if type.startswith(("TOOL_CALL", "ACTIVITY")):
            return _apply_call(run, event, now)
        case _:
            return run, ()


def _text_blocks(chunks: Sequence[Chunk]) -> tuple[Block, ...]:
    return tuple([TextBlock(text=chunk.text, joins=chunk.joins) for chunk in chunks])


def _reasoning_blocks(chunks: Sequence[Chunk]) -> tuple[Block, ...]:
    return tuple([ReasoningBlock(text=chunk.text, joins=chunk.joins) for chunk in chunks])


def _settle(run: LiveRun) -> RunStep:
    """Finish the open text and reasoning."""
    blocks = (*_reasoning_blocks(split_all(run.reasoning)), *_text_blocks(split_all(run.answer)))
    return replace(run, answer=Tail(), reasoning=Tail(), is_printed=run.is_printed or bool(blocks)), blocks


def _apply_call(run: LiveRun, event: Object, now: float) -> RunStep:
    match event:
        case {"type": "TOOL_CALL_START", "toolCallId": str(id), "toolCallName": str(name)}:
            run, blocks = _settle(run)
            return _with_call(run, LiveCall(id=id, name=name, start_time=now)), blocks
        case {"type": "TOOL_CALL_ARGS", "toolCallId": str(id), "delta": str(text)} if id in run.calls:
            call = run.calls[id]
            run = replace(run, characters=run.characters + len(text))
            return _with_call(run, replace(call, arguments=call.arguments + text)), ()
        case {"type": "TOOL_CALL_RESULT", "toolCallId": str(id), "content": content}:
            call = run.calls.get(id) or LiveCall(id=id, name="?")
            done = replace(call, end_time=now, result=result_text(content), is_settled=True)
            return replace(_with_call(run, done), progress=""), (CallBlock(call=done),)
        case {"type": "ACTIVITY_SNAPSHOT", "messageId": str(id), "content": Mapping() as content}:
            # Progress: output lines of a call, or a progress line.
            call, text = run.calls.get(id.partition(PROGRESS)[0]), content.get("text")
            if call and isinstance(text, str):
                return _with_call(run, replace(call, output=text[-MOST_OUTPUT:])), ()
            total = f"/{content['total']}" if "total" in content else ""
            line = f"{content.get('label', '')} {content.get('done', '')}{total} {content.get('unit', '')}".strip()
            return replace(run, progress="" if content.get("status") == "ended" else line), ()
        case _:
            return run, ()


def _with_call(run: LiveRun, call: LiveCall) -> LiveRun:
    calls = {**{id: one for id, one in run.calls.items() if id != call.id}, call.id: call}
    return replace(run, calls=dict(list(calls.items())[-MOST_CALLS:]))


def result_text(content: Json) -> str:
    """Return a result as text, with placeholders for parts that are not text."""
    if isinstance(content, str):
        return content[:MOST_RESULT]
    parts = content if isinstance(content, Sequence) else ()
    objects = [part for part in parts if isinstance(part, Mapping)]
    return "\n".join([str(one["text"]) if "text" in one else f"[{one.get('type')}]" for one in objects])[:MOST_RESULT]


def apply_messages(run: LiveRun, messages: Sequence[Object]) -> RunStep:
    """Apply stored messages; they give the same blocks as their events."""
    blocks: list[Block] = []
    for message in messages:
        match message:
            case {"role": "user", "content": content}:
                blocks.append(read_user_block(content))
            case {"role": "assistant"}:
                content = message.get("content")
                if isinstance(content, str) and content.strip():
                    blocks.append(TextBlock(text=content))
                for call in read_calls(message):
                    run = _with_call(run, call)
            case {"role": "tool", "toolCallId": str(id), "content": content}:
                call = run.calls.get(id) or LiveCall(id=id, name="?")
                call = replace(call, result=result_text(content), is_settled=True)
                run = _with_call(run, call)
                blocks.append(CallBlock(call=call))
            case _:
                pass
    return run, tuple(blocks)


def read_calls(message: Object) -> Sequence[LiveCall]:
    """Return the calls of an assistant message."""
    rows = message.get("toolCalls")
    calls: list[LiveCall] = []
    for row in rows if isinstance(rows, Sequence) else ():
        match row:
            case {"id": str(id), "function": {"name": str(name), "arguments": str(arguments)}}:
                calls.append(LiveCall(id=id, name=name, arguments=arguments))
            case _:
                pass
    return calls


def read_user_block(content: Json) -> UserBlock:
    """Return the text and file names of a user message."""
    if isinstance(content, str):
        return UserBlock(text=content)
    parts = [part for part in content if isinstance(part, Mapping)] if isinstance(content, Sequence) else []
    texts: list[str] = []
    files: list[str] = []
    for part in parts:
        match part:
            case {"type": "text"}:
                texts.append(str(part["text"]))
            case {"metadata": {"filename": str(name)}}:
                files.append(name)
            case _:
                files.append(str(part.get("type")))
    return UserBlock(text="\n".join(texts), files=tuple(files))


def arguments_of(call: LiveCall) -> Object:
    """Return the arguments of a call, empty while incomplete."""
    return load_object(call.arguments) or {}
