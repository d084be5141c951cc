"""`recto serve` and `recto gateway`: a server in the foreground, its settings check and reloading."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit

import typer

from recto.cli import options
from recto.cli.command import exit_codes
from recto.cli.log_output import Secrets, set_up_logs
from recto.cli.server_entry import Announce, ServerEntry
from recto.cli.server_settings import FILE, OTHERS, SECRETS, SETTINGS, load_settings
from recto.cli.translation import _, terminal_language
from recto.config.setting import values_of
from recto.config.settings import ServerSettings
from recto.conversation.json import Json
from recto.errors import RectoError, ServerUnreachable, SettingsError

if TYPE_CHECKING:
    from rich.console import Console

    from recto.client import ChatTurn


PRICE_FILE = "prices.csv"
MAX_CHARACTERS = 100


@dataclass(frozen=True, kw_only=True)
class Greeting:
    """A running server with its default agent, if one is set, and the shell command that started recto."""

    url: str
    token: str
    address: str
    agent: str | None
    data: str
    command: str

    def say(self) -> None:
        """Run the example turns, print them as they stream, then the next steps."""
        from rich.console import Console  # slow to import, and needed for --hello only

        # Print model output as it is: no markup, no line breaking.
        console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
        run = ""
        for heading, agent, question, turn in self._runs():
            console.print(f"\n── {heading} ──", style="bold")
            _print(console, _("you"), question)
            try:
                _show(console, agent, turn.events())
            except ServerUnreachable:
                return
            except RectoError as error:
                console.print(_("The run failed: {message}").format(message=error), style="red")
            run = run or turn.run
        console.print("\n── " + _("next steps") + " ──", style="bold")
        data = f" --data {self.data}" if self.data != "recto-data" else ""
        about = _("what the model received, and why each part is there")
        _print(console, _("open"), self.address)
        _print(console, _("inspect"), f"{self.command} explain {run or 'RUN'}{data}    {about}")
        _print(console, _("build"), f"{self.command} agents new NAME    " + _("your own agent"))
        model = f"RECTO_MODEL=openai:NAME OPENAI_API_KEY=... {self.command} serve"
        _print(console, _("connect"), f"{model}    " + _("a real model"))
        sys.stdout.flush()

    def _runs(self) -> Iterator[tuple[str, str, str, ChatTurn]]:
        """Yield heading, agent, question and turn of each run."""
        if self.agent:
            question = _("What is 12 * 7, and what time is it?")
            yield _("{agent} answers").format(agent=self.agent), self.agent, question, self._ask(question)
            return
        question = _("Read {file}. What do 12 apples cost: 12 * 7?").format(file=PRICE_FILE)
        turn = self._ask(question, (PRICE_FILE, _("fruit,price\napples,7\npears,9\n").encode()))
        yield _("chat reads a file and uses a tool"), "chat", f"{question}  [{PRICE_FILE}]", turn
        question = _("I need career advice: I am a nurse, and I want to work with data.")
        agent = "vibe" if terminal_language() == "zh" else "vibe-en"
        yield (
            _("vibe activates a skill and continues as its expert"),
            "vibe",
            question,
            self._ask(question, agent=agent),
        )

    def _ask(self, question: str, *files: tuple[str, bytes], agent: str | None = None) -> ChatTurn:
        from recto.client import Client, Patience

        # If the server stops, do not retry.
        client = Client(url=self.url, token=self.token, agent=agent, patience=Patience(tries=0))
        return client.chat(question, files=files)


def _show(console: Console, agent: str, events: Iterable[Mapping[str, Json]]) -> None:
    """Print a run as it streams."""
    arguments, names = dict[Json, str](), dict[Json, str]()
    for event in events:
        match event:
            case {"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": str(name)}:
                names[id], arguments[id] = name, ""
            case {"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": str(delta)}:
                arguments[id] = arguments.get(id, "") + delta
            case {"type": "TOOL_CALL_RESULT", "toolCallId": id, "content": content}:
                call = f"{names.get(id)}({_shorten(arguments.get(id, ''))})"
                _print(console, _("calls"), f"{call} → {_shorten(str(content))}")
            case {"type": "TEXT_MESSAGE_START"}:
                console.print(f"{agent:<9}", style="cyan", end="")
            case {"type": "TEXT_MESSAGE_CONTENT", "delta": str(delta)}:
                console.print(delta.replace("\n", "\n" + " " * 9), end="")
            case {"type": "TEXT_MESSAGE_END"}:
                console.print()
            case _:
                pass


def _print(console: Console, name: str, text: str) -> None:
    from rich.cells import cell_len

    console.print(name + " " * (9 - cell_len(name)), style="cyan", end="")
    console.print(text)


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_CHARACTERS else f"{line[:MAX_CHARACTERS]} ..."


HIDDEN = "(set, not shown)"
# Parts of a URL to hide: password, user name (may be a key), query values, fragment.
PARTS = (
    (re.compile(r"(://[^/:@]*:)[^/@]*@"), r"\1(hidden)@"),
    (re.compile(r"(://)[^/:@]+@"), r"\1(hidden)@"),
    (re.compile(r"([?&][^=&#]*=)[^&#]+"), r"\1(hidden)"),
    (re.compile(r"#.+"), "#(hidden)"),
)
# Seconds until a stopping server is killed. It should stop within ten.
STOP_SECONDS = 12
# Milliseconds between checks for an exited server.
POLL_MILLISECONDS = 300


def serve(
    context: typer.Context,
    *,
    host: options.Host = None,
    port: options.Port = None,
    data: options.DataDir = None,
    agents: options.AgentsDir = None,
    workspace: options.WorkspaceDir = None,
    mode: options.AgentMode = None,
    config: options.ServerConfig = None,
    hello: options.Hello = False,
    check: options.CheckOnly = False,
    reload: options.Reload = False,
) -> None:
    """Serve agents over HTTP. Without settings, the server listens on this machine and uses a built-in demo model.

    Stops on Ctrl-C within ten seconds; unfinished runs continue at the next start. Exit codes: 0 success, 1 failure, 2
    usage error.
    """
    entry: ServerEntry = context.obj
    flags = {"host": host, "port": port, "data": data, "agents": agents, "workspace": workspace, "mode": mode}
    with exit_codes("serve"):
        settings = load_settings(flags, os.environ, config)
        secrets = Secrets(secrets_of(settings, os.environ))
        # --check must print warnings even if the server would not log them.
        level = "warning" if check and settings.log_level == "error" else settings.log_level
        set_up_logs(level, settings.log_format, secrets)
        if check:
            _print_settings(settings, entry.check(settings))
        elif reload:
            files = [path for path in (settings.agents, config or Path(FILE)) if path is not None and path.exists()]
            if not files:
                raise SettingsError(
                    name="--reload", value="", allowed="there is nothing to watch. Name a folder with --agents"
                )
            _serve_with_reload(files)
        else:
            entry.serve(settings, _make_announce(settings, secrets, hello=hello), None)


def _make_announce(settings: ServerSettings, secrets: Secrets, *, hello: bool) -> Announce:
    def announce(url: str, token: str | None) -> None:
        # Hide the token in logs. A generated token is shown only here.
        secrets.add(token or "")
        # Do not print a configured token.
        new_token = token if settings.auth.token is None else None
        address = f"{url}/#token={quote(new_token)}" if new_token else f"{url}/"
        try:
            typer.echo(
                f"Recto is listening on {url} (model {settings.model}, data in {settings.data}). Stop it with Ctrl-C."
            )
            if new_token:
                typer.echo(f"Its token is {new_token}. Open {address}, or send it as Authorization: Bearer.")
            if settings.agents_here == "used":
                typer.echo(f"Agents of the folder {settings.agents} are used; --agents none disables them.")
            elif settings.agents_here == "empty":
                typer.echo("The folder agents contains no agent (a folder with AGENT.md), so it is not used.")
            if settings.model == "demo":
                typer.echo(
                    "This is the demo model. For a real one: RECTO_MODEL=openai:NAME OPENAI_API_KEY=... recto serve"
                )
            if hello and token:
                program = sys.argv[0]
                command = "recto" if which("recto") or Path(program).name != "recto" else program
                agent, data = settings.agent, str(settings.data)
                Greeting(url=url, token=token, address=address, agent=agent, data=data, command=command).say()
            elif hello:
                typer.echo("--hello needs the local token. Set RECTO_TOKEN in addition to API keys or JWT.")
        except BrokenPipeError:
            # The reader of our output, such as `head`, may exit; the server continues.
            sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the process ends

    return announce


def _print_settings(settings: ServerSettings, findings: Mapping[str, str]) -> None:
    """Print the effective settings as in a file, then the findings."""
    for name, value in values_of(settings).items():
        typer.echo(f"{name} = {_format_value(name, value)}")
    for name, value in settings.limits:
        typer.echo(f"limits.{name} = {_format_value(name, value)}")
    keys, urls = _model_settings()
    for name in (*keys, *sorted({*OTHERS, *urls} - {*keys})):
        value = os.environ.get(name)
        typer.echo(f"{name} = {HIDDEN if value is not None and name in keys else _format_value(name, value)}")
    for name in sorted(name for name in os.environ if name.startswith(SECRETS)):
        typer.echo(f"{name} = {HIDDEN}")
    for name, value in findings.items():
        typer.echo(f"{name}: {value}")


def _model_settings() -> tuple[Sequence[str], Sequence[str]]:
    """Return the names of the settings for keys and addresses of model providers."""
    from recto.models.choose import PROVIDERS  # slow to import

    keys = dict.fromkeys(provider.key_setting for provider in PROVIDERS)
    return tuple(keys), tuple(provider.url_setting for provider in PROVIDERS)


def _format_value(name: str, value: object) -> str:
    if value is None:
        return "(not set)"
    if name in SETTINGS and SETTINGS[name].secrecy:
        return HIDDEN
    if isinstance(value, (int, float)):
        return repr(value)
    text = str(value)
    for part, instead in PARTS if "://" in text else ():
        text = part.sub(instead, text)
    return repr(text)


def secrets_of(settings: ServerSettings, environment: Mapping[str, str]) -> list[str]:
    """Return all secret settings and passwords in URLs."""
    values: list[str] = []
    for name, value in values_of(settings).items():
        text = str(value) if value else ""
        match SETTINGS[name].secrecy:
            case None:
                pass
            case "whole":
                values.append(text)
            case "pairs":
                values += [part for entry in text.split(",") for part in entry.split(":")[1:]]
            case "url":
                values += [text, *_password(text)]
    keys, urls = _model_settings()
    of_models = [environment.get(name) for name in keys]
    of_tools = [value for name, value in environment.items() if name.startswith(SECRETS)]
    passwords = [word for name in urls for word in _password(environment.get(name))]
    return [one.strip() for one in (*values, *of_models, *of_tools, *passwords) if one]


def _password(url: str | None) -> tuple[str, ...]:
    try:
        password = urlsplit(url or "").password or ""
    except ValueError:
        return ()
    return password, unquote(password)


def _serve_with_reload(files: list[Path]) -> None:
    """Serve in a child process and restart it when an agent or the settings change."""
    from watchfiles import PythonFilter, watch  # slow to import, and needed for --reload only

    ending = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: ending.set())
    file_filter = PythonFilter(extra_extensions=(".md", ".yaml", ".yml", ".toml"))
    typer.echo(f"Watching {', '.join(map(str, files))} for changes.", err=True)
    child, is_reported = _start_child(), False
    try:
        for changes in watch(
            *files, watch_filter=file_filter, stop_event=ending, rust_timeout=POLL_MILLISECONDS, yield_on_timeout=True
        ):
            if changes:
                names = sorted({Path(path).name for _change, path in changes})
                typer.echo(f"Changed: {', '.join(names)}. Restarting.", err=True)
                _end_child(child)
                child, is_reported = _start_child(), False
            elif child.poll() is not None and not is_reported:
                is_reported = True
                typer.echo(
                    f"The server exited with code {child.returncode}. It restarts after the next change.", err=True
                )
    finally:
        _end_child(child)


def _start_child() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "recto", *[word for word in sys.argv[1:] if word != "--reload"]])  # noqa: S603 - our own command


def _end_child(child: subprocess.Popen[bytes]) -> None:
    # Send SIGTERM: after Ctrl-C the child already received SIGINT, and a second SIGINT would abort its shutdown.
    child.terminate()
    try:
        child.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


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

        def announce(url: str, token: str | None) -> None:
            secrets.add(token or "")
            folds = f"folds: {settings.gateway.fold}, data in {settings.data}"
            typer.echo(f"The gateway of Recto is listening on {url} ({folds}).")
            typer.echo(f"Point agents at OPENAI_BASE_URL={url}/v1 or ANTHROPIC_BASE_URL={url}. Stop it with Ctrl-C.")
            if settings.gateway.keys != "callers" and token and settings.auth.token is None:
                typer.echo(f"Send {token} as the API key; the server has the key of the provider.")
            if settings.gateway.takes_callers:
                typer.echo("Provider keys that agents send are passed on.")

        entry.relay(settings, announce)
