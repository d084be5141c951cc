"""Uploads: the files of a form, each taken or refused on its own. Refuses to keep any of a form that did not end."""

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
from recto.conversation.attachment import Attachment
from recto.errors import FileRefused, LimitReached, NotFound, TooLarge, WireError
from recto.files.attachments import Attachments
from recto.files.ports import Upload
from recto.files.types.names import safe_name

AGENT = "agent"
TEXT_BYTES = 65_536
# What is read of a refused file beyond the largest that is taken, to come to the next.
BEYOND_BYTES = 16 * 2**20
# What a form may have beside its files.
REST_BYTES = 2**20
RETRY_SECONDS = 1.0
# A storage that hangs does not keep the server from stopping.
STOP_SECONDS = 5.0
NO_ROOM = "your other uploads under way take the room there is for it; send it again once they have ended"


@dataclass(frozen=True, kw_only=True)
class RefusedFile:
    """A file of a form that was not taken, and why."""

    name: str
    error: str
    code: str


UploadedFile: TypeAlias = Attachment | RefusedFile


@dataclass(frozen=True, kw_only=True)
class Taken:
    """What became of the files of a form, in order. `is_whole` is False where it was not read to its end."""

    entries: Sequence[UploadedFile]
    is_whole: bool


class UnderWay:
    """The uploads at work in this process, and how many bytes of each user's are on their way into the storage."""

    def __init__(self) -> None:
        self._users: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()
        self._forms: set[MultipartForm] = set()
        self._is_stopped = False
        self._ended = asyncio.Event()

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._forms)

    @property
    def bytes(self) -> int:
        """How many bytes of theirs are neither stored nor refused yet."""
        return self._bytes.total()

    @contextmanager
    def one_more(self, owner: str, rules: UploadRules, form: MultipartForm) -> Generator[None]:
        """Count one while it lasts. More than may be at once raise LimitReached."""
        if self._users[owner] >= rules.of_user or self.count >= rules.at_once:
            most = min(rules.of_user, rules.at_once)
            problem = f"{most} uploads are under way already, as many as there may be. Try again in a moment."
            raise LimitReached(problem, retry=RETRY_SECONDS)
        if self._is_stopped:
            form.stop()
        self._users[owner] += 1
        self._forms.add(form)
        try:
            yield
        finally:
            self._users = _less(self._users, owner, 1)
            self._forms.discard(form)
            self._ended.set()

    @contextmanager
    def reserving(self, owner: str) -> Generator[Callable[[int], int]]:
        """Count the bytes of a file as they come, until it is stored or refused.

        What is yielded takes how many came, and tells how many of the owner's are on their way in all.
        """
        size = 0

        def reserve(more: int) -> int:
            nonlocal size
            size += more
            self._bytes[owner] += more
            return self._bytes[owner]

        try:
            yield reserve
        finally:
            self._bytes = _less(self._bytes, owner, size)

    async def stop(self) -> None:
        """End every upload, those that come later too, and wait until nothing is left of them."""
        self._is_stopped = True
        for form in self._forms:
            form.stop()
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                while self._forms:
                    self._ended.clear()
                    await self._ended.wait()


def _less(counts: Counter[str], name: str, less: int) -> Counter[str]:
    """Counts with one lowered. Who has none is not kept."""
    return counts - Counter({name: less})


