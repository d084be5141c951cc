"""Settings of the server in force (C2): command line over environment over `recto.toml` over defaults."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic_core import ErrorDetails

from recto.config.setting import Setting, make_tree, settings_of
from recto.config.settings import Limits, ServerSettings, given
from recto.errors import SettingsError, raise_all

PREFIX = "RECTO_"
FILE = "recto.toml"
# Read elsewhere, by whoever needs them; here so that no known name is called unknown.
# RECTO_URL is for clients: whoever exports it may still start a server.
# Secrets have names of people's own choice.
SECRETS = f"{PREFIX}SECRET_"
OTHERS = frozenset({"RECTO_MODEL_URL", "RECTO_MODEL_KEY", "RECTO_URL"})
# Also of a name we do not know: it may be a secret under a name that is nearly right.
HIDDEN = "(not shown)"
# Tables of the file that other commands read.
OTHER_TABLES = ("fold", "chat")
# Used without being named, and the name that says not to.
AGENTS_HERE, NO_AGENTS = Path("agents"), Path("none")
# How alike two names are of which one is perhaps meant: 1 is the same.
NEAR = 0.7
BaseModelT = TypeVar("BaseModelT", bound=BaseModel)


# Every setting of the server by its name, in the order of the tree.
SETTINGS: Mapping[str, Setting] = {one.name: one for one in settings_of(ServerSettings)}


def _field(one: Setting) -> tuple[object, object]:
    """The type and default of a setting, as pydantic has them."""
    bounds = one.range
    if bounds is None:
        return one.kind, one.default
    finite = False if one.kind is float else None
    limits = Field(ge=bounds.least, gt=bounds.above, le=bounds.most, min_length=bounds.characters, allow_inf_nan=finite)
    checks = (AfterValidator(bounds.check),) if bounds.check else ()
    return Annotated[(one.kind, limits, *checks)], one.default


def _table() -> type[BaseModel]:
    """What the `[server]` table of a file, the environment or the command line may say."""
    fields = {name: _field(one) for name, one in SETTINGS.items()}
    form = ConfigDict(extra="forbid", frozen=True)
    return create_model("ServerTable", __config__=form, **fields)  # pyright: ignore[reportCallIssue, reportArgumentType, reportUnknownVariableType] - named by the tree


_ServerTable = _table()
_File: type[BaseModel] = create_model("_File", server=(_ServerTable, _ServerTable()), limits=(Limits, Limits()))


def load_settings(flags: Mapping[str, object], environment: Mapping[str, str], file: Path | None) -> ServerSettings:
    """The settings in force. Every unknown name and every value that means nothing is told in one SettingsError."""
    wrong = list[SettingsError]()
    in_file = _read(file)
    wrong += _unknown_tables(in_file)
    read = dict(_checked(_File, in_file, "", wrong))
    from_environment = _checked(_ServerTable, _from_environment(environment, wrong), PREFIX, wrong)
    given_flags = {name: value for name, value in flags.items() if value is not None}
    from_flags = _checked(_ServerTable, given_flags, "--", wrong)
    raise_all(wrong)
    merged = given(read["server"]) | given(from_environment) | given(from_flags)
    settings = make_tree(ServerSettings, merged, limits=read["limits"], config_file=file or Path(FILE))
    if settings.database_url is not None:
        from recto.store.store import check_url  # here: commands that need no database do not wait for its library

        check_url(settings.database_url)
    return _with_agents(settings)


def _with_agents(settings: ServerSettings) -> ServerSettings:
    """The settings with the agents of the current folder, where none are named and there are some."""
    if settings.agents is not None:
        return replace(settings, agents=None) if settings.agents == NO_AGENTS else settings
    if any(not file.parent.name.startswith((".", "_")) for file in AGENTS_HERE.glob("*/AGENT.md")):
        return replace(settings, agents=AGENTS_HERE, agents_here="used")
    return replace(settings, agents_here="empty") if AGENTS_HERE.is_dir() else settings


def _read(file: Path | None) -> dict[str, object]:
    path = file or Path(FILE)
    if file is None and not path.exists():
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SettingsError(name="config", value=str(path), allowed=f"it cannot be read ({error})") from error


def _unknown_tables(found: Mapping[str, object]) -> Iterator[SettingsError]:
    """What stands outside of every table we know: a table whose name is wrong, or a setting that belongs in one."""
    known = (*_File.model_fields, *OTHER_TABLES)
    for name in (name for name in found if name not in known):
        allowed = f"put it under [server] in {FILE}" if name in SETTINGS else _no_such(name, known, "table")
        yield SettingsError(name=name, value=HIDDEN, allowed=allowed)


def _from_environment(environment: Mapping[str, str], wrong: list[SettingsError]) -> dict[str, object]:
    known = {PREFIX + name.upper(): name for name in SETTINGS}
    found = {
        name: value
        for name, value in environment.items()
        if name.startswith(PREFIX) and name not in OTHERS and not name.startswith(SECRETS)
    }
    unknown = {name: _no_such(name, (*known, *OTHERS)) for name in sorted(found.keys() - known.keys())}
    wrong += [SettingsError(name=name, value=HIDDEN, allowed=allowed) for name, allowed in unknown.items()]
    return {known[name]: value for name, value in found.items() if name in known}


def _no_such(name: str, known: Collection[str], what: str = "setting") -> str:
    """What is said of a name that nobody knows. All that are known would be a page of them."""
    # Without what all of them begin with: by that they would all be alike.
    plain = {one.removeprefix(PREFIX).lower(): one for one in known}
    near = get_close_matches(name.removeprefix(PREFIX).lower(), plain, n=2, cutoff=NEAR)
    mean = f"; did you mean {' or '.join(plain[one] for one in near)}?" if near else "."
    return f"there is no such {what}{mean} Take it out, and `recto serve --check` lists all there are"


def _checked(
    kind: type[BaseModelT], values: Mapping[str, object], prefix: str, wrong: list[SettingsError]
) -> BaseModelT:
    """The table. All that is wrong with it is added to `wrong`, and then the table has its defaults."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        wrong += [_error(details, prefix) for details in error.errors()]
        return kind()


def _error(details: ErrorDetails, prefix: str) -> SettingsError:
    place = [str(step) for step in details["loc"]]
    name = ".".join(place)
    name = {PREFIX: PREFIX + name.upper(), "--": f"--{name.replace('_', '-')}"}.get(prefix, name)
    if details["type"] == "extra_forbidden":
        known = Limits.model_fields if place[0] == "limits" else SETTINGS
        return SettingsError(name=name, value=HIDDEN, allowed=_no_such(place[-1], tuple(known)))
    found = SETTINGS.get(place[-1])
    # Only its first letter is made small: there are names in it.
    text = details["msg"].removeprefix("Value error, ")
    value = HIDDEN if found and found.secrecy else details["input"]
    return SettingsError(name=name, value=value, allowed=text[:1].lower() + text[1:])
