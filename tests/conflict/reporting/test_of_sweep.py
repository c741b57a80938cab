"""What a report answers from a sweep."""

from typing import Any

import pyarrow as pa

from conflict.reporting.growing_losses import losses_sentence, search_sentence, stale_sentence
from conflict.reporting.sweep_answer import (
    border_sentence,
    different_sentence,
    least_lost,
    least_of,
    seeds_sentence,
    without_stops,
)
from conflict.sweeping.summary import Grid


def border(function: str, skew: int, holds: float | None, fails: float | None) -> dict[str, Any]:
    """Return a row of `borders.parquet`."""
    what = {"condition": "lost_updates == 0", "over": "latency_ms"}
    return {**what, "function": function, "clock_skew_ms": skew, "holds": holds, "fails": fails, "only": 1}


def test_the_worst_of_the_other_axes_counts() -> None:
    """Up to the least latency at which it holds whatever the skew; nowhere if it fails everywhere at one skew."""
    rows = [border("f", 0, 20, 21), border("f", 50, 12.5, 13), border("g", 0, 7, None), border("h", 0, None, 0)]
    rows.append(border("h", 50, 7, 8))
    assert border_sentence(rows) == (
        "lost_updates == 0 holds with every seed: f up to 12.5 ms, not at 13 ms; g at all latency_ms; "
        "h at some points at no latency_ms."
    )
    same = [border("f", 0, 30, 35), border("g", 0, 30, 35)]
    assert border_sentence(same) == "lost_updates == 0 holds with every seed: f and g up to 30 ms, not at 35 ms."
    assert border_sentence([border("f", 0, 30, 31), border("g", 0, None, 0)]) == (
        "lost_updates == 0 holds with every seed: f up to 30 ms, not at 31 ms; "
        "g at no latency_ms that was tried, from 0 ms on."
    )
    share = {**border("f", 0, 30, 31), "condition": "lost_share < 0.15"}
    assert (
        border_sentence([share])
        == "Less than 15 % of the changes are lost with every seed: f up to 30 ms, not at 31 ms."
    )
    assert (
        border_sentence([border("f", 0, 30, 29)])
        == "lost_updates == 0 holds with every seed: f from 30 ms, not at 29 ms."
    )
    nameless = {name: each for name, each in border("", 0, 30, 31).items() if name != "function"}
    assert border_sentence([nameless]) == "lost_updates == 0 holds with every seed up to 30 ms, not at 31 ms."
    retries = {**border("f", 0, 2, 3), "over": "workload.retries"}
    assert border_sentence([retries]) == (
        "lost_updates == 0 holds with every seed: f up to workload.retries 2, not at workload.retries 3."
    )


def test_a_condition_without_a_border() -> None:
    """It holds everywhere, or nowhere."""
    assert (
        border_sentence([border("f", 0, 0, None)])
        == "lost_updates == 0 holds with every seed at all latency_ms that were tried."
    )
    assert (
        border_sentence([border("f", 0, None, 0)])
        == "lost_updates == 0 holds with every seed at no latency_ms that was tried, from 0 ms on."
    )


def grid(**rows: list[float | None]) -> Grid:
    """Return shares along the latencies 10, 100 and 1,000, or the first of them, by function."""
    count = len(next(iter(rows.values())))
    return Grid(("function",), "latency_ms", (10, 100, 1000)[:count], {(name,): cells for name, cells in rows.items()})


def test_each_function_is_named_where_it_loses_least() -> None:
    """A function under which an applier stops is not compared."""
    lost = grid(f=[0.03, 0.04], g=[0.02, 0.05], h=[0.0, 0.0])
    assert least_lost(lost, {("h",)}) == "g loses least of the 2 that were simulated, at 10 ms; f at 100 ms."
    assert least_of(lost, {("h",)}) == ("g",), "of equal ones, that which loses least in all"
    assert list(without_stops(lost, {("h",)}).rows) == [("f",), ("g",)]
    assert least_lost(lost, set()) == "h loses least of the 3 that were simulated, at every latency_ms."
    equal = grid(f=[0.11512, 0.2, 0.3], g=[0.11508, 0.21, 0.31])
    assert least_lost(equal, set()) == (
        "f loses least of the 2 that were simulated, at every latency_ms; g loses as little at 10 ms."
    )
    assert least_of(equal, set()) == ("f",)
    alone = Grid((), "latency_ms", (10, 100), {(): [0.01, 0.02]})
    assert least_lost(alone, set()) == ""
    nowhere = Grid(("function",), None, (None,), {("f",): [0.3], ("g",): [0.2]})
    assert least_lost(nowhere, set()) == "g loses least of the 2 that were simulated, 20 % of the changes of users."
    tied = Grid(("function",), None, (None,), {("f",): [0.2], ("g",): [0.2]})
    assert least_lost(tied, set()).endswith("20 % of the changes of users; g as little.")