@dataclass(frozen=True, kw_only=True)
class Intake:
    """Takes the files of one form. `agent` is the one named in its query; `input_of` tells what an agent takes.

    `used` tells how many bytes its owner has stored.
    """

    files: Attachments
    under_way: UnderWay
    owner: str
    used: Callable[[], Awaitable[int]]
    rules: UploadRules
    agent: str | None
    input_of: Callable[[str | None], FileInput]

    async def take(self, form: MultipartForm) -> Taken:
        """Take what can be taken. Where the form cannot be read to its end, whoever's fault it is, nothing is kept."""
        entries = list[UploadedFile]()
        try:
            return await self._take_all(form, entries)
        except BaseException:
            await self._forget(entries)
            raise

    async def _take_all(self, form: MultipartForm, entries: list[UploadedFile]) -> Taken:
        agent, allowed = self.agent, self.input_of(self.agent)
        async with aclosing(form.parts()) as parts:
            async for part in parts:
                if part.heading.filename is None:
                    agent = await _agent_in(part, agent, has_files=bool(entries))
                    allowed = self.input_of(agent)
                    continue
                entries.append(await self._take_one(part, part.heading.filename, allowed, len(entries)))
                if not await part.skip(self._reach(allowed)):
                    return Taken(entries=entries, is_whole=False)
        if not entries:
            raise WireError(where="body", problem="holds no file; send each as a part with a filename")
        return Taken(entries=entries, is_whole=True)

    async def _take_one(self, part: FormPart, name: str, allowed: FileInput, place: int) -> UploadedFile:
        if place >= self.rules.files:
            problem = f"a form takes up to {self.rules.files} files; send this one in another"
            return RefusedFile(name=safe_name(name), error=problem, code="too_many")
        declared, room = part.heading.content_type, await self._room()
        upload = Upload(owner=self.owner, name=name, allowed=allowed, declared=declared, room=room)
        try:
            with self.under_way.reserving(self.owner) as reserve:
                return await self.files.receive(upload, _reserved(part, reserve, room))
        except FileRefused as refused:
            return RefusedFile(name=safe_name(name), error=str(refused), code=refused.code)

    async def _room(self) -> int | None:
        """How many bytes more its owner may store; None: any number."""
        return max(0, self.rules.user_bytes - await self.used()) if self.rules.user_bytes else None

    def _reach(self, allowed: FileInput) -> int | None:
        """How many bytes of a part are read, whatever becomes of it."""
        limits = [limit for limit in (self.rules.upload_bytes, allowed.max_bytes) if limit]
        return min(limits) + BEYOND_BYTES if limits else None

    async def _forget(self, entries: Sequence[UploadedFile]) -> None:
        for entry in entries:
            if isinstance(entry, Attachment):
                await _delete(self.files, entry)


async def _reserved(part: FormPart, reserve: Callable[[int], int], room: int | None) -> AsyncGenerator[bytes]:
    """The bytes of a file, as long as there is room for them beside all else that its owner sends at the time."""
    async for piece in part.pieces():
        # One that is too large by itself is refused as such by whoever takes it.
        if room is not None and reserve(len(piece)) > room >= part.taken:
            raise FileRefused(NO_ROOM, code="quota")
        yield piece


async def _delete(files: Attachments, attachment: Attachment) -> None:
    try:
        await files.delete(attachment.owner, attachment.id)
    except NotFound:
        # Its owner deleted it, or everything they had, in the meantime.
        return


async def _agent_in(part: FormPart, agent: str | None, *, has_files: bool) -> str | None:
    """The agent a field names; other fields are passed over."""
    text = await part.text(TEXT_BYTES)
    if part.heading.name != AGENT:
        return agent
    if has_files:
        problem = "must stand before the files in the form, as it says what files are taken; or name it in the query"
        raise WireError(where=AGENT, problem=problem)
    if agent is not None and agent != text:
        raise WireError(where=AGENT, problem=f"is named twice, as {agent[:64]!r} and {text[:64]!r}; name one")
    return text


def form_limits(rules: UploadRules) -> FormLimits:
    """What a form may have."""
    return FormLimits(all_bytes=_form_bytes(rules), seconds=rules.seconds, form_seconds=rules.form_seconds)


def _form_bytes(rules: UploadRules) -> int | None:
    """The most that is read of a form; None where a file may have any size."""
    return rules.files * rules.upload_bytes + BEYOND_BYTES + REST_BYTES if rules.upload_bytes else None


def check_length(length: str | None, rules: UploadRules) -> None:
    """Refuse a form whose length alone shows that not all of it can be taken. One that is not told is counted later."""
    most = _form_bytes(rules)
    if not length or not length.isascii() or not length.isdigit() or most is None:
        return
    # A number with more digits is larger, and need not be read.
    if len(length) > len(str(most)) or int(length) > most:
        most_files = f"{rules.files} files of up to {rules.upload_bytes:,} bytes"
        raise TooLarge(f"A form takes {most_files}; this one cannot be of such. Send fewer, or smaller ones.")
