"""Urls of files in history and events. They are signed when they are sent, never stored."""

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
    """Return a signer of attachment urls, by id and name, with the lifetime of urls in responses."""

    def signed(attachment: str, name: str) -> str:
        expires = backend.clock() + timedelta(seconds=backend.uploads.url_seconds)
        return backend.signer.url(attachment, name, expires)

    return signed


def urls_of(backend: Backend, refs: Iterable[FileRef]) -> FileUrlSigner:
    """Return a signer of a thread's file urls. It returns None for a deleted file."""
    there, signed = {ref.attachment for ref in refs if ref.is_there}, signs(backend)

    def url_of(file: File) -> str | None:
        key = file.source.key if isinstance(file.source, Key) else ""
        return signed(key, file.name or file.kind) if key in there else None

    return url_of


async def render_context(backend: Backend, thread: str, agent: str | None) -> RenderContext:
    """Return the render context of a thread's messages for the given agent."""
    refs, known = await backend.store.file_refs(thread), backend.agents.get(agent or "")
    return RenderContext(
        url_of=urls_of(backend, refs),
        refs=refs,
        own_tools=backend.tool_names.get(agent or "", frozenset()),
        locale=known.locale if known else DEFAULT_LOCALE,
        most_bytes=backend.bodies.snapshot_bytes,
    )
