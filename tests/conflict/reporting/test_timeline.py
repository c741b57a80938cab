"""Moments counted in steps of time."""

from datetime import UTC, datetime, timedelta

import numpy as np

from conflict.reporting.resolve_part import timeline

SECOND = 1_000_000


def test_moments_are_counted_in_steps() -> None:
    """Eighty seconds take steps of two; each begins at a whole one; a step without any has 0."""
    moments = {
        "first": np.array([61 * SECOND, 62 * SECOND, 63 * SECOND, 141 * SECOND]),
        "second": np.array([100 * SECOND + 1]),
    }
    step, table = timeline(moments)
    assert step == timedelta(seconds=2)
    starts = table["from"].to_pylist()
    assert starts[:2] == [datetime.fromtimestamp(60, UTC), datetime.fromtimestamp(62, UTC)]
    assert len(starts) == 41
    assert table["first"].to_pylist() == [1, 2, *[0] * 38, 1]
    assert [row for row, count in enumerate(table["second"].to_pylist()) if count] == [20]


def test_one_moment_has_one_step() -> None:
    """The shortest."""
    step, table = timeline({"first": np.array([5 * SECOND]), "second": np.array([], np.int64)})
    assert step == timedelta(seconds=0.1)
    assert table.num_rows == 1
    assert (table["first"].to_pylist(), table["second"].to_pylist()) == ([1], [0])
