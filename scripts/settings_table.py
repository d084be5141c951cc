"""Write the tables of settings in docs/server.md from the declarations of the settings."""

from __future__ import annotations

import re
from pathlib import Path
from typing import cast, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from recto.cli.server_settings import SettingsFile
from recto.conversation.json import dump

PAGE = Path(__file__).resolve().parent.parent / "docs" / "server.md"
HEAD = "| Setting | Default | May be | Meaning |\n|---|---|---|---|\n"
TABLE = re.compile(re.escape(HEAD) + r"(?:\|.*\|\n)*")


def with_tables(page: str) -> str:
    """Return the page with the current tables of `[server]` and `[limits]`."""
    tables = [cast("type[BaseModel]", table.annotation).model_fields for table in SettingsFile.model_fields.values()]
    texts = iter(["".join([_row(name, field) for name, field in table.items()]) for table in tables])
    return TABLE.sub(lambda _: HEAD + next(texts), page)


def _row(name: str, field: FieldInfo) -> str:
    default: object = str(field.default) if isinstance(field.default, Path) else field.default
    text = "" if default is None else f"`{dump(default).decode()}`"
    return f"| `{name}` | {text} | {_describe_range(field)} | {field.description} |\n"


def _describe_range(field: FieldInfo) -> str:
    if field.annotation is bool:
        return "`true`, `false`"
    ends = ("ge", "gt", "le", "min_length")
    match {end: getattr(limit, end) for limit in field.metadata for end in ends if hasattr(limit, end)}:
        case {"min_length": int(length)} if length > 1:
            return f"{length} characters or more"
        case {"gt": low, "le": high}:
            return f"above {low:,}, to {high:,}"
        case {"ge": low, "le": high}:
            return f"{low:,} to {high:,}"
        case {"ge": low}:
            return f"{low:,} or more"
        case _:
            return ", ".join([f"`{word}`" for word in get_args(field.annotation)])


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
