"""The built web page, served from this package to everybody. Request paths never become file paths."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from starlette.requests import Request
from starlette.responses import Response

from recto.api.codings import takes_gzip
from recto.api.files.serving import names_tag
from recto.api.home_page import get_home
from recto.api.parameters import in_path
from recto.api.problems import problem

# Output of `make web`. It contains no Python.
BUILT = Path(__file__).resolve().parent.parent / "web"
HOME, ICON, ASSETS = "/", "/icon.svg", "/assets/"
# Own scripts and styles only: nothing inline, nothing external, no frame.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self'; media-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# Names of assets contain a digest of their content.
FOREVER, ASK_AGAIN = "public, max-age=31536000, immutable", "no-cache"
MEDIA = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
OTHER_MEDIA = "application/octet-stream"
NO_ASSET = "The web page has no such file. Where it had one, it was built anew since: load the page again."
AssetName = Annotated[str, in_path("The file's name, as the page has it.")]


@dataclass(frozen=True, kw_only=True)
class BuiltFile:
    """A file of the page. `packed` is None if gzip saves nothing."""

    content: bytes
    packed: bytes | None
    digest: str
    headers: Mapping[str, str]


class WebPage:
    """The files of the page, read on first use. Until it is built, each request checks again."""

    def __init__(self, folder: Path = BUILT) -> None:
        self._folder = folder
        self._files: Mapping[str, BuiltFile] = {}

    def find(self, path: str) -> BuiltFile | None:
        """Return the file at a path of the server."""
        if not self._files and (self._folder / "index.html").is_file():
            self._files = dict(_read(self._folder))
        return self._files.get(path)


def _read(folder: Path) -> Iterator[tuple[str, BuiltFile]]:
    yield HOME, _built(folder / "index.html", {"cache-control": ASK_AGAIN, "content-security-policy": POLICY})
    for icon in folder.glob(ICON.removeprefix("/")):
        yield ICON, _built(icon, {"cache-control": ASK_AGAIN})
    for asset in sorted((folder / "assets").glob("*")):
        yield f"{ASSETS}{asset.name}", _built(asset, {"cache-control": FOREVER})


def _built(file: Path, headers: Mapping[str, str]) -> BuiltFile:
    content = file.read_bytes()
    packed = gzip.compress(content, mtime=0)
    return BuiltFile(
        content=content,
        packed=packed if len(packed) < len(content) else None,
        digest=hashlib.sha256(content).hexdigest()[:32],
        headers={**headers, "content-type": MEDIA.get(file.suffix, OTHER_MEDIA), "vary": "Accept-Encoding"},
    )


async def get_web_page(request: Request) -> Response:
    """Serve the page, or the home page if it is not built."""
    file = _web_page(request).find(HOME)
    return _respond(request, file) if file else await get_home(request)


async def get_icon(request: Request) -> Response:
    """Serve the page's icon."""
    return _found(request, ICON)


async def get_asset(request: Request, name: AssetName) -> Response:
    """Serve a script, style or other part of the page."""
    return _found(request, f"{ASSETS}{name}")


def _found(request: Request, path: str) -> Response:
    file = _web_page(request).find(path)
    return _respond(request, file) if file else problem(404, "not_found", NO_ASSET)


def _web_page(request: Request) -> WebPage:
    found: WebPage = request.app.state.web_page
    return found


def _respond(request: Request, file: BuiltFile) -> Response:
    packed = file.packed if takes_gzip(request.headers) else None
    # An ETag names exact bytes, so the packed form has its own.
    coding = {} if packed is None else {"content-encoding": "gzip"}
    tag = f'"{file.digest}"' if packed is None else f'"{file.digest}-gzip"'
    headers = {**file.headers, **coding, "etag": tag}
    if names_tag(request.headers.get("if-none-match"), tag):
        return Response(status_code=304, headers=headers)
    return Response(file.content if packed is None else packed, headers=headers)
