"""C1, C2: `recto serve` as people start it: settings and where they come from, refusals, the first run, stopping."""

import re
import socket
from collections.abc import Mapping
from pathlib import Path

import pytest

from recto.cli.server_settings import SETTINGS, load_settings
from recto.config.settings import ServerSettings
from recto.testing.model_server import Answer, ModelServer
from recto.testing.process import NotStarted, ServerProcess
from tests.cli.in_process import FAILED, WRONG_USE, recto
from tests.support.client import Reader, ask, request, start
from tests.waiting import wait_for

pytestmark = pytest.mark.full


def failure_of(folder: Path, *flags: str, **environment: str) -> str:
    """What `recto serve` says in one line where it does not start."""
    done = recto(folder, "serve", *flags, **environment)
    assert (done.code, done.out) == (WRONG_USE, ""), done.err
    assert done.err.startswith("recto serve: Setting ")
    assert done.err.count("\n") == 1
    return done.err


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        pytest.param({"RECTO_PROT": "9"}, ["RECTO_PROT", "there is no such setting", "RECTO_PORT"], id="unknown name"),
        pytest.param({"RECTO_MODEL_KEYS": "sk-s3cret"}, ["RECTO_MODEL_KEYS"], id="its value may be a secret"),
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
        *[
            ({"RECTO_DATABASE_URL": url}, ["RECTO_DATABASE_URL is '(not shown)'", "postgresql://USER:PASSWORD@HOST/"])
            for url in (
                "mysql://bob:s3cret@host/db",
                "postgresql://bob:s3cret@host:port/db",
                "postgres://bob:s3cret@:/db",
                "bob:s3cret@host/db",
                "postgresql://",
                "sqlite:///",
            )
        ],
    ],
)
def test_C2_a_setting_that_means_nothing_stops_the_start(
    tmp_path: Path, environment: Mapping[str, str], words: list[str]
):
    output = failure_of(tmp_path, **{"RECTO_PORT": "0", **environment})
    assert [word for word in words if word not in output] == []
    assert "s3cret" not in output
    assert "RECTO_DATABASE_URL" not in environment or list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("flags", "text", "word"),
    [
        (("--port", "70000"), "", "--port is 70000"),
        (("--host", "0.0.0.0"), "", "host is '0.0.0.0'"),
        (("--config", "mine.toml"), "", "config is 'mine.toml'; it cannot be read"),
        ((), "[server]\nport = 'x'\n", "server.port is 'x'"),
        ((), "[server]\nprot = 1\n", "server.prot"),
        ((), "[limits]\nsteps = 0\n", "limits.steps is 0"),
        ((), "[server\n", "config is 'recto.toml'; it cannot be read"),
        (("--reload",), "", "nothing to watch"),
    ],
)
def test_C2_a_flag_or_a_file_that_means_nothing_stops_the_start(
    tmp_path: Path, flags: tuple[str, ...], text: str, word: str
):
    if text:
        (tmp_path / "recto.toml").write_text(text)
    assert word in failure_of(tmp_path, *flags)


@pytest.mark.parametrize(
    "url", ["postgres://bob:s3#cr@host/db", "postgresql://host", "postgresql:///db?host=/tmp", "sqlite:///a.db"]
)
def test_C2_a_database_url_may_be_spelled_as_is_usual(url: str):
    assert load_settings({}, {"RECTO_DATABASE_URL": url}, None).database_url == url


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


def test_C2_recto_toml_of_the_folder_is_read_unless_another_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recto.toml").write_text("[server]\nport = 4\n")
    (tmp_path / "other.toml").write_text("[server]\nmodel = 'openai:x'\n")
    assert load_settings({}, {}, None).port == 4
    other = tmp_path / "other.toml"
    assert load_settings({}, {}, other) == ServerSettings(model="openai:x", config_file=other)


# A server at work


def hello(folder: Path, **environment: str) -> list[str]:
    """The lines of `recto serve --hello`, once all is shown; the server answers on."""
    with ServerProcess.serve(folder, {"LANG": "C.UTF-8", "LC_ALL": "", **environment}, "--hello") as server:
        wait_for(lambda: "recto serve    " in server.output, "the last line")
        assert request(server.url, "GET", "/readyz").status == 200
        return server.output.replace(server.url, "URL").splitlines()


