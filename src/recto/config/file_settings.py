"""Settings of files: uploads, document parsing, outbound fetches, pictures in pages."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from recto.config.access_settings import NETWORKS
from recto.config.setting import COUNT, COUNT_OR_ZERO, DAYS, SECONDS, Range, setting

MEBIBYTE, GIBIBYTE = 2**20, 2**30
# Maximum number of child processes. More do not read faster, because a document is read page by page on demand.
MOST_CHILDREN = 4
BUBBLEWRAP = "bwrap"
_LANGUAGES = re.compile(r"[A-Za-z0-9_]+(\+[A-Za-z0-9_]+)*")


def _check_languages(text: str) -> str:
    if text and not _LANGUAGES.fullmatch(text):
        raise ValueError("it is languages as tesseract names them, such as chi_sim+eng, or nothing")
    return text


@dataclass(frozen=True, kw_only=True)
class FileSettings:
    """Quotas of a user."""

    upload_bytes: int = setting(GIBIBYTE, "Bytes per file; 0 sets no limit.", COUNT_OR_ZERO)
    user_bytes: int = setting(10 * GIBIBYTE, "Bytes of all files of a user; 0 sets no limit.", COUNT_OR_ZERO)
    user_files: int = setting(100_000, "Files per user; 0 sets no limit.", COUNT_OR_ZERO)
    unused_hours: float = setting(
        24.0, "Hours to keep a file that no thread references; 0 keeps it forever.", Range(least=0, most=876_000)
    )


@dataclass(frozen=True, kw_only=True)
class UploadRules(FileSettings):
    """Limits of uploads and quotas of a user.

    `seconds` limits pauses in the upload and the total time of all form fields; `form_seconds` limits a whole form.
    """

    at_once: int = setting(100, "Concurrent uploads.", COUNT, name="uploads")
    of_user: int = setting(50, "Concurrent uploads per user.", COUNT, name="user_uploads")
    files: int = setting(20, "Files per upload.", COUNT, name="upload_files")
    seconds: float = setting(
        60.0, "Seconds of silence before the server aborts an upload.", SECONDS, name="upload_seconds"
    )
    form_seconds: float = 3_600.0
    url_seconds: float = setting(
        86_400.0, "Seconds that a file URL in a response stays valid.", Range(least=60, most=604_800)
    )
    redirects: bool = setting(
        True, "Redirect readers of a file in a bucket to the bucket. See [files](files.md#where-files-are-kept)."
    )


@dataclass(frozen=True, kw_only=True)
class ParseLimits:
    """Limits of parsing one document.

    `seconds` counts only while the child works. Once a scan is being recognised, `ocr_seconds` is added.
    """

    seconds: float = setting(60.0, "Seconds to parse one document.", SECONDS, name="parse_seconds")
    # `least` is the memory that a parser needs before it reads anything.
    memory_bytes: int = setting(
        512 * MEBIBYTE,
        "Bytes of memory for parsing one document.",
        Range(least=256 * MEBIBYTE),
        name="parse_memory_bytes",
    )
    file_bytes: int = setting(100 * MEBIBYTE, "Bytes of a file that is parsed.", COUNT, name="parse_bytes")
    pages: int = setting(
        5_000, "Pages parsed per document; the text states where it was cut.", COUNT, name="parse_pages"
    )
    characters: int = setting(100_000_000, "Characters parsed per document.", COUNT, name="parse_characters")
    ocr_pages: int = setting(50, "Scanned pages recognised per document.", COUNT_OR_ZERO)
    ocr_seconds: float = setting(240.0, "Seconds of text recognition per document.", SECONDS)


@dataclass(frozen=True, kw_only=True)
class DocumentSettings:
    """Document parsing and its cache. After a failure, a document is not parsed again for `failures_seconds`."""

    limits: ParseLimits = ParseLimits()
    ocr: str = setting(
        "chi_sim+eng",
        "Languages of text recognition, if tesseract is installed; empty disables it.",
        Range(check=_check_languages),
    )
    kept_bytes: int = setting(
        5 * GIBIBYTE, "Bytes of cached document texts; 0 sets no limit.", COUNT_OR_ZERO, name="parsed_bytes"
    )
    kept_days: float = setting(
        30.0, "Days to keep a cached text after its last use; 0 keeps it forever.", DAYS, name="parsed_days"
    )
    failures_seconds: float = 600
    open_documents: int = 64


@dataclass(frozen=True, kw_only=True)
class PoolSettings:
    """Parser processes.

    `of_user` limits the concurrent documents of a user; 0 derives the limit from the number of children. Up to
    `waiting_bytes` of documents wait in `folder` (by default the temporary folder). A child is replaced after
    `documents` documents. Only one idle child keeps running.
    """

    children: int = setting(
        0,
        "Parser processes; 0 selects the number of processors, within 2 to 4.",
        Range(least=0, most=64),
        name="parse_children",
    )
    of_user: int = 0
    waiting: int = setting(100, "Documents that may wait for a parser.", COUNT, name="parse_waiting")
    waiting_bytes: int = 1_024 * MEBIBYTE
    slow_seconds: float = setting(
        5.0,
        "Seconds after which a document moves to one of as many extra processes, so that slow documents delay no "
        "others.",
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
        """Maximum number of documents parsed at the same time."""
        return self.children or min(MOST_CHILDREN, max(2, os.cpu_count() or 1))

    @property
    def places_of_user(self) -> int:
        """Maximum number of documents of one user parsed at the same time."""
        return self.of_user or max(1, self.places - 1)


@dataclass(frozen=True, kw_only=True)
class OutboundSettings:
    """Limits of fetching files from urls that an agent's `urls` setting allows.

    `idle_seconds` limits pauses in the transfer.
    """

    at_once: int = setting(16, "Files fetched at once.", COUNT, name="fetches")
    of_user: int = setting(4, "Files fetched at once per user.", COUNT, name="user_fetches")
    seconds: float = setting(20.0, "Seconds to fetch one file.", SECONDS, name="fetch_seconds")
    connect_seconds: float = 5.0
    idle_seconds: float = 10.0
    file_bytes: int = setting(50 * MEBIBYTE, "Bytes of a fetched file.", COUNT, name="fetch_bytes")
    redirects: int = setting(5, "Redirects followed per fetch.", Range(least=0, most=20), name="fetch_redirects")
    networks: str = setting(
        "",
        "Comma-separated private networks, such as `10.0.0.0/8`, that may be fetched from.",
        NETWORKS,
        name="fetch_networks",
    )


@dataclass(frozen=True, kw_only=True)
class PictureSettings:
    """Pictures in pages.

    `cache_bytes` is the memory for pictures between runs. With `by_url`, providers fetch the URLs.
    """

    image_urls: bool | None = setting(
        None,
        "Send pictures to the model as URLs instead of bytes. By default true if `public_url` names another machine.",
    )
    count: int = setting(20, "Pictures per page.", COUNT_OR_ZERO, name="page_images")
    each: int = setting(5_000_000, "Base64 characters per picture sent as bytes.", COUNT, name="image_bytes")
    page: int = setting(
        20_000_000, "Base64 characters of all pictures of a page sent as bytes.", COUNT, name="page_image_bytes"
    )
    cache_bytes: int = 64_000_000
    by_url: bool = False
