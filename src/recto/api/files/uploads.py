"""Uploads: the files of a form, each stored or rejected on its own. An incomplete form stores none."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass
from typing import TypeAlias

from recto.agents.file_input import FileInput
from recto.api.files.multipart import FormLimits, FormPart, MultipartForm
from recto.config.file_settings import UploadRules
from recto.conversation.message_files import Attachment
from recto.errors import FileRefused, LimitReached, NotFound, TooLarge, WireError
from recto.files.attachments import Attachments
from recto.files.file_names import safe_name
from recto.files.ports import Upload

AGENT = "agent"
TEXT_BYTES = 65_536
# Bytes of a rejected file that are skipped beyond the largest allowed size, to reach the next file.
BEYOND_BYTES = 16 * 2**20
# Bytes of a form beside its files.
REST_BYTES = 2**20
RETRY_SECONDS = 1.0
# A hanging storage does not delay shutdown any longer.
STOP_SECONDS = 5.0
NO_ROOM = "your other active uploads use the rest of your quota. Send it again after they end"


@dataclass(frozen=True, kw_only=True)
class RefusedFile:
    """A rejected file of a form."""

    name: str
    error: str
    code: str


UploadedFile: TypeAlias = Attachment | RefusedFile


@dataclass(frozen=True, kw_only=True)
class UploadResult:
    """Results of a form's files, in order. `is_whole` is False if the form was not read to its end."""

    entries: Sequence[UploadedFile]
    is_whole: bool


class ActiveUploads:
    """Uploads in progress in this process, and the bytes of each user that are neither stored nor rejected yet."""

    def __init__(self) -> None:
        self._users: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()
        self._forms: set[MultipartForm] = set()
        self._is_stopped = False
        self._end = asyncio.Event()

    @property
    def count(self) -> int:
        """Number of uploads."""
        return len(self._forms)

    @property
    def bytes(self) -> int:
        """Number of bytes neither stored nor rejected yet."""
        return self._bytes.total()

    @contextmanager
    def admit(self, owner: str, rules: UploadRules, form: MultipartForm) -> Generator[None]:
        """Count an upload for its duration. Raises LimitReached at the limit."""
        if self._users[owner] >= rules.of_user or self.count >= rules.at_once:
            limit = min(rules.of_user, rules.at_once)
            problem = f"The limit of {limit} active uploads is reached. Try again in a moment."
            raise LimitReached(problem, retry=RETRY_SECONDS)
        if self._is_stopped:
            form.stop()
        self._users[owner] += 1
        self._forms.add(form)
        try:
            yield
        finally:
            self._users -= Counter({owner: 1})
            self._forms.discard(form)
            self._end.set()

    @contextmanager
    def reserve(self, owner: str) -> Generator[Callable[[int], int]]:
        """Reserve the bytes of a file as they arrive, until it is stored or rejected.

        Yields a function that adds bytes and returns the owner's reserved total.
        """
        size = 0

        def add(more: int) -> int:
            nonlocal size
            size += more
            self._bytes[owner] += more
            return self._bytes[owner]

        try:
            yield add
        finally:
            self._bytes -= Counter({owner: size})

    async def stop(self) -> None:
        """End all uploads, including later ones, and wait for them."""
        self._is_stopped = True
        for form in self._forms:
            form.stop()
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                while self._forms:
                    self._end.clear()
                    await self._end.wait()


