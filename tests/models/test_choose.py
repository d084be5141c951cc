"""Models by name: the settings of each form, and the errors without them."""

import pytest

from recto.errors import SettingsError
from recto.models.choose import choose_model
from recto.testing.model_server import ModelServer


@pytest.mark.parametrize(
    ("name", "environment", "needed"),
    [
        ("openai:gpt-5", {}, "OPENAI_API_KEY"),
        ("anthropic:claude-opus-5-5", {"OPENAI_API_KEY": "sk-1"}, "ANTHROPIC_API_KEY"),
        ("gemini:gemini-3-pro", {"OPENAI_API_KEY": "sk-1"}, "GEMINI_API_KEY"),
        ("compatible:qwen", {"OPENAI_API_KEY": "sk-1"}, "RECTO_MODEL_URL"),
        ("gemini:x", {"GEMINI_API_KEY": "k", "GEMINI_BASE_URL": "host"}, r"GEMINI_BASE_URL.*before /models"),
        *(
            ("anthropic:x", {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": url}, r"ANTHROPIC_B.*before /v1/messages")
            for url in ("api.anthropic.com", "ftp://host")
        ),
        *(
            ("compatible:qwen", {"RECTO_MODEL_URL": url}, "RECTO_MODEL_URL")
            for url in ("localhost:8080", "ftp://host/v1", "http://", "http://host:99999/v1", "http://[::1/v1")
        ),
        ("gpt-5", {}, r"^Setting RECTO_MODEL is"),
    ],
)
def test_a_model_is_refused_with_the_setting_it_needs(name: str, environment: dict[str, str], needed: str):
    with pytest.raises(SettingsError, match=needed):
        choose_model(name, environment)


def test_options_given_stand_beside_those_of_the_provider():
    model = choose_model("openai:gpt-5", {"OPENAI_API_KEY": " sk-1\n"}, options={"temperature": 0}, window=8_000)
    assert (model.name, model.target.model, model.window) == ("openai:gpt-5", "gpt-5", 8_000)
    assert model.options == {"stream": True, "stream_options": {"include_usage": True}, "temperature": 0}
    model = choose_model("anthropic:claude-opus-5-5", {"ANTHROPIC_API_KEY": "sk-1"}, options={"max_tokens": 9})
    assert (model.target.wire, model.target.model) == ("anthropic", "claude-opus-5-5")
    assert model.options == {"stream": True, "max_tokens": 9, "cache_control": {"type": "ephemeral"}}


@pytest.mark.parametrize(
    "url", ["http://user:hunter2@host/v1", "https://hunter2@host", "user:hunter2@host", "http://user:hunter2@host:x/v1"]
)
@pytest.mark.parametrize(
    ("name", "setting", "key"),
    [
        ("compatible:qwen", "RECTO_MODEL_URL", "RECTO_MODEL_KEY"),
        ("openai:gpt-5", "OPENAI_BASE_URL", "OPENAI_API_KEY"),
        ("anthropic:claude", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"),
        ("gemini:gemini-3-pro", "GEMINI_BASE_URL", "GEMINI_API_KEY"),
    ],
)
def test_an_address_with_a_password_is_refused_without_showing_it(name: str, setting: str, key: str, url: str):
    with pytest.raises(SettingsError) as caught_error:
        choose_model(name, {setting: url, key: "sk-1"})
    assert setting in str(caught_error.value)
    assert key in str(caught_error.value)
    assert "hunter2" not in str(caught_error.value)


@pytest.mark.parametrize("name", ["", "gpt-5", "openai:", "openai: gpt", "other:x", "DEMO"])
def test_a_name_of_no_known_form_is_told_the_forms(name: str):
    with pytest.raises(
        SettingsError, match=r"demo, openai:NAME .*, anthropic:NAME .*, gemini:NAME .* or compatible:NAME"
    ):
        choose_model(name, {"OPENAI_API_KEY": "k"})


@pytest.mark.parametrize("end", ["", "/", "/v1", "/v1/"])
@pytest.mark.asyncio
async def test_the_address_of_anthropic_may_end_with_its_version_and_the_key_has_its_own_header(end: str):
    with ModelServer() as server:
        environment = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": server.root + end}
        model = choose_model("anthropic:claude", environment)
        assert [delta async for delta in model.stream(b"{}")]
        await model.aclose()
    (request,) = server.requests
    assert (request.method, request.path, request.body) == ("POST", "/v1/messages", b"{}")
    assert {"x-api-key": "k", "anthropic-version": "2023-06-01"}.items() <= request.headers.items()
    assert "authorization" not in request.headers


@pytest.mark.asyncio
async def test_the_model_of_gemini_stands_in_the_address_and_the_key_in_its_own_header():
    with ModelServer() as server:
        environment = {"GEMINI_API_KEY": "k-1", "GEMINI_BASE_URL": f"{server.root}/v1beta/"}
        model = choose_model("gemini:gemini-3-pro?x/y", environment)
        assert (model.name, model.target.wire, model.options) == ("gemini:gemini-3-pro?x/y", "gemini", {})
        assert [delta async for delta in model.stream(b"{}")]
        await model.aclose()
    (request,) = server.requests
    assert request.path == "/v1beta/models/gemini-3-pro%3Fx%2Fy:streamGenerateContent?alt=sse"
    assert request.headers["x-goog-api-key"] == "k-1"
    assert "authorization" not in request.headers


def test_each_agent_may_have_a_model_of_its_own():
    environment = {
        "ANTHROPIC_API_KEY": "a",
        "OPENAI_API_KEY": "b",
        "GEMINI_API_KEY": "c",
        "RECTO_MODEL_URL": "http://127.0.0.1:1/v1",
    }
    names = ["demo", "openai:gpt-5", "anthropic:claude", "gemini:gemini-3-pro", "compatible:qwen:7b"]
    assert [choose_model(name, environment).name for name in names] == names


@pytest.mark.parametrize("name", ["gpt-5", "other:x"])
def test_a_bad_name_is_an_error_of_its_setting(name: str):
    with pytest.raises(SettingsError, match=r"^Setting RECTO_MODEL is"):
        choose_model(name, {})


def test_a_key_that_would_break_the_header_is_refused_without_showing_it():
    with pytest.raises(SettingsError) as caught_error:
        choose_model("openai:gpt-5", {"OPENAI_API_KEY": "sk-secret\r\nX-Evil: 1"})
    assert "OPENAI_API_KEY" in str(caught_error.value)
    assert "secret" not in str(caught_error.value)
