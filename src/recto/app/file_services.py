"""File services of a server: storage, signed urls, parsers, and pictures on pages."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from recto.agents.agent import Agent
from recto.app.agents import network_of
from recto.config.settings import ServerSettings
from recto.files.attachments import Attachments
from recto.files.documents.document_cache import DocumentCache
from recto.files.parsing.parser_pool import Parsers
from recto.files.ports import Storage
from recto.files.signing import Signer, load_keys, parse_keys
from recto.files.storage.choose_storage import open_storage
from recto.files.storage.owner import claim_storage, owner_of
from recto.files.storage.storage_health import StorageHealth
from recto.http.network import is_loopback
from recto.ids import new_id
from recto.sandbox.bubblewrap import program_path
from recto.store.store import Store
from recto.tools.client_schema import Schemas
from recto.tools.external.live_tools import LiveTools, tool_sources
from recto.tools.external.sandbox import Sandbox
from recto.tools.external.services import ExternalServices, ToolSource
from recto.tools.registry import Registry
from recto.worker.context.pictures import Pictures
from recto.worker.context.thread_files import FileServices

if TYPE_CHECKING:
    from recto.files.fetch.outbound import Outbound


# Time limit of the storage check when the server starts, in seconds.
START_SECONDS = 60.0
ANYWHERE = ("0.0.0.0", "::")  # noqa: S104 - not bound here, only recognised


@dataclass(kw_only=True)
class PublicAddress:
    """The URL of this server. A port that the system chooses is set once the server listens."""

    url: str

    @classmethod
    def of(cls, settings: ServerSettings) -> PublicAddress:
        """Return the public address, else the address to listen on."""
        if settings.gate.public_url:
            return cls(url=settings.gate.public_url.rstrip("/"))
        host = "127.0.0.1" if settings.host in ANYWHERE else settings.host
        return cls(url=f"http://[{host}]:{settings.port}" if ":" in host else f"http://{host}:{settings.port}")

    def set_port(self, settings: ServerSettings, url: str) -> None:
        """Set the port that the system has chosen, unless there is a public address."""
        port = urlsplit(url).port
        if not settings.gate.public_url and settings.port == 0:
            self.url = self.url.removesuffix(":0") + f":{port}"


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def make_signer(settings: ServerSettings, folder: Path, address: PublicAddress) -> Signer:
    """Return a signer with the configured keys, or with those of this data folder."""
    keys = parse_keys(settings.signing_keys) if settings.signing_keys else load_keys(folder)
    return Signer(keys, lambda: address.url)


async def open_files(settings: ServerSettings, store: Store, node: str) -> Storage:
    """Open the storage of a server, claim it for this database and check it. Raises an error if it is unusable."""
    is_durable = is_durable_database(settings, is_shared=store.is_shared)
    storage = open_storage(settings.storage_url, settings.files_folder, is_durable=is_durable)
    owner = owner_of(node, is_shared=store.is_shared, is_in_data_folder=settings.storage_url is None)

    async def claim() -> None:
        await claim_storage(storage, store, owner, new_id)
        await storage.remove_leftovers()
        await storage.probe()

    await StorageHealth(claim, wait=START_SECONDS).check()
    return storage


def is_durable_database(settings: ServerSettings, *, is_shared: bool) -> bool:
    """Return True if rows survive a power cut, so files must too. Rows of a shared database (PostgreSQL) always do."""
    return is_shared or settings.sqlite.synchronous == "FULL"


@dataclass(frozen=True, kw_only=True)
class Library:
    """The parsers of documents and the cache of their results."""

    parsers: Parsers
    documents: DocumentCache

    async def close(self) -> None:
        """Close the cache and stop the parsers."""
        await self.documents.close()
        await self.parsers.close()


def make_library(settings: ServerSettings) -> Library:
    """Return the parsers and their cache. Child processes start with the first document."""
    parsers = Parsers(replace(settings.parsers, folder=settings.data))
    documents = DocumentCache(settings.parsed_folder, parsers, settings.documents, clock=now)
    return Library(parsers=parsers, documents=documents)


def make_outbound(settings: ServerSettings) -> Callable[[], Outbound]:
    """Return a function that makes the client for external URLs on first use."""
    networks = [part.strip() for part in settings.outbound.networks.split(",") if part.strip()]

    @cache
    def outbound() -> Outbound:
        from recto.files.fetch.outbound import Outbound  # here: few servers ever fetch one, and its client is large

        return Outbound(settings.outbound, allowance=networks, network=network_of(settings))

    if networks:
        # Make the client now, to report an invalid network at startup.
        outbound()
    return outbound


def make_file_services(
    settings: ServerSettings, storage: Storage, store: Store, signer: Signer, library: Library
) -> FileServices:
    """Return attachments, their parsed texts, and the pictures of pages."""
    on_delete = library.documents.forget
    return FileServices(
        attachments=Attachments(storage, store.files, settings.uploads, clock=now, new_id=new_id, on_delete=on_delete),
        signer=signer,
        documents=library.documents,
        pictures=Pictures(replace(settings.pictures, by_url=has_reachable_urls(settings))),
    )


def has_reachable_urls(settings: ServerSettings) -> bool:
    """Return True if providers can probably fetch the URLs of this server."""
    if settings.pictures.image_urls is not None:
        return settings.pictures.image_urls
    host = urlsplit(settings.gate.public_url or "").hostname
    return host is not None and not is_loopback(host)


def make_live_tools(
    settings: ServerSettings, agents: Mapping[str, Agent], own: Mapping[str, Registry], schemas: Schemas
) -> LiveTools:
    """Return the own and external tools of every agent, without starting them."""
    services = make_services(settings, schemas)
    sources = {name: tool_sources(agent, own[name], services) for name, agent in agents.items()}
    return LiveTools(own, sources, {name: agent.confirm for name, agent in agents.items()})


def try_tools(
    settings: ServerSettings, agents: Mapping[str, Agent], own: Mapping[str, Registry]
) -> Mapping[str, Sequence[ToolSource]]:
    """Connect to every external source once, concurrently. Returns the sources of each agent."""

    async def discover() -> Mapping[str, Sequence[ToolSource]]:
        tools = make_live_tools(settings, agents, own, Schemas(settings.schemas))
        tools.start()
        try:
            # A source that does not respond in time reports that itself.
            seconds = 2 * settings.external.start_seconds
            await asyncio.gather(*[tools.wait_for_first_try(name, seconds) for name in agents])
        finally:
            await tools.stop()
        return tools.sources

    return asyncio.run(discover())


def make_services(settings: ServerSettings, schemas: Schemas) -> ExternalServices:
    """Return the services that external tools share."""
    outbound = make_outbound(settings)
    return ExternalServices(
        settings=settings.external,
        environment=os.environ,
        open_web=lambda internal: outbound().open_web(internal=internal),
        sandbox=Sandbox(program=program_path(), scratch_bytes=settings.external.scratch_bytes),
        schemas=schemas,
    )
