"""Files of a run's request, stored and checked against the agent's file input before admission.

The server replaces signed urls by their attachments, and stores inline bytes and allowed foreign urls as attachments
(P10). The stored request contains attachments only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from recto.agents.file_input import FileInput
from recto.api.backend import Backend, FileService
from recto.api.bodies import RunRequest
from recto.conversation.input.input_rules import NOT_SIGNED
from recto.conversation.input.run_input import RunInput
from recto.conversation.json import dump
from recto.conversation.message_files import (
    Attachment,
    FileRef,
    attach_files,
    clean_files,
    files_in,
    ref_to,
    refs_of,
    replace_files,
)
from recto.conversation.messages import Data, File, Key, Source, ToolMessage, Url, UserMessage
from recto.errors import FileRefused, InvalidRequest, LimitReached, NotFound
from recto.files.fetch.addresses import check_url, is_same_server, read_url
from recto.files.fetch.web_names import with_ending
from recto.files.ports import Upload
from recto.files.signing import FILES

TOO_MANY = "the message has {count} files; this agent accepts up to {most} per message"
NOT_AN_IMAGE = "the request declares an image, but the file is a {kind}"


@dataclass(frozen=True, kw_only=True)
class StorableRequest:
    """A request in the form to store, without signatures and file bytes, and its attachments by id.

    `input` is parsed from `body`; `new_ids` lists newly created attachments.
    """

    body: bytes
    input: RunInput
    attachments: Mapping[str, Attachment] = field(default_factory=dict[str, Attachment])
    new_ids: tuple[str, ...] = ()

    def refs(self, response_id: str) -> tuple[FileRef, ...]:
        """Return the file references of the turn (F4). Files in client tool results keep their attachment ids."""
        users = [message for message in self.input.messages if isinstance(message, UserMessage)]
        user_refs = [ref for user in users for ref in refs_of(user, response_id, self.attachments)]
        results = [message for message in self.input.messages if isinstance(message, ToolMessage)]
        sources = {part.source for message in results for part in message.parts if isinstance(part, File)}
        return (*user_refs, *[ref_to(one, id) for id, one in self.attachments.items() if Key(key=id) in sources])

    async def drop(self, backend: Backend, owner: str) -> None:
        """Delete the new attachments of a rejected request that no other run uses by now."""
        await _drop(backend, owner, self.new_ids)


async def find_signed_files(
    service: FileService, owner: str, run_input: RunInput, rules: FileInput
) -> Mapping[Source, Attachment]:
    """Return the attachments of signed urls. Raises InvalidRequest for a url that is neither signed nor allowed."""
    attachments: dict[Source, Attachment] = {}
    for where, file in files_in(run_input.messages):
        if isinstance(file.source, Data):
            continue
        id = service.signer.read_url(_url(file), service.clock())
        try:
            attachments[file.source] = await service.attachments.find(owner, id or "")
        except NotFound:
            # This server did not sign the url, or the attachment belongs to another user.
            if not _is_foreign(service, file, rules):
                raise InvalidRequest(NOT_SIGNED, where=where) from None
    return attachments


def _is_foreign(service: FileService, file: File, rules: FileInput) -> bool:
    """Return True if a file must be fetched from another server."""
    if not isinstance(file.source, Url) or not rules.is_on or not rules.urls:
        return False
    try:
        return not is_same_server(read_url(file.source.url), read_url(_own_url(service)))
    except FileRefused:
        # `store_files` reports the invalid url.
        return True


async def store_files(
    backend: Backend,
    owner: str,
    run_request: RunRequest,
    rules: FileInput,
    *,
    signed_files: Mapping[Source, Attachment],
) -> StorableRequest:
    """Store all files that are not in `signed_files`. If one is rejected, delete the others and reject the request."""
    files = list(files_in(run_request.input.messages))
    if not files:
        return _storable(run_request, {})
    foreign = [
        (where, file) for where, file in files if isinstance(file.source, Url) and file.source not in signed_files
    ]
    # Check all urls before anything is stored.
    for where, file in foreign:
        try:
            check_url(_url(file), rules.urls, _own_url(backend.files))
        except FileRefused as error:
            raise _refusal(file, where, error) from error
    _check_count(run_request.input, signed_files, rules)
    _check_rules(files, signed_files, rules)
    new_files = dict[Source, Attachment]()
    try:
        for where, file in files:
            if isinstance(file.source, Data) and file.source not in new_files:
                try:
                    new_files[file.source] = await backend.files.attachments.receive_inline(owner, file, rules)
                except FileRefused as error:
                    raise _refusal(file, where, error) from error
        fetched_files, problem = await _fetch_files(backend, owner, foreign, rules)
        new_files.update(fetched_files)
        if problem:
            raise problem
        attachments = {**signed_files, **new_files}
        # Check again, because a new file may turn out to be one that was stored for another agent.
        _check_rules(files, attachments, rules)
        return _storable(run_request, attachments, _new_ids(new_files))
    except BaseException:
        await _drop(backend, owner, _new_ids(new_files))
        raise


def _storable(
    run_request: RunRequest, attachments: Mapping[Source, Attachment], new_ids: tuple[str, ...] = ()
) -> StorableRequest:
    return StorableRequest(
        body=dump(replace_files(run_request.json, attachments)) if attachments else run_request.body,
        input=replace(run_request.input, messages=attach_files(run_request.input.messages, attachments)),
        attachments={one.id: one for one in attachments.values()},
        new_ids=new_ids,
    )


def _check_count(run_input: RunInput, attachments: Mapping[Source, Attachment], rules: FileInput) -> None:
    """Reject a message with too many files. Two urls of one file count once."""
    for place, message in enumerate(run_input.messages):
        sources = [file.source for file in clean_files(message)] if isinstance(message, UserMessage) else []
        count = len({attachments[source].id if source in attachments else source for source in sources})
        if rules.is_on and count > rules.max_files:
            text = TOO_MANY.format(count=count, most=rules.max_files)
            raise InvalidRequest(text, where=f"messages[{place}].content", keep=rules.max_files)


def _check_rules(files: Sequence[tuple[str, File]], attachments: Mapping[Source, Attachment], rules: FileInput) -> None:
    for where, file in files:
        if (one := attachments.get(file.source)) and (
            reason := rules.why_not(one.kind, one.mime_type, one.name, one.size)
        ):
            raise InvalidRequest(f"{one.name}: {reason}", where=where)


async def _fetch_files(
    backend: Backend, owner: str, files: Sequence[tuple[str, File]], rules: FileInput
) -> tuple[Mapping[Source, Attachment], BaseException | None]:
    """Fetch files concurrently, each url once. When all have ended, return the attachments and the first error."""
    if not files:
        return {}, None
    first = {file.source: (where, file) for where, file in reversed(files)}
    settings = backend.files.outbound().settings
    slots = asyncio.Semaphore(min(settings.of_user, settings.at_once))

    async def fetch(where: str, file: File) -> Attachment:
        async with slots:
            return await _fetch_one(backend, owner, file, where, rules)

    fetches = [fetch(where, file) for where, file in first.values()]
    results = dict(zip(first, await asyncio.gather(*fetches, return_exceptions=True), strict=True))
    attachments = {source: one for source, one in results.items() if isinstance(one, Attachment)}
    problems = list[BaseException]()
    for where, file in files:
        result = results[file.source]
        if isinstance(result, BaseException):
            problems.append(result)
        elif file.kind == "image" and result.kind != "image":
            text = f"{result.name}: {NOT_AN_IMAGE.format(kind=result.kind)}"
            problems.append(InvalidRequest(text, where=where))
    # Report quota errors last, because a file that failed for another reason may have caused them.
    problems.sort(key=lambda problem: isinstance(problem, LimitReached))
    return attachments, next(iter(problems), None)


async def _fetch_one(backend: Backend, owner: str, file: File, where: str, rules: FileInput) -> Attachment:
    service, quota = backend.files, backend.files.rules.user_bytes
    fetching = service.outbound().fetch(
        _url(file), hosts=rules.urls, owner=owner, most_bytes=rules.max_bytes, own=_own_url(service)
    )
    try:
        async with fetching as response:
            upload = Upload(
                owner=owner,
                name=with_ending(file.name, response.mime_type) if file.name else response.name,
                allowed=rules,
                declared_type=response.mime_type or file.mime_type,
                room=max(0, quota - await backend.store.files.total_bytes(owner)) if quota else None,
                # Reuse a stored attachment: a repeated message must name the same one to continue its turn (P3).
                once=True,
            )
            return await service.attachments.receive(upload, response.pieces)
    except FileRefused as error:
        raise _refusal(file, where, error) from error


def _refusal(file: File, where: str, error: FileRefused) -> InvalidRequest:
    return InvalidRequest(f"{file.name or file.kind}: {error}", where=where)


def _new_ids(attachments: Mapping[Source, Attachment]) -> tuple[str, ...]:
    return tuple(sorted({one.id for one in attachments.values() if one.is_new}))


async def _drop(backend: Backend, owner: str, ids: Sequence[str]) -> None:
    if ids:
        await backend.files.attachments.delete_blobs(await backend.store.files.delete_owner_unused(owner, ids))


def _url(file: File) -> str:
    return file.source.url if isinstance(file.source, Url) else ""


def _own_url(service: FileService) -> str:
    """Return the server's address, the prefix of every url it signs."""
    return service.signer.url("own", "own", service.clock()).partition(FILES)[0]
