"""A check of the settings, without starting a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from recto.api.access.auth import Authenticator, check_binding
from recto.api.access.gate import GateRules
from recto.api.route import CHAT
from recto.app.agents import describe_commands, load_agents_and_models, model_of, network_of
from recto.config.settings import ServerSettings
from recto.config.zones import zone_of_server
from recto.errors import SettingsError, raise_all
from recto.files.signing import parse_keys
from recto.files.storage.choose_storage import read_storage_url
from recto.ids import new_id
from recto.models.prices import load_prices


def check(settings: ServerSettings) -> Mapping[str, str]:
    """Return a description of the server. Raises the errors that would stop its start. Opens and writes nothing."""
    check_values(settings)
    available, prices = load_agents_and_models(settings), load_prices(settings.prices)
    sources = {agent.name: [one.name for one in (*agent.mcp, *agent.openapi)] for agent in available.agents.values()}
    tools = {
        name: [tool.name for tool in registry.values() if tool.is_offered] for name, registry in available.tools.items()
    }
    return {
        "agents": ", ".join(available.agents),
        "default agent": f"{settings.chat_agent} on {CHAT}, {settings.run_agent} elsewhere",
        "time zone": f"{zone_of_server(settings.timezone)}, unless a run or its agent names one",
        "tools": "; ".join(f"{name}: {', '.join(names) or 'none'}" for name, names in tools.items()),
        "commands": describe_commands(available),
        "external tools": "; ".join(f"{name}: {', '.join(names)}" for name, names in sources.items() if names)
        or "none",
        "prices": f"as of {prices.as_of}, in {prices.currency}",
    }


def check_values(settings: ServerSettings) -> None:
    """Check the values of all settings. Raises all errors together."""
    # The server creates a token when it starts; any token will do here.
    auth = replace(settings.auth, token=settings.auth.token or new_id())
    checks: list[Callable[[], object]] = [
        partial(check_binding, settings.host, settings.auth.has_accounts),
        partial(Authenticator, auth),
        partial(GateRules, **vars(settings.gate)),
        partial(network_of, settings),
        partial(model_of, settings, settings.model),
    ]
    checks += [partial(read_storage_url, settings.storage_url)] if settings.storage_url else []
    checks += [partial(parse_keys, settings.signing_keys)] if settings.signing_keys else []
    wrong = list[SettingsError]()
    for check in checks:
        try:
            check()
        except SettingsError as error:
            wrong.append(error)
    raise_all(wrong)
