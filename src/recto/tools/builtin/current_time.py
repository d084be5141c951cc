"""The current_time tool. It reports the time in the tool context, not the machine's clock."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from recto.config.zones import find_zone
from recto.errors import ToolError
from recto.tools.mark import tool
from recto.tools.ports import ToolContext

# English names, because strftime would use the machine's language.
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@tool(safe_to_repeat=True)
def current_time(
    context: ToolContext,
    timezone: Annotated[
        str | None, Field(description="IANA name such as Asia/Shanghai. Leave it out for the user's own time zone.")
    ] = None,
) -> str:
    """Say the current date, time and weekday."""
    try:
        zone = find_zone(timezone) if timezone else context.zone
    except ValueError as error:
        problem = f"There is no time zone {timezone!r}. Give an IANA name such as Asia/Shanghai or UTC."
        raise ToolError(problem) from error
    now = context.now.astimezone(zone)
    offset = now.utcoffset() or timedelta()
    hours, minutes = divmod(abs(offset) // timedelta(minutes=1), 60)
    from_utc = f"UTC{'-' if offset < timedelta() else '+'}{hours:02}:{minutes:02}"
    return f"{now:%Y-%m-%d %H:%M:%S} {WEEKDAYS[now.weekday()]}, {zone} ({from_utc})"
