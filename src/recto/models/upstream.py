"""Providers to which the gateway forwards requests (X3): the choice of a provider for each SDK, and the connections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from recto.config.run_settings import Timeouts
from recto.errors import ModelUnreachable
from recto.http.client import HttpClient, HttpConnection
from recto.http.network import Network
from recto.models.choose import PROVIDERS, Provider, endpoint_of
from recto.models.endpoint import Endpoint, unreachable
from recto.models.faults import Blame
from recto.models.wire_protocol import ProviderSdk, ReplyReader


@dataclass(frozen=True, kw_only=True)
class UpstreamRequest:
    """A request to a provider. `path` follows the base URL and includes the query; `key` overrides the server's key."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""
    key: tuple[str, str] | None = None


class Upstream:
    """A provider with its address, the server's key and its own connections."""

    def __init__(self, endpoint: Endpoint, *, needs_key: bool) -> None:
        self.provider = endpoint.provider
        self.wire = endpoint.protocol.wire
        self.needs_key = needs_key
        self.has_key = bool(endpoint.key)
        self.key_setting = endpoint.key_setting
        self.base_url = endpoint.base_url.rstrip("/")
        self._endpoint = endpoint
        self._client: HttpClient | None = None

    def name_of(self, model: str) -> str:
        """Return the name of a model in Recto and in price lists."""
        return f"{self.provider}:{model}"

    def blame(self, model: str, key: tuple[str, str] | None) -> Blame:
        """Return the model and the settings that errors name.

        `key` is the key of the request, as in the other methods.
        """
        return Blame(
            model=self.name_of(model),
            key_setting="the key you sent" if key else self.key_setting,
            url_setting=self._endpoint.url_setting,
            secret=key[1].split()[-1] if key else self._endpoint.key,
        )

    def reader(self, path: str, model: str, key: tuple[str, str] | None) -> ReplyReader | None:
        """Return a reader for answers of a path. Return None if these answers are not replies of a model."""
        protocols = (provider.protocol for provider in PROVIDERS if provider.protocol.path == path)
        protocol = next(protocols, None)
        return protocol.reader(model=model, blame=self.blame(model, key)) if protocol else None

    async def send(self, request: UpstreamRequest) -> HttpConnection:
        """Send the request and return after the head of the answer. Raise ModelUnreachable if no answer arrives."""
        if self._client is None:
            self._client = HttpClient(self.base_url, {}, network=self._endpoint.network)
        protocol = self._endpoint.protocol
        own_key = protocol.key_header.lower(), protocol.key_form.format(key=self._endpoint.key)
        key = request.key or (own_key if self.has_key else None)
        headers = {**dict(protocol.headers), **request.headers, **dict([key] if key else ())}
        url, timeouts = f"{self.base_url}{request.path}", self._endpoint.timeouts
        try:
            return await self._client.send(request.method, url, headers, request.body, timeouts)
        except TimeoutError as error:
            raise ModelUnreachable(model=self.provider, problem="no response in time. Try again.") from error
        except OSError as error:
            problem = unreachable("it", error, self._endpoint.url_setting)
            raise ModelUnreachable(model=self.provider, problem=problem) from error

    async def aclose(self) -> None:
        """Close every connection to the provider."""
        if self._client is not None:
            self._client.close()
            self._client = None


def choose_providers(model: str, environment: Mapping[str, str]) -> Mapping[ProviderSdk, Provider]:
    """Return the provider for each SDK: the provider of the server's model, else one with an address, else the first
    one.
    """
    providers = dict[ProviderSdk, Provider]()
    for provider in PROVIDERS:
        sdk = provider.protocol.sdk
        is_named = model.partition(":")[0] == provider.name
        is_set = not provider.needs_key and bool(environment.get(provider.url_setting))
        if sdk and (is_named or sdk not in providers or (is_set and providers[sdk].name != model.partition(":")[0])):
            providers[sdk] = provider
    return providers


def make_upstream(
    provider: Provider, environment: Mapping[str, str], timeouts: Timeouts, network: Network | None = None
) -> Upstream:
    """Return an upstream. If the server has no key, requests use the callers' keys.

    Raise SettingsError for a bad address.
    """
    endpoint = endpoint_of(replace(provider, needs_key=False), environment, timeouts, network)
    return Upstream(endpoint, needs_key=provider.needs_key)
