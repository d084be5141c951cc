"""A real server: pages in a browser are refused, programs of this machine come in with its token, users with theirs."""

import stat
from collections.abc import Generator
from pathlib import Path

import pytest

from recto.testing.client import RUNS, TOKEN, ask, request, start
from recto.testing.process import ServerProcess

pytestmark = pytest.mark.full

ANNA, BERT, LOOKER = "anna-key-0123456789", "bert-key-0123456789", "looker-key-0123456789"
KEYS = f"anna:{ANNA},bert:{BERT},anna:{LOOKER}:read"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    with ServerProcess.serve(tmp_path_factory.mktemp("gate"), {"RECTO_MODEL": "demo", "RECTO_AGENT": "chat"}) as server:
        yield server.url


@pytest.mark.parametrize("kind", ["text/plain", "", "application/x-www-form-urlencoded", "application/jsonp", "json"])
def test_a_body_that_is_not_sent_as_json_is_refused(url: str, kind: str):
    reply = request(url, "POST", RUNS, ask("hi"), content_type=kind)
    assert (reply.status, reply.json["code"]) == (415, "wrong_media")
    assert "application/json" in str(reply.json["detail"])


@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=utf-8", "Application/JSON;x=y"])
def test_json_is_taken_with_or_without_parameters(url: str, kind: str):
    assert request(url, "POST", RUNS, ask("hi"), content_type=kind).status == 202


def test_a_post_without_a_body_needs_no_content_type(url: str):
    run = start(url, ask("hi"))
    assert request(url, "POST", f"{RUNS}/{run}/cancel", content_type="").status == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8787", "127.0.0.1.evil.example", "localhost@evil", ""])
@pytest.mark.parametrize(("method", "path"), [("GET", "/healthz"), ("POST", RUNS)])
def test_a_name_that_is_not_of_this_machine_is_refused(url: str, host: str, method: str, path: str):
    reply = request(url, method, path, host=host)
    assert (reply.status, reply.json["code"]) == (421, "wrong_host")
    assert reply.headers["content-type"] == "application/problem+json"
    assert "127.0.0.1" in str(reply.json["detail"])


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST:1", "[::1]", "[::1]:8787"])
def test_every_name_of_this_machine_is_known_under_any_port(url: str, host: str):
    assert request(url, "GET", "/healthz", host=host).status == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost.evil.example"])
def test_a_page_of_elsewhere_may_not_post(url: str, origin: str):
    run = start(url, ask("hi"))
    reply = request(url, "POST", f"{RUNS}/{run}/cancel", origin=origin)
    assert (reply.status, reply.json["code"]) == (403, "wrong_origin")


def test_a_page_of_this_machine_may_post(url: str):
    assert request(url, "POST", RUNS, ask("hi"), origin="http://localhost:3000").status == 202


# Credentials


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    environment = {"RECTO_MODEL": "demo", "RECTO_API_KEYS": KEYS, "RECTO_HOST": "0.0.0.0", "RECTO_AGENT": "chat"}
    with ServerProcess.serve(tmp_path_factory.mktemp("shared"), environment, token=None) as server:
        yield server.url.replace("0.0.0.0", "127.0.0.1")


def test_C2_a_server_that_is_told_no_token_makes_one_and_keeps_it(tmp_path: Path):
    tokens: list[str] = []
    for _ in range(2):
        with ServerProcess.serve(tmp_path, {"RECTO_MODEL": "demo", "RECTO_AGENT": "chat"}, token=None) as server:
            tokens.append((tmp_path / "token").read_text().strip())
            assert request(server.url, "GET", f"{RUNS}/x", token=tokens[-1]).status == 404
            assert request(server.url, "GET", f"{RUNS}/x").status == 401
            assert f"{server.url}/#token={tokens[-1]}" in server.output
    assert tokens[0] == tokens[1]
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600


def test_C3_a_key_for_reading_sees_its_users_runs_and_starts_none(shared: str):
    task = start(shared, ask("hi"), token=ANNA)
    assert request(shared, "GET", f"{RUNS}/{task}", token=LOOKER).status == 200
    for path in (RUNS, f"{RUNS}/{task}/cancel"):
        reply = request(shared, "POST", path, ask("hi"), token=LOOKER)
        assert (reply.status, reply.json["code"]) == (403, "read_only")


def test_C2_with_keys_no_local_token_is_made(shared: str):
    assert request(shared, "GET", f"{RUNS}/x", token=TOKEN).status == 401


def test_C3_a_refused_body_does_not_break_the_next_request(url: str):
    assert request(url, "POST", RUNS, b"x" * 200_000, token="no-credential-of-ours").status == 401
    assert request(url, "POST", RUNS, ask("hi")).status == 202
