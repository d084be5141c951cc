"""Settings of files: uploads, reading of documents, fetching from elsewhere, pictures in pages."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from recto.config.access_settings import NETWORKS
from recto.config.setting import COUNT, COUNT_OR_ZERO, DAYS, SECONDS, Range, setting

MEBIBYTE, GIBIBYTE = 2**20, 2**30
# More children than this do not read faster: documents are read one page at a time as they are asked for.
MOST_CHILDREN = 4
BUBBLEWRAP = "bwrap"
_LANGUAGES = re.compile(r"[A-Za-z0-9_]+(\+[A-Za-z0-9_]+)*")


def _check_languages(text: str) -> str:
    if text and not _LANGUAGES.fullmatch(text):
        raise ValueError("it is languages as tesseract names them, such as chi_sim+eng, or nothing")
    return text


@dataclass(frozen=True, kw_only=True)
class FileSettings:
    """What a user may have."""

    upload_bytes: int = setting(GIBIBYTE, "Bytes of one file; 0 is no limit.", COUNT_OR_ZERO)
    user_bytes: int = setting(10 * GIBIBYTE, "Bytes of all files of one user; 0 is no limit.", COUNT_OR_ZERO)
    user_files: int = setting(100_000, "Files of one user; 0 is no limit.", COUNT_OR_ZERO)
    unused_hours: float = setting(
        24.0, "How long a file is kept that no thread names; 0 is for ever.", Range(least=0, most=876_000)
    )


@dataclass(frozen=True, kw_only=True)
class UploadRules(FileSettings):
    """How files may come, and what a user may have.

    `seconds` are of silence; all that is no file may take as many together, a whole form `form_seconds`. A user has a
    limit of forms at once: who sends slowly keeps nobody else out.
    """

    at_once: int = setting(100, "Uploads at once.", COUNT, name="uploads")
    of_user: int = setting(50, "Uploads of one user at once.", COUNT, name="user_uploads")
    files: int = setting(20, "Files in one upload.", COUNT, name="upload_files")
    seconds: float = setting(60.0, "Silence after which an upload is given up.", SECONDS, name="upload_seconds")
    form_seconds: float = 3_600.0
    url_seconds: float = setting(
        86_400.0, "How long the url of a file in an answer holds.", Range(least=60, most=604_800)
    )
    redirects: bool = setting(
        True, "Whether a reader of a file in a bucket is sent on to it. See [files](files.md#where-files-are-kept)."
    )


@dataclass(frozen=True, kw_only=True)
class ParseLimits:
    """What one document may cost.

    `seconds` count while the child works, not while it waits for its turn. `ocr_seconds` are more of them, once a scan
    of it is being read.
    """

    seconds: float = setting(60.0, "Seconds one document may take to be read.", SECONDS, name="parse_seconds")
    # What a parser needs before it has read anything; with less no document could be.
    memory_bytes: int = setting(
        512 * MEBIBYTE,
        "Bytes of memory reading one document may take.",
        Range(least=256 * MEBIBYTE),
        name="parse_memory_bytes",
    )
    file_bytes: int = setting(100 * MEBIBYTE, "Bytes of a file that is read.", COUNT, name="parse_bytes")
    pages: int = setting(
        5_000, "Pages that are read of a document; the text says where it ends.", COUNT, name="parse_pages"
    )
    characters: int = setting(100_000_000, "Characters that are read of a document.", COUNT, name="parse_characters")
    ocr_pages: int = setting(50, "Scanned pages that are read of a document.", COUNT_OR_ZERO)
    ocr_seconds: float = setting(240.0, "Seconds the scans of a document may take.", SECONDS)


@dataclass(frozen=True, kw_only=True)
class DocumentSettings:
    """How documents are read and for how long they are kept.

    A document that cannot be read is not tried again for `failures_seconds`.
    """

    limits: ParseLimits = ParseLimits()
    ocr: str = setting(
        "chi_sim+eng",
        "Languages scans are read in, where tesseract is installed; empty: they are not.",
        Range(check=_check_languages),
    )
    kept_bytes: int = setting(
        5 * GIBIBYTE,
        "Bytes of the texts of documents that are kept; 0 is no limit.",
        COUNT_OR_ZERO,
        name="parsed_bytes",
    )
    kept_days: float = setting(
        30.0, "How long such texts are kept after the last reading; 0 is for ever.", DAYS, name="parsed_days"
    )
    failures_seconds: float = 600
    open_documents: int = 64


@dataclass(frozen=True, kw_only=True)
class PoolSettings:
    """Processes that read documents.

    `of_user` are the most that one user's documents have at a time; with 0 it is by the number of children. Up to
    `waiting_bytes` of documents wait in `folder`; without one, in that for temporary files. A child is replaced after
    some `documents`; of those idle for long only one stays.
    """

    children: int = setting(
        0,
        "Processes that read documents; 0: as many as there are processors, 2 to 4.",
        Range(least=0, most=64),
        name="parse_children",
    )
    of_user: int = 0
    waiting: int = setting(100, "Documents that may wait to be read.", COUNT, name="parse_waiting")
    waiting_bytes: int = 1_024 * MEBIBYTE
    slow_seconds: float = setting(
        5.0,
        "After how long a document is read beside the others, in up to as many processes again: slow ones hold up "
        "nobody.",
        SECONDS,
        name="parse_slow_seconds",
    )
    documents: int = 200
    idle_seconds: float = 300
    start_seconds: float = 60
    sandbox: str = BUBBLEWRAP
    folder: Path | None = None

    @property
    def places(self) -> int:
        """How many documents are parsed at a time."""
        return self.children or min(MOST_CHILDREN, max(2, os.cpu_count() or 1))

    @property
    def places_of_user(self) -> int:
        """How many of them may be one user's."""
        return self.of_user or max(1, self.places - 1)


@dataclass(frozen=True, kw_only=True)
class OutboundSettings:
    """What it may cost to fetch files from other addresses, where an agent's `urls` allow it.

    `connect_seconds` are until connected, `idle_seconds` of silence.
    """

    at_once: int = setting(16, "Files fetched at once.", COUNT, name="fetches")
    of_user: int = setting(4, "Files fetched for one user at once.", COUNT, name="user_fetches")
    seconds: float = setting(20.0, "Seconds to fetch one file.", SECONDS, name="fetch_seconds")
    connect_seconds: float = 5.0
    idle_seconds: float = 10.0
    file_bytes: int = setting(50 * MEBIBYTE, "Bytes of a file that is fetched.", COUNT, name="fetch_bytes")
    redirects: int = setting(5, "Redirects on the way to one.", Range(least=0, most=20), name="fetch_redirects")
    networks: str = setting(
        "",
        "Networks such as `10.0.0.0/8`, by commas, that may be fetched from though they are not public.",
        NETWORKS,
        name="fetch_networks",
    )


@dataclass(frozen=True, kw_only=True)
class PictureSettings:
    """Pictures in pages.

    `kept` is how much of them stays in memory between runs. `by_url`: providers can reach our urls, so none is read.
    """

    image_urls: bool | None = setting(
        None,
        "Whether pictures go to the model by url or as bytes; by default by url where `public_url` names another "
        "machine.",
    )
    count: int = setting(20, "Pictures in a page.", COUNT_OR_ZERO, name="page_images")
    each: int = setting(5_000_000, "Characters in base64 of a picture that goes as bytes.", COUNT, name="image_bytes")
    page: int = setting(
        20_000_000, "Characters in base64 of all of a page that go as bytes.", COUNT, name="page_image_bytes"
    )
    kept: int = 64_000_000
    by_url: bool = False
