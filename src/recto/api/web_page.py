"""The built web page, served from this package to everybody. Request paths never become file paths."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Annotated

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from recto.api.codings import accepts_gzip
from recto.api.description import STYLE, content_policy
from recto.api.files.serving import matches_tag
from recto.api.problems import problem
from recto.api.route import CHAT, in_path

# Output of `make web`. It contains no Python.
WEB_FILES = Path(__file__).resolve().parent.parent / "web"
HOME, ICON, ASSETS = "/", "/icon.svg", "/assets/"
# Policy of the page: only its own scripts and styles, nothing inline or external, no frames.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self'; media-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# Cache headers. Assets never change, because their names contain a digest of their content.
IMMUTABLE, REVALIDATE = "public, max-age=31536000, immutable", "no-cache"
MEDIA = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
OTHER_MEDIA = "application/octet-stream"
NO_ASSET = "The web page has no such file. If the page was rebuilt, reload it."
# Example request with a plain text message, which can be edited or sent twice without a new id.
CURL = f"""\
curl -N http://127.0.0.1:8787{CHAT} \\
  -H "Authorization: Bearer TOKEN" -H "Content-Type: application/json" \\
  -d '{{"message": "I need career advice."}}'"""
# The token after the # never leaves the browser. A token with characters that are special to a shell is not shown,
# because a stranger may have made the link.
SCRIPT = """\
const line = document.getElementById("line"), token = new URLSearchParams(location.hash.slice(1)).get("token");
const put = (old, now) => { line.textContent = line.textContent.replace(old, () => now); };
put("http://127.0.0.1:8787", location.origin);
if (token) history.replaceState(null, "", location.pathname);
if (/^[\\w.~+=-]{16,}$/.test(token || "")) {
  put("TOKEN", token);
  document.getElementById("token").textContent = "The command contains your token; the address bar no longer does.";
}"""
NOT_BUILT = f"""\
<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Recto</title><style>{STYLE}</style></head><body><h1>Recto</h1>
<p>An agent server. It keeps every conversation in a log that is never edited, and builds a fresh page from it for each
model call, with a manifest that explains every part. It speaks AG-UI.</p>
<p>The web page is not built: run <code>make web</code> in the server's source folder, then reload.</p>
<h2>Try it</h2><pre id="line">{escape(CURL)}</pre>
<p id="token">The server prints TOKEN when it starts, and stores it in the file <code>token</code> of its data folder
(<code>recto-data</code> by default). If API keys or JWTs are configured, use one of these.</p>
<h2>Documentation</h2>
<p><a href="/docs">The API, with examples</a>, and as <a href="/openapi.json">OpenAPI</a>: no token needed.</p>
<script>{SCRIPT}</script></body></html>
"""
AssetName = Annotated[str, in_path("The file's name.")]


@dataclass(frozen=True, kw_only=True)
class BuiltFile:
    """A file of the page. `packed` is None if gzip saves nothing."""

    content: bytes
    packed: bytes | None
    digest: str
    headers: Mapping[str, str]


class WebPage:
    """The files of the page, read on first use. Until the page is built, each request checks again."""

    def __init__(self, folder: Path = WEB_FILES) -> None:
        self._folder = folder
        self._files: Mapping[str, BuiltFile] = {}

    def find(self, path: str) -> BuiltFile | None:
        """Return the file at a path of the server."""
        if not self._files and (self._folder / "index.html").is_file():
            page, icon, policy = (
                self._folder / "index.html",
                self._folder / "icon.svg",
                {"content-security-policy": POLICY},
            )
            fixed, immutable = {"cache-control": REVALIDATE}, {"cache-control": IMMUTABLE}
            self._files = {
                HOME: _make_file(page, fixed | policy),
                **({ICON: _make_file(icon, fixed)} if icon.is_file() else {}),
                **{f"{ASSETS}{one.name}": _make_file(one, immutable) for one in self._folder.glob("assets/*")},
            }
        return self._files.get(path)


def _make_file(file: Path, headers: Mapping[str, str]) -> BuiltFile:
    content = file.read_bytes()
    packed = gzip.compress(content, mtime=0)
    return BuiltFile(
        content=content,
        packed=packed if len(packed) < len(content) else None,
        digest=hashlib.sha256(content).hexdigest()[:32],
        headers={**headers, "content-type": MEDIA.get(file.suffix, OTHER_MEDIA), "vary": "Accept-Encoding"},
    )


async def get_web_page(request: Request) -> Response:
    """Serve the page; if it is not built, instructions how to build it and to call the API."""
    policy = {"content-security-policy": content_policy(script=SCRIPT)}
    return _serve(request, HOME) or HTMLResponse(NOT_BUILT, headers=policy)


async def get_icon(request: Request) -> Response:
    """Serve the page's icon."""
    return _serve(request, ICON) or problem(404, "not_found", NO_ASSET)


async def get_asset(request: Request, name: AssetName) -> Response:
    """Serve a script, style or other part of the page."""
    return _serve(request, f"{ASSETS}{name}") or problem(404, "not_found", NO_ASSET)


def _serve(request: Request, path: str) -> Response | None:
    """Return a file of the page; None if it does not exist."""
    page: WebPage = request.app.state.web_page
    file = page.find(path)
    if file is None:
        return None
    packed = file.packed if accepts_gzip(request.headers) else None
    # An ETag identifies exact bytes, so the packed form has another ETag.
    coding = {} if packed is None else {"content-encoding": "gzip"}
    tag = f'"{file.digest}"' if packed is None else f'"{file.digest}-gzip"'
    headers = {**file.headers, **coding, "etag": tag}
    if matches_tag(request.headers.get("if-none-match"), tag):
        return Response(status_code=304, headers=headers)
    return Response(file.content if packed is None else packed, headers=headers)
