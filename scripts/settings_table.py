"""Write the table of settings in docs/server.md again, from the settings themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from recto.config.setting import Range, settings_of
from recto.config.settings import Limits, ServerSettings
from recto.conversation.json import dump

PAGE = Path(__file__).resolve().parent.parent / "docs" / "server.md"
HEAD = "| Setting | Default | May be | Meaning |\n|---|---|---|---|\n"
TABLE = re.compile(re.escape(HEAD) + r"(?:\|.*\|\n)*")


def with_tables(page: str) -> str:
    """The page with its two tables, that of `[server]` and that of `[limits]`, as they should be."""
    tables = iter(("".join(_server_rows()), "".join(_limit_rows())))
    return TABLE.sub(lambda _: HEAD + next(tables), page)


def _server_rows() -> Iterator[str]:
    for one in settings_of(ServerSettings):
        yield _row(one.name, one.default, _may_be(one.kind, one.range), one.doc)


def _limit_rows() -> Iterator[str]:
    for name, field in Limits.model_fields.items():
        found = {end: getattr(one, end) for one in field.metadata for end in ("ge", "gt", "le") if hasattr(one, end)}
        bounds = Range(least=found.get("ge"), above=found.get("gt"), most=found.get("le"))
        yield _row(name, field.default, str(bounds), field.description or "")


def _row(name: str, default: object, may_be: str, doc: str) -> str:
    shown = "" if default is None else f"`{dump(str(default) if isinstance(default, Path) else default).decode()}`"
    return f"| `{name}` | {shown} | {may_be} | {doc} |\n"


def _may_be(kind: object, bounds: Range | None) -> str:
    if kind is bool:
        return "`true`, `false`"
    return str(bounds) if bounds else ", ".join(f"`{word}`" for word in get_args(kind))


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
