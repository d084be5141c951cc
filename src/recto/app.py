"""The composition root: the only file that wires rooms together. Refuses to hold any other logic."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import random
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path

from fastapi import FastAPI
from prometheus_client import CollectorRegistry, generate_latest

from recto.agents.agent import Agent
from recto.agents.folders import Loaded, Toolbox, load_agents
from recto.api.auth import AuthSettings, Doorman
from recto.api.auth_token import check_binding, is_loopback, local_token
from recto.api.backend import Backend
from recto.api.gate import GateRules
from recto.api.listen import listen
from recto.api.server import make_api
from recto.cli.server_settings import ServerSettings
from recto.engine.dispatch import Dispatcher, DispatchSettings
from recto.engine.hub import Hub, HubSettings
from recto.engine.janitor import keep_clean
from recto.errors import SettingsError
from recto.ids import new_id
from recto.models.backoff import BackoffSettings
from recto.models.choose import choose_model
from recto.models.endpoint import Timeouts
from recto.models.ports import Model
from recto.models.prices import load_prices
from recto.store.cleaning import Retention
from recto.store.folder import DataFolder
from recto.store.ports import Bounds, Claimant
from recto.store.postgres import PostgresSettings
from recto.store.sqlite import SqliteSettings
from recto.store.store import Store, open_store
from recto.telemetry import Telemetry
from recto.tools.load import tools_built_in, tools_of_folder, tools_of_packages
from recto.tools.registry import Registry
from recto.worker.loop import work
from recto.worker.recorder import RecorderSettings
from recto.worker.shelf import Shelf, ShelfSettings
from recto.worker.workshop import Point, Workshop, pass_by

LOGGER = logging.getLogger("recto.app")


@dataclass(frozen=True, kw_only=True)
class Crew:
    """The agents that can work here, with the tools of each and the models they ask for by name."""

    agents: Mapping[str, Agent]
    tools: Mapping[str, Registry]
    models: Mapping[str, Model]


def serve(
    settings: ServerSettings,
    announce: Callable[[str, str | None], None],
    reached: Callable[[Point], None] | None = None,
) -> None:
    """Serve until told to stop. `announce` is told the url and the token; `reached` where runs are, and may end us."""
    check_binding(settings.host, _auth(settings, None).has_accounts)
    folder = DataFolder(settings.data)
    try:
        token = _token(settings)
        crew = _crew(settings)
        doorman, rules = Doorman(_auth(settings, token)), _rules(settings)
        api = make_api(partial(_living, settings, folder, crew, reached), doorman, rules)
        listen(api, settings.host, settings.port, lambda url: announce(url, token), settings.proxies)
    finally:
        folder.close()


def check(settings: ServerSettings) -> Mapping[str, str]:
    """Raise what would keep this server from starting; else what it would serve. Nothing is opened or written."""
    # One is made at the start; what it is does not matter here.
    auth = _auth(settings, settings.token or new_id())
    check_binding(settings.host, auth.has_accounts)
    Doorman(auth)
    _rules(settings)
    crew, prices = _crew(settings), load_prices(settings.prices)
    return {
        "agents": ", ".join(crew.agents),
        "tools": "; ".join(f"{name}: {', '.join(tools) or 'none'}" for name, tools in crew.tools.items()),
        "prices": f"of {prices.as_of}, in {prices.currency}",
    }


def _auth(settings: ServerSettings, token: str | None) -> AuthSettings:
    given = AuthSettings(**{field.name: getattr(settings, field.name) for field in fields(AuthSettings)})
    return replace(given, token=token)


def _token(settings: ServerSettings) -> str | None:
    """The token of this machine's own user. Where there are accounts, only one that was asked for."""
    has_accounts = _auth(settings, None).has_accounts
    return settings.token if has_accounts else local_token(settings.data, settings.token)


def _rules(settings: ServerSettings) -> GateRules:
    return GateRules(
        is_loopback=is_loopback(settings.host),
        public_url=settings.public_url,
        cors_origins=settings.cors_origins,
        user_requests=settings.user_requests,
    )


