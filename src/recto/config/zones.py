"""Time zones by name, and the one this machine is in. Refuses names that mean another zone on each machine."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

# Names that some systems have for whatever their own zone is, or for none.
NO_ZONES = ("localtime", "factory", "posixrules")
ETC, DATA = Path("/etc"), "zoneinfo/"


def find_zone(name: str) -> ZoneInfo:
    """A zone by its IANA name. ValueError where there is none."""
    try:
        if not name or name.lower() in NO_ZONES:
            raise ValueError(name)
        return ZoneInfo(name)
    # A folder such as "Asia" is an OSError, a path that leads out of the data a ValueError, anything else a KeyError.
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(f"{name[:64]!r} is no time zone; name one such as Asia/Shanghai") from error


def zone_of_server(name: str | None) -> tzinfo:
    """The zone a server was told by name; else the machine's."""
    return find_zone(name) if name else machine_zone(os.environ)


def machine_zone(environment: Mapping[str, str], etc: Path = ETC) -> tzinfo:
    """The zone this machine is in: by name, else by its rules, else by how far its clock is from UTC now."""
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
    """What may be the name of the machine's zone. Where TZ is said, nothing else counts."""
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
