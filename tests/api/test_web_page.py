"""C3: the web page as it was built: open to everybody, under a strict policy, and no path leads to another file."""

import gzip
from pathlib import Path

import pytest
import pytest_asyncio

from recto.api.web_page import WEB_FILES, WebPage
from tests.flow.in_process import InProcess, in_process
from tests.support.client import TOKEN

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self'; media-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
NO_PAGE = "default-src 'none'; frame-ancestors 'none'"
FOREVER = "public, max-age=31536000, immutable"
INDEX = b'<!doctype html><script type="module" src="./assets/index-A1.js"></script>'
SCRIPT, ICON = b"export const words = 'said again';\n" * 100, b"<svg/>"
PACKED = {"accept-encoding": "br, gzip"}


@pytest.fixture
def web_files(tmp_path: Path) -> Path:
    folder = tmp_path / "web"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_bytes(INDEX)
    (folder / "icon.svg").write_bytes(ICON)
    (folder / "assets" / "index-A1.js").write_bytes(SCRIPT)
    (folder / "assets" / "index-B2.css").write_bytes(b"p{}")
    (folder / "assets" / "words-C3.woff2").write_bytes(b"wOF2")
    (folder / "notes.txt").write_bytes(b"not of the page")
    return folder


@pytest_asyncio.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, web_files: Path):
    async with in_process(tmp_path, monkeypatch) as server:
        server.api.state.web_page = WebPage(web_files)
        yield server


PAGE = {
    "/": (INDEX, "text/html; charset=utf-8", "no-cache"),
    "/icon.svg": (ICON, "image/svg+xml", "no-cache"),
    "/assets/index-A1.js": (SCRIPT, "text/javascript; charset=utf-8", FOREVER),
    "/assets/index-B2.css": (b"p{}", "text/css; charset=utf-8", FOREVER),
    "/assets/words-C3.woff2": (b"wOF2", "font/woff2", FOREVER),
}


async def test_C3_a_file_of_the_page_needs_no_credential_and_says_what_it_is(server: InProcess):
    for path, expected in PAGE.items():
        got = await server.send("GET", path, token=None)
        assert (got.status, got.headers["x-content-type-options"]) == (200, "nosniff")
        assert (got.body, got.headers["content-type"], got.headers["cache-control"]) == expected
        assert got.headers["content-security-policy"] == (POLICY if path == "/" else NO_PAGE)
        assert (await server.send("HEAD", path, token=None)).headers == got.headers
    assert (await server.send("POST", "/", {}, token=None)).status == 401
    assert (await server.send("POST", "/", {})).status == 405


async def test_C3_who_has_a_file_of_the_page_is_not_sent_it_again(server: InProcess):
    first = await server.send("GET", "/", token=None)
    etag_header = {"if-none-match": first.headers["etag"]}
    again = await server.send("GET", "/", token=None, headers=etag_header)
    assert (again.status, again.body, again.headers["etag"]) == (304, b"", first.headers["etag"])
    assert again.headers["content-security-policy"] == POLICY
    assert (await server.send("GET", "/icon.svg", token=None, headers=etag_header)).status == 200


async def test_C3_a_file_of_the_page_is_packed_for_who_takes_that_under_a_tag_of_its_own(server: InProcess):
    path = "/assets/index-A1.js"
    plain, packed = [await server.send("GET", path, token=None, headers=headers) for headers in ({}, PACKED)]
    assert (packed.headers["content-encoding"], gzip.decompress(packed.body)) == ("gzip", SCRIPT)
    assert packed.headers["content-length"] == str(len(packed.body))
    assert (plain.headers["vary"], packed.headers["vary"]) == ("Accept-Encoding", "Accept-Encoding")
    assert plain.headers["etag"] != packed.headers["etag"]
    rejection = await server.send("GET", path, token=None, headers={"accept-encoding": "gzip;q=0"})
    assert "content-encoding" not in rejection.headers
    # What gets no smaller goes out as it is.
    small = await server.send("GET", "/icon.svg", token=None, headers=PACKED)
    assert ("content-encoding" in small.headers, small.body) == (False, ICON)


NO_FILES = (
    "/assets/none.js",
    "/assets/",
    "/assets/..%2findex.html",
    "/assets/../notes.txt",
    "/assets/..%5c..%5capp",
    "/assets/%2e%2e%2fnotes.txt",
    "/assets/%00",
    "/assets//etc/passwd",
    "/assets/%2fetc%2fpasswd",
    "/assets/..%2fapi%2fv1%2fagent%2fthreads",
)


async def test_C3_no_other_path_leads_to_a_file(server: InProcess):
    for path in NO_FILES:
        got = await server.send("GET", path, token=None)
        assert (got.status, got.headers["content-type"]) == (404, "application/problem+json"), path
        assert got.headers["cache-control"] == "no-store"
    for path in ("/notes.txt", "/index.html", "/assets", "/web/index.html"):
        assert (await server.send("GET", path, token=None)).status == 401
    assert (await server.send("GET", "/notes.txt")).status == 404


async def test_C3_a_page_that_is_built_while_the_server_runs_is_found(server: InProcess, web_files: Path):
    (web_files / "index.html").rename(web_files / "later.html")
    server.api.state.web_page = WebPage(web_files)
    assert b"is not built" in (await server.send("GET", "/", token=None)).body
    assert (await server.send("GET", "/assets/index-A1.js", token=None)).status == 404
    (web_files / "later.html").rename(web_files / "index.html")
    assert (await server.send("GET", "/", token=None)).body == INDEX


async def test_C3_a_server_has_the_page_that_make_web_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with in_process(tmp_path, monkeypatch) as server:
        page = await server.send("GET", "/", token=None)
    assert page.body == (WEB_FILES / "index.html").read_bytes(), "Run: make web"
    assert TOKEN.encode() not in page.body
