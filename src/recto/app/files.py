"""Files put together: where they are kept, how their urls are signed, what pages show of pictures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from recto.api.access.rate import is_loopback
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
from recto.ids import new_id
from recto.store.store import Store
from recto.worker.context.pictures import Pictures
from recto.worker.context.thread_files import FileServices

if TYPE_CHECKING:
    from recto.files.fetch.outbound import Outbound

# A storage that does not answer for so long when the server starts cannot be used.
START_SECONDS = 60.0
ANYWHERE = ("0.0.0.0", "::")  # noqa: S104 - not bound here, only recognised


@dataclass(kw_only=True)
class Address:
    """Where this server is reached. A port that the system chooses is known once it listens."""

    url: str

    @classmethod
    def of(cls, settings: ServerSettings) -> Address:
        """The public address, else the one it is to listen on."""
        if settings.gate.public_url:
            return cls(url=settings.gate.public_url.rstrip("/"))
        host = "127.0.0.1" if settings.host in ANYWHERE else settings.host
        return cls(url=f"http://[{host}]:{settings.port}" if ":" in host else f"http://{host}:{settings.port}")

    def learn(self, settings: ServerSettings, url: str) -> None:
        """The address it listens on, which counts where there is no public one."""
        port = urlsplit(url).port
        if not settings.gate.public_url and settings.port == 0:
            self.url = self.url.removesuffix(":0") + f":{port}"


def now() -> datetime:
    """The time, as everything here tells it."""
    return datetime.now(UTC)


def make_signer(settings: ServerSettings, folder: Path, address: Address) -> Signer:
    """Signs with the keys that were given, or with those made for this data folder."""
    keys = parse_keys(settings.signing_keys) if settings.signing_keys else load_keys(folder)
    return Signer(keys, lambda: address.url)


async def open_files(settings: ServerSettings, store: Store, node: str) -> Storage:
    """The storage of a server that starts: one that is this database's and in order. Raises what keeps it from that."""
    is_durable = outlives_power(settings, is_shared=store.is_shared)
    storage = open_storage(settings.storage_url, settings.files_folder, is_durable=is_durable)
    owner = owner_of(node, is_shared=store.is_shared, is_in_data_folder=settings.storage_url is None)

    async def begin() -> None:
        await claim_storage(storage, store, owner, new_id)
        await storage.remove_leftovers()
        await storage.probe()

    await StorageHealth(begin, wait=START_SECONDS).check()
    return storage


def outlives_power(settings: ServerSettings, *, is_shared: bool) -> bool:
    """Whether rows survive a power cut, and so files have to. Those of a shared database, PostgreSQL, always do."""
    return is_shared or settings.sqlite.synchronous == "FULL"


@dataclass(frozen=True, kw_only=True)
class Library:
    """What reads documents, and keeps what was read of them. Both end with the server."""

    parsers: Parsers
    documents: DocumentCache

    async def close(self) -> None:
        """Nobody reads any more."""
        await self.documents.close()
        await self.parsers.close()


def make_library(settings: ServerSettings) -> Library:
    """Child processes that read documents, started when there is one to read."""
    parsers = Parsers(replace(settings.parsers, folder=settings.data))
    documents = DocumentCache(settings.parsed_folder, parsers, settings.documents, clock=now)
    return Library(parsers=parsers, documents=documents)


def make_outbound(settings: ServerSettings) -> Callable[[], Outbound]:
    """The one way to fetch what a url of somebody else's stands for, made when there is one."""
    networks = [part.strip() for part in settings.outbound.networks.split(",") if part.strip()]

    @cache
    def outbound() -> Outbound:
        from recto.files.fetch.outbound import Outbound  # here: few servers ever fetch one, and its client is large

        return Outbound(settings.outbound, allowance=networks, network=network_of(settings))

    if networks:
        # One that is none is told at the start.
        outbound()
    return outbound


def make_file_services(
    settings: ServerSettings, storage: Storage, store: Store, signer: Signer, library: Library
) -> FileServices:
    """Attachments in their storage, what is read of them, and what pages show of pictures."""
    forgotten = library.documents.forget
    return FileServices(
        attachments=Attachments(storage, store.files, settings.uploads, clock=now, new_id=new_id, forgotten=forgotten),
        signer=signer,
        documents=library.documents,
        pictures=Pictures(replace(settings.pictures, by_url=can_be_reached(settings))),
    )


def can_be_reached(settings: ServerSettings) -> bool:
    """Whether a provider can fetch our urls, as far as one can tell from here."""
    if settings.pictures.image_urls is not None:
        return settings.pictures.image_urls
    host = urlsplit(settings.gate.public_url or "").hostname
    return host is not None and not is_loopback(host)
