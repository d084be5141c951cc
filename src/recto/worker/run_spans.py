"""Trace spans of runs, model calls and tools. Message texts are included only if a setting allows it."""

from __future__ import annotations

from recto.conversation.input.run_input import RunInput
from recto.conversation.json import Json, dump
from recto.conversation.messages import Text, ToolCall, UserMessage, texts_of
from recto.models.ports import Usage
from recto.page.manifest import Manifest
from recto.store.ports import Purpose, StoredRun
from recto.tools.ports import ToolResult
from recto.tracing import span_names as names
from recto.tracing.spans import SpanAttributes, Tracer, TraceSpan
from recto.worker.account import Account, seconds_between

# Outcomes that do not count as a failure of the run.
GOOD_OUTCOMES = ("done", "waiting", "length", "refused", "cancelled")
# Maximum characters of text in an attribute.
MAX_CONTENT = 16_384


def begin_run(tracer: Tracer, row: StoredRun, request: RunInput) -> TraceSpan:
    """Begin the span of a run as a child of the client's. Each worker of a run begins its own span."""
    attributes: SpanAttributes = {
        names.OPERATION: names.INVOKE_AGENT,
        names.AGENT: row.agent,
        names.CONVERSATION: row.thread,
        names.RUN: row.id,
        names.RUN_NAME: row.name,
        names.ATTEMPT: row.fence,
        names.QUEUE_SECONDS: seconds_between(row.created, row.started),
    }
    return tracer.begin(f"{names.INVOKE_AGENT} {row.agent}", attributes, request.traceparent)


def end_run(span: TraceSpan, outcome: str | None, usage: Usage | None) -> None:
    """End the span of a run. Without an outcome, another worker continues the run."""
    span.set({names.OUTCOME: outcome, **(_tokens(usage) if usage else {})})
    if outcome is not None and outcome not in GOOD_OUTCOMES:
        span.fail(outcome)
    span.end()


def begin_model_call(parent: TraceSpan, model: str, number: int, purpose: Purpose, manifest: Manifest) -> TraceSpan:
    """Begin the span of one model call."""
    provider, _, name = model.rpartition(":")
    receipts = list(manifest.receipts)
    attributes: SpanAttributes = {
        names.OPERATION: names.CHAT,
        names.PROVIDER: provider or name,
        names.REQUEST_MODEL: name,
        names.STREAM: True,
        names.CALL_NUMBER: number,
        names.CALL_PURPOSE: purpose,
        names.PAGE_TOKENS: manifest.tokens_after,
        names.FOLDED_RESULTS: len(receipts),
        names.SAVED_TOKENS: sum(receipt.tokens_before - receipt.tokens_after for receipt in receipts),
    }
    return parent.child(f"{names.CHAT} {name}", attributes, goes_out=True)


def note_reply(span: TraceSpan, finish: str, spending: Account, first_token: float | None) -> None:
    """Add the usage and the price of an answered model call."""
    price = spending.price if spending.currency else None
    span.set(
        {
            **_tokens(spending.usage),
            names.FINISH_REASONS: [finish],
            names.FIRST_CHUNK_SECONDS: first_token,
            names.PRICE: None if price is None else float(price),
            names.CURRENCY: None if price is None else spending.currency,
        }
    )


def note_words(span: TraceSpan, request: RunInput, answer: str) -> None:
    """Add the user's messages of this run and the model's answer, if spans may have content."""
    if not span.has_content:
        return
    users = [message for message in request.messages if isinstance(message, UserMessage)]
    inputs = [_message("user", "\n".join(texts_of(message))) for message in users]
    outputs = [_message("assistant", answer)]
    span.set({names.INPUT_MESSAGES: dump(inputs).decode(), names.OUTPUT_MESSAGES: dump(outputs).decode()})


def _message(role: str, text: str) -> Json:
    return {"role": role, "parts": [{"type": "text", "content": text[:MAX_CONTENT]}]}


def begin_tool(parent: TraceSpan, call: ToolCall) -> TraceSpan:
    """Begin the span of a tool call."""
    attributes: SpanAttributes = {
        names.OPERATION: names.EXECUTE_TOOL,
        names.TOOL_NAME: call.name,
        names.TOOL_CALL: call.id,
        names.TOOL_TYPE: "function",
        names.TOOL_ARGUMENTS: call.arguments[:MAX_CONTENT] if parent.has_content else None,
    }
    return parent.child(f"{names.EXECUTE_TOOL} {call.name}", attributes)


def note_result(span: TraceSpan, result: ToolResult) -> None:
    """Add the error of a tool call, and its result if spans may have content."""
    if span.has_content:
        text = "\n".join([part.text for part in result.parts if isinstance(part, Text)])
        span.set({names.TOOL_RESULT: text[:MAX_CONTENT]})
    if result.error:
        span.fail(result.error)


def note_retry(span: TraceSpan, error: str, failures: int, seconds: float) -> None:
    """Add an event: a model call failed, and is retried after this many seconds."""
    span.note(names.RETRY, {names.ERROR_TYPE: error, names.RETRY_FAILURES: failures, names.RETRY_SECONDS: seconds})


def _tokens(usage: Usage) -> SpanAttributes:
    counts = {
        names.INPUT_TOKENS: usage.input,
        names.OUTPUT_TOKENS: usage.output,
        names.CACHE_READ_TOKENS: usage.cached,
        names.CACHE_WRITTEN_TOKENS: usage.cache_written,
        names.REASONING_TOKENS: usage.reasoning,
    }
    return {name: count for name, count in counts.items() if count}
