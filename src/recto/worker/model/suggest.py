"""What a user could say next: one call of the model that belongs to no run. Nothing of it is stored but what it took.

A model that cannot be made to call a tool, or fails, suggests nothing: that is no error to whoever chats.
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
from recto.models.ports import CallDelta, CallStarted, Delta, Model, ReasoningDelta, ReplyEnd, TextDelta, Usage, Used
from recto.page.assemble import assemble
from recto.page.facts import Facts, Turn
from recto.page.prompt.suggestion_page import fit_suggestion
from recto.store.ports import CallEnd
from recto.worker.account import charge, report_usage
from recto.worker.runtime import Runtime

LOGGER = logging.getLogger("recto.worker")


@dataclass(kw_only=True)
class ForcedCall:
    """The call of one tool while it comes in: what readers hear of a reply, and what the reply took.

    Words, thoughts and calls of anything else are nobody's here.
    """

    id: str
    message: str
    tool: str
    pieces: list[str] = field(default_factory=list[str])
    usage: Usage | None = None
    end: ReplyEnd | None = None
    _index: int | None = None

    def add(self, delta: Delta) -> Iterator[Event]:
        """One more delta."""
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
            case Used(usage=usage):
                self.usage = usage
            case ReplyEnd():
                self.end = delta
            case _:
                pass

    def close(self) -> Iterator[Event]:
        """What ends it, if it began. A call that is not whole is told all the same: suggestions are read one by one."""
        if self._index is not None:
            yield ToolCallEnded(call=self.id)


async def suggest(
    runtime: Runtime,
    settings: SuggestionSettings,
    owner: str,
    agent: Agent,
    asked: SuggestionInput,
    *,
    say: Callable[[Event], None],
) -> None:
    """Ask the model of an agent for the forced call, and say it while it comes. Cancelling this ends the call."""
    fitting = fit_suggestion(asked, settings.input_tokens, runtime.models.counter)
    if fitting is None or agent.tool_calling == "prompt":
        return
    model = runtime.models.of(agent)
    page, manifest = assemble(_facts(runtime, settings, agent, fitting))
    call = ForcedCall(id=runtime.new_id(), message=runtime.new_id(), tool=asked.tool.name)
    try:
        async with asyncio.timeout(settings.seconds):
            await _listen(model, page.body, agent.limits.reply_characters, call, say)
    except TimeoutError:
        _failed(runtime, ModelUnreachable(model=model.name, problem=f"no answer within {settings.seconds:g} seconds."))
    except ModelError as error:
        _failed(runtime, error)
    except asyncio.CancelledError:
        runtime.telemetry.record_stopped_call(model.name)
        raise
    finally:
        for event in call.close():
            say(event)
        await _pay(runtime, owner, model, call, manifest.tokens.tokens)


async def _listen(model: Model, body: bytes, most: int, call: ForcedCall, say: Callable[[Event], None]) -> None:
    # Closing the stream is what ends the call, so it is closed in any case.
    async with aclosing(cut_short(model.stream(body), most)) as stream:
        async for delta in stream:
            for event in call.add(delta):
                say(event)


def _facts(runtime: Runtime, settings: SuggestionSettings, agent: Agent, asked: SuggestionInput) -> Facts:
    model = runtime.models.of(agent)
    sampling = replace(
        agent.sampling,
        tool_choice=asked.tool.name,
        max_tokens=settings.output_tokens,
        # Thinking is not worth its tokens here, and not every model thinks before a call that it has to make.
        reasoning_effort=None,
        output=None,
    )
    about = (SystemMessage(id="about", text=agent.description),) if agent.description else ()
    return Facts(
        log=(*about, *asked.messages),
        target=model.target,
        tools=(asked.tool,),
        turn=Turn(context=asked.context) if asked.context else None,
        locale=agent.locale,
        options={**agent.options, **model.options_for(sampling, has_tools=True)},
        now=runtime.clock(),
        counter=runtime.models.counter,
    )


def _failed(runtime: Runtime, error: ModelError) -> None:
    LOGGER.warning("no suggestions: %s", error)
    runtime.telemetry.record_failed_call(error.model, error)


async def _pay(runtime: Runtime, owner: str, model: Model, call: ForcedCall, sent: int) -> None:
    """Count what the call took: by the provider's figures, or by our own where it ended before they came."""
    usage = call.end.usage if call.end else None
    if usage is None and (call.pieces or call.usage or call.end):
        written = runtime.models.counter.count(("".join(call.pieces),))[0]
        reported = call.usage or Usage(input=sent)
        usage = replace(reported, output=max(reported.output, written))
    if usage is None:
        return
    spent = charge(model.name, usage, runtime.models.prices)
    if call.end:
        report_usage(runtime.telemetry, model.name, spent, None)
    row = dump(spent.row())
    await runtime.store.users.add_spending(
        owner, CallEnd(number=0, ended=runtime.clock(), usage=row, price=spent.nanos)
    )
