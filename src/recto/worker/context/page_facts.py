"""The next page of a run: its prompt context, its facts, and the page that is assembled from them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter

from recto.conversation.log import Entry, view
from recto.conversation.messages import UserMessage
from recto.models.prices import cache_prices
from recto.page.assemble import assemble
from recto.page.body import Page
from recto.page.facts import Facts, Turn
from recto.page.manifest import Manifest
from recto.page.steps.compact import is_due, is_full
from recto.skills.known_data import KnownData
from recto.skills.skill import Skill
from recto.worker.context.prompt_context import (
    PromptContext,
    build_prompt_context,
    choose_sampling,
    find_skill,
    load_skill_data,
)
from recto.worker.run_inputs import RunInputs


async def next_page(run: RunInputs, log: tuple[Entry, ...], correction: str = "") -> tuple[Facts, Page, Manifest]:
    """Return the next page of a run, with its facts and manifest. All pages of conversations are made by this function.

    `correction` tells the model why its last reply was unusable.
    """
    context = await prompt_context(run, log)
    page_facts = replace(facts(run, context, log), correction=correction)
    page, manifest = await _assemble(run, page_facts)
    # Use the skill of the context, because the log may name a skill that the agent no longer has.
    return page_facts, page, replace(manifest, skill=context.skill.name if context.skill else None)


def needs_summary(run: RunInputs, log: Sequence[Entry], manifest: Manifest) -> bool:
    """Return True if the page of a log is full and old messages can be summarised."""
    settings = run.compact_settings
    return is_full(manifest.tokens.tokens, settings) and is_due(view(log), settings, run.runtime.models.counter)


async def prompt_context(run: RunInputs, log: Sequence[Entry]) -> PromptContext:
    """Return the prompt and the tools of the next page. Load the data that a skill declares on first use."""
    run.pages.use_tools(run.runtime.tools.registries.get(run.agent.name, run.pages.tools))
    change = view(log).skill
    skill = find_skill(run.agent.skills, change)
    if skill is None or change is None:
        return build_prompt_context(run.agent, run.pages.tools, run.request)
    return await load_skill_context(run, skill, change.scenario, change.said)


async def load_skill_context(
    run: RunInputs, skill: Skill, scenario: str | None, triggers: tuple[str, ...] = ()
) -> PromptContext:
    """Return the context of a skill, with its data of the user. `triggers` are the words that activated it."""
    pages, key = run.pages, (skill.name, scenario, triggers)
    while key not in pages.contexts:
        version = pages.profile_version
        data = await load_skill_data(run.runtime.store, run.row.owner, skill, _request_data(run, scenario))
        if pages.profile_version != version:
            # A tool changed the profile while the data was loaded, so the data may be outdated. Load it again.
            continue
        context = build_prompt_context(run.agent, pages.tools, run.request, skill, data, triggers=triggers)
        # Also store the context under the chosen scenario, because the log will name that scenario.
        pages.add_contexts({key: context, (skill.name, data.scenario, triggers): context})
    return pages.contexts[key]


def _request_data(run: RunInputs, scenario: str | None) -> KnownData:
    day = run.row.created.astimezone(run.zone).date()
    return KnownData(
        tier=run.row.tier,
        scenario=scenario,
        month=f"{day:%Y-%m}",
        day=day.isoformat(),
        thread=run.row.thread,
        locale=run.agent.locale,
    )


def facts(run: RunInputs, context: PromptContext, log: tuple[Entry, ...]) -> Facts:
    """Return the facts from which the next page is made."""
    log_view, agent, pages, models = view(log), run.agent, run.pages, run.runtime.models
    sampling = choose_sampling(agent, log_view, context.tools)
    has_tools = agent.tool_calling != "prompt" and bool(context.tools)
    user = log_view.messages[log_view.turn_start] if log_view.turn_start < len(log_view.messages) else None
    turn = Turn(
        response_id=user.response_id if isinstance(user, UserMessage) else "",
        admitted_at=user.time if user else None,
        zone=run.zone,
        datasets=run.datasets,
        context=context.items,
    )
    target = run.target
    return Facts(
        log=log,
        target=target,
        prompt=context.prompt,
        budget=context.budget,
        history=context.history,
        tools=context.tools,
        tool_calling=agent.tool_calling or "native",
        call_form=agent.call_form,
        turn=turn,
        quote=pages.quote or (),
        quote_budget=agent.file_input.quote_tokens,
        urls=pages.files.urls,
        pictures=pages.files.pictures,
        max_files=agent.file_input.max_files,
        locale=agent.locale,
        options={**run.model.options_for(sampling, has_tools=has_tools), **agent.options},
        fold=run.fold,
        cache_prices=cache_prices(
            run.model.name, pages.calibration.reported_count if pages.calibration else 0, models.prices
        ),
        sent_to=target.model if pages.last_model == run.model.name else pages.last_model,
        now=run.runtime.clock(),
        counter=models.counter,
        last=pages.calibration,
    )


async def _assemble(run: RunInputs, page_facts: Facts) -> tuple[Page, Manifest]:
    """Assemble a page.

    If a long log has no remembered pages, assemble in a thread, so that other runs are not blocked.
    """

    def assemble_timed() -> tuple[Page, Manifest]:
        start = perf_counter()
        result = assemble(page_facts)
        run.runtime.telemetry.page.record_page_time(perf_counter() - start)
        return result

    if not run.pages.is_cold:
        return assemble_timed()
    gate = run.runtime.models.page_gate
    # Assemble one page at a time, because several threads would take the interpreter from the event loop.
    await gate.acquire()
    assembling = asyncio.ensure_future(asyncio.to_thread(assemble_timed))
    # Release the gate when the thread ends, because cancelling this coroutine does not stop the thread.
    assembling.add_done_callback(lambda _: gate.release())
    result = await asyncio.shield(assembling)
    run.pages.note_warm()
    return result
