"""The files of a run's request: each found or taken in, and held to what the agent takes, before the run is admitted.

A url is turned into the attachment it was signed for; bytes that came along, or that an agent lets be fetched from
elsewhere, become one (P10). What is stored of the request names attachments only.
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
    """A request as it is stored, with no signature and no bytes of files in it, and the attachments it names.

    `input` is what `stored_input` makes of `body`; `made` are those attachments that were not there before.
    """

    body: bytes
    input: RunInput
    found: Mapping[str, Attachment] = field(default_factory=dict[str, Attachment])
    made: tuple[str, ...] = ()

    def refs(self, response_id: str) -> tuple[FileRef, ...]:
        """The file ids of the turn (F4). What a client's tools brought goes by its own id: it is kept as long."""
        users = [message for message in self.input.messages if isinstance(message, UserMessage)]
        shown = [ref for user in users for ref in refs_of(user, response_id, self.found)]
        results = [message for message in self.input.messages if isinstance(message, ToolMessage)]
        brought = {part.source for message in results for part in message.parts if isinstance(part, File)}
        return (*shown, *[ref_to(one, id) for id, one in self.found.items() if Key(key=id) in brought])

    async def drop(self, backend: Backend, owner: str) -> None:
        """Delete what this request made, as it was refused. What another run names by now stays."""
        await _drop(backend, owner, self.made)


@dataclass(frozen=True, kw_only=True)
class Arrived:
    """What came of the files that were fetched, and why not all of it may stay."""

    taken: Mapping[Source, Attachment]
    problem: BaseException | None = None


async def signed_of(
    backend: Backend, owner: str, run_input: RunInput, allowed: FileInput
) -> Mapping[Source, Attachment]:
    """The attachments that urls were signed for. A url that was not, and leads nowhere else, refuses the request."""
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
    """The attachment a url was signed for. Somebody else's is as good as none."""
    id = backend.signer.read_url(_url(file), backend.clock())
    try:
        return await backend.files.find(owner, id or "")
    except NotFound:
        return None


def _is_foreign(backend: Backend, file: File, allowed: FileInput) -> bool:
    """Whether a file that was not signed here may be looked for elsewhere. At this server it is not."""
    if not isinstance(file.source, Url) or not allowed.is_on or not allowed.urls:
        return False
    try:
        return not is_same_server(read_url(file.source.url), read_url(_own_url(backend)))
    except FileRefused:
        # What is wrong with it is told when it is its turn.
        return True


async def attach(
    backend: Backend, owner: str, sent: SentRun, allowed: FileInput, *, signed: Mapping[Source, Attachment]
) -> Attached:
    """Take in every file of a request that is not `signed`. One that may not come refuses the whole, and nothing new is
    left.
    """
    files = list(files_in(sent.input.messages))
    if not files:
        return _attached(sent, {})
    foreign = [(where, file) for where, file in files if isinstance(file.source, Url) and file.source not in signed]
    # Before anything is taken in: what is refused here leaves nothing behind.
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
        # Bytes that were taken in before may have come for another agent; two urls may lead to one file.
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
    """Refuse urls that lead where nothing is fetched from, before anything is."""
    for where, file in files:
        try:
            check_url(_url(file), allowed.urls, _own_url(backend))
        except FileRefused as error:
            raise _refusal(file, where, error) from error


def _check_count(run_input: RunInput, found: Mapping[Source, Attachment], allowed: FileInput) -> None:
    """Two urls of one file are one file."""
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
    """Fetch files, several at once, each url once. All have ended when this returns, so that nothing comes later."""
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
    # That there was no room for one may come of another that holds its place and cannot be had: this one is named.
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
        # The same message sent again continues its turn (P3), so it has to name the same attachment.
        once=True,
    )


def _refusal(file: File, where: str, error: FileRefused) -> Refused:
    return Refused(f"{file.name or file.kind}: {error}", where=where)


def _made(taken: Mapping[Source, Attachment]) -> tuple[str, ...]:
    """Of the attachments that were taken in, those that were not there before."""
    return tuple(sorted({one.id for one in taken.values() if one.is_new}))


async def _drop(backend: Backend, owner: str, ids: Sequence[str]) -> None:
    await backend.files.forget(await backend.store.delete_unused_of(owner, ids))


def _url(file: File) -> str:
    return file.source.url if isinstance(file.source, Url) else ""


def _own_url(backend: Backend) -> str:
    """Where this server is reached: what stands before the files in every url it signs."""
    return backend.signer.url("own", "own", backend.clock()).partition(FILES)[0]
