"""The composition root: the only file that wires rooms together. Refuses to hold any other logic."""

from __future__ import annotations

import asyncio
import gc
import os
import random
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from recto.agents.agent import Agent
from recto.agents.folders import load_agents
from recto.api.backend import Backend
from recto.api.listen import listen
from recto.api.server import make_api
from recto.cli.server_settings import ServerSettings
from recto.engine.dispatch import Dispatcher, DispatchSettings
from recto.engine.hub import Hub, HubSettings
from recto.errors import RectoError, SettingsError
from recto.ids import new_id
from recto.models.backoff import BackoffSettings
from recto.models.choose import choose_model
from recto.models.endpoint import Timeouts
from recto.models.ports import Model
from recto.store.folder import DataFolder
from recto.store.ports import Claimant
from recto.store.postgres import PostgresSettings
from recto.store.sqlite import SqliteSettings
from recto.store.store import Store, open_store
from recto.telemetry import PageTelemetry
from recto.tools.load import tools_built_in, tools_of_folder, tools_of_packages
from recto.tools.registry import Registry
from recto.worker.loop import work
from recto.worker.recorder import RecorderSettings
from recto.worker.shelf import Shelf, ShelfSettings
from recto.worker.workshop import Point, Workshop, pass_by


def serve(
    settings: ServerSettings, announce: Callable[[str], None], reached: Callable[[Point], None] | None = None
) -> None:
    """Serve until told to stop. `announce` is told the url once; `reached` where runs are, and may end the process."""
    folder = DataFolder(settings.data)
    try:
        check(settings)
        api = make_api(lifespan=partial(_living, settings, folder, reached))
        listen(api, settings.host, settings.port, announce)
    finally:
        folder.close()


def check(settings: ServerSettings) -> None:
    """Raise what would keep this server from starting, before anything is opened."""
    choose_model(settings.model, os.environ)
    agents = load_agents(settings.agents, settings.limits)
    _tools(settings, agents)
    if settings.agent not in agents:
        raise SettingsError(name="agent", value=settings.agent, allowed=f"there is none; known: {', '.join(agents)}")


@asynccontextmanager
async def _living(
    settings: ServerSettings, folder: DataFolder, reached: Callable[[Point], None] | None, api: FastAPI
) -> AsyncGenerator[None]:
    """Everything that lives as long as the server does."""
    try:
        store = await _store(settings, folder)
    except RectoError as error:
        api.state.failure = error
        raise
    hub = Hub(store, HubSettings(heartbeat=settings.heartbeat_seconds))
    model = choose_model(settings.model, os.environ, window=settings.window, timeouts=_timeouts(settings))
    shop = replace(_workshop(settings, store, hub, model), reached=reached or pass_by)
    who = Claimant(node=folder.node(), boot=new_id(), lease=timedelta(seconds=settings.lease_seconds))
    dispatch = DispatchSettings(slots=settings.runs, grace=settings.grace_seconds)
    dispatcher = Dispatcher(store, who, partial(work, shop), clock=_now, settings=dispatch)
    await dispatcher.start()
    # The first count loads the vocabulary; better now than in somebody's first run.
    warming = asyncio.create_task(asyncio.to_thread(shop.counter.count, ("Recto",)))
    api.state.backend = _backend(settings, shop, dispatcher)

    async def stop() -> None:
        await dispatcher.stop()
        hub.close()

    api.state.stop = stop
    # What is here now stays: looking through it again and again would hold up every stream for a tenth of a second.
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        await warming
        await stop()
        await model.aclose()
        await store.close()


async def _store(settings: ServerSettings, folder: DataFolder) -> Store:
    sqlite = SqliteSettings(synchronous=settings.synchronous, waiting=settings.waiting_writes)
    postgres = PostgresSettings(connections=settings.database_connections)
    return await open_store(settings.database_url or folder.database_url, sqlite=sqlite, postgres=postgres)


def _backend(settings: ServerSettings, shop: Workshop, dispatcher: Dispatcher) -> Backend:
    return Backend(
        store=shop.store,
        hub=shop.hub,
        agent=settings.agent,
        agents=shop.agents,
        tool_names={name: frozenset(tools) for name, tools in shop.tools.items()},
        admit=dispatcher.admit,
        cancel=dispatcher.cancel,
        problem=lambda: shop.store.problem or dispatcher.problem,
        clock=_now,
        new_id=new_id,
    )


def _workshop(settings: ServerSettings, store: Store, hub: Hub, model: Model) -> Workshop:
    agents = load_agents(settings.agents, settings.limits)
    return Workshop(
        store=store,
        hub=hub,
        model=model,
        agents=agents,
        tools=_tools(settings, agents),
        shelf=Shelf(store, ShelfSettings(threads=settings.shelf_threads, entries=settings.shelf_entries)),
        telemetry=PageTelemetry(CollectorRegistry()),
        clock=_now,
        chance=random.random,
        new_id=new_id,
        backoff=BackoffSettings(base=settings.retry_seconds, retry_after_cap=settings.retry_after_seconds),
        recorder=RecorderSettings(interval=settings.event_seconds, characters=settings.event_characters),
    )


def _timeouts(settings: ServerSettings) -> Timeouts:
    return Timeouts(
        connect=settings.model_connect_seconds,
        first_byte=settings.model_first_byte_seconds,
        between_bytes=settings.model_between_seconds,
    )


def _tools(settings: ServerSettings, agents: Mapping[str, Agent]) -> Mapping[str, Registry]:
    """Each agent's tools: those built in that it names, those of installed packages, those of its own folder."""
    built_in, packages = Registry(tools_built_in()), tools_of_packages()
    own = {name: tools_of_folder(settings.agents / name) if settings.agents else () for name in agents}
    return {
        name: Registry((*[built_in[tool] for tool in agent.tools], *packages, *own[name]))
        for name, agent in agents.items()
    }


def _now() -> datetime:
    return datetime.now(UTC)
