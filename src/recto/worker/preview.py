"""The page that a run would send first (X1), set as any other. Nothing is sent, stored, or kept for later pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from recto.conversation.attachment import FileRef
from recto.conversation.input.run_input import RunInput
from recto.conversation.input.take_input import pending_calls
from recto.conversation.log import Entry, view
from recto.conversation.messages import ToolMessage
from recto.conversation.next_step import CallModel, Compact, Finished, RunTools, next_step
from recto.engine.ports import NextStep, Preview, Signal
from recto.page.text.tokens import known_tokens, note_tokens
from recto.store.ports import StoredRun
from recto.tools.ports import discard_progress
from recto.worker.context.quoted import quoted
from recto.worker.load_run import log_query, skill_asked_for, take_up
from recto.worker.page_inputs import PageInputs
from recto.worker.run_state import RunState, snapshot
from recto.worker.runtime import Runtime

FULL = "The page has no room: a run would have what is old summarised first, and send another page."
ACTS = "The tool {name} would act on the client's answer first; here the answer stands in the place of its result."
BEFORE = {
    "run_tools": "A run would run tools first; this page has no results of them.",
    "wait_for_client": "A run would wait for the results of the client's calls, and send nothing.",
    "finished": "There is nothing to answer: a run would end, and send nothing.",
}


async def preview(runtime: Runtime, row: StoredRun, asked: RunInput, refs: Sequence[FileRef] = ()) -> Preview:
    """The page of a run that has `row` and is not stored. `refs` are the files its request brings."""
    cached = await runtime.log_cache.take(log_query(runtime, row))
    # Messages remember their pages: those of the thread are to remember only what was sent.
    log = _copied(cached.entries, runtime.counter.name)
    inputs, entries = await take_up(runtime, row, asked, replace(cached, entries=log, model=""))
    inputs.calibrate(cached.last if cached.model == inputs.model.name else None)
    inputs.note_sent(cached.model)
    notes = list(_acting(inputs, log, entries))
    log = (*log, *entries, *skill_asked_for(inputs, log, entries))
    await inputs.load(log, [ref for ref in refs if not (inputs.goes_on and _is_of_turn(ref, row))])
    files = inputs.tool_files(log) if inputs.files.refs else None
    inputs.take_quote(await quoted(inputs.agent, files, runtime.counter, discard_progress, runtime.quoting))
    _, page, manifest = await inputs.next_page(log)
    state = RunState.of(row, inputs.agent.limits, Signal(), runtime.clock)
    step = _step(next_step(log, snapshot(state, inputs)))
    if step == "call_model" and inputs.needs_summary(log, manifest):
        step = "compact"
    notes += [FULL] if step == "compact" else [BEFORE[step]] if step in BEFORE else []
    return Preview(page=page, manifest=manifest, model=inputs.model.name, next=step, notes=tuple(notes))


def _copied(entries: Sequence[Entry], counter: str) -> tuple[Entry, ...]:
    """The same entries, which remember nothing but what they count."""
    copies = tuple([replace(entry) for entry in entries])
    for entry, copy in zip(entries, copies, strict=True):
        if (tokens := known_tokens(entry, counter)) is not None:
            note_tokens(copy, counter, tokens)
    return copies


def _acting(inputs: PageInputs, log: Sequence[Entry], entries: Sequence[Entry]) -> Iterator[str]:
    """What is left undone: tools that act on a client's answer may store what it says."""
    calls = {call.id: call for call in pending_calls(view(log), inputs.tools.own_names())}
    for entry in entries:
        call = calls.get(entry.tool_call_id) if isinstance(entry, ToolMessage) else None
        tool = inputs.tools.get(call.name) if call and call.runner != "client" else None
        if tool and tool.mark.by_client:
            yield ACTS.format(name=tool.name)


def _is_of_turn(ref: FileRef, row: StoredRun) -> bool:
    """Whether a file id was made for a turn that is not opened, as the turn before goes on."""
    return ref.id.rpartition("-")[0] == row.response_id


def _step(step: object) -> NextStep:
    match step:
        case CallModel():
            return "call_model"
        case Compact():
            return "compact"
        case RunTools():
            return "run_tools"
        case Finished():
            return "finished"
        case _:
            return "wait_for_client"
