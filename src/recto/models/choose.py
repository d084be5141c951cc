"""Models by their name in the settings, and the table of providers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import quote, urlsplit

from recto.agents.agent import Agent
from recto.config.run_settings import Timeouts, WorkSettings
from recto.conversation.json import Json
from recto.conversation.messages import ToolCalling
from recto.errors import SettingsError
from recto.http.network import Network
from recto.models.anthropic_messages import ANTHROPIC_MESSAGES
from recto.models.endpoint import Endpoint, EndpointModel
from recto.models.gemini_content import GEMINI_CONTENT
from recto.models.openai_chat import COMPATIBLE_CHAT, OPENAI_CHAT
from recto.models.openai_responses_api import OPENAI_RESPONSES
from recto.models.ports import Model
from recto.models.wire_protocol import WireProtocol
from recto.page.exports import RequestHead

SETTING, DEMO = "RECTO_MODEL", "demo"
HIDDEN = "(not shown)"
CHAT_FORM = "it is the address before /chat/completions, such as http://127.0.0.1:8080/v1"


@dataclass(frozen=True, kw_only=True)
class Provider:
    """A provider of models: its protocol, and the settings of its address and key.

    `url_form` describes a valid address in errors. `url_tail` is removed from the end of an address, because the path
    of the protocol repeats it. Models that `may_be_small` write calls in their own formats and seldom activate a skill
    by themselves.
    """

    name: str
    protocol: WireProtocol
    key_setting: str
    needs_key: bool = True
    url_setting: str
    url: str = ""
    url_form: str
    url_tail: str = ""
    sees_images: bool = True
    may_be_small: bool = False

    @property
    def form(self) -> str:
        """The form of the provider's model names, and the setting that these models need."""
        return f"{self.name}:NAME (with {self.key_setting if self.needs_key else self.url_setting})"


PROVIDERS = (
    Provider(
        name="openai",
        protocol=OPENAI_CHAT,
        key_setting="OPENAI_API_KEY",
        url_setting="OPENAI_BASE_URL",
        url="https://api.openai.com/v1",
        url_form=CHAT_FORM,
    ),
    Provider(
        name="openai-responses",
        protocol=OPENAI_RESPONSES,
        key_setting="OPENAI_API_KEY",
        url_setting="OPENAI_BASE_URL",
        url="https://api.openai.com/v1",
        url_form="it is the address before /responses, such as https://api.openai.com/v1",
    ),
    Provider(
        name="anthropic",
        protocol=ANTHROPIC_MESSAGES,
        key_setting="ANTHROPIC_API_KEY",
        url_setting="ANTHROPIC_BASE_URL",
        url="https://api.anthropic.com",
        url_form="it is the address before /v1/messages, such as https://api.anthropic.com",
        url_tail="/v1",
    ),
    Provider(
        name="gemini",
        protocol=GEMINI_CONTENT,
        key_setting="GEMINI_API_KEY",
        url_setting="GEMINI_BASE_URL",
        url="https://generativelanguage.googleapis.com/v1beta",
        url_form="it is the address before /models, such as https://generativelanguage.googleapis.com/v1beta",
    ),
    Provider(
        name="compatible",
        protocol=COMPATIBLE_CHAT,
        key_setting="RECTO_MODEL_KEY",
        needs_key=False,
        url_setting="RECTO_MODEL_URL",
        url_form=CHAT_FORM,
        # Many self-hosted models reject a request with an image.
        sees_images=False,
        may_be_small=True,
    ),
)
# Formats that other SDKs expect from the gateway (X3).
SDKS = tuple(dict.fromkeys([provider.protocol.sdk for provider in PROVIDERS if provider.protocol.sdk]))
BY_NAME: Mapping[str, Provider] = {provider.name: provider for provider in PROVIDERS}


def choose_model(
    name: str,
    environment: Mapping[str, str],
    *,
    options: Mapping[str, Json] | None = None,
    window: int = WorkSettings.window,
    timeouts: Timeouts | None = None,
    network: Network | None = None,
) -> Model:
    """Return the model of this name, with its address and key from the environment. The model connects on first use."""
    if name == DEMO:
        from recto.models.demo.demo_model import DemoModel  # imported here: servers with a real model need not load it

        return DemoModel()
    provider_name, _, model = name.partition(":")
    provider = BY_NAME.get(provider_name)
    if provider is None or not model or model != model.strip():
        *forms, last = [provider.form for provider in PROVIDERS]
        raise SettingsError(name=SETTING, value=name, allowed=f"it is {', '.join((DEMO, *forms))} or {last}")
    endpoint = endpoint_of(provider, environment, timeouts or Timeouts(), network)
    return EndpointModel(model, endpoint, options=options, window=window)


def with_defaults(agent: Agent, model: str, calling: ToolCalling | None) -> Agent:
    """Return the agent with defaults for tool calling and skill selection, from the server and the model.

    `model` and `calling` are the server's settings.
    """
    provider = BY_NAME.get((agent.model or model).partition(":")[0])
    is_small = provider is not None and provider.may_be_small
    return replace(
        agent,
        tool_calling=agent.tool_calling or calling or ("auto" if is_small else "native"),
        activation=agent.activation or ("triggers" if is_small else "model"),
    )


def request_head(name: str, url: str | None = None) -> RequestHead:
    """Return the URL and headers of a model's requests, with a variable in place of the key.

    Omit a `url` of None. Treat a model of an unknown provider as an OpenAI-compatible one.
    """
    provider_name, _, model = name.partition(":")
    provider = BY_NAME.get(provider_name, PROVIDERS[-1])
    protocol, key = provider.protocol, f"${provider.key_setting}"
    return RequestHead(
        path=protocol.path.format(model=quote(model, safe="")),
        url=url,
        url_setting=provider.url_setting,
        usual_url=provider.url,
        headers={
            "Content-Type": "application/json",
            **dict(protocol.headers),
            protocol.key_header: protocol.key_form.format(key=key),
        },
    )


def endpoint_of(
    provider: Provider, environment: Mapping[str, str], timeouts: Timeouts, network: Network | None = None
) -> Endpoint:
    """Return the endpoint of a provider from the environment. Raise SettingsError for a bad value."""
    url = _url(environment, provider).rstrip("/").removesuffix(provider.url_tail)
    setting = provider.key_setting
    key = environment.get(setting, "").strip()
    # The key goes into a header, so it must not contain a line end.
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise SettingsError(name=setting, value=HIDDEN, allowed="a key is one word of plain letters, digits and signs")
    if provider.needs_key and not key:
        raise SettingsError(name=setting, value="", allowed=f"{provider.name} models need the key of your account")
    return Endpoint(
        provider=provider.name,
        protocol=provider.protocol,
        base_url=url,
        key=key,
        key_setting=provider.key_setting,
        url_setting=provider.url_setting,
        timeouts=timeouts,
        network=network or Network.from_environment(environment),
        sees_images=provider.sees_images,
    )


def _url(environment: Mapping[str, str], provider: Provider) -> str:
    setting = provider.url_setting
    url = environment.get(setting, "").strip() or provider.url
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        good = False
    # Check this first, because the errors below show the value.
    if "@" in url:
        allowed = f"it must not contain a name or password; set a key with {provider.key_setting}"
        raise SettingsError(name=setting, value=HIDDEN, allowed=allowed)
    if not good:
        raise SettingsError(name=setting, value=url, allowed=provider.url_form)
    return url
