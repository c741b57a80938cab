"""Moments as users give them."""

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from conflict.config.option_values import moment_of, seconds_of
from conflict.errors import ConfigurationError

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "given",
    [
        "2026-11-20 12:00",
        " 2026-11-20T12:00:00 ",
        "2026-11-20T12:00:00Z",
        "2026-11-20 17:00:00+05:00",
        "2026-11-20T07:00-05:00",
        datetime(2026, 11, 20, 12),  # noqa: DTZ001  # as a user writes it
        datetime(2026, 11, 20, 17, tzinfo=timezone(timedelta(hours=5))),
    ],
)
def test_an_offset_counts_and_without_one_a_moment_is_in_utc(given: str | datetime) -> None:
    """Seven spellings of one moment."""
    assert moment_of(given, "--since") == NOON
    assert seconds_of(given, "--since") == 1795176000


def test_without_an_offset_a_moment_is_in_the_zone_that_is_named() -> None:
    """One with an offset is not."""
    zone = timezone(timedelta(hours=1))
    assert moment_of("2026-11-20 13:00", "--since", zone) == NOON
    assert moment_of("2026-11-20 12:00Z", "--since", zone) == NOON


def test_a_date_is_its_midnight_and_a_part_of_a_second_the_next_second() -> None:
    """Times in binlogs are whole seconds, so that nothing of 12:00:00 comes after 12:00:00.5."""
    assert moment_of(date(2026, 11, 20), "since") == moment_of("2026-11-20", "since") == NOON.replace(hour=0)
    assert seconds_of("2026-11-20 12:00:00.5", "since") == 1795176001
    assert seconds_of(None, "since") is None


@pytest.mark.parametrize("given", ["yesterday", "", "2026-13-01", "9999-12-31T23:59:59-14:00", 1795176000])
def test_what_is_no_moment_is_refused_by_the_name_of_its_option(given: object) -> None:
    """And the sentence shows how to give one."""
    with pytest.raises(ConfigurationError, match=f"stop_time {given}: not a date and time; give it as 2026-01-31"):
        moment_of(given, "stop_time")  # type: ignore[arg-type]