@pytest.mark.parametrize(
    ("language", "headings", "calls", "first"),
    [
        ("en_US.UTF-8", ["chat reads a file", "vibe activates a skill", "next steps"], "calls", "open     URL/"),
        ("zh_CN.UTF-8", ["chat 读取文件", "vibe 激活一项技能", "接下来"], "调用", "打开     URL/"),
    ],
)
def test_C1_S3_hello_shows_a_file_read_a_tool_and_a_skill_in_the_terminal_s_language(
    tmp_path: Path, language: str, headings: list[str], calls: str, first: str
):
    lines = hello(tmp_path, LANG=language)
    sections = [line for line in lines if line.startswith("── ")]
    assert [line.startswith(f"── {words}") for line, words in zip(sections, headings, strict=True)] == [True] * 3
    file_names = [line.split()[1].partition("(")[0] for line in lines if line.startswith(f"{calls} ")]
    assert file_names == ["calculator", "read_files", "use_skill", "save_life_context"]
    assert any(line.endswith("→ 84") for line in lines)
    *_, opening, looking, _, _ = lines
    assert opening == first
    assert re.fullmatch(rf"\S+ +recto explain [0-9a-f-]{{36}} --data {tmp_path} +\S.*", looking)


def test_C1_a_second_server_on_the_same_folder_is_rejected(tmp_path: Path):
    with ServerProcess.serve(tmp_path / "data", {}) as server:
        output = failure_of(tmp_path, "--port", "0", "--data", str(tmp_path / "data"))
        assert "another Recto is using it" in output
        assert request(server.url, "GET", "/readyz").status == 200


def test_C1_a_used_port_is_reported(tmp_path: Path):
    with socket.socket() as busy_socket, pytest.raises(NotStarted) as failed:
        busy_socket.bind(("127.0.0.1", 0))
        busy_socket.listen()
        port = str(busy_socket.getsockname()[1])
        with ServerProcess(["recto", "serve", "--port", port, "--data", str(tmp_path / "data")], {}):
            pass
    assert failed.value.code == FAILED
    assert "address already in use" in str(failed.value)
    assert str(failed.value).splitlines()[-1].startswith("recto serve: The server could not start on 127.0.0.1:")
    assert "Traceback" not in str(failed.value)


@pytest.mark.parametrize(
    ("name", "value", "module", "extra"),
    [
        ("RECTO_DATABASE_URL", "postgresql://bob:s3cret@127.0.0.1:1/db", "asyncpg", "recto[postgres]"),
        ("RECTO_STORAGE_URL", "s3://bob:s3cret@bucket", "obstore", "recto[s3]"),
        ("RECTO_JWT_JWKS_URL", "https://127.0.0.1:1/s3cret", "jwt", "recto[jwt]"),
    ],
)
def test_C2_a_missing_package_is_reported_with_the_install_command(
    tmp_path: Path, name: str, value: str, module: str, extra: str
):
    # Stands before the real one, and is as absent as can be.
    absent = f"raise ModuleNotFoundError(\"No module named '{module}'\", name='{module}')\n"
    (tmp_path / f"{module}.py").write_text(absent)
    with (
        pytest.raises(NotStarted) as failed,
        ServerProcess.serve(tmp_path / "data", {"PYTHONPATH": str(tmp_path), name: value}),
    ):
        pass
    assert failed.value.code == WRONG_USE
    assert f"{name} is '(" in str(failed.value)
    assert f" the package {module}: install {extra}" in str(failed.value)
    assert "s3cret" not in str(failed.value)


@pytest.mark.parametrize("runs", [0, 3], ids=["idle", "with runs at work and readers"])
def test_C1_asked_to_stop_it_stops_with_code_0(tmp_path: Path, runs: int):
    with ModelServer(lambda _: Answer(hang=True)) as model:
        # Runs have so long to come to an end, which leaves the rest of ten seconds for all else.
        assert SETTINGS["grace_seconds"].default == 7
        settings = {"RECTO_MODEL": "compatible:x", "RECTO_MODEL_URL": model.url, "RECTO_GRACE_SECONDS": "0.1"}
        with ServerProcess.serve(tmp_path, settings) as server:
            tasks = [start(server.url, ask("hi")) for _ in range(runs)]
            readers = [Reader(lambda: server.url, task) for task in tasks]
            for reader in readers:
                reader.wait_for(lambda received: received.number == 1)
            model.wait_requests(runs)
            assert server.stop(60) == 0
            assert "Traceback" not in server.output
