"""Gemini's generateContent: request options, and a reader of streamed replies. Pure.

The stream has no end event, so the reader continues until the body ends. Signed parts go back to the model, so the
reader stores them with their positions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from recto.agents.agent import Effort, Sampling
from recto.conversation.json import Json, dump, load_object
from recto.conversation.messages import AssistantPart, Opaque, Text, ToolCall
from recto.errors import ModelUnreachable
from recto.models.faults import Blame, stream_fault
from recto.models.ports import (
    CallDelta,
    CallStarted,
    Delta,
    FinishReason,
    ReasoningDelta,
    ReplyEnd,
    ReplyUsage,
    TextDelta,
    Usage,
    parts_in_unusual_order,
)
from recto.models.sse import count_of, credible, object_of, parse_event, text_of
from recto.models.wire_protocol import ModelVersion, Options, WireProtocol, output_schema, present
from recto.page.wire.gemini import SIGNATURE, WIRE, part_state, signature_state, version_of

FINISHES: Mapping[str, FinishReason] = {
    "MAX_TOKENS": "length",
    **dict.fromkeys(("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"), "filtered"),
    **dict.fromkeys(("OTHER", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"), "filtered"),
    **dict.fromkeys(("IMAGE_OTHER", "NO_IMAGE"), "filtered"),
}
# Finish reasons of a failed reply. A retry usually succeeds.
BROKEN = ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE")
MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
# First version whose models take a thinking level, and first version whose models take a token budget. Earlier models
# do not think.
LEVELS: ModelVersion = (3, 0)
BUDGETS_SINCE: ModelVersion = (2, 5)
BUDGETS: Mapping[Effort, int] = {"minimal": 512, "low": 2_048, "medium": 8_192, "high": 24_576}
SECONDS = re.compile(r"(\d{1,6}(?:\.\d{1,9})?)s")


class ContentReader:
    """Reader of one reply.

    `finished` is True once the model gave a finish reason, because the stream has no end event.
    """

    def __init__(self, *, model: str, blame: Blame | None = None) -> None:
        self._model = model
        self._blame = blame or Blame(model=model)
        # Text is collected in a list of pieces, because a reply may have many thousands.
        self._parts: list[AssistantPart | list[str]] = []
        self._calls: list[ToolCall] = []
        self._usage: Usage | None = None
        self._reason = ""
        self.done = False

    @property
    def finished(self) -> bool:
        """True after a finish reason."""
        return bool(self._reason)

    def read(self, data: bytes) -> Iterator[Delta]:
        """Yield the deltas of one event."""
        if not data.strip():
            return
        event = parse_event(data, self._blame.model)
        if event.get("error"):
            raise stream_fault(event["error"], self._blame)
        usage, is_first = read_usage(event.get("usageMetadata")), self._usage is None
        self._usage = usage or self._usage
        if usage and is_first:
            yield ReplyUsage(usage=usage)
        blocked = text_of(object_of(event.get("promptFeedback")).get("blockReason"))
        self._reason = "SAFETY" if blocked else self._reason
        candidates = event.get("candidates")
        first = candidates[0] if isinstance(candidates, list) and candidates else None
        candidate = object_of(first)
        parts = object_of(candidate.get("content")).get("parts")
        for part in parts if isinstance(parts, list) else ():
            yield from self._read_part(object_of(part))
        reason = text_of(candidate.get("finishReason"))
        if reason in BROKEN:
            raise ModelUnreachable(model=self._blame.model, problem=f"its reply failed ({reason}). Try again.")
        self._reason = reason or self._reason

    def end(self) -> ReplyEnd:
        """Return the end of the reply. Raise ModelCutOff if the model gave no finish reason."""
        if not self.finished:
            raise self._blame.cut_off("the stream ended before the reply did.")
        parts = tuple(Text(text="".join(part)) if isinstance(part, list) else part for part in self._parts)
        return ReplyEnd(
            finish=FINISHES.get(self._reason) or ("tool_calls" if self._calls else "stop"),
            usage=self._usage,
            state=tuple(part for part in parts if isinstance(part, Opaque)),
            call_state={number: call.state for number, call in enumerate(self._calls) if call.state},
            parts=parts_in_unusual_order(parts),
        )

    def _read_part(self, part: Mapping[str, Json]) -> Iterator[Delta]:
        text, call, signature = part.get("text"), part.get("functionCall"), text_of(part.get(SIGNATURE))
        state = signature_state(signature, self._model) if signature else None
        if isinstance(call, Mapping):
            name, number = text_of(call.get("name")), len(self._calls)
            if not name:
                raise self._blame.cut_off("a tool call in its reply has no name.")
            arguments = dump(object_of(call.get("args"))).decode()
            tool_call = ToolCall(id=text_of(call.get("id")), name=name, arguments=arguments, state=state)
            self._calls.append(tool_call)
            self._parts.append(tool_call)
            yield CallStarted(index=number, id=tool_call.id, name=name)
            yield CallDelta(index=number, arguments=arguments)
        elif part.get("thought") is True:
            if words := text_of(text):
                yield ReasoningDelta(text=words)
        elif isinstance(text, str):
            if text:
                last = self._parts[-1] if self._parts else None
                # Do not join signed text to other text, because the signature covers only the signed text.
                if isinstance(last, list) and not signature:
                    last.append(text)
                else:
                    self._parts.append([text])
                yield TextDelta(text=text)
            if state:
                alone = part_state({"text": "", SIGNATURE: signature}, self._model)
                self._parts.append(state if text else alone)
        elif part:
            # Recto does not read executed code or generated images, but Gemini expects them back.
            self._parts.append(part_state(dict(part), self._model))


def read_usage(usage: Json) -> Usage | None:
    """Return the reported tokens, or None without a report. Gemini counts thinking separately from the output."""
    counts = object_of(usage)
    if not counts:
        return None
    thoughts = count_of(counts.get("thoughtsTokenCount"))
    return credible(
        Usage(
            input=count_of(counts.get("promptTokenCount")) + count_of(counts.get("toolUsePromptTokenCount")),
            output=count_of(counts.get("candidatesTokenCount")) + thoughts,
            cached=count_of(counts.get("cachedContentTokenCount")),
            reasoning=thoughts,
        )
    )


def _retry_after(body: bytes) -> float | None:
    """Return the delay in the details of an error, such as "34s"."""
    details = object_of((load_object(body) or {}).get("error")).get("details")
    for detail in details if isinstance(details, list) else ():
        match = SECONDS.fullmatch(text_of(object_of(detail).get("retryDelay")))
        if match:
            return float(match[1])
    return None


def _request_options(model: str, sampling: Sampling, *, has_tools: bool) -> Options:
    output = output_schema(sampling)
    config = present(
        temperature=sampling.temperature,
        maxOutputTokens=sampling.max_tokens,
        thinkingConfig=_thinking(version_of(model), sampling.reasoning_effort),
        responseMimeType="application/json" if output else None,
        responseJsonSchema=output,
    )
    choice = sampling.tool_choice if has_tools else None
    calling: Options = {"mode": MODES[choice]} if choice in MODES else {"mode": "ANY", "allowedFunctionNames": [choice]}
    tool_config = {"functionCallingConfig": calling} if choice else None
    return present(generationConfig=config or None, toolConfig=tool_config)


def _thinking(version: ModelVersion, effort: Effort | None) -> Options | None:
    if effort is None or version < BUDGETS_SINCE:
        return None
    thinking: Options = {"thinkingLevel": effort.upper()} if version >= LEVELS else {"thinkingBudget": BUDGETS[effort]}
    # By default Gemini does not return its thinking.
    return {"includeThoughts": True, **thinking}


GEMINI_CONTENT = WireProtocol(
    wire=WIRE,
    path="/models/{model}:streamGenerateContent?alt=sse",
    key_header="x-goog-api-key",
    key_form="{key}",
    options={},
    request_options=_request_options,
    reader=ContentReader,
    retry_after=_retry_after,
)
