"""Files of a run's request: found or stored, and checked against the agent's file input before admission.

Signed urls become their attachments. Inline bytes and allowed foreign urls are stored as attachments (P10). The stored
request contains attachments only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from recto.agents.file_input import FileInput
from recto.api.backend import Backend
from recto.api.bodies import SentRun
from recto.conversation.attachment import Attachment, FileRef, as_stored, files_in, ref_to, refs_of, with_attachments
from recto.conversation.input.input_rules import NOT_SIGNED
from recto.conversation.input.run_input import RunInput
from recto.conversation.input_files import clean_files
from recto.conversation.json import dump
from recto.conversation.messages import Data, File, Key, Source, ToolMessage, Url, UserMessage
from recto.errors import FileRefused, LimitReached, NotFound, Refused
from recto.files.fetch.addresses import check_url, is_same_server, read_url
from recto.files.fetch.web_names import with_ending
from recto.files.ports import Upload
from recto.files.urls.signing import FILES

if TYPE_CHECKING:
    from recto.files.fetch.outbound import Fetched

TOO_MANY = "the message has {count} files; this agent takes up to {most} in one"
NOT_AN_IMAGE = "it was sent as an image, and what came is a file of another kind ({kind})"


@dataclass(frozen=True, kw_only=True)
class Attached:
    """A request in its stored form, without signatures and file bytes, and its attachments.

    `input` is parsed from `body`; `made` lists newly created attachments.
    """

    body: bytes
    input: RunInput
    found: Mapping[str, Attachment] = field(default_factory=dict[str, Attachment])
    made: tuple[str, ...] = ()

    def refs(self, response_id: str) -> tuple[FileRef, ...]:
        """Return the file ids of the turn (F4). Files of client tool results go by their attachment ids."""
        users = [message for message in self.input.messages if isinstance(message, UserMessage)]
        shown = [ref for user in users for ref in refs_of(user, response_id, self.found)]
        results = [message for message in self.input.messages if isinstance(message, ToolMessage)]
        brought = {part.source for message in results for part in message.parts if isinstance(part, File)}
        return (*shown, *[ref_to(one, id) for id, one in self.found.items() if Key(key=id) in brought])

    async def drop(self, backend: Backend, owner: str) -> None:
        """Delete the new attachments of a rejected request, unless another run uses them by now."""
        await _drop(backend, owner, self.made)


@dataclass(frozen=True, kw_only=True)
class Arrived:
    """Fetched files, and the error if any failed."""

    taken: Mapping[Source, Attachment]
    problem: BaseException | None = None


async def signed_of(
    backend: Backend, owner: str, run_input: RunInput, allowed: FileInput
) -> Mapping[Source, Attachment]:
    """Return the attachments of signed urls. Raises Refused for a url that is neither signed nor allowed."""
    found: dict[Source, Attachment] = {}
    for where, file in files_in(run_input.messages):
        if isinstance(file.source, Data):
            continue
        if one := await _signed(backend, owner, file):
            found[file.source] = one
        elif not _is_foreign(backend, file, allowed):
            raise Refused(NOT_SIGNED, where=where)
    return found


async def _signed(backend: Backend, owner: str, file: File) -> Attachment | None:
    """Return the attachment of a signed url; None if it belongs to another user."""
    id = backend.signer.read_url(_url(file), backend.clock())
    try:
        return await backend.files.find(owner, id or "")
    except NotFound:
        return None


def _is_foreign(backend: Backend, file: File, allowed: FileInput) -> bool:
    """Return True if a file is to be fetched from another server."""
    if not isinstance(file.source, Url) or not allowed.is_on or not allowed.urls:
        return False
    try:
        return not is_same_server(read_url(file.source.url), read_url(_own_url(backend)))
    except FileRefused:
        # The error is reported when the file is fetched.
        return True


async def attach(
    backend: Backend, owner: str, sent: SentRun, allowed: FileInput, *, signed: Mapping[Source, Attachment]
) -> Attached:
    """Store every file of a request that is not in `signed`. One unacceptable file rejects the request and leaves
    nothing behind.
    """
    files = list(files_in(sent.input.messages))
    if not files:
        return _attached(sent, {})
    foreign = [(where, file) for where, file in files if isinstance(file.source, Url) and file.source not in signed]
    # Before anything is stored: a rejection here leaves nothing behind.
    _check_foreign(backend, foreign, allowed)
    _check_count(sent.input, signed, allowed)
    _check_allowed(files, signed, allowed)
    taken = dict[Source, Attachment]()
    try:
        for where, file in files:
            if isinstance(file.source, Data) and file.source not in taken:
                taken[file.source] = await _taken_in(backend, owner, file, where, allowed)
        arrived = await _fetch_files(backend, owner, foreign, allowed)
        taken.update(arrived.taken)
        if arrived.problem:
            raise arrived.problem
        found = {**signed, **taken}
        # Stored bytes may have been uploaded for another agent; two urls may lead to one file.
        _check_allowed(files, found, allowed)
        return _attached(sent, found, _made(taken))
    except BaseException:
        await _drop(backend, owner, _made(taken))
        raise


def _attached(sent: SentRun, found: Mapping[Source, Attachment], made: tuple[str, ...] = ()) -> Attached:
    return Attached(
        body=dump(with_attachments(sent.kept, found)) if found else sent.body,
        input=replace(sent.input, messages=as_stored(sent.input.messages, found)),
        found={one.id: one for one in found.values()},
        made=made,
    )


def _check_foreign(backend: Backend, files: Sequence[tuple[str, File]], allowed: FileInput) -> None:
    """Reject urls that may not be fetched, before any is fetched."""
    for where, file in files:
        try:
            check_url(_url(file), allowed.urls, _own_url(backend))
        except FileRefused as error:
            raise _refusal(file, where, error) from error


def _check_count(run_input: RunInput, found: Mapping[Source, Attachment], allowed: FileInput) -> None:
    """Reject too many files. Two urls of one file count once."""
    for place, message in enumerate(run_input.messages):
        sources = [file.source for file in clean_files(message)] if isinstance(message, UserMessage) else []
        count = len({found[source].id if source in found else source for source in sources})
        if allowed.is_on and count > allowed.max_files:
            words = TOO_MANY.format(count=count, most=allowed.max_files)
            raise Refused(words, where=f"messages[{place}].content", keep=allowed.max_files)


def _check_allowed(files: Sequence[tuple[str, File]], found: Mapping[Source, Attachment], allowed: FileInput) -> None:
    for where, file in files:
        if (one := found.get(file.source)) and (why := allowed.why_not(one.kind, one.mime_type, one.name, one.size)):
            raise Refused(f"{one.name}: {why}", where=where)


async def _taken_in(backend: Backend, owner: str, file: File, where: str, allowed: FileInput) -> Attachment:
    try:
        return await backend.files.take_inline(owner, file, allowed)
    except FileRefused as error:
        raise _refusal(file, where, error) from error


async def _fetch_files(backend: Backend, owner: str, files: Sequence[tuple[str, File]], allowed: FileInput) -> Arrived:
    """Fetch files concurrently, each url once. All fetches have ended on return."""
    if not files:
        return Arrived(taken={})
    first = {file.source: (where, file) for where, file in reversed(files)}
    settings = backend.outbound().settings
    turn = asyncio.Semaphore(min(settings.of_user, settings.at_once))

    async def take(where: str, file: File) -> Attachment:
        async with turn:
            return await _fetch_one(backend, owner, file, where, allowed)

    came = await asyncio.gather(*[take(where, file) for where, file in first.values()], return_exceptions=True)
    results = dict(zip(first, came, strict=True))
    taken = {source: one for source, one in results.items() if isinstance(one, Attachment)}
    problems = [_problem(where, file, results[file.source]) for where, file in files]
    # A quota error may be caused by another file that failed; report that one first.
    ordered = sorted(filter(None, problems), key=lambda problem: isinstance(problem, LimitReached))
    return Arrived(taken=taken, problem=ordered[0] if ordered else None)


def _problem(where: str, file: File, came: Attachment | BaseException) -> BaseException | None:
    if isinstance(came, BaseException):
        return came
    if file.kind == "image" and came.kind != "image":
        return Refused(f"{came.name}: {NOT_AN_IMAGE.format(kind=came.kind)}", where=where)
    return None


async def _fetch_one(backend: Backend, owner: str, file: File, where: str, allowed: FileInput) -> Attachment:
    fetching = backend.outbound().fetch(
        _url(file), hosts=allowed.urls, owner=owner, most_bytes=allowed.max_bytes, own=_own_url(backend)
    )
    try:
        async with fetching as got:
            return await backend.files.receive(await _upload(backend, owner, file, got, allowed), got.pieces)
    except FileRefused as error:
        raise _refusal(file, where, error) from error


async def _upload(backend: Backend, owner: str, file: File, got: Fetched, allowed: FileInput) -> Upload:
    most = backend.uploads.user_bytes
    return Upload(
        owner=owner,
        name=with_ending(file.name, got.mime_type) if file.name else got.name,
        allowed=allowed,
        declared=got.mime_type or file.mime_type,
        room=max(0, most - await backend.store.attachment_bytes(owner)) if most else None,
        # The same message continues its turn (P3), so it must name the same attachment.
        once=True,
    )


def _refusal(file: File, where: str, error: FileRefused) -> Refused:
    return Refused(f"{file.name or file.kind}: {error}", where=where)


def _made(taken: Mapping[Source, Attachment]) -> tuple[str, ...]:
    """Return the new ones of the stored attachments."""
    return tuple(sorted({one.id for one in taken.values() if one.is_new}))


async def _drop(backend: Backend, owner: str, ids: Sequence[str]) -> None:
    await backend.files.forget(await backend.store.delete_unused_of(owner, ids))


def _url(file: File) -> str:
    return file.source.url if isinstance(file.source, Url) else ""


def _own_url(backend: Backend) -> str:
    """Return the server's address, the prefix of every url it signs."""
    return backend.signer.url("own", "own", backend.clock()).partition(FILES)[0]
