"""What a report answers from a sweep."""

from typing import Any

import pyarrow as pa

from conflict.reporting.growing_losses import growing_losses
from conflict.reporting.sweep_answer import border_sentence, different_sentence, least_lost, least_of, without_stops
from conflict.sweeping.summary import Grid


def border(function: str, skew: int, holds: float | None, fails: float | None) -> dict[str, Any]:
    """Return a row of `borders.parquet`."""
    what = {"condition": "lost_updates == 0", "over": "latency_ms"}
    return {**what, "function": function, "clock_skew_ms": skew, "holds": holds, "fails": fails, "only": 1}


def test_the_worst_of_the_other_axes_counts() -> None:
    """Up to the least latency at which it holds whatever the skew; nowhere if it fails everywhere at one skew."""
    rows = [border("f", 0, 20, 21), border("f", 50, 12.5, 13), border("g", 0, 7, None), border("h", 0, None, 0)]
    assert border_sentence(rows) == (
        "lost_updates == 0 holds up to latency_ms 12.5 with f; at all latency_ms with g; "
        "at some points at no latency_ms with h."
    )
    same = [border("f", 0, 30, 35), border("g", 0, 30, 35)]
    assert border_sentence(same) == "lost_updates == 0 holds up to latency_ms 30 with f and g."
    assert border_sentence([border("f", 0, 30, 29)]) == "lost_updates == 0 holds from latency_ms 30 with f."


def test_a_condition_without_a_border() -> None:
    """It holds everywhere, or nowhere."""
    assert border_sentence([border("f", 0, 0, None)]) == "lost_updates == 0 holds at all latency_ms that were tried."
    assert border_sentence([border("f", 0, None, 0)]) == "lost_updates == 0 holds at no latency_ms that was tried."


def grid(**rows: list[float | None]) -> Grid:
    """Return shares along the latencies 10 and 100, by function."""
    return Grid(("function",), "latency_ms", (10, 100), {(name,): cells for name, cells in rows.items()})


def test_each_function_is_named_where_it_loses_least() -> None:
    """With what the next one loses there; a function under which an applier stops is not compared."""
    lost = grid(f=[0.03, 0.04], g=[0.02, 0.05], h=[0.0, 0.0])
    assert least_lost(lost, {("h",)}) == (
        "Of the changes of users, g loses least at 1 of 2 values of latency_ms (2.00 % at 10 against 3.00 % of f); "
        "f does at 1 of 2 values of latency_ms (4.00 % at 100 against 5.00 % of g)."
    )
    assert least_of(lost, {("h",)}) == ("g",)
    assert list(without_stops(lost, {("h",)}).rows) == [("f",), ("g",)]
    alone = Grid((), "latency_ms", (10, 100), {(): [0.01, 0.02]})
    assert least_lost(alone, set()) == ""
    nowhere = Grid(("function",), None, (None,), {("f",): [0.3], ("g",): [0.2]})
    assert least_lost(nowhere, set()) == "g loses least: 20.00 % of the changes of users; f 30.00 %."


LATENCY = "latency_ms 10 and 100 (one way, on each of both links, in milliseconds)"
OWN = "that limit is the default; for 5 %, sweep with --find 'lost_share < 0.05' --over latency_ms."


def test_losses_along_an_axis() -> None:
    """What each function loses, which overtakes which, and the limit, which is the default."""
    assert list(growing_losses(grid(f=[0.03, 0.04], g=[0.02, 0.05]))) == [
        f"Lost at {LATENCY}: f 3.00, 4.00 %; g 2.00, 5.00 %.",
        "Their order changes along latency_ms: g loses less than f at 10, and more at 100.",
        f"Every value of latency_ms that was tried loses more than 1 %; {OWN}",
    ]


def test_a_limit_that_was_asked_for_takes_the_place_of_the_default() -> None:
    """Functions that never overtake each other, also if they lose as much at some value, are not told."""
    assert list(growing_losses(grid(f=[0.0, 0.02], g=[0.0, 0.03]), limited=True)) == [
        f"Lost at {LATENCY}: f 0.00, 2.00 %; g 0.00, 3.00 %."
    ]


def test_where_a_limit_is_passed() -> None:
    """Nowhere, or by each function."""
    assert list(growing_losses(grid(f=[0.0, 0.0])))[-1] == (
        f"No value of latency_ms that was tried loses more than 1 %; {OWN}"
    )
    assert list(growing_losses(grid(f=[0.0, 0.02], g=[0.02, 0.0], h=[0.0, 0.0], i=[0.2, 0.2])))[-1] == (
        "More than 1 % of the changes are lost, along latency_ms: "
        f"f from 100 on; g first at 10; h nowhere; i at every value; {OWN}"
    )


def test_long_axes_and_many_functions_are_told_in_part() -> None:
    """Four values from end to end, six functions, and how many there are besides."""
    rows = {(f"f{number}",): [number / 100 + place / 1000 for place in range(10)] for number in range(8)}
    first, *_ = growing_losses(Grid(("function",), "x", tuple(range(10)), rows))
    assert first.startswith("Lost at x 0, 3, 6 and 9: f0 0.00, 0.30, 0.60, 0.90 %; f1 1.00, ")
    assert first.endswith("; 2 more are below.")


def test_the_points_where_rows_differ_are_named() -> None:
    """With how many rows, and in how many of their runs."""
    functions, latencies = ["f", "f", "g", "g"], [10, 100, 100, 100]
    results = pa.table({"function": functions, "latency_ms": latencies, "rows_that_end_different": [0, 1, 4, 2]})
    assert different_sentence(results, grid()) == (
        "Rows end different in 3 of 4 runs: f at latency_ms 100 (1 row); "
        "g at latency_ms 100 (2 to 4 rows, 2 of 2 runs)."
    )
    assert different_sentence(results.slice(0, 1), grid()) == "No row ends different in any run."
    assert different_sentence(results.slice(0, 2), grid(), 120) == (
        "Rows end different in 1 of 2 runs, of tables that have 120 rows at first: f at latency_ms 100 (1 row)."
    )
