"""C1, C2: `recto serve` as people start it: settings and where they come from, refusals, the first run, stopping."""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from recto.cli.hello import language_of_terminal
from recto.cli.server_settings import load_settings
from recto.config.setting import values_of
from recto.config.settings import ServerSettings
from recto.errors import SettingsError
from recto.store.store import check_url
from recto.testing.client import Reader, ask, request, start
from recto.testing.model_server import Answer, ModelServer
from recto.testing.process import ServerProcess

pytestmark = pytest.mark.full

WRONG_USE, FAILED = 2, 1


def serve(folder: Path, *flags: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`recto serve` in a folder of its own, where it is expected to end by itself."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("RECTO_", "OPENAI_"))}
    return subprocess.run(
        [sys.executable, "-m", "recto", "serve", *flags],
        cwd=folder,
        env={**clean, "COLUMNS": "100", **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def assert_refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    """One line on standard error that says what to do, and the code of wrong use."""
    assert (done.returncode, done.stdout) == (WRONG_USE, ""), done.stderr
    assert done.stderr.startswith("recto serve: Setting ")
    assert done.stderr.count("\n") == 1
    assert all(word in done.stderr for word in words), done.stderr


def test_C1_help_names_every_option_and_the_exit_codes(tmp_path: Path):
    done = serve(tmp_path, "--help")
    assert done.returncode == 0
    for words in ("--host", "--port", "--data", "--agents", "--config", "--hello", "127.0.0.1", "8787", "2 wrong use"):
        assert words in " ".join(done.stdout.split())
    # Links are for pages.
    assert "--workspace" in done.stdout
    assert "](" not in done.stdout


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        pytest.param({"RECTO_PROT": "9"}, ["RECTO_PROT", "there is no such setting", "RECTO_PORT"], id="unknown name"),
        pytest.param({"RECTO_PORT": "x"}, ["RECTO_PORT is 'x'", "valid integer"], id="malformed port"),
        pytest.param({"RECTO_PORT": "70000"}, ["RECTO_PORT is '70000'", "65535"], id="no port"),
        pytest.param({"RECTO_AGENT": "nobody"}, ["agent is 'nobody'", "known: chat"], id="unknown agent"),
        pytest.param({"RECTO_AGENTS": "nowhere"}, ["agents is 'nowhere'", "cannot be read"], id="no agents there"),
        pytest.param({"RECTO_MODEL": "gpt"}, ["RECTO_MODEL is 'gpt'", "demo, openai:NAME"], id="unknown model"),
        pytest.param({"RECTO_MODEL": "openai:gpt"}, ["OPENAI_API_KEY", "need the key"], id="no key"),
        pytest.param({"RECTO_MODEL": "compatible:x"}, ["RECTO_MODEL_URL", "the address"], id="no address"),
        pytest.param({"RECTO_HOST": "0.0.0.0"}, ["host is '0.0.0.0'", "127.0.0.1"], id="open to everybody"),
        pytest.param({"RECTO_PROXIES": "*"}, ["RECTO_PROXIES is '*'", "by commas"], id="everybody a proxy"),
        pytest.param({"RECTO_PROXIES": "10.0.0.1,proxy"}, ["RECTO_PROXIES", "'proxy'"], id="a proxy by name"),
        pytest.param({"RECTO_TIMEZONE": "Mars"}, ["RECTO_TIMEZONE is 'Mars'", "such as Asia/Shanghai"], id="no zone"),
        pytest.param({"RECTO_SYNCHRONOUS": "x"}, ["RECTO_SYNCHRONOUS is 'x'", "'NORMAL' or 'FULL'"], id="no choice"),
        pytest.param({"RECTO_LEASE_SECONDS": "0"}, ["RECTO_LEASE_SECONDS is '0'", "greater than 0"], id="no lease"),
    ],
)
def test_C2_a_setting_that_means_nothing_stops_the_start(
    tmp_path: Path, environment: Mapping[str, str], words: list[str]
):
    assert_refused(serve(tmp_path, **{"RECTO_PORT": "0", **environment}), *words)


def test_C2_the_value_of_an_unknown_name_is_not_shown_for_it_may_be_a_secret(tmp_path: Path):
    done = serve(tmp_path, RECTO_MODEL_KEYS="sk-very-secret")
    assert_refused(done, "RECTO_MODEL_KEYS")
    assert "sk-very-secret" not in done.stderr


@pytest.mark.parametrize(
    "url",
    [
        "mysql://bob:s3cret@host/db",
        "postgresql://bob:s3cret@host:port/db",
        "postgres://bob:s3cret@:/db",
        "bob:s3cret@host/db",
        "postgresql://",
        "sqlite:///",
    ],
)
def test_C2_a_database_url_that_is_none_is_refused_without_showing_it(tmp_path: Path, url: str):
    done = serve(tmp_path, RECTO_DATABASE_URL=url)
    assert_refused(done, "RECTO_DATABASE_URL is '(not shown)'", "postgresql://USER:PASSWORD@HOST/DATABASE")
    assert "s3cret" not in done.stderr
    assert not (tmp_path / "recto-data").exists()


@pytest.mark.parametrize("text", ["database_url = ['s3cret']", "database_urls = 's3cret'"])
def test_C2_a_database_url_in_a_file_is_not_shown_either(tmp_path: Path, text: str):
    (tmp_path / "recto.toml").write_text(f"[server]\n{text}\n")
    done = serve(tmp_path)
    assert_refused(done, "server.database_url", "(not shown)")
    assert "s3cret" not in done.stderr


@pytest.mark.parametrize(
    "url",
    ["postgres://bob:s3#cr@host/db", "postgresql://host", "postgresql:///db?host=/tmp", "sqlite:///a.db"],
)
def test_C2_a_database_url_may_be_spelled_as_is_usual(url: str):
    assert load_settings({}, {"RECTO_DATABASE_URL": url}, None).database_url == url


def test_C2_both_spellings_of_a_postgresql_url_mean_the_same():
    assert check_url("postgres://host/postgres://") == check_url("postgresql://host/postgres://")


def test_C2_a_flag_that_means_nothing_stops_the_start(tmp_path: Path):
    assert_refused(serve(tmp_path, "--port", "70000"), "--port is 70000", "65535")
    assert_refused(serve(tmp_path, "--host", "0.0.0.0"), "host is '0.0.0.0'")
    no_number = serve(tmp_path, "--port", "x")
    assert no_number.returncode == WRONG_USE
    assert "--port" in no_number.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("[server]\nport = 'x'\n", ["server.port is 'x'"], id="malformed"),
        pytest.param("[server]\nprot = 1\n", ["server.prot"], id="unknown"),
        pytest.param("[limits]\nsteps = 0\n", ["limits.steps is 0"], id="a limit of nothing"),
        pytest.param("[server\n", ["config is 'recto.toml'", "cannot be read"], id="no TOML"),
    ],
)
def test_C2_a_file_that_means_nothing_stops_the_start(tmp_path: Path, text: str, words: list[str]):
    (tmp_path / "recto.toml").write_text(text)
    assert_refused(serve(tmp_path), *words)


