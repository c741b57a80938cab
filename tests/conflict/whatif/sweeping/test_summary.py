"""A sweep in a table."""

import pyarrow as pa

from conflict.whatif.sweeping.summary import grid_of, main_axis


def test_medians_along_the_main_axis() -> None:
    """Over seeds and over axes with numbers that are not shown; a point without a run has none."""
    rows = [
        ("f", 10, 1, 0, 0.1),
        ("f", 10, 2, 0, 0.3),
        ("f", 10, 1, 5, 0.2),
        ("f", 0, 1, 0, 0.0),
        ("g", 10, 1, 0, 1.0),
    ]
    names = ["function", "latency_ms", "seed", "clock_skew_ms", "lost_share"]
    axes = {"clock_skew_ms": [0, 5], "function": ["f", "g"], "latency_ms": [10, 0]}
    grid = grid_of(pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows]), axes, "lost_share")
    assert (grid.axes, grid.over, grid.values) == (("function",), "latency_ms", (0, 10))
    assert grid.rows == {("f",): [0.0, 0.2], ("g",): [None, 1.0]}


def test_the_main_axis() -> None:
    """Latency before other numbers; a binlog type is none."""
    assert main_axis({"binlog_type": [7, 9], "workload.retries": [0, 1], "latency_ms": [0, 1]}) == "latency_ms"
    assert main_axis({"binlog_type": [7, 9], "workload.retries": [0, 1]}) == "workload.retries"
    assert main_axis({"binlog_type": [7, 9], "latency_ms": [1]}) is None
