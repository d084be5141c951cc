"""Spans of a run, its model calls and its tools: what each is called, and what is to be known of it. Decides nothing.

What was said is in them only where a setting says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from recto.conversation.input.run_input import RunInput
from recto.conversation.json import Json, dump
from recto.conversation.messages import Text, ToolCall, UserMessage, texts_of
from recto.models.ports import Usage
from recto.page.manifest import Manifest
from recto.store.ports import Purpose, StoredRun
from recto.tools.ports import ToolResult
from recto.tracing import span_names as names
from recto.tracing.spans import Attributes, Span, Tracer
from recto.worker.account import Account, seconds_between

# A run that ended so did what it could.
WELL = ("done", "waiting", "length", "refused", "cancelled")
# Characters of what was said, in each attribute.
MOST_CONTENT = 16_384


def begin_run(tracer: Tracer, row: StoredRun, asked: RunInput) -> Span:
    """The span of a run, below that of whoever asked for it. A run that is taken over has one for each worker."""
    known: Attributes = {
        names.OPERATION: names.INVOKE_AGENT,
        names.AGENT: row.agent,
        names.CONVERSATION: row.thread,
        names.RUN: row.id,
        names.RUN_NAME: row.name,
        names.ATTEMPT: row.fence,
        names.QUEUE_SECONDS: seconds_between(row.created, row.started),
    }
    return tracer.begin(f"{names.INVOKE_AGENT} {row.agent}", known, asked.traceparent)


def end_run(span: Span, outcome: str | None, usage: Usage | None) -> None:
    """How it ended here; without an outcome somebody else goes on with it."""
    span.set({names.OUTCOME: outcome, **(_tokens(usage) if usage else {})})
    if outcome is not None and outcome not in WELL:
        span.fail(outcome)
    span.end()


def begin_model_call(above: Span, model: str, number: int, purpose: Purpose, manifest: Manifest) -> Span:
    """The span of one try to have a page answered."""
    provider, _, name = model.rpartition(":")
    receipts = list(manifest.receipts)
    known: Attributes = {
        names.OPERATION: names.CHAT,
        names.PROVIDER: provider or name,
        names.REQUEST_MODEL: name,
        names.STREAM: True,
        names.CALL_NUMBER: number,
        names.CALL_PURPOSE: purpose,
        names.PAGE_TOKENS: manifest.tokens_after,
        names.FOLDED: len(receipts),
        names.SAVED_TOKENS: sum(receipt.tokens_before - receipt.tokens_after for receipt in receipts),
    }
    return above.child(f"{names.CHAT} {name}", known, goes_out=True)


def note_reply(span: Span, finish: str, spent: Account, first_token: float | None) -> None:
    """A model call was answered."""
    is_priced = spent.price is not None and bool(spent.currency)
    span.set(
        {
            **_tokens(spent.usage),
            names.FINISH_REASONS: [finish],
            names.FIRST_CHUNK_SECONDS: first_token,
            names.PRICE: float(spent.price) if is_priced and spent.price is not None else None,
            names.CURRENCY: spent.currency if is_priced else None,
        }
    )


def note_words(span: Span, asked: RunInput, answer: str) -> None:
    """What the user said in this run, and what the model answered."""
    if not span.has_content:
        return
    users = [message for message in asked.messages if isinstance(message, UserMessage)]
    said = [_message("user", "\n".join(texts_of(message))) for message in users]
    span.set({names.INPUT_MESSAGES: _text(said), names.OUTPUT_MESSAGES: _text([_message("assistant", answer)])})


def _message(role: str, words: str) -> Json:
    return {"role": role, "parts": [{"type": "text", "content": words[:MOST_CONTENT]}]}


def _text(messages: Sequence[Json]) -> str:
    return dump(messages).decode()


def begin_tool(above: Span, call: ToolCall) -> Span:
    """The span of a tool that acts."""
    known: Attributes = {
        names.OPERATION: names.EXECUTE_TOOL,
        names.TOOL_NAME: call.name,
        names.TOOL_CALL: call.id,
        names.TOOL_TYPE: "function",
        names.TOOL_ARGUMENTS: call.arguments[:MOST_CONTENT] if above.has_content else None,
    }
    return above.child(f"{names.EXECUTE_TOOL} {call.name}", known)


def note_result(span: Span, result: ToolResult) -> None:
    """What the tool answered, as far as that may be told."""
    if span.has_content:
        words = "\n".join([part.text for part in result.parts if isinstance(part, Text)])
        span.set({names.TOOL_RESULT: words[:MOST_CONTENT]})
    if result.error:
        span.fail(result.error)


def note_retry(span: Span, error: str, failures: int, seconds: float) -> None:
    """A model call failed and is made again after so many seconds."""
    span.note(names.RETRY, {names.ERROR_TYPE: error, names.RETRY_FAILURES: failures, names.RETRY_SECONDS: seconds})


def _tokens(usage: Usage) -> Attributes:
    """Those there were."""
    counts = {
        names.INPUT_TOKENS: usage.input,
        names.OUTPUT_TOKENS: usage.output,
        names.CACHE_READ_TOKENS: usage.cached,
        names.CACHE_WRITTEN_TOKENS: usage.cache_written,
        names.REASONING_TOKENS: usage.reasoning,
    }
    return {name: count for name, count in counts.items() if count}
