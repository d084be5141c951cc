"""Files of a request that are at other servers: fetched before the run is admitted, and taken in as uploads are (D7).

Refuses urls of this server: what it did not sign it does not ask itself for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from recto.agents.file_input import FileInput
from recto.api.backend import Backend
from recto.errors import FileRefused, LimitReached, Refused
from recto.files.addresses import check_url, is_same_server, read_url
from recto.files.outbound import Fetched
from recto.files.ports import Upload
from recto.files.signing import FILES
from recto.files.web_names import with_ending
from recto.page.attachment import Attachment
from recto.page.messages import File, Source, Url

NOT_AN_IMAGE = "it was sent as an image, and what came is a file of another kind ({kind})"


@dataclass(frozen=True, kw_only=True)
class Arrived:
    """What came of the files that were fetched, and why not all of it may stay."""

    taken: Mapping[Source, Attachment]
    problem: BaseException | None = None


def is_foreign(backend: Backend, file: File, allowed: FileInput) -> bool:
    """Whether a file that was not signed here may be looked for elsewhere. At this server it is not."""
    if not isinstance(file.source, Url) or not allowed.is_on or not allowed.urls:
        return False
    try:
        return not is_same_server(read_url(file.source.url), read_url(_own_url(backend)))
    except FileRefused:
        # What is wrong with it is told when it is its turn.
        return True


def check_foreign(backend: Backend, files: Sequence[tuple[str, File]], allowed: FileInput) -> None:
    """Refuse urls that lead where nothing is fetched from, before anything is."""
    for where, file in files:
        try:
            check_url(_url(file), allowed.urls, _own_url(backend))
        except FileRefused as error:
            raise _refused(file, where, error) from error


async def fetch_files(backend: Backend, owner: str, files: Sequence[tuple[str, File]], allowed: FileInput) -> Arrived:
    """Fetch files, several at once, each url once. All have ended when this returns, so that nothing comes later."""
    if not files:
        return Arrived(taken={})
    first = {file.source: (where, file) for where, file in reversed(files)}
    settings = backend.outbound.settings
    turn = asyncio.Semaphore(min(settings.of_user, settings.at_once))

    async def take(where: str, file: File) -> Attachment:
        async with turn:
            return await _take(backend, owner, file, where, allowed)

    came = await asyncio.gather(*[take(where, file) for where, file in first.values()], return_exceptions=True)
    results = dict(zip(first, came, strict=True))
    taken = {source: one for source, one in results.items() if isinstance(one, Attachment)}
    problems = [_problem(where, file, results[file.source]) for where, file in files]
    # That there was no room for one may come of another that holds its place and cannot be had: this one is told.
    told = sorted(filter(None, problems), key=lambda problem: isinstance(problem, LimitReached))
    return Arrived(taken=taken, problem=told[0] if told else None)


def _problem(where: str, file: File, came: Attachment | BaseException) -> BaseException | None:
    if isinstance(came, BaseException):
        return came
    if file.kind == "image" and came.kind != "image":
        return Refused(f"{came.name}: {NOT_AN_IMAGE.format(kind=came.kind)}", where=where)
    return None


async def _take(backend: Backend, owner: str, file: File, where: str, allowed: FileInput) -> Attachment:
    fetching = backend.outbound.fetch(
        _url(file), hosts=allowed.urls, owner=owner, most_bytes=allowed.max_bytes, own=_own_url(backend)
    )
    try:
        async with fetching as got:
            return await backend.files.receive(await _upload(backend, owner, file, got, allowed), got.pieces)
    except FileRefused as error:
        raise _refused(file, where, error) from error


async def _upload(backend: Backend, owner: str, file: File, got: Fetched, allowed: FileInput) -> Upload:
    most = backend.uploads.user_bytes
    return Upload(
        owner=owner,
        name=with_ending(file.name, got.mime_type) if file.name else got.name,
        allowed=allowed,
        declared=got.mime_type or file.mime_type,
        room=max(0, most - await backend.store.attachment_bytes(owner)) if most else None,
        # The same message sent again continues its turn (P3), so it has to name the same attachment.
        once=True,
    )


def _refused(file: File, where: str, error: FileRefused) -> Refused:
    return Refused(f"{file.name or file.kind}: {error}", where=where)


def _url(file: File) -> str:
    return file.source.url if isinstance(file.source, Url) else ""


def _own_url(backend: Backend) -> str:
    """Where this server is reached: what stands before the files in every url it signs."""
    return backend.signer.url("own", "own", backend.clock()).partition(FILES)[0]
