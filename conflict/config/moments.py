"""
Moments as users give them: dates with times, with an offset from UTC or without one.

The rule everywhere: a moment without an offset is in UTC, unless `decode --timezone` names another zone. A date alone
is its midnight.
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, tzinfo

from conflict.errors import ConfigurationError

__all__ = ["Moment", "moment_of", "seconds_of", "shown_range"]

Moment = str | date  # of which `datetime` is a kind


def moment_of(given: Moment, name: str, zone: tzinfo = UTC) -> datetime:
    """
    Return a moment in UTC.

    Args:
        given: Text such as ``2026-01-31 08:00:00``, ``2026-01-31T08:00:00+01:00`` or ``2026-01-31``; or a date or
            datetime of Python.
        name: What it is given for, such as ``--stop-datetime``.
        zone: The zone of a moment without an offset.

    Raises:
        ConfigurationError: It is no moment.
    """
    try:
        moment = datetime.fromisoformat(given.strip() if isinstance(given, str) else given.isoformat())
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)).astimezone(UTC)
    except (AttributeError, ValueError, OverflowError):
        message = (
            f"{name} {given}: not a date and time; give it as 2026-01-31 08:00:00 (UTC), or with an offset, "
            "2026-01-31 08:00:00+01:00"
        )
        raise ConfigurationError(message) from None


def seconds_of(given: Moment | None, name: str, zone: tzinfo = UTC) -> int | None:
    """
    Return the first whole second since 1970 that is not before a moment; None for none.

    Times in binlogs are whole seconds, so that everything from the moment on is everything from that second on.

    Raises:
        ConfigurationError: As `moment_of`.
    """
    return None if given is None else math.ceil(moment_of(given, name, zone).timestamp())


def shown_range(first: int, last: int) -> str:
    """Return two seconds since 1970 as people read them, and as options take them."""
    shown = (datetime.fromtimestamp(each, UTC).strftime("%Y-%m-%d %H:%M:%S") for each in (first, last))
    return f"{' to '.join(shown)} UTC"
