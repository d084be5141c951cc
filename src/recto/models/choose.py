"""A model by its name in the settings. Refuses a name it does not know, and says which it does."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from recto.errors import SettingsError
from recto.models.demo import NAME as DEMO
from recto.models.demo import DemoModel
from recto.models.endpoint import WINDOW, Endpoint, OpenAIModel, Timeouts
from recto.page.canonical import Json

SETTING = "RECTO_MODEL"
OPENAI_URL = "https://api.openai.com/v1"
FORMS = "it is demo, openai:NAME (with OPENAI_API_KEY) or compatible:NAME (with RECTO_MODEL_URL)"
NOT_YET = "anthropic models are not available yet in this version; " + FORMS
HIDDEN = "(not shown)"
KEYS = {"OPENAI_BASE_URL": "OPENAI_API_KEY", "RECTO_MODEL_URL": "RECTO_MODEL_KEY"}


def choose_model(
    name: str,
    environment: Mapping[str, str],
    *,
    options: Mapping[str, Json] | None = None,
    window: int = WINDOW,
    timeouts: Timeouts | None = None,
) -> DemoModel | OpenAIModel:
    """The model of this name; what it needs beside comes from the environment. Nothing is connected yet."""
    if name == DEMO:
        return DemoModel()
    provider, _, model = name.partition(":")
    if not model or model != model.strip():
        raise SettingsError(name=SETTING, value=name, allowed=FORMS)
    match provider:
        case "openai":
            endpoint = _openai(environment, timeouts or Timeouts())
        case "compatible":
            endpoint = _compatible(environment, timeouts or Timeouts())
        case "anthropic":
            raise SettingsError(name=SETTING, value=name, allowed=NOT_YET)
        case _:
            raise SettingsError(name=SETTING, value=name, allowed=FORMS)
    return OpenAIModel(model, endpoint, options=options, window=window)


def _openai(environment: Mapping[str, str], timeouts: Timeouts) -> Endpoint:
    key = _key(environment, "OPENAI_API_KEY")
    if not key:
        raise SettingsError(name="OPENAI_API_KEY", value="", allowed="openai models need the key of your account")
    return Endpoint(
        provider="openai",
        base_url=_url(environment, "OPENAI_BASE_URL", OPENAI_URL),
        key=key,
        key_setting="OPENAI_API_KEY",
        url_setting="OPENAI_BASE_URL",
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
    )


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
        allowed = "it is the address before /chat/completions, such as http://127.0.0.1:8080/v1"
        raise SettingsError(name=setting, value=url, allowed=allowed)
    return url
