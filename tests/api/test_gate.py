"""A real server: pages in a browser are refused, programs of this machine come in with its token, users with theirs."""

import stat
from collections.abc import Generator
from pathlib import Path

import pytest

from recto.testing.client import RUNS, ask, request, start
from recto.testing.process import ServerProcess

pytestmark = pytest.mark.full

ANNA, BERT, LOOKER = "anna-key-0123456789", "bert-key-0123456789", "looker-key-0123456789"
KEYS = f"anna:{ANNA},bert:{BERT},anna:{LOOKER}:read"
WRONG = "a-wrong-key-9876543210"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Generator[ServerProcess]:
    environment = {"RECTO_MODEL": "demo", "RECTO_API_KEYS": KEYS, "RECTO_AGENT": "chat"}
    with ServerProcess.serve(tmp_path_factory.mktemp("shared"), environment, token=None) as server:
        yield server


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


def test_C2_the_gate_stands_before_every_route(shared: ServerProcess):
    host = request(shared.url, "GET", "/healthz", host="evil.example")
    origin = request(shared.url, "POST", RUNS, ask("hi"), token=ANNA, origin="https://evil.example")
    media = request(shared.url, "POST", RUNS, ask("hi"), token=ANNA, content_type="text/plain")
    assert [(reply.status, reply.json["code"]) for reply in (host, origin, media)] == [
        (421, "wrong_host"),
        (403, "wrong_origin"),
        (415, "wrong_media"),
    ]
    run = start(shared.url, ask("hi"), token=ANNA)
    assert request(shared.url, "POST", f"{RUNS}/{run}/cancel", token=ANNA, content_type="").status == 200


def test_C3_a_refused_body_does_not_break_the_next_request(shared: ServerProcess):
    assert request(shared.url, "POST", RUNS, b"x" * 200_000, token="no-credential-of-ours").status == 401
    assert request(shared.url, "POST", RUNS, ask("hi"), token=ANNA).status == 202


def test_P5_looking_for_somebody_elses_run_is_written_down_and_no_credential_is(shared: ServerProcess):
    run = start(shared.url, ask("hello"), token=ANNA)
    assert request(shared.url, "GET", f"{RUNS}/{run}", token=BERT).status == 404
    wrong = request(shared.url, "GET", f"{RUNS}/{run}?key=secret-in-a-query", token=WRONG, x_forwarded_for="9.9.9.9")
    assert wrong.status == 401
    output = shared.output
    assert f"refused GET {RUNS}/{run}: status 404, reason no_run, user bert, from 127.0.0.1" in output
    assert f"refused GET {RUNS}/{run}: status 401, reason wrong_credential, user nobody, from 127.0.0.1" in output
    assert not any(secret in output for secret in (ANNA, BERT, WRONG, "secret-in-a-query", "9.9.9.9"))
