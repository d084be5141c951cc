"""`recto gateway`: only the gateway, for agents that use it as their model API (X3)."""

from __future__ import annotations

import os
from dataclasses import replace

import typer

from recto.cli import options
from recto.cli.command import exit_codes
from recto.cli.logs import Secrets, set_up_logs
from recto.cli.serve import secrets_of
from recto.cli.server_entry import Announce, ServerEntry
from recto.cli.server_settings import load_settings
from recto.config.settings import ServerSettings


def gateway(
    context: typer.Context,
    *,
    host: options.Host = None,
    port: options.Port = None,
    data: options.DataDir = None,
    model: options.ServedModel = None,
    gateway_keys: options.GatewayKeys = None,
    gateway_fold: options.GatewayFold = None,
    config: options.ServerConfig = None,
) -> None:
    """Relay model requests of other agents, repaired and folded. Works with the OpenAI and Anthropic SDKs.

    OPENAI_BASE_URL, RECTO_MODEL_URL and ANTHROPIC_BASE_URL set the targets; the defaults are OpenAI and Anthropic.
    Serves no agents and works on no runs. Exit codes: 0 success, 1 failure, 2 usage error.
    """
    entry: ServerEntry = context.obj
    flags = {"host": host, "port": port, "data": data, "model": model}
    flags |= {"gateway_keys": gateway_keys, "gateway_fold": gateway_fold}
    with exit_codes("gateway"):
        settings = load_settings(flags, os.environ, config)
        # Leave the runs of this data folder to a server with agents.
        settings = replace(settings, agents=None, dispatch=replace(settings.dispatch, slots=0))
        secrets = Secrets(secrets_of(settings, os.environ))
        set_up_logs(settings.log_level, settings.log_format, secrets)
        entry.relay(settings, _make_announce(settings, secrets))


def _make_announce(settings: ServerSettings, secrets: Secrets) -> Announce:
    def announce(url: str, token: str | None) -> None:
        secrets.add(token or "")
        new_token = token if settings.auth.token is None else None
        typer.echo(
            f"The gateway of Recto is listening on {url} (folds: {settings.gateway.fold}, data in {settings.data})."
        )
        typer.echo(f"Point agents at OPENAI_BASE_URL={url}/v1 or ANTHROPIC_BASE_URL={url}. Stop it with Ctrl-C.")
        if settings.gateway.keys != "callers" and new_token:
            typer.echo(f"Send {new_token} as the API key; the server has the key of the provider.")
        if settings.gateway.takes_callers:
            typer.echo("Provider keys that agents send are passed on.")

    return announce
