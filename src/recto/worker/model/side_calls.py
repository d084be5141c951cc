"""Model calls outside the conversation: for its summary (R13) and for the title of its thread.

They are stored and charged. If they fail, the run continues.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from statistics import mode

from recto.agents.spoken_language import language_of
from recto.conversation.events import StepFinished, StepStarted
from recto.conversation.json import dump
from recto.conversation.locale import language
from recto.conversation.log import Compacted, Entry, View, view
from recto.conversation.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    Text,
    UnreadMessages,
    UserMessage,
    texts_of,
)
from recto.conversation.title import title_from
from recto.errors import ModelError, ModelUnreachable
from recto.models.deltas import cut_short
from recto.models.faults import delay
from recto.models.ports import Model, ReplyEnd, TextDelta, Usage
from recto.page.assemble import assemble
from recto.page.facts import Facts
from recto.page.prompt.summarise import summary_pieces, summary_request
from recto.page.steps.compact import place_to_cut, to_summarise
from recto.store.ports import CallEnd, Purpose, RunChange
from recto.tools.ports import Progress
from recto.worker.account import Account, report_usage
from recto.worker.model.call_model import begin_call, note_fault
from recto.worker.run_spans import begin_model_call, note_reply, note_retry
from recto.worker.run_state import LoadedRun
from recto.worker.tools.tool_context import ProgressReporter

LOGGER = logging.getLogger("recto.worker")
COMPACT = "compact"
TITLE_PROMPT = {
    "zh": "给下面的对话起一个标题，不超过十二个字。只写标题，不要引号，不要句号。",
    "en": "Give the conversation below a title of at most six words. Write the title alone: no quotes, no full stop.",
}
DIALOGUE = {"zh": "用户：{user}\n\n助手：{answer}", "en": "User: {user}\n\nAssistant: {answer}"}
# Time limit for a title. The answer is already complete, so a title is not worth a longer delay.
TITLE_SECONDS = 10.0
QUOTES = " \n\"'“”「」《》.。"
# Maximum characters of the question and of the answer in a request for a title.
TITLE_CHARACTERS = 2_000


@dataclass(kw_only=True)
class SideReply:
    """The reply to a side call. A finished one has an `end` or an `error`."""

    words: list[str] = field(default_factory=list[str])
    end: ReplyEnd | None = None
    error: ModelError | None = None

    @property
    def text(self) -> str:
        """The complete text."""
        return "".join(self.words)


async def side_call(
    run: LoadedRun, request: Sequence[Message], purpose: Purpose, seconds: float | None = None
) -> SideReply:
    """Send a request and return the complete reply. `seconds` limits the time."""
    model, agent, runtime = run.inputs.model, run.inputs.agent, run.runtime
    options = {**model.options, **agent.options}
    facts = Facts(log=request, target=model.target, options=options, counter=runtime.models.counter)
    page, manifest = assemble(facts)
    number = await begin_call(run, page, manifest, purpose)
    try:
        with begin_model_call(run.span, model.name, number, purpose, manifest) as span:
            async with asyncio.timeout(seconds):
                reply = await _collect(model, page.body, agent.limits.reply_characters)
            if reply.error:
                span.fail(type(reply.error).__name__)
            elif reply.end:
                note_reply(span, reply.end.finish, Account(usage=reply.end.usage or Usage(), price=None), None)
    except TimeoutError:
        reply = SideReply(error=ModelUnreachable(model=model.name, problem=f"no answer within {seconds:g} seconds."))
    except asyncio.CancelledError:
        await run.writer.write(RunChange(call_end=CallEnd(number=number, ended=runtime.clock(), error="broken off")))
        raise
    await run.writer.write(_end_call(run, number, reply))
    return reply


async def _collect(model: Model, body: bytes, max_characters: int) -> SideReply:
    reply = SideReply()
    try:
        async with aclosing(cut_short(model.stream(body), max_characters)) as stream:
            async for delta in stream:
                if isinstance(delta, TextDelta):
                    reply.words.append(delta.text)
                elif isinstance(delta, ReplyEnd):
                    reply.end = delta
    except ModelError as error:
        reply.error = error
    return reply


def _end_call(run: LoadedRun, number: int, reply: SideReply) -> RunChange:
    runtime, model = run.runtime, run.inputs.model.name
    call_end = CallEnd(number=number, ended=runtime.clock())
    if reply.error:
        note_fault(run, reply.error)
        return RunChange(call_end=replace(call_end, error=str(reply.error)))
    usage = reply.end.usage if reply.end else None
    spending = run.state.spend(model, usage, runtime.models.prices)
    report_usage(runtime.telemetry, model, spending, None)
    call_end = replace(
        call_end,
        finish=reply.end.finish if reply.end else None,
        usage=dump(spending.row()) if usage else None,
        price=spending.nanos,
    )
    return RunChange(call_end=call_end, usage=dump(run.state.account.row()))


def needs_title(run: LoadedRun) -> bool:
    """Return True at the end of a thread's first turn, once, if the agent's model writes its titles."""
    users = sum(1 for message in view(run.writer.log).messages if isinstance(message, (UserMessage, UnreadMessages)))
    is_due = users == 1 and not run.state.is_named and not run.inputs.request.compact
    return run.inputs.agent.titles == "model" and is_due


async def name_thread(run: LoadedRun) -> None:
    """Ask the model for a title and store it, unless a user has named the thread."""
    run.state.note_named()
    request = build_title_request(run.writer.log, run.inputs.agent.locale)
    reply = await side_call(run, request, "title", TITLE_SECONDS)
    title = title_from(reply.text.strip(QUOTES)) if reply.end else None
    if title:
        await run.runtime.store.threads.set_title_if_automatic(run.state.row.thread, title)


def build_title_request(log: tuple[Entry, ...], locale: str) -> tuple[Message, ...]:
    """Return the instruction, and the first question with the last answer."""
    messages, lang = view(log).messages, language(locale)
    users = ["\n".join(texts_of(message)) for message in messages if isinstance(message, UserMessage)]
    answers = ["\n".join(texts_of(message)) for message in messages if isinstance(message, AssistantMessage)]
    user, answer = next(iter(users), ""), next((text for text in reversed(answers) if text), "")
    text = DIALOGUE[lang].format(user=user[:TITLE_CHARACTERS], answer=answer[:TITLE_CHARACTERS])
    return SystemMessage(id="title", text=TITLE_PROMPT[lang]), UserMessage(id="said", parts=(Text(text=text),))


async def compact(run: LoadedRun) -> None:
    """Summarise old messages. If the model writes no summary after `compactions` tries, continue without a summary."""
    run.state.note_full(is_full=False)
    runtime, writer, pages = run.runtime, run.writer, run.inputs.pages
    if pages.history is not None:
        # Load the unread part of the log, which must be summarised too.
        await writer.load_all()
    log_view = view(writer.log)
    place = place_to_cut(log_view, run.inputs.compact_settings, runtime.models.counter)
    if place is None:
        await _skip(run, "there is too little to summarise")
        return
    # A summary may take a minute, so store the input and the start of the run first, and show progress.
    await writer.flush()
    writer.emit_soon(StepStarted(step=COMPACT))
    try:
        summary = await _write_summary(run, log_view, to_summarise(log_view, place))
    finally:
        # The next write includes this event. After a crash, the next worker ends the step.
        writer.emit_soon(StepFinished(step=COMPACT))
    if summary is None:
        await _skip(run, "the model gave no summary")
        return
    upto, now = log_view.messages[place].id, runtime.clock()
    marker = Compacted(id=runtime.new_id(), time=now, upto=upto, summary=summary)
    runtime.checkpoint("summarised")
    await writer.write(RunChange(entries=(marker,)))
    runtime.checkpoint("compacted")
    # The next page has different content, so the reported tokens of the last page do not apply to it.
    pages.calibrate(None)


async def _skip(run: LoadedRun, problem: str) -> None:
    id = run.state.row.id
    LOGGER.info("run %s is not compacted: %s", id, problem, extra={"run": id})
    run.state.give_up_compacting()
    await run.writer.write(RunChange(can_compact=False))


async def _write_summary(run: LoadedRun, log_view: View, messages: Sequence[Message]) -> str | None:
    """Extend the last summary over messages, piece by piece. Return None if the model writes no summary."""
    agent, counter = run.inputs.agent, run.runtime.models.counter
    # Use the language of most user messages. On a tie, use the language of the newest.
    users = [message for message in reversed(log_view.messages) if isinstance(message, UserMessage)]
    languages = [name for message in users if (name := language_of(" ".join(texts_of(message))))]
    settings = replace(agent.summary, locale=mode(languages) if languages else agent.summary.locale)
    pieces = summary_pieces(messages, settings=settings, counter=counter)
    reporter = ProgressReporter(run.writer.emit_soon, f"{run.state.row.id}-{COMPACT}", run.runtime.clock)
    progress = Progress(label=COMPACT, done=0, total=len(pieces), unit="pieces")
    summary = log_view.compaction.summary if log_view.compaction else None
    try:
        for done, piece in enumerate(pieces):
            reporter(replace(progress, done=done))
            request = summary_request(piece, so_far=summary, settings=settings, counter=counter)
            summary = await _request_summary(run, request)
            if summary is None:
                return None
        reporter(replace(progress, done=len(pieces)))
    finally:
        reporter.end()
    return summary


async def _request_summary(run: LoadedRun, request: Sequence[Message]) -> str | None:
    models = run.runtime.models
    for failures in range(1, run.state.limits.compactions + 1):
        reply = await side_call(run, request, "summary")
        finish = reply.end.finish if reply.end else None
        if reply.text and finish == "stop":
            return reply.text
        if reply.error and not reply.error.may_retry:
            return None
        retry_after = reply.error.retry_after if reply.error else None
        wait = delay(failures, retry_after, models.random(), models.backoff)
        note_retry(run.span, type(reply.error).__name__ if reply.error else str(finish), failures, wait)
        await asyncio.sleep(min(wait, run.state.seconds_left))
    return None