def _crew(settings: ServerSettings) -> Crew:
    """Everybody who can work. One that cannot is left out and said to be, unless it is the one that answers first."""
    built_in, packages = Registry(tools_built_in()), tools_of_packages()

    @cache
    def of_folder(folder: Path) -> Registry:
        return Registry((*packages, *tools_of_folder(folder)))

    loaded = load_agents(settings.agents, settings.limits, Toolbox(built_in=built_in, of_folder=of_folder))
    agents, models, left_out = _with_models(settings, loaded)
    if settings.agent not in agents:
        known = f"there is none that can work; known: {', '.join(agents)}"
        why = "; ".join(map(str, loaded.broken.get(settings.agent, left_out.get(settings.agent, ()))))
        raise SettingsError(name="agent", value=settings.agent, allowed=f"{known}. {why}".strip(". "))
    tools = {
        name: Registry((*[built_in[tool] for tool in agent.tools], *of_folder(loaded.folders[name]).values()))
        for name, agent in agents.items()
    }
    return Crew(agents=agents, tools=tools, models=models)


def _with_models(
    settings: ServerSettings, loaded: Loaded
) -> tuple[Mapping[str, Agent], Mapping[str, Model], Mapping[str, Sequence[SettingsError]]]:
    """Those whose model can be had, the models they name, and why the others are left out."""
    for problem in (*loaded.problems, *loaded.warnings):
        LOGGER.warning("%s", problem)
    _model(settings, settings.model)
    models: dict[str, Model] = {}
    agents: dict[str, Agent] = {}
    left_out: dict[str, Sequence[SettingsError]] = {}
    for name, agent in loaded.items():
        try:
            if agent.model and agent.model not in models:
                models[agent.model] = _model(settings, agent.model)
            agents[name] = agent
        except SettingsError as error:
            LOGGER.warning("%s: agent %s is left out: %s", loaded.folders[name], name, error)
            left_out[name] = (error,)
    return agents, models, left_out


def _model(settings: ServerSettings, name: str) -> Model:
    return choose_model(name, os.environ, window=settings.window, timeouts=_timeouts(settings))


@asynccontextmanager
async def _living(
    settings: ServerSettings, folder: DataFolder, crew: Crew, reached: Callable[[Point], None] | None, api: FastAPI
) -> AsyncGenerator[None]:
    """Everything that lives as long as the server does."""
    try:
        store = await _store(settings, folder.database_url)
        hub = Hub(store, HubSettings(heartbeat=settings.heartbeat_seconds))
        shop = replace(_workshop(settings, store, hub, crew), reached=reached or pass_by)
        who = Claimant(node=folder.node(), boot=new_id(), lease=timedelta(seconds=settings.lease_seconds))
        dispatch = DispatchSettings(slots=settings.runs, grace=settings.grace_seconds)
        dispatcher = Dispatcher(store, who, partial(work, shop), clock=_now, settings=dispatch)
        await dispatcher.start()
    except Exception as error:
        api.state.failure = error
        raise
    # The first count loads the vocabulary; better now than in somebody's first run.
    warming = asyncio.create_task(asyncio.to_thread(shop.counter.count, ("Recto",)))
    cleaning = asyncio.create_task(keep_clean(partial(_clean, settings, store), settings.cleaning_seconds))
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
        cleaning.cancel()
        with suppress(asyncio.CancelledError):
            await cleaning
        await stop()
        for model in (shop.model, *shop.models.values()):
            await model.aclose()
        await store.close()


async def _store(settings: ServerSettings, fallback: str) -> Store:
    sqlite = SqliteSettings(synchronous=settings.synchronous, waiting=settings.waiting_writes)
    postgres = PostgresSettings(connections=settings.database_connections)
    return await open_store(settings.database_url or fallback, sqlite=sqlite, postgres=postgres)


async def _clean(settings: ServerSettings, store: Store) -> int:
    now = _now()
    events, calls, threads = (
        now - timedelta(days=days) if days else None
        for days in (settings.event_days, settings.call_days, settings.thread_days)
    )
    done = await store.clean(Retention(events_before=events, calls_before=calls, threads_before=threads))
    return sum(asdict(done).values())


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
        metrics=partial(generate_latest, shop.telemetry.registry),
        bounds=Bounds(**{field.name: getattr(settings, field.name) for field in fields(Bounds)}),
        operators=frozenset(name.strip() for name in settings.operators.split(",")),
        clock=_now,
        new_id=new_id,
    )


def _workshop(settings: ServerSettings, store: Store, hub: Hub, crew: Crew) -> Workshop:
    return Workshop(
        store=store,
        hub=hub,
        model=_model(settings, settings.model),
        models=crew.models,
        agents=crew.agents,
        tools=crew.tools,
        prices=load_prices(settings.prices),
        shelf=Shelf(store, ShelfSettings(threads=settings.shelf_threads, entries=settings.shelf_entries)),
        telemetry=Telemetry(CollectorRegistry()),
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


def _now() -> datetime:
    return datetime.now(UTC)
