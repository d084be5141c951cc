"""A server from its settings: its parts, and the order in which they start and stop."""

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
from recto.api.backend import AgentCatalog, Backend, FileService, ModelCatalog, Operations, RunService
from recto.api.copilotkit.suggestions import Suggestions
from recto.api.files.attachments import ATTACHMENTS
from recto.api.files.uploads import ActiveUploads
from recto.api.gateway import OpenCalls
from recto.api.listen import listen
from recto.api.router import Api
from recto.api.runs.streams import OpenStreams
from recto.api.server import make_api
from recto.api.web_page import ASSETS
from recto.app.agents import (
    AgentsAndModels,
    load_agents_and_models,
    make_terminal,
    make_workspaces,
    model_of,
    network_of,
    upstreams_of,
)
from recto.app.check_server import check_values
from recto.app.file_services import (
    Library,
    PublicAddress,
    make_file_services,
    make_library,
    make_live_tools,
    make_outbound,
    make_signer,
    now,
    open_files,
)
from recto.config.run_settings import CleaningSettings
from recto.config.settings import ServerSettings
from recto.config.zones import zone_of_server
from recto.engine.dispatch import Dispatcher, run_cleanup
from recto.engine.hub import Hub
from recto.files.signing import FILES, Signer
from recto.http.network import is_loopback
from recto.ids import new_id
from recto.models.endpoint import EndpointModel
from recto.models.prices import load_prices
from recto.models.upstream import Upstream
from recto.models.wire_protocol import ProviderSdk
from recto.store.database.folder import DataFolder
from recto.store.ports import Claimant
from recto.store.store import Store, open_store
from recto.store.threads.cleanup import Retention
from recto.telemetry import Telemetry
from recto.tools.client_schema import Schemas
from recto.tools.external.live_tools import LiveTools
from recto.tools.workspace.snapshots import Snapshots
from recto.tools.workspace.workspaces import sweep_workspaces
from recto.tracing.otlp import open_tracer
from recto.tracing.spans import Tracer
from recto.worker.context.thread_files import FileServices
from recto.worker.gateway.gateway_memory import GatewayMemory
from recto.worker.gateway.relay import Gateway, GatewayParts
from recto.worker.load_run import preview
from recto.worker.log_cache import LogCache
from recto.worker.loop import work
from recto.worker.model.suggest import suggest
from recto.worker.runtime import Checkpoint, ModelServices, Runtime, ToolServices, forget_deleted, ignore_checkpoint

LOGGER = logging.getLogger("recto.app")
# Number of new objects after which the garbage collector runs.
GARBAGE_OBJECTS = 50_000
# Seconds for which a thread keeps the interpreter while another waits for it.
SWITCH_SECONDS = 0.001


def serve(
    settings: ServerSettings,
    announce: Callable[[str, str | None], None],
    stop: Event | None = None,
    checkpoint: Callable[[Checkpoint], None] | None = None,
    *,
    gateway_only: bool = False,
) -> None:
    """Serve until stopped. `announce` receives the url and the token. Tests pass `checkpoint` to stop runs at a point.

    With `stop`, the caller runs the server in a thread and sets the event to stop it. With `gateway_only`, the server
    has no agents and executes no runs.
    """
    check_values(settings)
    folder = DataFolder(settings.data)
    try:
        application = make_application(settings, folder, checkpoint or ignore_checkpoint, gateway_only=gateway_only)

        def publish(url: str) -> None:
            application.address.set_port(settings, url)
            # Clients look for agents at this address; a gateway has none.
            if not gateway_only:
                folder.write_address(url)
            announce(url, application.token)

        listen(application.api, settings.host, settings.port, publish, settings.connections, stop=stop)
    finally:
        folder.close()


@dataclass(frozen=True, kw_only=True)
class Application:
    """A server that does not listen yet: its API, its address, and the token of the local user."""

    api: Api
    address: PublicAddress
    token: str | None


