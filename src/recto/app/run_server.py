"""A server from its settings: what lives as long as it does, and in which order it begins and ends."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import random
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from functools import partial
from threading import Event

from prometheus_client import CollectorRegistry, generate_latest

from recto.api.access.auth import Authenticator, local_token
from recto.api.access.gate import GateRules
from recto.api.access.rate import is_loopback
from recto.api.backend import Backend
from recto.api.copilotkit.suggestions import Suggestions
from recto.api.files.attachments import ATTACHMENTS
from recto.api.gateway.relayed_response import OpenCalls
from recto.api.listen import listen
from recto.api.router import Api
from recto.api.runs.streams import OpenStreams
from recto.api.server import make_api
from recto.api.web_page import ASSETS
from recto.app.agents import AgentsAndModels, load_agents_and_models, make_terminal, model_of, network_of, upstreams_of
from recto.app.check_server import check_values
from recto.app.external import make_live_tools
from recto.app.files import (
    Address,
    Library,
    make_file_services,
    make_library,
    make_outbound,
    make_signer,
    now,
    open_files,
)
from recto.app.thread_folders import make_workspaces
from recto.config.run_settings import (
    CleaningSettings,
)
from recto.config.settings import ServerSettings
from recto.config.zones import zone_of_server
from recto.engine.dispatch import Dispatcher
from recto.engine.hub import Hub
from recto.engine.janitor import run_cleanup
from recto.files.signing import FILES, Signer
from recto.ids import new_id
from recto.models.endpoint import EndpointModel
from recto.models.prices import load_prices
from recto.models.upstream import Upstream
from recto.models.wire_protocol import ProviderSdk
from recto.store.database.folder import DataFolder
from recto.store.ports import Claimant
from recto.store.store import Store, open_store
from recto.store.threads.cleaning import Retention
from recto.telemetry import Telemetry
from recto.tools.client_schema import Schemas
from recto.tools.external.live_tools import LiveTools, OfEach
from recto.tools.registry import Registry
from recto.tools.workspace.snapshots import Snapshots
from recto.tools.workspace.workspaces import sweep_workspaces
from recto.tracing.otlp import open_tracer
from recto.tracing.spans import Tracer
from recto.worker.context.thread_files import FileServices
from recto.worker.gateway.gateway_memory import GatewayMemory
from recto.worker.gateway.relay import Gateway, GatewayParts
from recto.worker.log_cache import LogCache
from recto.worker.loop import work
from recto.worker.model.suggest import suggest
from recto.worker.preview import preview
from recto.worker.runtime import (
    Checkpoint,
    ModelServices,
    Runtime,
    ToolServices,
    forget_deleted,
    ignore_checkpoint,
)

LOGGER = logging.getLogger("recto.app")
# New objects after which cycles among them are looked for.
GARBAGE_OBJECTS = 50_000
# How long a thread may keep the interpreter while another wants it.
SWITCH_SECONDS = 0.001


def serve(
    settings: ServerSettings,
    announce: Callable[[str, str | None], None],
    stop: Event | None = None,
    checkpoint: Callable[[Checkpoint], None] | None = None,
    *,
    gateway_only: bool = False,
) -> None:
    """Serve until stopped. `announce` gets the url and the token; `reached` is where runs are, and may end us.

    With `stop` it is served in a thread of a program that does other things, which says so by that. With `gateway_only`
    no agents are served and no runs worked on.
    """
    check_values(settings)
    folder = DataFolder(settings.data)
    try:
        made = make_application(settings, folder, checkpoint or ignore_checkpoint, gateway_only=gateway_only)

        def announced(url: str) -> None:
            made.address.learn(settings, url)
            # One that only relays has no agents to talk to.
            if not gateway_only:
                folder.write_address(url)
            announce(url, made.token)

        listen(made.api, settings.host, settings.port, announced, settings.connections, stop=stop)
    finally:
        folder.close()


@dataclass(frozen=True, kw_only=True)
class Application:
    """A server that does not listen yet: what answers, where it is, and the token of this machine's own user."""

    api: Api
    address: Address
    token: str | None


def make_application(
    settings: ServerSettings,
    folder: DataFolder,
    checkpoint: Callable[[Checkpoint], None],
    *,
    gateway_only: bool = False,
) -> Application:
    """All of a server but its socket. What lives as long as it does begins and ends with the lifespan of `api`."""
    token, address = _token(settings), Address.of(settings)
    plan = Plan(
        settings=settings,
        folder=folder,
        available=load_agents_and_models(settings),
        upstreams=upstreams_of(settings, gateway_only=gateway_only),
        signer=make_signer(settings, settings.data, address),
        checkpoint=checkpoint,
        tracer=open_tracer(settings.traces, os.environ),
    )
    auth = Authenticator(
        replace(settings.auth, token=token), takes_callers=settings.gateway.takes_callers, network=network_of(settings)
    )
    api = make_api(partial(_living, plan), auth, _rules(settings), gateway_only=gateway_only)
    return Application(api=api, address=address, token=token)