def test_C2_a_file_that_is_named_has_to_be_there(tmp_path: Path):
    assert_refused(serve(tmp_path, "--config", "mine.toml"), "config is 'mine.toml'", "cannot be read")


# Where settings come from


FILE = "[server]\nport = 3\nagent = 'file'\nmodel = 'file'\n[limits]\nsteps = 7\n[fold]\nkeep = 1\n"


@pytest.mark.parametrize(
    ("flags", "environment", "port"),
    [
        pytest.param({"port": 1}, {"RECTO_PORT": "2"}, 1, id="the command line first"),
        pytest.param({"port": None}, {"RECTO_PORT": "2"}, 2, id="then the environment"),
        pytest.param({}, {}, 3, id="then the file"),
        pytest.param({"port": 0}, {"RECTO_PORT": "2"}, 0, id="a flag of 0 is a flag"),
    ],
)
def test_C2_the_command_line_is_over_the_environment_over_the_file(
    tmp_path: Path, flags: Mapping[str, object], environment: Mapping[str, str], port: int
):
    file = tmp_path / "mine.toml"
    file.write_text(FILE)
    settings = load_settings(flags, {**environment, "RECTO_AGENT": "here", "HOME": "/"}, file)
    assert (settings.port, settings.agent, settings.model, settings.limits.steps) == (port, "here", "file", 7)


