"""What would keep a server from starting, and what it would serve: told without one, and without its libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial

from recto.agents.agent import Agent
from recto.api.access.auth import Authenticator, check_binding
from recto.api.access.gate import GateRules
from recto.api.route import CHAT
from recto.app.agents import commands_in_words, load_agents_and_models, model_of, network_of
from recto.config.settings import ServerSettings
from recto.config.zones import zone_of_server
from recto.errors import SettingsError, raise_all
from recto.files.signing import parse_keys
from recto.files.storage.choose_storage import read_storage_url
from recto.ids import new_id
from recto.models.prices import load_prices
from recto.tools.registry import Registry


def check(settings: ServerSettings) -> Mapping[str, str]:
    """Raise what would keep this server from starting; else what it would serve. Nothing is opened or written."""
    check_values(settings)
    available, prices = load_agents_and_models(settings), load_prices(settings.prices)
    return {
        "agents": ", ".join(available.agents),
        "where nobody is named": f"{settings.chat_agent} on {CHAT}, {settings.run_agent} everywhere else",
        "time zone": f"{zone_of_server(settings.timezone)}, where neither a run nor its agent names one",
        "tools": "; ".join(f"{name}: {_names(tools)}" for name, tools in available.tools.items()),
        "commands": commands_in_words(available),
        "tools elsewhere": _elsewhere(available.agents.values()),
        "prices": f"of {prices.as_of}, in {prices.currency}",
    }


def check_values(settings: ServerSettings) -> None:
    """Raise what is wrong with values of settings, all of it at once."""
    # A token is made at the start; what it is does not matter here.
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


def _names(tools: Registry) -> str:
    return ", ".join(tool.name for tool in tools.values() if tool.is_offered) or "none"


def _elsewhere(agents: Iterable[Agent]) -> str:
    """Where tools are that this server would look for, once it runs."""
    places = {agent.name: [one.name for one in (*agent.mcp, *agent.openapi)] for agent in agents}
    return "; ".join(f"{name}: {', '.join(found)}" for name, found in places.items() if found) or "none"
