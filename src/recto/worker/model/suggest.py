"""Suggestions for the user's next message: one model call outside of runs. Only its cost is stored.

If the model fails, or cannot be forced to call a tool, there are no suggestions and users see no error.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from recto.agents.agent import Agent
from recto.config.run_settings import SuggestionSettings
from recto.conversation.events import Event, ToolCallArguments, ToolCallEnded, ToolCallStarted
from recto.conversation.input.suggestion_input import SuggestionInput
from recto.conversation.json import dump
from recto.conversation.messages import SystemMessage
from recto.errors import ModelError, ModelUnreachable
from recto.models.deltas import cut_short
from recto.models.ports import (
    CallDelta,
    CallStarted,
    Delta,
    Model,
    ReasoningDelta,
    ReplyEnd,
    ReplyUsage,
    TextDelta,
    Usage,
)
from recto.page.assemble import assemble
from recto.page.facts import Facts, Turn
from recto.page.prompt.suggestion_page import fit_suggestion
from recto.store.ports import CallEnd
from recto.worker.account import charge, report_usage
from recto.worker.runtime import Runtime

LOGGER = logging.getLogger("recto.worker")


@dataclass(kw_only=True)
class ForcedCall:
    """A streamed call of one tool, with its events for readers and the usage of the reply. Ignores all other parts."""

    id: str
    message: str
    tool: str
    pieces: list[str] = field(default_factory=list[str])
    usage: Usage | None = None
    end: ReplyEnd | None = None
    _index: int | None = None

    def add(self, delta: Delta) -> Iterator[Event]:
        """Add a delta and yield its events."""
        match delta:
            case CallStarted(index=index, name=self.tool) if self._index is None:
                self._index = index
                yield ToolCallStarted(call=self.id, name=self.tool, message=self.message)
            case CallDelta(index=index, arguments=arguments):
                self.pieces.append(arguments)
                if index == self._index:
                    yield ToolCallArguments(call=self.id, delta=arguments)
            case TextDelta(text=text) | ReasoningDelta(text=text):
                self.pieces.append(text)
            case ReplyUsage(usage=usage):
                self.usage = usage
            case ReplyEnd():
                self.end = delta
            case _:
                pass

    def close(self) -> Iterator[Event]:
        """Yield the end of the call if it started.

        Partial calls are useful, because clients read suggestions one by one.
        """
        if self._index is not None:
            yield ToolCallEnded(call=self.id)


async def suggest(
    runtime: Runtime,
    settings: SuggestionSettings,
    owner: str,
    agent: Agent,
    request: SuggestionInput,
    *,
    emit: Callable[[Event], None],
) -> None:
    """Ask an agent's model for the forced call, and emit its events. To end the call, cancel this coroutine."""
    fitting = fit_suggestion(request, settings.input_tokens, runtime.models.counter)
    if fitting is None or agent.tool_calling == "prompt":
        return
    model = runtime.models.of(agent)
    page, manifest = assemble(_facts(runtime, settings, agent, fitting))
    call = ForcedCall(id=runtime.new_id(), message=runtime.new_id(), tool=request.tool.name)
    try:
        # Closing the stream ends the call at the provider.
        deltas = cut_short(model.stream(page.body), agent.limits.reply_characters)
        async with asyncio.timeout(settings.seconds), aclosing(deltas) as stream:
            async for delta in stream:
                for event in call.add(delta):
                    emit(event)
    except TimeoutError:
        problem = f"no answer within {settings.seconds:g} seconds."
        _note_failure(runtime, ModelUnreachable(model=model.name, problem=problem))
    except ModelError as error:
        _note_failure(runtime, error)
    except asyncio.CancelledError:
        runtime.telemetry.record_stopped_call(model.name)
        raise
    finally:
        for event in call.close():
            emit(event)
        await _charge(runtime, owner, model, call, manifest.tokens.tokens)


def _facts(runtime: Runtime, settings: SuggestionSettings, agent: Agent, request: SuggestionInput) -> Facts:
    model = runtime.models.of(agent)
    sampling = replace(
        agent.sampling,
        tool_choice=request.tool.name,
        max_tokens=settings.output_tokens,
        # Disable reasoning: it is not worth its tokens here, and some models cannot reason before a forced call.
        reasoning_effort=None,
        output=None,
    )
    about = (SystemMessage(id="about", text=agent.description),) if agent.description else ()
    return Facts(
        log=(*about, *request.messages),
        target=model.target,
        tools=(request.tool,),
        turn=Turn(context=request.context) if request.context else None,
        locale=agent.locale,
        options={**agent.options, **model.options_for(sampling, has_tools=True)},
        now=runtime.clock(),
        counter=runtime.models.counter,
    )


def _note_failure(runtime: Runtime, error: ModelError) -> None:
    LOGGER.warning("no suggestions: %s", error)
    runtime.telemetry.record_failed_call(error.model, error)


async def _charge(runtime: Runtime, owner: str, model: Model, call: ForcedCall, sent_tokens: int) -> None:
    """Charge the user for a call, by the provider's usage or, if there is none, by our own count."""
    usage = call.end.usage if call.end else None
    if usage is None and (call.pieces or call.usage or call.end):
        output = runtime.models.counter.count(("".join(call.pieces),))[0]
        usage = call.usage or Usage(input=sent_tokens)
        usage = replace(usage, output=max(usage.output, output))
    if usage is None:
        return
    spending = charge(model.name, usage, runtime.models.prices)
    if call.end:
        report_usage(runtime.telemetry, model.name, spending, None)
    call_end = CallEnd(number=0, ended=runtime.clock(), usage=dump(spending.row()), price=spending.nanos)
    await runtime.store.users.add_spending(owner, call_end)