def make_application(
    settings: ServerSettings,
    folder: DataFolder,
    checkpoint: Callable[[Checkpoint], None],
    *,
    gateway_only: bool = False,
) -> Application:
    """Return a server without its socket. The lifespan of its API starts and stops everything else."""
    token, address = settings.auth.token, PublicAddress.of(settings)
    # With accounts, there is a local token only if the settings name one.
    if not settings.auth.has_accounts:
        token = local_token(settings.data, token)
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
        replace(settings.auth, token=token), has_callers=settings.gateway.takes_callers, network=network_of(settings)
    )
    rules = GateRules(
        **vars(settings.gate),
        is_loopback=is_loopback(settings.host),
        open_prefixes=(FILES, ASSETS),
        multipart_paths=frozenset({ATTACHMENTS}),
    )
    api = make_api(partial(_lifespan, plan), auth, rules, gateway_only=gateway_only)
    return Application(api=api, address=address, token=token)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The parts of a server that exist before it opens files and connections."""

    settings: ServerSettings
    folder: DataFolder
    available: AgentsAndModels
    upstreams: Mapping[ProviderSdk, Upstream]
    signer: Signer
    checkpoint: Callable[[Checkpoint], None]
    tracer: Tracer


@asynccontextmanager
async def _lifespan(plan: Plan, api: Api) -> AsyncGenerator[None]:
    """Start the server, and stop it in reverse order."""
    settings = plan.settings
    try:
        url = settings.database_url or plan.folder.database_url
        store = await open_store(url, sqlite=settings.sqlite, postgres=settings.postgres)
        storage = await open_files(settings, store, plan.folder.node())
        library = make_library(settings)
        services = make_file_services(settings, storage, store, plan.signer, library)
        schemas = Schemas(settings.schemas)
        tools = make_live_tools(settings, plan.available.agents, plan.available.tools, schemas)
        runtime = _runtime(plan, store, services, tools, schemas)
        lease, share = timedelta(seconds=settings.dispatch.lease), settings.dispatch.slots_of_user
        claimant = Claimant(node=plan.folder.node(), boot=new_id(), lease=lease, share=share)
        execute = partial(work, runtime)
        dispatcher = Dispatcher(store.runs, claimant, execute, clock=now, settings=settings.dispatch)
        await dispatcher.start()
    except Exception as error:
        api.state.failure = error
        raise
    tools.start()
    gateway = _gateway(plan, runtime)
    jobs = _cleaning(settings, runtime, gateway)
    cleaning = asyncio.create_task(run_cleanup(jobs, settings.cleaning.cleaning_seconds))
    backend = api.state.backend = _backend(plan, runtime, services, tools, dispatcher=dispatcher, gateway=gateway)
    runtime.telemetry.watch(streams=lambda: backend.runs.streams.count, active=lambda: dispatcher.active)

    async def stop() -> None:
        backend.runs.suggestions.stop()
        await dispatcher.stop()
        # Stop uploads before the store closes, because incomplete uploads delete their files.
        await backend.files.uploads.stop()
        runtime.hub.close()

    api.state.stop = stop
    _tune_interpreter()
    try:
        yield
    finally:
        cleaning.cancel()
        with suppress(asyncio.CancelledError):
            await cleaning
        await stop()
        await tools.stop()
        await _close(runtime, library, gateway)


def _tune_interpreter() -> None:
    # Existing objects stay: scanning them repeatedly would delay every stream by a tenth of a second. The garbage among
    # them (some thousand objects of module imports) is not worth a scan.
    gc.freeze()
    gc.enable()
    # JSON has no cycles; by default the collector would scan the objects of one body repeatedly.
    gc.set_threshold(GARBAGE_OBJECTS)
    # Each database statement releases the interpreter, and a run has two dozen. With the default, a computing thread
    # such as a tool would keep it for five milliseconds each time.
    sys.setswitchinterval(SWITCH_SECONDS)


async def _close(runtime: Runtime, library: Library, gateway: Gateway) -> None:
    """Close the shared parts, which the parts stopped earlier use."""
    await gateway.aclose()
    if runtime.tools.terminal:
        await runtime.tools.terminal.close()
    await library.close()
    for model in runtime.models.all:
        await model.aclose()
    await runtime.store.close()
    await runtime.tracer.close()


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
    counts = await store.threads.clean(Retention(events_before=events, calls_before=calls, threads_before=threads))
    return sum(asdict(counts).values())


def _backend(
    plan: Plan, runtime: Runtime, services: FileServices, tools: LiveTools, *, dispatcher: Dispatcher, gateway: Gateway
) -> Backend:
    settings, models = plan.settings, runtime.models.all
    return Backend(
        store=runtime.store,
        agents=AgentCatalog(
            by_name=runtime.agents,
            tools=tools,
            default=settings.run_agent,
            chat=settings.chat_agent,
            unavailable=tools.unavailable,
        ),
        runs=RunService(
            hub=runtime.hub,
            admit=dispatcher.admit,
            cancel=dispatcher.cancel,
            preview=partial(preview, runtime),
            streams=OpenStreams(settings.streams.streams, settings.streams.user_streams),
            suggestions=Suggestions(settings.suggestions, partial(suggest, runtime, settings.suggestions)),
            schemas=runtime.tools.schemas,
            bounds=settings.bounds,
            state_bytes=settings.work.state_bytes,
            has_spans=runtime.tracer.is_on,
        ),
        files=_file_service(settings, services, runtime.tools),
        models=ModelCatalog(
            urls={model.name: model.base_url for model in models if isinstance(model, EndpointModel)},
            windows={model.name: model.window for model in models},
            prices=runtime.models.prices,
        ),
        operations=Operations(
            operators=frozenset(name.strip() for name in settings.operators.split(",")),
            problem=lambda: runtime.store.problem or dispatcher.problem,
            metrics=partial(generate_latest, runtime.telemetry.registry),
            forget_deleted=partial(forget_deleted, runtime, gateway.parts.memory),
        ),
        gateway=gateway,
        calls=OpenCalls(settings.gateway.calls, settings.gateway.user_calls),
        bodies=settings.bodies,
        profile_bytes=settings.work.profile_bytes,
        clock=now,
        new_id=new_id,
    )


def _file_service(settings: ServerSettings, services: FileServices, tools: ToolServices) -> FileService:
    return FileService(
        attachments=services.attachments,
        signer=services.signer,
        clock=now,
        rules=settings.uploads,
        uploads=ActiveUploads(),
        outbound=make_outbound(settings),
        workspaces=tools.workspaces,
        terminal=tools.terminal,
        snapshots=tools.snapshots,
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


def _runtime(plan: Plan, store: Store, services: FileServices, tools: LiveTools, schemas: Schemas) -> Runtime:
    settings, available = plan.settings, plan.available
    snapshots = (
        Snapshots(root=settings.snapshots_folder, settings=settings.snapshots) if settings.snapshots.turns else None
    )
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
            discover=partial(tools.wait_for_first_try, seconds=settings.external.wait_seconds),
            schemas=schemas,
            workspaces=make_workspaces(settings),
            terminal=make_terminal(settings, available),
            snapshots=snapshots,
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