def test_C2_without_a_word_everything_has_a_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert load_settings({}, {}, None) == ServerSettings()
    assert (ServerSettings().host, ServerSettings().port) == ("127.0.0.1", 8787)


def test_C2_recto_toml_of_the_folder_is_read_unless_another_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recto.toml").write_text("[server]\nport = 4\n")
    (tmp_path / "other.toml").write_text("[server]\nmodel = 'openai:x'\n")
    assert load_settings({}, {}, None).port == 4
    other = tmp_path / "other.toml"
    assert load_settings({}, {}, other) == ServerSettings(model="openai:x", config_file=other)


@pytest.mark.parametrize(
    ("name", "value", "field", "found"),
    [
        ("RECTO_DATA", "d", "data", Path("d")),
        ("RECTO_AGENTS", "a", "agents", Path("a")),
        ("RECTO_RUNS", "0", "runs", 0),
        ("RECTO_GRACE_SECONDS", "1.5", "grace_seconds", 1.5),
        ("RECTO_SYNCHRONOUS", "FULL", "synchronous", "FULL"),
        ("RECTO_HOST", "::1", "host", "::1"),
        ("RECTO_MODEL_CONNECT_SECONDS", "1", "model_connect_seconds", 1.0),
        ("RECTO_MODEL_FIRST_BYTE_SECONDS", "2", "model_first_byte_seconds", 2.0),
        ("RECTO_MODEL_BETWEEN_SECONDS", "3", "model_between_seconds", 3.0),
        ("RECTO_RETRY_AFTER_SECONDS", "4", "retry_after_seconds", 4.0),
        ("RECTO_LOG_CACHE_THREADS", "5", "log_cache_threads", 5),
        ("RECTO_LOG_CACHE_ENTRIES", "6", "log_cache_entries", 6),
        ("RECTO_LOG_CACHE_BYTES", "7", "log_cache_bytes", 7),
        ("RECTO_QUOTES_AT_ONCE", "3", "quotes_at_once", 3),
        ("RECTO_EVENT_CHARACTERS", "7", "event_characters", 7),
        ("RECTO_DATABASE_CONNECTIONS", "8", "database_connections", 8),
    ],
)
def test_C2_the_environment_is_read_as_what_the_setting_is(name: str, value: str, field: str, found: object):
    assert values_of(load_settings({}, {name: value}, None))[field] == found


@pytest.mark.parametrize("name", ["RECTO_LIMITS", "RECTO_", "RECTO_port"])
def test_C2_only_whole_names_are_known(name: str):
    with pytest.raises(SettingsError, match=f"^Setting {name} is"):
        load_settings({}, {name: "1"}, None)


@pytest.mark.parametrize("name", ["RECTO_MODEL_URL", "RECTO_MODEL_KEY", "RECTO_STORAGE_URL", "PATH", "recto_port"])
def test_C2_names_that_others_read_are_left_to_them(name: str):
    assert load_settings({}, {name: "1"}, None).port == 8787


# A server at work


def hello(folder: Path, **environment: str) -> list[str]:
    """The lines of `recto serve --hello`, once all is shown; the server answers on."""
    with ServerProcess.serve(folder, {"LANG": "C.UTF-8", "LC_ALL": "", **environment}, "--hello") as server:
        until = time.monotonic() + 30
        while "recto serve    " not in server.output and time.monotonic() < until:
            time.sleep(0.01)
        assert request(server.url, "GET", "/readyz").status == 200
        return server.output.replace(server.url, "URL").splitlines()


@pytest.mark.parametrize(
    ("language", "headings", "calls", "first"),
    [
        ("en_US.UTF-8", ["chat reads a file", "vibe takes up a skill", "what next"], "calls", "open     URL/"),
        ("zh_CN.UTF-8", ["chat 读文件", "vibe 激活一项技能", "接下来"], "调用", "打开     URL/"),
    ],
)
def test_C1_S3_hello_shows_a_file_read_a_tool_and_a_skill_in_the_terminal_s_language(
    tmp_path: Path, language: str, headings: list[str], calls: str, first: str
):
    lines = hello(tmp_path, LANG=language)
    shown = [line for line in lines if line.startswith("── ")]
    assert [line.startswith(f"── {words}") for line, words in zip(shown, headings, strict=True)] == [True] * 3
    made = [line.split()[1].partition("(")[0] for line in lines if line.startswith(f"{calls} ")]
    assert made == ["calculator", "read_files", "use_skill", "save_life_context"]
    assert any(line.endswith("→ 84") for line in lines)
    *_, opening, looking, _, _ = lines
    assert opening == first
    assert re.fullmatch(rf"\S+ +recto explain [0-9a-f-]{{36}} --data {tmp_path} +\S.*", looking)


