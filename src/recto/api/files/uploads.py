"""Uploads in progress in this process, and the limits of a form."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

from recto.api.files.multipart import FormLimits, MultipartForm
from recto.config.file_settings import UploadRules
from recto.errors import LimitReached, TooLarge

# Maximum bytes of a rejected file to skip beyond the size limit, to reach the next file.
BEYOND_BYTES = 16 * 2**20
# Maximum bytes of a form besides its files.
REST_BYTES = 2**20
RETRY_SECONDS = 1.0
# Maximum time that a hanging storage delays shutdown.
STOP_SECONDS = 5.0


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
        """Stop current and later uploads, and wait for the current ones to end."""
        self._is_stopped = True
        for form in self._forms:
            form.stop()
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                while self._forms:
                    self._end.clear()
                    await self._end.wait()


def form_limits(rules: UploadRules) -> FormLimits:
    """Return the limits of a form."""
    return FormLimits(all_bytes=_form_bytes(rules), seconds=rules.seconds, form_seconds=rules.form_seconds)


def _form_bytes(rules: UploadRules) -> int | None:
    """Return the maximum bytes of a form; None without a file size limit."""
    return rules.files * rules.upload_bytes + BEYOND_BYTES + REST_BYTES if rules.upload_bytes else None


def check_length(length: str | None, rules: UploadRules) -> None:
    """Reject a form whose Content-Length exceeds the limit. `MultipartForm` checks the actual size."""
    most = _form_bytes(rules)
    if not length or not length.isascii() or not length.isdigit() or most is None:
        return
    # Compare the number of digits first, to avoid parsing a long number.
    if len(length) > len(str(most)) or int(length) > most:
        limits = f"{rules.files} files of up to {rules.upload_bytes:,} bytes"
        raise TooLarge(f"A form may contain {limits}; this one is larger. Send fewer or smaller files.")
