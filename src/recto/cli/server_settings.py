"""Settings of the server in force (C2): command line over environment over `recto.toml` over defaults."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, create_model

from recto.config.setting import Setting, make_tree, settings_of
from recto.config.settings import Limits, ServerSettings, given
from recto.errors import SettingsError

PREFIX = "RECTO_"
FILE = "recto.toml"
# Read elsewhere, by whoever needs them; here so that no known name is called unknown.
# RECTO_URL is for clients: whoever exports it may still start a server.
# Secrets have names of people's own choice.
SECRETS = f"{PREFIX}SECRET_"
OTHERS = frozenset({"RECTO_MODEL_URL", "RECTO_MODEL_KEY", "RECTO_URL"})
# Also of a name we do not know: it may be a secret under a name that is nearly right.
HIDDEN = "(not shown)"
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
# A whole file: other tables belong to other commands.
_File: type[BaseModel] = create_model("_File", server=(_ServerTable, _ServerTable()), limits=(Limits, Limits()))


def load_settings(flags: Mapping[str, object], environment: Mapping[str, str], file: Path | None) -> ServerSettings:
    """The settings in force. An unknown name or a value that means nothing raises SettingsError."""
    read = dict(_checked(_File, _read(file), ""))
    from_environment = _checked(_ServerTable, _from_environment(environment), PREFIX)
    from_flags = _checked(_ServerTable, {name: value for name, value in flags.items() if value is not None}, "--")
    merged = given(read["server"]) | given(from_environment) | given(from_flags)
    settings = make_tree(ServerSettings, merged, limits=read["limits"])
    if settings.database_url is not None:
        from recto.store.store import check_url  # here: commands that need no database do not wait for its library

        check_url(settings.database_url)
    return settings


def _read(file: Path | None) -> dict[str, object]:
    path = file or Path(FILE)
    if file is None and not path.exists():
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SettingsError(name="config", value=str(path), allowed=f"it cannot be read ({error})") from error


def _from_environment(environment: Mapping[str, str]) -> dict[str, object]:
    known = {PREFIX + name.upper(): name for name in SETTINGS}
    found = {
        name: value
        for name, value in environment.items()
        if name.startswith(PREFIX) and name not in OTHERS and not name.startswith(SECRETS)
    }
    for name in sorted(found.keys() - known.keys()):
        raise SettingsError(name=name, value=HIDDEN, allowed=f"there is no such setting; known: {_list(known)}")
    return {known[name]: value for name, value in found.items()}


def _list(known: Mapping[str, str]) -> str:
    return ", ".join(sorted({*known, *OTHERS}))


def _checked(kind: type[BaseModelT], values: Mapping[str, object], prefix: str) -> BaseModelT:
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(step) for step in first["loc"])
        name = {PREFIX: PREFIX + name.upper(), "--": f"--{name.replace('_', '-')}"}.get(prefix, name)
        found = SETTINGS.get(str(first["loc"][-1]))
        is_open = first["type"] != "extra_forbidden" and not (found and found.secrecy)
        value = first["input"] if is_open else HIDDEN
        # Only its first letter is made small: there are names in it.
        text = first["msg"].removeprefix("Value error, ")
        raise SettingsError(name=name, value=value, allowed=text[:1].lower() + text[1:]) from error