@dataclass(frozen=True, kw_only=True)
class FormUpload:
    """An upload of one form's files. `agent` is named in the query; `input_of` returns the file input of an agent."""

    files: Attachments
    active: ActiveUploads
    owner: str
    stored_bytes: Callable[[], Awaitable[int]]
    rules: UploadRules
    agent: str | None
    input_of: Callable[[str | None], FileInput]

    async def store(self, form: MultipartForm) -> UploadResult:
        """Store the acceptable files. If the form cannot be read to its end, store none."""
        entries, agent, allowed = list[UploadedFile](), self.agent, self.input_of(self.agent)
        try:
            async with aclosing(form.parts()) as parts:
                async for part in parts:
                    if part.heading.filename is None:
                        agent = await _agent_in(part, agent, has_files=bool(entries))
                        allowed = self.input_of(agent)
                        continue
                    entries.append(await self._store_one(part, part.heading.filename, allowed, len(entries)))
                    limits = [limit for limit in (self.rules.upload_bytes, allowed.max_bytes) if limit]
                    if not await part.skip(min(limits) + BEYOND_BYTES if limits else None):
                        return UploadResult(entries=entries, is_whole=False)
            if not entries:
                raise WireError(where="body", problem="contains no file. Send each file as a part with a filename")
            return UploadResult(entries=entries, is_whole=True)
        except BaseException:
            for entry in entries:
                if isinstance(entry, Attachment):
                    # The owner may have deleted it in the meantime.
                    with suppress(NotFound):
                        await self.files.delete(entry.owner, entry.id)
            raise

    async def _store_one(self, part: FormPart, name: str, allowed: FileInput, place: int) -> UploadedFile:
        if place >= self.rules.files:
            problem = f"a form may contain up to {self.rules.files} files. Send this one in another form"
            return RefusedFile(name=safe_name(name), error=problem, code="too_many")
        room = max(0, self.rules.user_bytes - await self.stored_bytes()) if self.rules.user_bytes else None
        kind = part.heading.content_type
        upload = Upload(owner=self.owner, name=name, allowed=allowed, declared_type=kind, room=room)
        try:
            with self.active.reserve(self.owner) as reserve:
                return await self.files.receive(upload, _within_quota(part, reserve, room))
        except FileRefused as error:
            return RefusedFile(name=safe_name(name), error=str(error), code=error.code)


async def _within_quota(part: FormPart, reserve: Callable[[int], int], room: int | None) -> AsyncGenerator[bytes]:
    """Yield the bytes of a file while the owner's concurrent uploads fit into the quota."""
    async for piece in part.pieces():
        # A file that is too large by itself is rejected by the storage with its own reason.
        if room is not None and reserve(len(piece)) > room >= part.size:
            raise FileRefused(NO_ROOM, code="quota")
        yield piece


async def _agent_in(part: FormPart, agent: str | None, *, has_files: bool) -> str | None:
    """Return the agent named by a field. Other fields are ignored."""
    text = await part.text(TEXT_BYTES)
    if part.heading.name != AGENT:
        return agent
    if has_files:
        problem = "must come before the files in the form, because it decides what files are accepted"
        raise WireError(where=AGENT, problem=problem)
    if agent is not None and agent != text:
        raise WireError(where=AGENT, problem=f"is named twice, as {agent[:64]!r} and {text[:64]!r}. Name one agent")
    return text


def form_limits(rules: UploadRules) -> FormLimits:
    """Return the limits of a form."""
    return FormLimits(all_bytes=_form_bytes(rules), seconds=rules.seconds, form_seconds=rules.form_seconds)


def _form_bytes(rules: UploadRules) -> int | None:
    """Return the maximum bytes of a form; None without a file size limit."""
    return rules.files * rules.upload_bytes + BEYOND_BYTES + REST_BYTES if rules.upload_bytes else None


def check_length(length: str | None, rules: UploadRules) -> None:
    """Reject a form whose Content-Length exceeds the limit. Without one, the limit applies while reading."""
    most = _form_bytes(rules)
    if not length or not length.isascii() or not length.isdigit() or most is None:
        return
    # A number with more digits is larger; it is not parsed.
    if len(length) > len(str(most)) or int(length) > most:
        limits = f"{rules.files} files of up to {rules.upload_bytes:,} bytes"
        raise TooLarge(f"A form may contain {limits}; this one is larger. Send fewer or smaller files.")
