"""C1, C2: for whoever runs a server: settings checked and shown, a start on each change, logs without secrets."""

import signal
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from recto.cli.server_settings import SETTINGS
from recto.config.settings import Limits
from recto.conversation.json import load_object
from recto.models.choose import PROVIDERS
from recto.testing.model_server import ModelServer, failure
from recto.testing.process import ServerProcess, free_port
from tests.cli.in_process import Done, recto
from tests.support.client import RUNS, ask, request, run
from tests.waiting import wait_for

pytestmark = pytest.mark.full


def check(folder: Path, *flags: str, **environment: str) -> Done:
    """`recto serve --check` in a folder of its own."""
    return recto(folder, "serve", "--check", *flags, **environment)


def an_agent(folder: Path, description: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "AGENT.md").write_text(f"---\ndescription: {description}\n---\nYou help.\n", encoding="utf-8")


# Settings


def test_C2_check_prints_every_setting_and_makes_nothing(tmp_path: Path):
    done = check(tmp_path, "--port", "9999")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    names_shown = {line.split(" = ")[0] for line in lines}
    assert SETTINGS.keys() <= names_shown
    assert {f"limits.{name}" for name in Limits.model_fields} <= names_shown
    assert {name for provider in PROVIDERS for name in (provider.key_setting, provider.url_setting)} <= names_shown
    agents = "agents: chat, coder, coder-zh, docs, vibe, vibe-en"
    assert {"port = 9999", "host = '127.0.0.1'", "token = (not set)", agents} <= {*lines}
    assert {"agent = (not set)", "default agent: vibe on /api/v1/chat, chat elsewhere"} <= {*lines}
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "environment",
    [
        {
            "RECTO_TOKEN": "token-kept-secret",
            "RECTO_API_KEYS": "ann:key-kept-secret-1,bob:key-kept-secret-2:read",
            "RECTO_JWT_SECRET": "jwt-kept-secret-of-32-bytes-at-least",
            "RECTO_DATABASE_URL": "postgresql://bob:kept-secret@host/db",
        },
        {"RECTO_MODEL": "openai:gpt", "OPENAI_API_KEY": "openai-kept-secret", "ANTHROPIC_API_KEY": "kept-secret"},
        {"GEMINI_API_KEY": "kept-secret", "GEMINI_BASE_URL": "https://me:kept-secret@gemini.example/v1beta"},
        {"RECTO_MODEL_KEY": "model-kept-secret", "OPENAI_BASE_URL": "https://me:kept-secret@openai.example"},
        {"RECTO_JWT_JWKS_URL": "https://me:kept-secret@issuer.example/keys"},
        {"OPENAI_BASE_URL": "https://me:kept-secret@h/v1?api_key=kept-secret-q&v=kept-secret-too#kept-secret"},
        {"RECTO_STORAGE_URL": "s3://me:kept-secret@bucket/files", "RECTO_SIGNING_KEYS": "a:kept-secret-of-16-letters"},
    ],
    ids=lambda environment: next(iter(environment)),
)
def test_C2_check_shows_that_a_secret_is_set_without_its_value(tmp_path: Path, environment: dict[str, str]):
    done = check(tmp_path, **environment)
    assert done.code == 0, done.err
    assert "kept-secret" not in done.out + done.err
    for name in environment.keys() - {"RECTO_MODEL"}:
        settings_line = next(line for line in done.out.splitlines() if line.split(" = ")[0] in (name, name[6:].lower()))
        assert settings_line.endswith("(set, not shown)") or "(hidden)@" in settings_line


# Starting again


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_C1_reload_restarts_on_changes_survives_errors_and_leaves_no_process(tmp_path: Path):
    agent, port = tmp_path / "agents" / "helper", free_port()
    an_agent(agent, "as it was")
    flags = ["--port", str(port), "--data", str(tmp_path / "data"), "--agents", str(tmp_path / "agents"), "--reload"]
    with ServerProcess(["recto", "serve", *flags], {"RECTO_AGENT": "helper"}) as server:

        def describes(words: str) -> bool:
            try:
                return words in request(server.url, "GET", "/api/v1/agent/agents").body.decode()
            except OSError:
                return False

        wait_for(lambda: describes("as it was"), "the first start")
        (first,) = children(server.pid)
        an_agent(agent, "as it is now")
        wait_for(lambda: describes("as it is now"), "the change")
        assert not is_alive(first)
        an_agent(agent, "[unfinished")
        wait_for(
            lambda: "The server exited with code 2. It restarts after the next change." in server.output, "its end"
        )
        an_agent(agent, "put right")
        wait_for(lambda: describes("put right"), "the start after the broken one")
        (last,) = children(server.pid)
        server.send(signal.SIGINT)
        assert server.wait(60) == 0
        assert not is_alive(last)
        assert "Traceback" not in server.output


# Logs


def test_C2_no_secret_gets_into_the_logs_of_a_server_at_work(tmp_path: Path):
    key, jwt = "sk-the-key-of-the-model", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJtZSJ9.bm90aGluZw"
    problem = f"The key {key} is wrong.\n2026-01-01 INFO forged"
    with ModelServer(lambda _: failure(401, problem)) as model:
        settings = {
            "RECTO_MODEL": "compatible:x",
            "RECTO_MODEL_URL": model.url,
            "RECTO_MODEL_KEY": key,
            "RECTO_LOG_FORMAT": "json",
            "RECTO_LOG_LEVEL": "debug",
        }
        with ServerProcess.serve(tmp_path, settings, token=None) as server:
            token = (tmp_path / "token").read_text().strip()
            received_events = run(server.url, ask("hi"), token=token)
            assert received_events[-1].event["type"] == "RUN_ERROR"
            assert key not in str(received_events)
            assert request(server.url, "GET", f"{RUNS}/1?token={token}", token=jwt).status == 401
            assert server.stop() == 0
            first, *lines = server.output.splitlines()
    assert first.startswith("Recto is listening")
    # The one place where a token that was made is told, once.
    announced = [line for line in lines if line.startswith("Its token is ")]
    logged = [line for line in lines if line not in announced]
    assert len(announced) == 1
    assert any("refused GET" in line for line in logged)
    # What users are not told of a fault.
    assert any("The provider says: The key *** is wrong." in line for line in logged)
    for line in logged:
        assert {"time", "level", "logger", "message"} <= (load_object(line) or {}).keys(), line
        assert not [secret for secret in (key, jwt, token) if secret in line]


def test_C2_an_invalid_http_request_is_logged_in_one_line(tmp_path: Path):
    with ServerProcess.serve(tmp_path, {"RECTO_LOG_FORMAT": "json", "RECTO_MODEL_KEY": "none"}) as server:
        address = urlsplit(server.url)
        with socket.create_connection((address.hostname or "", address.port or 0), timeout=10) as connection:
            connection.sendall(b"this is no http\r\n\r\n")
            assert b"400" in connection.recv(1000)
        assert request(server.url, "GET", "/healthz").status == 200
        wait_for(lambda: "sent invalid HTTP" in server.output, "the line")
        assert server.stop() == 0
        lines = [line for line in server.output.splitlines() if "HTTP" in line or "GET" in line]
    (line,) = [load_object(line) or {} for line in lines]
    assert (line["logger"], line["level"]) == ("recto.connections", "warning")