def test_what_is_lost_at_each_value() -> None:
    """With three digits, and how long rows are stale there, where that is known."""
    lost = grid(f=[0.11557, 0.1457, 0.2479], g=[0.2, 0.3, 0.4])
    assert losses_sentence(lost, ("f",), 1) == (
        "In simulations with 1 seed, f loses 11.6 % at 10 ms, 14.6 % at 100 ms and 24.8 % at 1,000 ms."
    )
    assert stale_sentence(lost, grid(f=[192.47, 603.18, 5485.94]), ("f",)) == (
        "Rows are then stale for up to 192, 603 and 5,490 ms (99th percentile)."
    )
    assert stale_sentence(lost, grid(g=[1.0, 2.0, 3.0]), ("f",)) == ""


def test_four_values_of_many_are_told() -> None:
    """Both ends of those that are known, and two between."""
    values = tuple(range(10, 90, 10))
    lost = Grid(("function",), "latency_ms", values, {("f",): [None, *(value / 1000 for value in values[1:])]})
    assert losses_sentence(lost, ("f",), 2) == (
        "In simulations with 2 seeds, f loses in the median 2 % at 20 ms, 4 % at 40 ms, 6 % at 60 ms and 8 % at 80 ms."
    )


def test_a_search_is_proposed_with_a_limit_that_the_grid_passes() -> None:
    """Between the least and the greatest share, with as few digits as that takes; none where all shares are equal."""
    assert next(search_sentence(grid(f=[0.1156, 0.1457, 0.2479]), ("f",))) == (
        "To find where f begins to lose 18 %, for example, give `ndb-conflict sweep` the options "
        "`--find 'lost_share < 0.18'` and `--over latency_ms`."
    )
    assert "`--find 'lost_share < 0.012'`" in next(search_sentence(grid(f=[0.0111, 0.0129]), ("f",)))
    assert list(search_sentence(grid(f=[0.02, 0.02]), ("f",))) == []


def swept(lost: list[float], different: list[int]) -> pa.Table:
    """Return rows of a sweep of one function; every two are of one latency."""
    rows = len(lost)
    axes = {"function": ["f"] * rows, "latency_ms": [10 + place // 2 for place in range(rows)]}
    return pa.table({**axes, "quiet_at_the_end": [1] * rows, "lost_share": lost, "rows_that_end_different": different})


def test_what_seeds_can_tell() -> None:
    """The greatest difference between the seeds of one point; with one seed there is none to see."""
    results = swept([0.1, 0.112, 0.3, 0.305], [0, 0, 0, 0])
    assert seeds_sentence(results, ["function", "latency_ms"], 2) == (
        "Figures are medians of 2 seeds, which differ by up to 1.2 % of the changes."
    )
    assert seeds_sentence(results, ["function", "latency_ms"], 1) == (
        "With 1 seed, differences that are smaller than those between seeds cannot be told from chance."
    )


def test_simulations_after_which_rows_differ_are_counted() -> None:
    """When everything is applied, if that is so of all."""
    results = swept([0.1] * 3, [0, 2, 1])
    assert different_sentence(results) == "Rows end different in 2 of 3 simulations, when everything is applied."
    assert different_sentence(results.slice(0, 1)) == (
        "No row ends different in any simulation, when everything is applied."
    )
    busy = results.set_column(2, "quiet_at_the_end", pa.array([1, 0, 1]))
    assert different_sentence(busy) == "Rows end different in 2 of 3 simulations."
