"""What a report answers from a sweep."""

from typing import Any

import pyarrow as pa

from conflict.reporting.limit_answer import (
    limit_column,
    limit_question,
    limit_sentences,
    limits_of,
    losses_sentence,
    search_sentence,
    stale_sentence,
    waits_sentence,
)
from conflict.reporting.sweep_answer import (
    different_sentence,
    least_lost,
    least_of,
    seed_ranges,
    seeds_sentence,
    without_stops,
)
from conflict.sweeping.summary import Grid


def border(function: str, skew: int, holds: float | None, fails: float | None) -> dict[str, Any]:
    """Return a row of `borders.parquet`."""
    what = {"condition": "lost_updates == 0", "over": "latency_ms"}
    return {**what, "function": function, "clock_skew_ms": skew, "holds": holds, "fails": fails, "only": 1}


def said(rows: list[dict[str, Any]], best: str = "f") -> list[str]:
    """Return what is said of borders."""
    return list(limit_sentences(limits_of(rows), best, rows[0]["condition"], 1))


def test_the_worst_of_the_other_axes_counts() -> None:
    """The least latency at which it fails whatever the skew; any if it fails everywhere at one skew."""
    rows = [border("f", 0, 20, 21), border("f", 50, 12.5, 13), border("g", 0, 7, None), border("h", 0, None, 0)]
    rows.append(border("h", 50, 7, 8))
    assert {name: limit.words for name, limit in limits_of(rows).items()} == {
        "f": "13 ms",
        "g": "none that was tried",
        "h": "any that was tried",
    }
    assert said(rows) == [
        "At 13 ms, `lost_updates == 0` does not hold with f; up to 12.5 ms, it does.",
        "For g none that was tried is too much, for h any that was tried.",
    ]
    (column,) = limit_column(limits_of(rows))
    assert column.heading == "latency_ms that is too much, simulated"
    assert column.cells["f"] == "13 ms"


def test_the_limit_of_a_share() -> None:
    """In percent, above the limit or below it; other figures by the condition as it was given."""
    share = {**border("f", 0, 30, 31), "condition": "lost_share < 0.15"}
    assert said([share]) == ["At 31 ms, 15 % of the changes or more are lost with f; up to 30 ms, less than that."]
    assert said([{**share, "fails": 29}]) == [
        "At 29 ms, 15 % of the changes or more are lost with f; from 30 ms on, less than that."
    ]
    nameless = {name: each for name, each in border("", 0, 30, 31).items() if name != "function"}
    assert said([nameless], "") == ["At 31 ms, `lost_updates == 0` does not hold; up to 30 ms, it does."]
    assert list(limit_column(limits_of([nameless]))) == []
    retries = {**border("f", 0, 2, 3), "over": "workload.retries"}
    assert said([retries]) == [
        "At workload.retries 3, `lost_updates == 0` does not hold with f; up to workload.retries 2, it does."
    ]


def test_the_limit_holds_with_every_seed() -> None:
    """Above it, some of the runs fail; the question names the share, or the condition as it was given."""
    rows = [{**border("f", 0, 30, 31), "condition": "lost_share < 0.15"}]
    assert list(limit_sentences(limits_of(rows), "f", rows[0]["condition"], 5)) == [
        (
            "At 31 ms, 15 % of the changes or more are lost with f in some of 5 runs; up to 30 ms, less than that in "
            "every run."
        )
    ]
    assert limit_question("latency_ms", "lost_share < 0.15") == "At which latency are 15 % lost?"
    assert limit_question("clock_skew_ms", "refreshes < 9") == "Which clock_skew_ms is too much for refreshes < 9?"


def test_a_condition_without_a_border() -> None:
    """It holds everywhere, or nowhere."""
    share = {**border("f", 0, 0, None), "condition": "lost_share < 0.15"}
    assert said([share]) == ["Less than 15 % of the changes are lost with f at every latency_ms that was tried."]
    assert said([{**share, "holds": None, "fails": 10}]) == [
        "15 % of the changes or more are lost with f at every latency_ms that was tried, from 10 ms on."
    ]


def test_of_borders_on_both_sides_the_upper_one_counts() -> None:
    """It holds between two values of another axis: what is too much is above."""
    limit = limits_of([border("f", 0, 30, 20), border("f", 50, 60, 70)])["f"]
    assert (limit.holds, limit.fails, limit.rises) == (60, 70, True)
    below = limits_of([border("f", 0, 30, 20), border("f", 50, 40, 35)])["f"]
    assert (below.holds, below.fails, below.rises) == (40, 35, False)


def test_how_long_epochs_wait_for_appliers() -> None:
    """Beside the latency, where it is more than that; nothing where a run does not say it."""

    def runs(behind: list[float | None]) -> pa.Table:
        return pa.table(
            {"latency_ms": [10, 100], "A_epochs_behind_ms_p50": [10.0, 100.0], "B_epochs_behind_ms_p50": behind}
        )

    assert waits_sentence(runs([10.0, 101.0])) == (
        "In these simulations appliers keep up: an epoch is applied when it arrives."
    )
    assert waits_sentence(runs([10.0, 250.4])) == (
        "Appliers also wait: at 100 ms the median epoch is applied 250 ms after its end."
    )
    assert waits_sentence(runs([None, None])) == ""
    assert waits_sentence(pa.table({"latency_ms": [10]})) == ""


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


def test_what_seeds_do_not_tell_apart_is_alike() -> None:
    """f is below g in the median of three runs, and above it in some; of runs that differ otherwise nothing is said."""
    shares = {"f": [0.10, 0.12, 0.14], "g": [0.13, 0.15, 0.16], "h": [0.15, 0.16, 0.17]}
    results = pa.table(
        {
            "function": [name for name in shares for _ in range(3)],
            "latency_ms": [10] * 9,
            "lost_share": [share for each in shares.values() for share in each],
        }
    )
    lost = grid(f=[0.12], g=[0.15], h=[0.16])
    ranges = seed_ranges(results, lost, 3)
    assert ranges["f", 10] == (0.10, 0.14)
    assert least_lost(lost, set(), ranges) == (
        "f loses least of the 3 that were simulated, at every latency_ms; g loses as little at every latency_ms."
    )
    assert least_lost(lost, set()) == "f loses least of the 3 that were simulated, at every latency_ms."
    assert seed_ranges(results, lost, 2) == {}


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
