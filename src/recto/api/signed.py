"""Urls of files as clients get them in history and events: signed when they are told, never stored."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from recto.api.backend import Backend
from recto.conversation.attachment import FileRef, UrlSigner
from recto.conversation.history import FileUrlSigner
from recto.conversation.locale import DEFAULT_LOCALE
from recto.conversation.messages import File, Key
from recto.conversation.snapshots.agui_messages import RenderContext


def signs(backend: Backend) -> UrlSigner:
    """Signs a url for an attachment, by its id and name, that is good as long as one in an answer is."""

    def signed(attachment: str, name: str) -> str:
        expires = backend.clock() + timedelta(seconds=backend.uploads.url_seconds)
        return backend.signer.url(attachment, name, expires)

    return signed


def urls_of(backend: Backend, refs: Iterable[FileRef]) -> FileUrlSigner:
    """The url of a file of a thread; None for one that was deleted."""
    there, signed = {ref.attachment for ref in refs if ref.is_there}, signs(backend)

    def url_of(file: File) -> str | None:
        key = file.source.key if isinstance(file.source, Key) else ""
        return signed(key, file.name or file.kind) if key in there else None

    return url_of


async def render_context(backend: Backend, thread: str, agent: str | None) -> RenderContext:
    """How the messages of a thread are told, in which this agent answers."""
    refs, known = await backend.store.file_refs(thread), backend.agents.get(agent or "")
    return RenderContext(
        url_of=urls_of(backend, refs),
        refs=refs,
        own_tools=backend.tool_names.get(agent or "", frozenset()),
        locale=known.locale if known else DEFAULT_LOCALE,
        most_bytes=backend.bodies.snapshot_bytes,
    )
