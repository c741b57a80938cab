"""How long epochs took, what waited and when appliers stopped: cases worked by hand, and laws of any two logs."""

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conflict.config.option_values import Grid
from conflict.operating.window.channels import NOT_KNOWN, Channel, channel_of
from conflict.operating.window.clocks import clock_difference
from conflict.operating.window.grouped import Groups, by_time
from conflict.operating.window.logs import ClusterLog
from tests.conflict.operating.window.logs import SECOND, log


def two(ahead: float = 0.0, first_ahead: float = 0.0) -> tuple[ClusterLog, ClusterLog]:
    """Return the logs of A and B; `ahead` is by how much B's clock is ahead, `first_ahead` A's."""
    a = log(
        "A",
        {10: 0.0, 11: 1.0, 12: 1.6, 13: 2.0, 14: 7.3, 15: 9.0},
        {12: [22], 14: [23]},
        source="B",
        idle=[12, 14],
        ahead=first_ahead,
    )
    b = log("B", {21: 0.2, 22: 1.5, 23: 7.0, 24: 12.0}, {21: [10], 22: [11], 23: [13]}, source="A", ahead=ahead)
    return a, b


def channel(source: ClusterLog, applier: ClusterLog, *, source_first: bool) -> Channel:
    """Return the channel between two logs that has epochs."""
    found = channel_of(source, applier, source_first=source_first)
    assert found is not None
    return found


def ms(times: np.ndarray) -> list[float | None]:
    """Return times in ms, None where they are not known."""
    return [None if each == NOT_KNOWN else each / 1000 for each in times.tolist()]


def test_a_case_worked_by_hand():
    """
    Delays, windows, backlog and stops of A's epochs.

    The smallest delays are 0.2 s from A to B and 0.1 s from B to A (epoch 22, logged at 1.5 s, applied at 1.6 s), so
    that B's clock is taken to be 0.05 s ahead, within 0.15 s; delays to B are 0.05 s less.
    """
    a, b = two()
    there = channel(a, b, source_first=True)
    assert (there.clocks.least, there.clocks.most) == (-100_000, 200_000)
    assert (there.clocks.estimate, there.clocks.bound) == (50_000, 150_000)
    assert ms(there.delay) == [150, 450, None, 4950, None, None]
    assert ms(there.window) == [None, 600, None, 5300, None, None]  # nothing shows that 21 came back
    assert there.left == 1  # epoch 15; 12 and 14 have no change of A itself
    assert there.backlog[1].max() == 1
    stops = there.stops
    assert stops.begin.tolist() == [2 * SECOND, 9 * SECOND]
    assert stops.end.tolist() == [6_950_000, 11_950_000]  # by A's clock
    assert (stops.open.tolist(), stops.after.tolist()) == ([False, True], [11, 13])


def test_the_other_direction():
    """B's epochs by A's clock: 22 took 0.1 s and 0.05 s more, 23 0.3 s; 21 and 24 left no trace."""
    a, b = two()
    back = channel(b, a, source_first=False)
    assert ms(back.delay) == [None, 150, 350, None]
    assert ms(back.window) == [None] * 4  # A's epochs 12 and 14 are not shown as applied by B
    assert back.committed.tolist() == [150_000, 1_450_000, 6_950_000, 11_950_000]
    assert back.left == 0  # 24 was logged after A's log ends


def test_an_epoch_waits_until_a_later_one_is_shown():
    """Epochs 1 and 2 wait until 3 is applied at 5 s; so three wait at a time. A result knows that 2 was at 4 s."""
    a = log("A", {1: 1.0, 2: 2.0, 3: 3.0})
    b = log("B", {6: 0.5, 7: 4.0, 8: 5.0}, {8: [3]}, source="A")
    assert channel(a, b, source_first=True).backlog[1].tolist() == [1, 2, 3, 2, 1, 0]
    placed = (np.array([2], np.uint64), np.array([7], np.uint64))
    known = channel_of(a, b, source_first=True, placed=placed)
    assert known is not None
    assert known.gone.tolist() == [4 * SECOND, 4 * SECOND, 5 * SECOND]
    assert ms(known.delay) == [None, None, 2000]


