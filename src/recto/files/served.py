"""As what a file is served: under its type where a browser can do nothing with it but show or save it."""

from __future__ import annotations

import re

# Types a browser shows without running anything in them.
SHOWN = frozenset(
    {
        *(f"image/{kind}" for kind in ("png", "jpeg", "gif", "webp", "avif", "bmp")),
        *(f"audio/{kind}" for kind in ("mpeg", "wav", "ogg", "mp4", "webm")),
        *(f"video/{kind}" for kind in ("mp4", "webm", "ogg")),
        "application/pdf",
        "text/plain",
    }
)
# Types a browser only saves. Everything else might be run by one, whatever it is called.
SAVED = re.compile(
    r"application/(vnd\.(?!.*\+xml)[a-z0-9.+-]+|msword|rtf|json|zip|epub\+zip)|text/(csv|markdown|tab-separated-values)"
    r"|image/(tiff|heic|heif)|audio/(flac|aac|midi)|video/(quicktime|x-msvideo|x-matroska)"
)
UNKNOWN = "application/octet-stream"


def served_as(mime_type: str) -> tuple[str, bool]:
    """The type a file is served as, and whether a browser may show it where it stands."""
    essence = mime_type.partition(";")[0].strip().lower()
    if essence in SHOWN:
        return essence, True
    return (essence if SAVED.fullmatch(essence) else UNKNOWN), False
