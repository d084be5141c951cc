"""C2: settings of the server whose values have a form of their own, and what is said of those that have not."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from recto.cli.server_settings import OTHERS, PREFIX, load_settings
from recto.errors import SettingsError
from recto.models.choose import PROVIDERS


@pytest.mark.parametrize("languages", ["", "eng", "chi_sim+eng", "a+b+C_3"])
def test_C2_languages_are_named_as_tesseract_names_them(languages: str):
    assert load_settings({}, {"RECTO_OCR": languages}, None).documents.ocr == languages


@pytest.mark.parametrize("languages", ["a b", "eng,deu", "+eng", "eng+", "../eng", "eng\n", " "])
def test_C2_invalid_ocr_languages_are_reported(languages: str):
    with pytest.raises(SettingsError) as caught_error:
        load_settings({}, {"RECTO_OCR": languages}, None)
    problem = "it is languages as tesseract names them, such as chi_sim+eng, or nothing."
    assert str(caught_error.value).startswith(f"Setting RECTO_OCR is {languages!r}; ")
    assert str(caught_error.value).endswith(problem)


def test_C2_settings_of_providers_are_no_unknown_names():
    setting_names = {
        name for one in PROVIDERS for name in (one.key_setting, one.url_setting) if name.startswith(PREFIX)
    }
    assert setting_names | {"RECTO_URL"} == OTHERS


NO_SUCH = (
    "Setting {name} is '(not shown)'; there is no such setting{mean} Take it out, and `recto serve --check` lists all"
)
FILE = """
port = 1
[sever]
[server]
prot = 2
model = 3
[limits]
step = 4
seconds = -1
[fold]
anything = "is another command's"
"""


def error_for(name: str, *suggestions: str) -> str:
    """How what is said of an unknown name begins."""
    return NO_SUCH.format(name=name, mean=f"; did you mean {' or '.join(suggestions)}?" if suggestions else ".")


def test_C2_all_mistakes_are_reported_at_once_with_suggestions(tmp_path: Path):
    file = tmp_path / "recto.toml"
    file.write_text(FILE, encoding="utf-8")
    environment = {"RECTO_PROT": "s3cret", "RECTO_modle": "x", "RECTO_XYZ": "x", "RECTO_LOG_LEVEL": "loud"}
    with pytest.raises(SettingsError) as caught_error:
        load_settings({"port": 70_000}, environment, file)
    expected = [
        "Setting port is '(not shown)'; put it under [server] in recto.toml.",
        error_for("sever", "server").replace("no such setting", "no such table"),
        "Setting server.model is 3; input should be a valid string.",
        error_for("server.prot", "port"),
        "Setting limits.seconds is -1; input should be greater than 0.",
        error_for("limits.step", "steps"),
        error_for("RECTO_PROT", "RECTO_PORT"),
        error_for("RECTO_XYZ"),
        error_for("RECTO_modle", "RECTO_MODE", "RECTO_MODEL"),
        "Setting RECTO_LOG_LEVEL is 'loud'; input should be 'debug', 'info', 'warning' or 'error'.",
        "Setting --port is 70000; input should be less than or equal to 65535.",
    ]
    lines = str(caught_error.value).splitlines()
    assert [line for line, begins in zip(lines, expected, strict=True) if not line.startswith(begins)] == []
    assert "s3cret" not in str(caught_error.value)


@pytest.fixture
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("files", "found_file", "folder", "here"),
    [
        pytest.param(["agents/shop/AGENT.md"], None, "agents", "used", id="used without being named"),
        pytest.param(["agents/shop/AGENT.md"], "mine", "mine", None, id="unless another is named"),
        pytest.param(["agents/shop/AGENT.md"], "none", None, None, id="or none"),
        pytest.param(["agents/shop/tools.py", "agents/run.py"], None, None, "empty", id="of somebody else"),
        pytest.param(["agents/_old/AGENT.md"], None, None, "empty", id="left out by its name"),
        pytest.param(["agents"], None, None, None, id="a file"),
        pytest.param([], None, None, None, id="not there"),
    ],
)
@pytest.mark.usefixtures("in_a_folder")
def test_C2_the_agents_of_the_current_folder_are_used_without_being_named(
    files: Sequence[str], found_file: str | None, folder: str, here: str
):
    for file in map(Path, files):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("Who it is.", encoding="utf-8")
    settings = load_settings({}, {"RECTO_AGENTS": found_file} if found_file else {}, None)
    assert (settings.agents, settings.agents_here) == (Path(folder) if folder else None, here)
