"""C3: what is at `/` where the web page is not built: open, tells nothing of anybody, one script; its line works."""

import json
import re
import subprocess
from html import unescape
from pathlib import Path

import pytest
import pytest_asyncio

from recto.api.web_page import SCRIPT, WebPage
from tests.clients.node import NODE
from tests.flow.in_process import InProcess, events_of, in_process
from tests.support.client import TOKEN, HttpReply

POLICY = re.compile(
    r"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    r"style-src 'sha256-[A-Za-z0-9+/=]{44}'; script-src 'sha256-[A-Za-z0-9+/=]{44}'"
)
# The page as the script sees it: an element by each id, an address, a history.
BROWSER = """
const elements = {line: {textContent: LINE}, token: {textContent: ""}};
globalThis.document = {getElementById: (id) => elements[id]};
globalThis.location = {hash: HASH, origin: "https://recto.example", pathname: "/"};
globalThis.history = {replaceState: (state, title, url) => { location.hash = ""; }};
SCRIPT
console.log(JSON.stringify([elements.line.textContent, elements.token.textContent, location.hash]));
"""


@pytest_asyncio.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with in_process(tmp_path, monkeypatch) as server:
        server.api.state.web_page = WebPage(tmp_path / "not built")
        yield server


def line_of(page: HttpReply) -> str:
    match = re.search(r'<pre id="line">(.*?)</pre>', page.body.decode(), re.DOTALL)
    assert match
    return unescape(match[1])


async def test_C3_the_home_page_needs_no_credential_and_loads_nothing(server: InProcess):
    page = await server.send("GET", "/", token=None)
    assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert POLICY.fullmatch(page.headers["content-security-policy"])
    text = page.body.decode()
    assert TOKEN not in text
    assert "is not built: run <code>make web</code>" in text
    assert not re.search(r"\bon\w+=|<(?:img|link|iframe|form|base)\b|src=", text)
    links = re.findall(r'href="([^"]*)"', text)
    assert links == ["/docs", "/openapi.json"]
    for link in links:
        assert (await server.send("GET", link, token=None)).status == 200
    assert (await server.send("POST", "/", {}, token=None)).status == 401


async def test_C3_the_line_it_shows_asks_a_question_and_may_be_sent_again_with_other_words(server: InProcess):
    line = line_of(await server.send("GET", "/", token=None))
    path, body = re.search(r"8787(\S+)", line), re.search(r"-d '(.*)'", line)
    assert path
    assert body
    assert 'Authorization: Bearer TOKEN" -H "Content-Type: application/json"' in line
    for line_body in (body[1], body[1], body[1].replace("career", "other")):
        reply = await server.send("POST", path[1], line_body.encode())
        assert (reply.status, events_of(reply)[-1].event["type"]) == (200, "RUN_FINISHED")
    assert len(server.pages) == 3


@pytest.mark.parametrize(
    ("hash", "is_shown"),
    [
        pytest.param(f"#token={TOKEN}", True, id="ours"),
        pytest.param("#token=%24%28reboot%29aaaaaaaaaaaaaaa", False, id="more than a word to a shell"),
        pytest.param("#token=short", False, id="none of ours"),
        pytest.param("", False, id="none"),
    ],
)
async def test_C3_the_token_of_the_printed_address_is_put_into_the_line_and_taken_out_of_the_address(
    server: InProcess, hash: str, is_shown: bool
):
    line = line_of(await server.send("GET", "/", token=None))
    script = BROWSER.replace("LINE", json.dumps(line)).replace("HASH", json.dumps(hash)).replace("SCRIPT", SCRIPT)
    done = subprocess.run([*NODE, "-e", script], capture_output=True, text=True, check=True)
    command, about, unread = json.loads(done.stdout)
    assert "https://recto.example/api/v1/chat" in command
    assert (f"Bearer {TOKEN}" in command, "reboot" in command, unread) == (is_shown, False, "")
    assert ("the address bar no longer does" in about) == is_shown