def _token(settings: ServerSettings) -> str | None:
    """The token of this machine's own user. Where there are accounts, only one that was asked for."""
    token = settings.auth.token
    return token if settings.auth.has_accounts else local_token(settings.data, token)


def _rules(settings: ServerSettings) -> GateRules:
    return GateRules(
        **vars(settings.gate),
        is_loopback=is_loopback(settings.host),
        open_prefixes=(FILES, ASSETS),
        multipart_paths=frozenset({ATTACHMENTS}),
    )


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is known before anything is opened."""

    settings: ServerSettings
    folder: DataFolder
    available: AgentsAndModels
    upstreams: Mapping[ProviderSdk, Upstream]
    signer: Signer
    checkpoint: Callable[[Checkpoint], None]
    tracer: Tracer


@asynccontextmanager
async def _living(plan: Plan, api: Api) -> AsyncGenerator[None]:
    """Everything that lives as long as the server does."""
    settings = plan.settings
    try:
        store = await _store(settings, plan.folder.database_url)
        storage = await open_files(settings, store, plan.folder.node())
        library = make_library(settings)
        services = make_file_services(settings, storage, store, plan.signer, library)
        schemas = Schemas(settings.schemas)
        tools = make_live_tools(settings, plan.available.agents, plan.available.tools, schemas)
        runtime = _runtime(plan, store, services, tools, schemas)
        dispatcher = _dispatcher(plan, runtime)
        await dispatcher.start()
    except Exception as error:
        api.state.failure = error
        raise
    tools.start()
    gateway = _gateway(plan, runtime)
    jobs = _cleaning(settings, runtime, gateway)
    cleaning = asyncio.create_task(run_cleanup(jobs, settings.cleaning.cleaning_seconds))
    backend = api.state.backend = _with_tools(_backend(settings, runtime, services, dispatcher, gateway), tools)
    runtime.telemetry.watch(streams=lambda: backend.streams.count, active=lambda: dispatcher.active)

    async def stop() -> None:
        api.state.backend.suggestions.stop()
        await dispatcher.stop()
        # While there is a store to delete from what they have left.
        await api.state.backend.uploading.stop()
        runtime.hub.close()

    api.state.stop = stop
    _settle()
    try:
        yield
    finally:
        cleaning.cancel()
        with suppress(asyncio.CancelledError):
            await cleaning
        await stop()
        await tools.stop()
        await _close(runtime, library, gateway)


def _settle() -> None:
    # What is here now stays: looking through it again and again would hold up every stream for a tenth of a second.
    # What little of it is garbage (some thousand objects of the modules' own making) is not worth that once either.
    gc.freeze()
    gc.enable()
    # JSON has no cycles to look for: by default the objects of one body would be looked through again and again.
    gc.set_threshold(GARBAGE_OBJECTS)
    # Whoever asks the database lets go of the interpreter with each statement: a thread that computes, such as a tool,
    # would keep it for five milliseconds each time, and a run has two dozen statements.
    sys.setswitchinterval(SWITCH_SECONDS)


async def _close(runtime: Runtime, library: Library, gateway: Gateway) -> None:
    """What others work with ends last."""
    await gateway.aclose()
    if runtime.tools.terminal:
        await runtime.tools.terminal.close()
    await library.close()
    for model in runtime.models.all:
        await model.aclose()
    await runtime.store.close()
    await runtime.tracer.close()


def _dispatcher(plan: Plan, runtime: Runtime) -> Dispatcher:
    settings = plan.settings.dispatch
    lease = timedelta(seconds=settings.lease)
    who = Claimant(node=plan.folder.node(), boot=new_id(), lease=lease, share=settings.slots_of_user)
    return Dispatcher(runtime.store.runs, who, partial(work, runtime), clock=now, settings=settings)


async def _store(settings: ServerSettings, fallback: str) -> Store:
    return await open_store(settings.database_url or fallback, sqlite=settings.sqlite, postgres=settings.postgres)


def _cleaning(
    settings: ServerSettings, runtime: Runtime, gateway: Gateway
) -> Mapping[str, Callable[[], Awaitable[int]]]:
    services = runtime.files
    files = {"files": services.attachments.clean} if services else {}
    documents = services.documents if services else None
    texts = {"texts": partial(documents.clean, runtime.store.files.find_blobs)} if documents else {}
    folders = partial(sweep_workspaces, settings.workspaces_folder, runtime.store.threads.find_existing)
    snapshots = partial(sweep_workspaces, settings.snapshots_folder, runtime.store.threads.find_existing)
    memory = {"threads in memory": partial(forget_deleted, runtime, gateway.parts.memory)}
    rows = {"rows": partial(_clean_rows, settings.cleaning, runtime.store)}
    return {**rows, **files, **texts, "workspaces": folders, "snapshots": snapshots, **memory}


async def _clean_rows(settings: CleaningSettings, store: Store) -> int:
    at = now()
    events, calls, threads = (
        at - timedelta(days=days) if days else None
        for days in (settings.event_days, settings.call_days, settings.thread_days)
    )
    done = await store.threads.clean(Retention(events_before=events, calls_before=calls, threads_before=threads))
    return sum(asdict(done).values())


def _backend(
    settings: ServerSettings, runtime: Runtime, services: FileServices, dispatcher: Dispatcher, gateway: Gateway
) -> Backend:
    return Backend(
        store=runtime.store,
        hub=runtime.hub,
        agent=settings.run_agent,
        chat_agent=settings.chat_agent,
        agents=runtime.agents,
        profile_checks={name: tools.profile_checks() for name, tools in runtime.tools.registries.items()},
        admit=dispatcher.admit,
        cancel=dispatcher.cancel,
        forget_gone=partial(forget_deleted, runtime, gateway.parts.memory),
        problem=lambda: runtime.store.problem or dispatcher.problem,
        metrics=partial(generate_latest, runtime.telemetry.registry),
        bounds=settings.bounds,
        operators=frozenset(name.strip() for name in settings.operators.split(",")),
        files=services.attachments,
        signer=services.signer,
        bodies=settings.bodies,
        uploads=settings.uploads,
        streams=OpenStreams(settings.streams.streams, settings.streams.user_streams),
        outbound=make_outbound(settings),
        profile_bytes=settings.work.profile_bytes,
        state_bytes=settings.work.state_bytes,
        has_spans=runtime.tracer.is_on,
        schemas=runtime.tools.schemas,
        suggestions=Suggestions(settings.suggestions, partial(suggest, runtime, settings.suggestions)),
        model_urls=_model_urls(runtime),
        windows={model.name: model.window for model in runtime.models.all},
        prices=runtime.models.prices,
        preview=partial(preview, runtime),
        workspaces=runtime.tools.workspaces,
        terminal=runtime.tools.terminal,
        snapshots=runtime.tools.snapshots,
        gateway=gateway,
        calls=OpenCalls(settings.gateway.calls, settings.gateway.user_calls),
        clock=now,
        new_id=new_id,
    )


def _with_tools(backend: Backend, tools: LiveTools) -> Backend:
    """A backend that knows each agent's tools as they are when it is asked: those elsewhere come and go."""
    return replace(
        backend,
        tool_names=OfEach(tools, Registry.own_names),
        offered=OfEach(tools, lambda own: frozenset(offer.name for offer in own.offers(own))),
        forms=OfEach(tools, Registry.forms),
        confirmed=OfEach(tools, Registry.approval_schemas),
        unavailable_tools=tools.unavailable,
    )


