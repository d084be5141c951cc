"""Effective server settings (C2): command line over environment over `recto.toml` over defaults."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, TypeVar, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic_core import ErrorDetails

from recto.config.setting import Range, Setting, make_tree, settings_of
from recto.config.settings import Limits, ServerSettings, explicit_values
from recto.errors import SettingsError, raise_all

PREFIX = "RECTO_"
FILE = "recto.toml"
# Environment variables that other modules read, so that they are not reported as unknown. Users choose the names that
# follow SECRETS. RECTO_URL is for clients and may be exported when a server starts.
SECRETS = f"{PREFIX}SECRET_"
OTHERS = frozenset({"RECTO_MODEL_URL", "RECTO_MODEL_KEY", "RECTO_URL"})
# Replacement of values in errors: of secrets, and of unknown names, which may be misspelt secrets.
HIDDEN = "(not shown)"
# Tables of the file for other commands.
OTHER_TABLES = ("fold", "chat")
# Default folder of agents, and the value that disables it.
AGENTS_HERE, NO_AGENTS = Path("agents"), Path("none")
# Similarity for suggestions; 1 means equal.
NEAR = 0.7
BaseModelT = TypeVar("BaseModelT", bound=BaseModel)


# Settings of the server by name, in tree order.
SETTINGS: Mapping[str, Setting] = {one.name: one for one in settings_of(ServerSettings)}


def _field(one: Setting) -> tuple[object, object]:
    """Return the type of a setting for pydantic, and its default, description and limits."""
    range = one.range or Range()
    limits = Field(
        one.default, description=one.doc, ge=range.least, gt=range.above, le=range.most, min_length=range.characters
    )
    return Annotated[one.kind, AfterValidator(range.check)] if range.check else one.kind, limits


# The model of the `[server]` table, also for the environment and the command line.
_form = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
_fields = {name: _field(one) for name, one in SETTINGS.items()}
_ServerTable = cast("type[BaseModel]", create_model("ServerTable", __config__=_form, **_fields))  # pyright: ignore[reportCallIssue, reportArgumentType] - fields are named by the tree
SettingsFile: type[BaseModel] = create_model(
    "SettingsFile", server=(_ServerTable, _ServerTable()), limits=(Limits, Limits())
)


def load_settings(flags: Mapping[str, object], environment: Mapping[str, str], file: Path | None) -> ServerSettings:
    """Return the effective settings. Raise one SettingsError for all unknown names and invalid values."""
    errors = list[SettingsError]()
    document = _read(file)
    tables = (*SettingsFile.model_fields, *OTHER_TABLES)
    for name in [name for name in document if name not in tables]:
        allowed = f"put it under [server] in {FILE}" if name in SETTINGS else _describe_unknown(name, tables, "table")
        errors.append(SettingsError(name=name, value=HIDDEN, allowed=allowed))
    in_file = dict(_validate(SettingsFile, document, "", errors))
    names = {PREFIX + name.upper(): name for name in SETTINGS}
    variables = [name for name in environment if name.startswith(PREFIX) and not name.startswith(SECRETS)]
    for name in sorted({*variables} - {*names, *OTHERS}):
        allowed = _describe_unknown(name, (*names, *OTHERS))
        errors.append(SettingsError(name=name, value=HIDDEN, allowed=allowed))
    variable_values = {names[name]: environment[name] for name in variables if name in names}
    from_environment = _validate(_ServerTable, variable_values, PREFIX, errors)
    flag_values = {name: value for name, value in flags.items() if value is not None}
    from_flags = _validate(_ServerTable, flag_values, "--", errors)
    raise_all(errors)
    values = explicit_values(in_file["server"]) | explicit_values(from_environment) | explicit_values(from_flags)
    settings = make_tree(ServerSettings, values, limits=in_file["limits"], config_file=file or Path(FILE))
    if settings.database_url is not None:
        from recto.store.store import check_url  # slow to import

        check_url(settings.database_url)
    # Use the folder `agents` of the current directory if none is configured and it has agents
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


def _describe_unknown(name: str, names: Collection[str], what: str = "setting") -> str:
    """Describe an unknown name and suggest similar names. A list of all names would fill a page."""
    # Compare without the common prefix, which would make all names similar.
    plain = {one.removeprefix(PREFIX).lower(): one for one in names}
    near = get_close_matches(name.removeprefix(PREFIX).lower(), plain, n=2, cutoff=NEAR)
    mean = f"; did you mean {' or '.join(plain[one] for one in near)}?" if near else "."
    return f"there is no such {what}{mean} Take it out, and `recto serve --check` lists all there are"


def _validate(
    kind: type[BaseModelT], values: Mapping[str, object], prefix: str, errors: list[SettingsError]
) -> BaseModelT:
    """Validate a table. On errors, add them to `errors` and return the defaults."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        errors += [_error(details, prefix) for details in error.errors()]
        return kind()


def _error(details: ErrorDetails, prefix: str) -> SettingsError:
    place = [str(step) for step in details["loc"]]
    name = ".".join(place)
    name = {PREFIX: PREFIX + name.upper(), "--": f"--{name.replace('_', '-')}"}.get(prefix, name)
    if details["type"] == "extra_forbidden":
        names = Limits.model_fields if place[0] == "limits" else SETTINGS
        return SettingsError(name=name, value=HIDDEN, allowed=_describe_unknown(place[-1], tuple(names)))
    setting = SETTINGS.get(place[-1])
    # Lower only the first letter; the text may contain names.
    text = details["msg"].removeprefix("Value error, ")
    value = HIDDEN if setting and setting.secrecy else details["input"]
    return SettingsError(name=name, value=value, allowed=text[:1].lower() + text[1:])
