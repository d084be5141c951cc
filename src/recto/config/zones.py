"""Time zones by name, and the machine's zone. Names with different meanings on different machines are rejected."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

# Names that some systems use for their local zone or for no zone, which are rejected.
NO_ZONES = ("localtime", "factory", "posixrules")
ETC, DATA = Path("/etc"), "zoneinfo/"


def find_zone(name: str) -> ZoneInfo:
    """Return a zone by its IANA name. Raise ValueError for unknown names."""
    try:
        if not name or name.lower() in NO_ZONES:
            raise ValueError(name)
        return ZoneInfo(name)
    # ZoneInfo raises OSError for a folder such as "Asia", ValueError for a path outside the data, and KeyError for
    # other unknown names.
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(f"{name[:64]!r} is no time zone; name one such as Asia/Shanghai") from error


def check_zone(name: str) -> str:
    """Return the name of a zone. Raise ValueError for unknown names."""
    find_zone(name)
    return name


def zone_of_server(name: str | None) -> tzinfo:
    """Return the configured zone, else the machine's."""
    return find_zone(name) if name else machine_zone(os.environ)


def machine_zone(environment: Mapping[str, str], etc: Path = ETC) -> tzinfo:
    """Return the machine's zone: by name, else by its rules, else by the current UTC offset of its clock."""
    for name in _names(environment, etc):
        try:
            return find_zone(name)
        except ValueError:
            continue
    try:
        if "TZ" not in environment:
            with (etc / "localtime").open("rb") as rules:
                return ZoneInfo.from_file(rules, key="localtime")
    except (OSError, ValueError):
        pass
    return datetime.now().astimezone().tzinfo or UTC


def _names(environment: Mapping[str, str], etc: Path) -> Iterator[str]:
    """Yield candidate names of the machine's zone. If TZ is set, it overrides all others."""
    if (name := environment.get("TZ")) is not None:
        yield name.removeprefix(":").rpartition(DATA)[2]
        return
    link = etc / "localtime"
    if link.is_symlink():
        yield os.path.realpath(link).rpartition(DATA)[2]
    try:
        yield (etc / "timezone").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return