def _gateway(plan: Plan, runtime: Runtime) -> Gateway:
    settings = plan.settings
    return Gateway(
        GatewayParts(
            store=runtime.store,
            upstreams=plan.upstreams,
            memory=GatewayMemory.with_limit(settings.gateway.memory_bytes),
            settings=settings.gateway,
            prices=runtime.models.prices,
            telemetry=runtime.telemetry,
            clock=now,
            new_id=new_id,
            node=plan.folder.node(),
            bounds=settings.bounds,
        )
    )


def _snapshots(settings: ServerSettings) -> Snapshots | None:
    kept = settings.snapshots
    return Snapshots(root=settings.snapshots_folder, settings=kept) if kept.kept else None


def _model_urls(runtime: Runtime) -> Mapping[str, str]:
    return {model.name: model.base_url for model in runtime.models.all if isinstance(model, EndpointModel)}


def _runtime(plan: Plan, store: Store, services: FileServices, tools: LiveTools, schemas: Schemas) -> Runtime:
    settings, available = plan.settings, plan.available
    return Runtime(
        store=store,
        hub=Hub(store.events, settings.hub),
        log_cache=LogCache(store, settings.log_cache),
        agents=available.agents,
        models=ModelServices(
            default=model_of(settings, settings.model),
            by_name=available.models,
            prices=load_prices(settings.prices),
            vision=settings.work.vision,
            backoff=settings.backoff,
            random=random.random,
            quote_gate=asyncio.Semaphore(settings.work.quotes_at_once),
        ),
        tools=ToolServices(
            registries=tools,
            discover=partial(tools.tried, seconds=settings.external.wait_seconds),
            schemas=schemas,
            workspaces=make_workspaces(settings),
            terminal=make_terminal(settings, available),
            snapshots=_snapshots(settings),
            profile_bytes=settings.work.profile_bytes,
            state_bytes=settings.work.state_bytes,
        ),
        files=services,
        telemetry=Telemetry(CollectorRegistry()),
        tracer=plan.tracer,
        clock=now,
        new_id=new_id,
        zone=zone_of_server(settings.timezone),
        recorder=settings.recorder,
        checkpoint=plan.checkpoint,
    )
