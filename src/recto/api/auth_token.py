"""The local token: given, or made once and kept in the data folder. Refuses addresses it is too little for."""

from __future__ import annotations

import logging
import os
import secrets
import stat
from pathlib import Path

from recto.api.auth_keys import KEY
from recto.api.rate import is_loopback
from recto.errors import NOT_SHOWN, SettingsError

LOGGER = logging.getLogger("recto.auth")
FILE = "token"
BYTES = 32
MOST_BYTES = 4_096
PRIVATE = 0o600
OTHERS = 0o077
# A link in its place would have us read or change a file elsewhere. Windows has no such thing.
NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def check_binding(host: str, has_accounts: bool) -> None:
    """Raise where others could reach the server and nobody could tell them apart."""
    if has_accounts or is_loopback(host):
        return
    allowed = (
        "others can reach that address, so users need credentials of their own: set RECTO_API_KEYS (user:key,...), or "
        "one of RECTO_JWT_SECRET, RECTO_JWT_PUBLIC_KEY and RECTO_JWT_JWKS_URL. Without them: 127.0.0.1 or ::1"
    )
    raise SettingsError(name="host", value=host, allowed=allowed)


def local_token(folder: Path, given: str | None) -> str:
    """The token given, else that in the folder's file, else a new one that is written there."""
    if given is not None:
        return given
    file = folder / FILE
    try:
        if not file.exists() and not file.is_symlink():
            _write(file, secrets.token_urlsafe(BYTES))
        token = _read(file)
    except OSError as error:
        raise _unusable(file, f"it cannot be used ({error.strerror}). Remove it, or set RECTO_TOKEN") from error
    if not KEY.fullmatch(token):
        raise _unusable(file, "it holds no token. Remove it, and the next start makes a new one")
    return token


def _write(file: Path, token: str) -> None:
    # Whole or not at all, and never readable by others, not even for a moment.
    draft = file.with_name(f"{file.name}.new")
    draft.unlink(missing_ok=True)
    number = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK, PRIVATE)
    with os.fdopen(number, "w", encoding="ascii") as opened:
        opened.write(token + "\n")
        opened.flush()
        os.fsync(number)
    draft.replace(file)


def _read(file: Path) -> str:
    number = os.open(file, os.O_RDONLY | NO_LINK)
    with os.fdopen(number, "rb") as opened:
        mode = os.fstat(number).st_mode
        if os.name == "posix" and stat.S_IMODE(mode) & OTHERS:
            os.fchmod(number, PRIVATE)
            LOGGER.warning("Others could read %s; now only you can. If they may have: remove it for a new token.", file)
        return opened.read(MOST_BYTES).decode("utf-8", "replace").strip()


def _unusable(file: Path, allowed: str) -> SettingsError:
    return SettingsError(name="RECTO_TOKEN", value=NOT_SHOWN, allowed=f"the file is {file}, and {allowed}")
