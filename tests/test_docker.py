"""The Dockerfile: clean by its linter, a user without rights, only what is needed, and a health check that works."""

import fnmatch
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from recto.cli.server_settings import load_settings
from recto.testing.process import ServerProcess, free_port
from tests.layers import ROOT

pytestmark = pytest.mark.full

DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
KEYS = {"RECTO_API_KEYS": "ann:the-key-that-ann-has"}


def instructions() -> list[tuple[str, str]]:
    """Return the name and the text of each instruction, without comments."""
    lines = [line for line in DOCKERFILE.splitlines() if not line.startswith("#")]
    joined_text = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [
        (words[0], words[2]) for line in joined_text.splitlines() if line.strip() for words in [line.partition(" ")]
    ]


def last_stage() -> list[tuple[str, str]]:
    found_instructions = instructions()
    return found_instructions[max(place for place, (name, _) in enumerate(found_instructions) if name == "FROM") :]


def environment() -> dict[str, str]:
    (words,) = [words for name, words in last_stage() if name == "ENV"]
    return dict(pair.split("=", 1) for pair in words.split())


def copied() -> set[str]:
    """Return the names that are copied from the build folder."""
    lists = [words.split()[:-1] for name, words in instructions() if name == "COPY" and "--from=" not in words]
    return {name for names in lists for name in names}


def test_C1_hadolint_finds_nothing():
    linter = Path(sys.executable).parent / "hadolint"
    done = subprocess.run([str(linter), str(ROOT / "Dockerfile")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_C1_it_runs_as_a_user_without_rights_who_owns_only_the_data():
    stage = dict(last_stage())
    assert re.fullmatch(r"[1-9]\d{3,}", stage["USER"])
    assert f"--uid {stage['USER']}" in stage["RUN"]
    assert "-m 700 -o recto -g recto /data" in stage["RUN"]
    assert (stage["VOLUME"], environment()["RECTO_DATA"]) == ("/data", "/data")
    names = [name for name, _ in last_stage()]
    assert names.index("USER") > names.index("COPY")


def test_C1_what_is_installed_is_locked_with_its_hashes():
    installs = [line for name, words in instructions() if name == "RUN" for line in words.split("&&") if "pip " in line]
    assert installs
    for line in installs:
        # What has no index installs what was built before.
        assert any(flag in line for flag in ("--require-hashes", "--no-deps", "--no-index"))
    assert re.findall(r"npm (?!run )\w+", DOCKERFILE) == ["npm ci"]


def test_C1_only_what_is_needed_is_let_through_and_copied():
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    patterns = [line for line in lines if not line.startswith("#")]
    assert patterns[0] == "*"
    let_through = {pattern[1:] for pattern in patterns if pattern.startswith("!")}
    assert let_through == copied()
    assert all((ROOT / name).exists() for name in let_through)
    assert "**/__pycache__" in patterns
    ignored = (".env", ".git", "tests", "recto-data", "src/recto/web")
    assert not [name for name in ignored if _is_let_through(name, patterns)]


def _is_let_through(name: str, patterns: list[str]) -> bool:
    verdicts = [not pattern.startswith("!") for pattern in patterns if fnmatch.fnmatch(name, pattern.lstrip("!"))]
    return not verdicts[-1]


def test_C2_its_settings_are_good_and_do_not_start_a_server_that_is_open_to_everybody(tmp_path: Path):
    environment_in_use = {name: value for name, value in environment().items() if name.startswith("RECTO_")}
    settings = load_settings({}, environment_in_use, None)
    assert (settings.host, settings.port, settings.log_format) == ("0.0.0.0", 8787, "json")
    assert ("EXPOSE", str(settings.port)) in last_stage()
    stage = dict(last_stage())
    command = [*json.loads(stage["ENTRYPOINT"]), *json.loads(stage["CMD"])]
    assert command == ["recto", "serve"]
    with pytest.raises(RuntimeError, match=r"host is '0\.0\.0\.0'"):
        ServerProcess(command, {**environment_in_use, "RECTO_DATA": str(tmp_path)}).__enter__()


def is_healthy(variables: Mapping[str, str]) -> bool:
    (words,) = [words for name, words in last_stage() if name == "HEALTHCHECK"]
    command = json.loads(words.partition(" CMD ")[2])
    assert command[0] == "python"
    probe = [sys.executable, *command[1:]]
    return subprocess.run(probe, env={**os.environ, **variables}, capture_output=True, check=False).returncode == 0


def test_C3_the_health_check_asks_the_port_that_is_set_and_fails_where_nobody_answers(tmp_path: Path):
    port = str(free_port())
    assert not is_healthy({"RECTO_PORT": port})
    variables = {"RECTO_HOST": "127.0.0.1", "RECTO_PORT": port, "RECTO_DATA": str(tmp_path), **KEYS}
    with ServerProcess(["recto", "serve"], variables):
        assert is_healthy({"RECTO_PORT": port})
