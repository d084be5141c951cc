"""The storage that a setting names: a folder of this machine, or a bucket. No error shows the value."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from recto.errors import SettingsError
from recto.files.ports import LabelledStorage
from recto.files.storage.local_storage import LocalStorage
from recto.files.storage.presign import S3Credentials
from recto.files.storage.staged_file import PRIVATE_FOLDER

SETTING = "RECTO_STORAGE_URL"
FORMS = "write file:///FOLDER or s3://BUCKET/PREFIX?endpoint=URL&region=REGION, or leave it out for the data folder"
PARAMETERS = frozenset({"endpoint", "region"})
_BUCKET = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{1,62}")
_PREFIX = re.compile(r"[0-9A-Za-z._/-]*")


def open_storage(url: str | None, folder: Path, *, is_durable: bool = True) -> LabelledStorage:
    """Open the storage of a URL; None means the private folder. Raise SettingsError."""
    if url is None:
        return _in_folder(folder, is_shared=False, is_durable=is_durable)
    place = read_storage_url(url)
    return _in_folder(place, is_shared=True, is_durable=is_durable) if isinstance(place, Path) else place


def read_storage_url(url: str) -> Path | LabelledStorage:
    """Return the folder or the bucket of a URL, without creating it or connecting to it."""
    try:
        split = urlsplit(url)
    except ValueError:
        raise storage_error(FORMS) from None
    match split.scheme:
        case "file":
            path = Path(unquote(split.path))
            if split.netloc not in ("", "localhost") or split.query or split.fragment or "\0" in str(path):
                raise storage_error(FORMS)
            if not path.is_absolute() or path == Path("/"):
                raise storage_error("a folder is named by its whole path: write file:///FOLDER")
            return path
        case "s3":
            return _in_bucket(split, os.environ)
        case _:
            raise storage_error(FORMS)


def _in_folder(folder: Path, *, is_shared: bool, is_durable: bool) -> LabelledStorage:
    try:
        folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        if not is_shared:
            folder.chmod(PRIVATE_FOLDER)
        return LocalStorage(folder, is_shared=is_shared, is_durable=is_durable)
    except OSError as error:
        problem = f"its folder cannot be used ({error.strerror}). Name one that this user may write to"
        raise storage_error(problem) from error


def _in_bucket(split: SplitResult, environment: Mapping[str, str]) -> LabelledStorage:
    try:
        # Here: the import is slow, and most servers use a folder.
        from recto.files.storage.s3_storage import Bucket, S3Storage
    except ModuleNotFoundError as error:
        raise storage_error(f"a bucket needs the package {error.name}: install recto[s3]") from error
    keys, _, name = split.netloc.rpartition("@")
    prefix = unquote(split.path).strip("/")
    options = dict(parse_qsl(split.query, keep_blank_values=True))
    is_named = _BUCKET.fullmatch(name) and _PREFIX.fullmatch(prefix)
    if not is_named or split.fragment or not options.keys() <= PARAMETERS:
        raise storage_error(FORMS)
    if prefix and not {"", ".", ".."}.isdisjoint(prefix.split("/")):
        raise storage_error("its prefix has a step that is empty or only dots: write s3://BUCKET/FOLDER/FOLDER")
    endpoint = options.get("endpoint", "").rstrip("/") or None
    if endpoint is not None and not re.fullmatch(r"https?://[^/?#@\s]+", endpoint):
        raise storage_error("its endpoint is no address: write http://HOST:PORT or https://HOST")
    region = options.get("region") or environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    if keys:
        access, _, secret = keys.partition(":")
        access, secret, token = unquote(access), unquote(secret), None
    else:
        access, secret = environment.get("AWS_ACCESS_KEY_ID", ""), environment.get("AWS_SECRET_ACCESS_KEY", "")
        token = environment.get("AWS_SESSION_TOKEN")
    if not access or not secret:
        raise storage_error("there are no credentials for the bucket. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
    who = S3Credentials(access_key=access, secret_key=secret, token=token, region=region or "us-east-1")
    return S3Storage(Bucket(name=name, who=who, prefix=prefix, endpoint=endpoint))


def storage_error(problem: str) -> SettingsError:
    """Return the error for a wrong storage setting. It hides the value, which may contain credentials."""
    return SettingsError(name=SETTING, value="(hidden)", allowed=problem)
