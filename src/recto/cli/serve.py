"""`recto serve`: the server in the foreground, its settings, and starting it again when agents change."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from pathlib import Path
from urllib.parse import quote

import typer

from recto.cli import options
from recto.cli.doors import Doors
from recto.cli.hello import say_hello
from recto.cli.logs import set_up_logs
from recto.cli.server_settings import FILE, OTHERS, SECRETS, ServerSettings, load_settings
from recto.errors import RectoError, SettingsError

FAILED, WRONG_USE = 1, 2
HIDDEN = "(set, not shown)"
# Beside those of the server: keys of model providers.
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "RECTO_MODEL_KEY")


def serve(
    context: typer.Context,
    *,
    host: options.Host = None,
    port: options.Port = None,
    data: options.DataDir = None,
    agents: options.AgentsDir = None,
    config: options.ServerConfig = None,
    hello: options.Hello = False,
    check: options.Check = False,
    reload: options.Reload = False,
) -> None:
    """Serve agents over HTTP. Without settings it answers on this machine, with a built-in demo model.

    Stops on Ctrl-C within ten seconds; what was running goes on at the next start. Exit codes: 0 done, 1 failed,
    2 wrong use.
    """
    doors: Doors = context.obj
    flags = {"host": host, "port": port, "data": data, "agents": agents}
    try:
        settings = load_settings(flags, os.environ, config)
        set_up_logs(settings.log_level, settings.log_format, _secrets(settings, os.environ))
        if check:
            _print_settings(settings, doors.check(settings))
        elif reload:
            _serve_again_and_again(settings, config)
        else:
            doors.serve(settings, _announcing(settings, hello=hello))
    except SettingsError as error:
        typer.echo(f"recto serve: {error}", err=True)
        raise typer.Exit(WRONG_USE) from error
    except (RectoError, OSError) as error:
        typer.echo(f"recto serve: {error}", err=True)
        raise typer.Exit(FAILED) from error


def _announcing(settings: ServerSettings, *, hello: bool) -> Callable[[str, str | None], None]:
    def announce(url: str, token: str | None) -> None:
        typer.echo(
            f"Recto is listening on {url} (model {settings.model}, data in {settings.data}). Stop it with Ctrl-C."
        )
        # One that was given is known to whoever gave it.
        if token and settings.token is None:
            typer.echo(f"Its token is {token}. Open {url}/#token={quote(token)}, or send it as Authorization: Bearer.")
        if settings.model == "demo":
            typer.echo("This is the demo model. For a real one: RECTO_MODEL=openai:NAME OPENAI_API_KEY=... recto serve")
        sys.stdout.flush()
        if hello and token:
            say_hello(url, token)
        elif hello:
            typer.echo("--hello needs the local token; set RECTO_TOKEN to have one beside API keys or JWT.")

    return announce


def _print_settings(settings: ServerSettings, found: Mapping[str, str]) -> None:
    """The settings in force, as they stand in a file; then what else was found."""
    for field in fields(settings):
        if field.name != "limits":
            typer.echo(f"{field.name} = {_shown(field.name, getattr(settings, field.name))}")
    for field in fields(settings.limits):
        typer.echo(f"limits.{field.name} = {_shown(field.name, getattr(settings.limits, field.name))}")
    for name in (*KEYS, *sorted(OTHERS - {*KEYS}), "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
        value = os.environ.get(name)
        typer.echo(f"{name} = {_shown(name, value)}")
    for name, value in found.items():
        typer.echo(f"{name}: {value}")


def _shown(name: str, value: object) -> str:
    if value is None:
        return "(not set)"
    return HIDDEN if name in SECRETS or name in KEYS else repr(value if isinstance(value, (int, float)) else str(value))


def _secrets(settings: ServerSettings, environment: Mapping[str, str]) -> list[str]:
    told = [getattr(settings, name) for name in SECRETS if name != "api_keys"]
    keys = [part for entry in (settings.api_keys or "").split(",") for part in entry.split(":")[1:]]
    return [one for one in (*told, *keys, *[environment.get(name) for name in KEYS]) if one]


def _serve_again_and_again(settings: ServerSettings, config: Path | None) -> None:
    """Serve in a process of its own, and start it anew when an agent or the settings change."""
    from watchfiles import PythonFilter, run_process  # here: only who works on agents waits for it

    files = [path for path in (settings.agents, config or Path(FILE)) if path is not None and path.exists()]
    if not files:
        raise SettingsError(name="--reload", value="", allowed="there is nothing to watch; name a folder with --agents")
    command = [sys.executable, "-m", "recto", *[word for word in sys.argv[1:] if word != "--reload"]]
    typer.echo(f"Watching {', '.join(map(str, files))} for changes.", err=True)
    run_process(
        *files,
        target=shlex.join(command),
        target_type="command",
        watch_filter=PythonFilter(extra_extensions=(".md", ".yaml", ".yml", ".toml")),
        callback=_tell_of_changes,
    )


def _tell_of_changes(changes: Collection[tuple[object, str]]) -> None:
    names = sorted({Path(path).name for _, path in changes})
    typer.echo(f"Changed: {', '.join(names)}. Starting again.", err=True)