def test_epochs_from_before_the_appliers_log_do_not_wait():
    """Both logs begin in the middle: what A logged before B's log begins may have been applied long ago."""
    a = log("A", {1: 1.0, 2: 2.0, 3: 103.0})
    b = log("B", {7: 100.0, 8: 104.0}, {8: [3]}, source="A")
    found = channel(a, b, source_first=True)
    assert (found.backlog[1].max(), len(found.stops)) == (1, 0)


def test_no_trace_at_all():
    """A log that shows no foreign epoch has no channel."""
    a, b = log("A", {1: 1.0}), log("B", {7: 2.0})
    assert channel_of(a, b, source_first=True) is None


def test_bounds_of_clocks():
    """The middle of the bounds; whole seconds widen these; one bound alone corrects nothing."""
    both = clock_difference("A", "B", 300, 100)
    assert (both.least, both.most, both.estimate, both.bound, both.moved) == (-100, 300, 100, 200, False)
    seconds = clock_difference("A", "B", 300, 100, (SECOND, 0))
    assert (seconds.least, seconds.most) == (-100 - SECOND, 300)
    one = clock_difference("A", "B", 300, None)
    assert (one.estimate, one.bound, one.least) == (0, None, None)
    moved = clock_difference("A", "B", -300, 100)
    assert (moved.moved, moved.bound) == (True, None)


def test_times_in_whole_seconds():
    """A clock that is cut to seconds leaves a second more open, and the true delay is within the bounds."""
    a = log("A", {1: 1.4, 2: 2.6}, {2: [5]}, source="B", exact=False)
    b = log("B", {5: 1.5, 6: 3.1}, {5: [1]}, source="A")
    found = channel(a, b, source_first=True)
    assert found.clocks.bound is not None
    assert abs(found.delay[0] - 100_000) <= found.clocks.bound


times = st.lists(st.integers(1, 40), min_size=1, max_size=30)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[list[float], list[float], list[tuple[int, int]], list[tuple[int, int]]]:
    """Draw true times of two logs, and which epochs of each the other one shows, in order and never too early."""
    logs = [np.cumsum(draw(times)).tolist() for _ in "AB"]
    shown = []
    for source, applier in ((0, 1), (1, 0)):
        found, at = [], 0
        for number, left in enumerate(logs[source]):
            at = max(at, int(np.searchsorted(logs[applier], left, "right")))
            at += draw(st.integers(0, 2))
            if at < len(logs[applier]) and draw(st.booleans()):
                found.append((number, at))
        shown.append(found)
    return logs[0], logs[1], shown[0], shown[1]


def made(
    pair: tuple[list[float], list[float], list[tuple[int, int]], list[tuple[int, int]]], a_ahead: float, b_ahead: float
) -> tuple[ClusterLog, ClusterLog]:
    """Return the logs of a drawn pair, under clocks that are so much ahead."""
    first, second, there, back = pair
    applied = [
        {own + 1: [foreign + 1 for foreign, place in shown if place == own] for own in {place for _, place in shown}}
        for shown in (there, back)
    ]
    return (
        log("A", dict(enumerate(first, 1)), applied[1], source="B", ahead=a_ahead),
        log("B", dict(enumerate(second, 1)), applied[0], source="A", ahead=b_ahead),
    )


def figures(found: Channel) -> list[list[int]]:
    """Return all figures of a channel that clocks could change."""
    stops = found.stops
    arrays = (
        found.committed,
        found.delay,
        found.window,
        found.gone,
        *found.backlog,
        stops.begin,
        stops.end,
        stops.open,
    )
    return [each.tolist() for each in arrays]


