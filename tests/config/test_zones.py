"""Tests of time zones by name, and of the machine's zone (P1)."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path

import pytest

from recto.config.zones import find_zone, machine_zone, zone_of_server

SUMMER, WINTER = datetime(2026, 7, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("name", ["Mars/Olympus", "Asia", "../etc/passwd", "/etc/passwd", "", "\0", "localtime"])
def test_P1_unknown_and_machine_dependent_zones_are_rejected(name: str):
    with pytest.raises(ValueError, match="is no time zone; name one such as Asia/Shanghai"):
        find_zone(name)


@pytest.mark.parametrize(
    ("environment", "texts", "expected"),
    [
        pytest.param({"TZ": "Asia/Shanghai"}, {"timezone": "Europe/Paris\n"}, "Asia/Shanghai", id="TZ first"),
        pytest.param({"TZ": ":Asia/Shanghai"}, {}, "Asia/Shanghai", id="with a colon"),
        pytest.param({"TZ": "/usr/share/zoneinfo/Asia/Shanghai"}, {}, "Asia/Shanghai", id="as a path"),
        pytest.param({}, {"timezone": "Europe/Paris\n"}, "Europe/Paris", id="by name"),
        pytest.param({}, {"timezone": "# none\n", "localtime": b"no zone"}, str(datetime.now().astimezone().tzinfo)),
        pytest.param({}, {}, str(datetime.now().astimezone().tzinfo), id="nothing"),
    ],
)
def test_P1_the_zone_of_the_machine_is_found_by_its_name(
    environment: Mapping[str, str], texts: Mapping[str, str | bytes], expected: str, tmp_path: Path
):
    for name, text in texts.items():
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    assert str(machine_zone(environment, tmp_path)) == expected


def test_P1_the_link_of_the_machine_names_its_zone_and_wins_over_an_old_name(tmp_path: Path):
    folder = tmp_path / "share" / "zoneinfo" / "America"
    folder.mkdir(parents=True)
    (folder / "New_York").touch()
    (tmp_path / "localtime").symlink_to(folder / "New_York")
    (tmp_path / "timezone").write_text("Europe/Paris")
    assert str(machine_zone({}, tmp_path)) == "America/New_York"


def test_P1_a_copied_zone_has_no_name_and_yet_its_summer_time(tmp_path: Path):
    (tmp_path / "localtime").write_bytes((files("tzdata") / "zoneinfo" / "Europe" / "Paris").read_bytes())
    zone = machine_zone({}, tmp_path)
    offsets = [moment.astimezone(zone).utcoffset() for moment in (SUMMER, WINTER)]
    assert offsets == [timedelta(hours=2), timedelta(hours=1)]


@pytest.mark.parametrize(
    ("name", "zone"), [(None, "Asia/Kathmandu"), ("", "Asia/Kathmandu"), ("Asia/Tokyo", "Asia/Tokyo")]
)
def test_P1_a_server_has_the_configured_zone_else_the_machine_s(
    monkeypatch: pytest.MonkeyPatch, name: str | None, zone: str
):
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    assert str(zone_of_server(name)) == zone
