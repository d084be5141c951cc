"""Preview of the page that a run would send first (X1). Nothing is sent or stored, or kept for later pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from recto.conversation.input.input_entries import pending_calls
from recto.conversation.input.run_input import RunInput
from recto.conversation.log import Entry, view
from recto.conversation.message_files import FileRef
from recto.conversation.messages import ToolMessage
from recto.conversation.next_step import CallModel, Compact, Finished, RunTools, next_step
from recto.engine.ports import NextStep, Preview, Signal
from recto.page.text.tokens import known_tokens, note_tokens
from recto.store.ports import StoredRun
from recto.tools.ports import discard_progress
from recto.worker.context.page_facts import needs_summary, next_page
from recto.worker.context.quote import build_quote
from recto.worker.load_run import log_query, prepare_inputs, skill_changes
from recto.worker.run_inputs import RunInputs
from recto.worker.run_state import RunState, snapshot
from recto.worker.runtime import Runtime

FULL = "The page has no room: a run would summarise old messages first and send another page."
ACTS = "The tool {name} would act on the client's answer first; this page shows the answer in place of its result."
BEFORE = {
    "run_tools": "A run would run tools first; this page has no results of them.",
    "wait_for_client": "A run would wait for the results of the client's calls, and send nothing.",
    "finished": "There is nothing to answer: a run would end, and send nothing.",
}


async def preview(runtime: Runtime, row: StoredRun, request: RunInput, refs: Sequence[FileRef] = ()) -> Preview:
    """Return the page of a run that is not stored. `refs` are the files of its request."""
    cached = await runtime.log_cache.read(log_query(runtime, row))
    # Messages remember their pages, and those of the thread must remember only pages that were sent.
    log = _copy(cached.entries, runtime.models.counter.name)
    inputs, entries = await prepare_inputs(runtime, row, request, replace(cached, entries=log, model=""))
    pages = inputs.pages
    pages.calibrate(cached.calibration if cached.model == inputs.model.name else None)
    pages.note_sent(cached.model)
    notes = list(_unperformed_actions(inputs, log, entries))
    log = (*log, *entries, *skill_changes(inputs, log, entries))
    # A run that continues a turn does not use the file ids that admission made for a new turn.
    new = [ref for ref in refs if not (inputs.continues_turn and ref.id.rpartition("-")[0] == row.response_id)]
    await inputs.load_files(log, new)
    files = inputs.open_tool_files(log) if pages.files.refs else None
    models = runtime.models
    pages.use_quote(await build_quote(inputs.agent, files, models.counter, discard_progress, models.quote_gate))
    _, page, manifest = await next_page(inputs, log)
    state = RunState.of(row, inputs.agent.limits, Signal(), runtime.clock)
    step = _name_of(next_step(log, snapshot(state, inputs)))
    if step == "call_model" and needs_summary(inputs, log, manifest):
        step = "compact"
    notes += [FULL] if step == "compact" else [BEFORE[step]] if step in BEFORE else []
    return Preview(page=page, manifest=manifest, model=inputs.model.name, next=step, notes=tuple(notes))


def _copy(entries: Sequence[Entry], counter: str) -> tuple[Entry, ...]:
    """Return copies of entries that remember only their token counts."""
    copies = tuple([replace(entry) for entry in entries])
    for entry, copy in zip(entries, copies, strict=True):
        if (tokens := known_tokens(entry, counter)) is not None:
            note_tokens(copy, counter, tokens)
    return copies


def _unperformed_actions(inputs: RunInputs, log: Sequence[Entry], entries: Sequence[Entry]) -> Iterator[str]:
    """Yield a note for each tool that would act on a client's answer."""
    tools = inputs.pages.tools
    calls = {call.id: call for call in pending_calls(view(log), tools.own_names())}
    for entry in entries:
        call = calls.get(entry.tool_call_id) if isinstance(entry, ToolMessage) else None
        tool = tools.get(call.name) if call and call.runner != "client" else None
        if tool and tool.mark.by_client:
            yield ACTS.format(name=tool.name)


def _name_of(step: object) -> NextStep:
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