def test_C1_hello_asks_the_agent_that_answers_here_something_else(tmp_path: Path):
    lines = hello(tmp_path, RECTO_AGENT="docs")
    assert "── docs answers ──" in lines
    assert "you      What is 12 * 7, and what time is it?" in lines
    assert 'calls    calculator({"expression":"12 * 7"}) → 84' in lines


@pytest.mark.parametrize(
    ("environment", "language"),
    [({}, "en"), ({"LANG": "zh_TW"}, "zh"), ({"LANG": "zh_CN", "LC_ALL": "C"}, "en"), ({"LC_MESSAGES": "zh"}, "zh")],
)
def test_C1_the_terminal_s_language_is_looked_for_as_the_c_library_does(environment: Mapping[str, str], language: str):
    assert language_of_terminal(environment) == language


def test_C1_hello_shows_what_the_model_writes_as_it_is(tmp_path: Path):
    written = "Lists [bold]look[/end] like :smile: this: " + "word " * 40 + "end."
    with ModelServer(lambda _: Answer(text=written)) as model:
        lines = hello(tmp_path, RECTO_MODEL="compatible:x", RECTO_MODEL_URL=model.url)
    assert [f"chat     {written}" in lines, f"vibe     {written}" in lines] == [True, True]


def test_C1_a_second_server_on_the_same_folder_is_refused(tmp_path: Path):
    with ServerProcess.serve(tmp_path / "data", {}) as server:
        done = serve(tmp_path, "--port", "0", "--data", str(tmp_path / "data"))
        assert_refused(done, "data is", "another Recto is using it", "--data")
        assert request(server.url, "GET", "/readyz").status == 200


def test_C1_a_port_somebody_else_has_is_a_failure_that_says_so(tmp_path: Path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = serve(tmp_path, "--port", str(taken.getsockname()[1]))
    assert (done.returncode, done.stdout) == (FAILED, "")
    assert "address already in use" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("recto serve: The server could not start on 127.0.0.1:")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("name", "value", "module", "extra"),
    [
        ("RECTO_DATABASE_URL", "postgresql://bob:s3cret@127.0.0.1:1/db", "asyncpg", "recto[postgres]"),
        ("RECTO_STORAGE_URL", "s3://bob:s3cret@bucket", "obstore", "recto[s3]"),
        ("RECTO_JWT_JWKS_URL", "https://127.0.0.1:1/s3cret", "jwt", "recto[jwt]"),
    ],
)
def test_C2_what_needs_a_package_that_is_not_there_is_refused_with_what_to_install(
    tmp_path: Path, name: str, value: str, module: str, extra: str
):
    # Stands before the real one, and is as absent as can be.
    absent = f"raise ModuleNotFoundError(\"No module named '{module}'\", name='{module}')\n"
    (tmp_path / f"{module}.py").write_text(absent)
    done = serve(tmp_path, "--port", "0", PYTHONPATH=str(tmp_path), **{name: value})
    assert_refused(done, f"{name} is '(", f" the package {module}: install {extra}")
    assert "s3cret" not in done.stderr


@pytest.mark.parametrize("runs", [0, 3], ids=["idle", "with runs at work and readers"])
def test_C1_asked_to_stop_it_stops_within_ten_seconds_with_code_0(tmp_path: Path, runs: int):
    with ModelServer(lambda _: Answer(hang=True)) as model:
        settings = {"RECTO_MODEL": "compatible:x", "RECTO_MODEL_URL": model.url}
        with ServerProcess.serve(tmp_path, settings) as server:
            tasks = [start(server.url, ask("hi")) for _ in range(runs)]
            readers = [Reader(lambda: server.url, task) for task in tasks]
            for reader in readers:
                reader.wait_for(lambda sent: sent.number == 1)
            model.wait_requests(runs)
            began = time.monotonic()
            assert server.stop(20) == 0
            assert time.monotonic() - began < 10
            assert "Traceback" not in server.output
