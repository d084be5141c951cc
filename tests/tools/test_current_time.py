"""What time it is."""

from datetime import UTC, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest

from recto.errors import ToolError
from recto.tools.builtin.current_time import current_time
from recto.tools.function import tool_from
from tests.tools.runs import context

SHANGHAI = ZoneInfo("Asia/Shanghai")


@pytest.mark.parametrize(
    ("zone", "name", "text"),
    [
        (SHANGHAI, None, "2026-05-14 12:00:00 Thursday, Asia/Shanghai (UTC+08:00)"),
        (UTC, "", "2026-05-14 04:00:00 Thursday, UTC (UTC+00:00)"),
        (SHANGHAI, "America/St_Johns", "2026-05-14 01:30:00 Thursday, America/St_Johns (UTC-02:30)"),
        (timezone(timedelta(hours=-5)), None, "2026-05-13 23:00:00 Wednesday, UTC-05:00 (UTC-05:00)"),
    ],
)
def test_the_time_is_the_runs_in_the_zone_asked_for(zone: tzinfo, name: str | None, text: str):
    assert current_time(context(zone), name) == text


@pytest.mark.parametrize("name", ["Mars/Olympus", "Asia", "../etc/passwd", "/etc/passwd", "\0", "\ud800", "x" * 5000])
def test_an_unknown_zone_is_named(name: str):
    with pytest.raises(ToolError, match="There is no time zone"):
        current_time(context(), name)


def test_it_is_safe_to_repeat():
    assert tool_from(current_time).mark.safe_to_repeat
