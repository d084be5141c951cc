"""A model by its name in the settings. Refuses a name it does not know, and says which it does."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from recto.config.run_settings import Timeouts, WorkSettings
from recto.conversation.json import Json
from recto.errors import SettingsError
from recto.models.demo import NAME as DEMO
from recto.models.demo import DemoModel
from recto.models.endpoint import Endpoint, EndpointModel
from recto.models.wire_protocol import ANTHROPIC_MESSAGES

SETTING = "RECTO_MODEL"
OPENAI_URL = "https://api.openai.com/v1"
ANTHROPIC_URL = "https://api.anthropic.com"
FORMS = (
    "it is demo, openai:NAME (with OPENAI_API_KEY), anthropic:NAME (with ANTHROPIC_API_KEY) "
    "or compatible:NAME (with RECTO_MODEL_URL)"
)
HIDDEN = "(not shown)"
KEYS = {
    "OPENAI_BASE_URL": "OPENAI_API_KEY",
    "ANTHROPIC_BASE_URL": "ANTHROPIC_API_KEY",
    "RECTO_MODEL_URL": "RECTO_MODEL_KEY",
}
CHAT_FORM = "it is the address before /chat/completions, such as http://127.0.0.1:8080/v1"
URL_FORMS = {
    "OPENAI_BASE_URL": CHAT_FORM,
    "ANTHROPIC_BASE_URL": f"it is the address before /v1/messages, such as {ANTHROPIC_URL}",
    "RECTO_MODEL_URL": CHAT_FORM,
}


def choose_model(
    name: str,
    environment: Mapping[str, str],
    *,
    options: Mapping[str, Json] | None = None,
    window: int = WorkSettings.window,
    timeouts: Timeouts | None = None,
    setting: str = SETTING,
) -> DemoModel | EndpointModel:
    """The model of this name, the server's or an agent's own; what it needs beside comes from the environment.

    Nothing is connected yet. `setting` is where the name stands, for what is said of a bad one.
    """
    if name == DEMO:
        return DemoModel()
    provider, _, model = name.partition(":")
    if not model or model != model.strip():
        raise SettingsError(name=setting, value=name, allowed=FORMS)
    match provider:
        case "openai":
            endpoint = _openai(environment, timeouts or Timeouts())
        case "compatible":
            endpoint = _compatible(environment, timeouts or Timeouts())
        case "anthropic":
            endpoint = _anthropic(environment, timeouts or Timeouts())
        case _:
            raise SettingsError(name=setting, value=name, allowed=FORMS)
    return EndpointModel(model, endpoint, options=options, window=window)


def _openai(environment: Mapping[str, str], timeouts: Timeouts) -> Endpoint:
    return Endpoint(
        provider="openai",
        base_url=_url(environment, "OPENAI_BASE_URL", OPENAI_URL),
        key=_needed_key(environment, "OPENAI_API_KEY", "openai"),
        key_setting="OPENAI_API_KEY",
        url_setting="OPENAI_BASE_URL",
        timeouts=timeouts,
    )


def _anthropic(environment: Mapping[str, str], timeouts: Timeouts) -> Endpoint:
    return Endpoint(
        provider="anthropic",
        protocol=ANTHROPIC_MESSAGES,
        # Some write the address with the version that the path begins with.
        base_url=_url(environment, "ANTHROPIC_BASE_URL", ANTHROPIC_URL).rstrip("/").removesuffix("/v1"),
        key=_needed_key(environment, "ANTHROPIC_API_KEY", "anthropic"),
        key_setting="ANTHROPIC_API_KEY",
        url_setting="ANTHROPIC_BASE_URL",
        timeouts=timeouts,
    )


def _compatible(environment: Mapping[str, str], timeouts: Timeouts) -> Endpoint:
    return Endpoint(
        provider="compatible",
        base_url=_url(environment, "RECTO_MODEL_URL", ""),
        key=_key(environment, "RECTO_MODEL_KEY"),
        key_setting="RECTO_MODEL_KEY",
        url_setting="RECTO_MODEL_URL",
        timeouts=timeouts,
        # Many of those that people run themselves refuse a request with a picture in it.
        sees_images=False,
    )


def _needed_key(environment: Mapping[str, str], setting: str, provider: str) -> str:
    key = _key(environment, setting)
    if not key:
        raise SettingsError(name=setting, value="", allowed=f"{provider} models need the key of your account")
    return key


def _key(environment: Mapping[str, str], setting: str) -> str:
    key = environment.get(setting, "").strip()
    # It goes into a header: nothing in it may end the line.
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise SettingsError(name=setting, value=HIDDEN, allowed="a key is one word of plain letters, digits and signs")
    return key


def _url(environment: Mapping[str, str], setting: str, default: str) -> str:
    url = environment.get(setting, "").strip() or default
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        good = False
    # Before the rest: what is refused below is shown.
    if "@" in url:
        allowed = f"a name and a password do not belong in it; a key goes into {KEYS[setting]}"
        raise SettingsError(name=setting, value=HIDDEN, allowed=allowed)
    if not good:
        raise SettingsError(name=setting, value=url, allowed=URL_FORMS[setting])
    return url
