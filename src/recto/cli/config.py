"""The `[fold]` table of a TOML file: checked here, because it comes from outside."""

from __future__ import annotations

import tomllib
from pathlib import Path

from pydantic import BaseModel, ValidationError

from recto.agents.fold_table import Fold
from recto.errors import SettingsError


class _File(BaseModel):
    """A whole file: other tables belong to other commands."""

    fold: Fold = Fold()


def load_config(path: Path) -> Fold:
    """The `[fold]` table of a file. What is unreadable or unknown raises SettingsError."""
    try:
        return _File.model_validate(tomllib.loads(path.read_text(encoding="utf-8"))).fold
    except OSError as error:
        raise SettingsError(
            name="--config", value=str(path), allowed=f"it cannot be read ({error.strerror})"
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(step) for step in first["loc"])
        raise SettingsError(name=name, value=first["input"], allowed=first["msg"].lower()) from error
    except ValueError as error:
        raise SettingsError(name="--config", value=str(path), allowed=f"it is no TOML ({error})") from error