@given(pairs(), st.integers(-100_000, 100_000))
def test_a_clock_that_is_ahead_changes_nothing(
    pair: tuple[list[float], list[float], list[tuple[int, int]], list[tuple[int, int]]], seconds: int
):
    """Whatever the second clock is ahead, where both directions are shown; no window ever changes."""
    for first in (True, False):
        plain, shifted = (
            channel_of(*(logs if first else logs[::-1]), source_first=first)
            for logs in (made(pair, 0, 0), made(pair, 0, seconds))
        )
        assert (plain is None) == (shifted is None)
        if plain is None or shifted is None:
            continue
        assert plain.window.tolist() == shifted.window.tolist()
        if pair[2] and pair[3]:
            assert shifted.clocks.estimate == plain.clocks.estimate + seconds * SECOND
            assert figures(plain) == figures(shifted)
            assert plain.clocks.bound is not None
            assert abs(plain.clocks.estimate) <= plain.clocks.bound  # the true difference is 0


@given(pairs())
def test_laws_of_any_two_logs(pair: tuple[list[float], list[float], list[tuple[int, int]], list[tuple[int, int]]]):
    """What waits at the end is what was never applied; steps add up; percentiles rise; windows hold delays."""
    a, b = made(pair, 0, 0)
    found = channel_of(a, b, source_first=True)
    if found is None:
        return
    moments, waiting = found.backlog
    assert (np.diff(moments) >= 0).all()
    assert waiting.min(initial=0) >= 0
    assert waiting[-1] == found.left
    assert (found.delay[found.delay != NOT_KNOWN] >= 0).all()
    both = (found.delay != NOT_KNOWN) & (found.window != NOT_KNOWN)
    ahead = found.clocks.bound or 0
    assert (found.window[both] >= found.delay[both] - ahead).all()
    for grid in Grid:
        table = by_time(found, grid, None)
        assert sum(table["epochs"].to_pylist()) == len(a)
        assert sum(table["bytes"].to_pylist()) == a.size.sum()
        assert max(table["backlog"].to_pylist()) == waiting.max(initial=0)
        for row in table.to_pylist():
            for name in ("applied_ms", "window_ms"):
                shares = [row[f"{name}_{share}"] for share in ("p50", "p99", "max")]
                assert shares == [None] * 3 or shares == sorted(shares)


@given(st.lists(st.integers(-5, 5), min_size=1))
def test_a_percentile_is_the_least_value_that_enough_do_not_exceed(values: list[int]):
    """By counting."""
    found = Groups(np.zeros(len(values), np.int64), 1).percentiles(np.array(values, np.int64))
    for name, percent in (("p50", 50), ("p99", 99), ("max", 100)):
        enough = [each for each in values if sum(other <= each for other in values) * 100 >= percent * len(values)]
        assert found[name].to_pylist() == [min(enough)]


def test_a_table_by_minute():
    """Two minutes, the second of which an epoch from the first one waits through."""
    begin = datetime(2026, 1, 31, 8, 0, tzinfo=UTC).timestamp()
    a = log("A", {1: begin + 10, 2: begin + 20, 3: begin + 70}, {2: [5]}, source="B")
    b = log("B", {5: begin + 10, 6: begin + 130}, {5: [1], 6: [2, 3]}, source="A")
    found = channel_of(a, b, source_first=True)
    assert found is not None
    rows = by_time(found, Grid.MINUTE, np.array([0, 2, 5], np.int64)).to_pylist()
    assert [(row["time"].minute, row["epochs"], row["bytes"], row["conflicts"]) for row in rows] == [
        (0, 2, 3, 2),
        (1, 1, 3, 5),
    ]
    assert [row["backlog"] for row in rows] == [1, 2]
    assert [row["applied_ms_max"] for row in rows] == pytest.approx(
        [115_000.0, 65_000.0]
    )  # B is taken to be 5 s behind
