"""What a report answers from a sweep."""

from typing import Any

import pyarrow as pa

from conflict.reporting.answers.limit import (
    Limit,
    limit_column,
    limit_question,
    limit_sentences,
    limits_of,
    losses_sentence,
    search_sentence,
    stale_sentence,
    waits_sentence,
)
from conflict.reporting.answers.simulated import (
    different_sentence,
    least_lost,
    least_of,
    point_label,
    seed_ranges,
    seeds_sentence,
    without_stops,
)
from conflict.whatif.sweeping.summary import Grid


def border(function: str, skew: int, holds: float | None, fails: float | None) -> dict[str, Any]:
    """Return a row of `borders.parquet`."""
    what = {"condition": "lost_updates == 0", "over": "latency_ms"}
    return {**what, "function": function, "clock_skew_ms": skew, "holds": holds, "fails": fails, "only": 1}


AXES = {"latency_ms": [0, 10, 1000], "workload.retries": [2, 3]}
SHARE = "lost_share < 0.15"


def said(*rows: dict[str, Any], best: str = "f", seeds: int = 1) -> list[str]:
    """Return what is said of borders."""
    return list(limit_sentences(limits_of(rows, AXES), best, rows[0]["condition"], seeds))


def limit(holds: float | None, fails: float | None) -> Limit:
    """Return a limit along 0 to 1,000 ms."""
    return Limit("latency_ms", (0, 1000), holds, fails)


def test_the_worst_of_the_other_axes_counts() -> None:
    """The least latency whatever the skew; there is none if it fails everywhere at one skew, or holds at all."""
    rows = [border("f", 0, 20, 21), border("f", 50, 12.5, 13), border("g", 0, 1000, None), border("h", 0, None, 0)]
    rows.append(border("h", 50, 7, 8))
    limits = limits_of(rows, AXES)
    assert {name: each.words for name, each in limits.items()} == {
        "f": "12.5 to 13 ms",
        "g": "none that was tried",
        "h": "all that were tried",
    }
    assert said(*rows) == [
        "With f, `lost_updates == 0` fails from 13 ms on, and not up to 12.5 ms.",
        "The limit is for g none that was tried, for h all that were tried.",
    ]
    (column,) = limit_column(limits, "lost_updates == 0")
    assert (column.heading, column.cells["f"]) == ("lost_updates == 0 fails at latency_ms, simulated", "12.5 to 13 ms")
    assert next(limit_column(limits, SHARE)).heading == "15 % are lost at latency_ms, simulated"


def test_what_is_said_of_a_limit() -> None:
    """Where it fails in every run and where in none, on either side; or that all runs or values are alike."""
    what = "It fails"
    told = {
        limit(30, 44): "in every run from 44 ms on, and in none up to 30 ms",
        limit(44, 30): "in every run up to 30 ms, and in none from 44 ms on",
        limit(30, None): "in none up to 30 ms, and in some above",
        limit(None, 44): "in every run from 44 ms on, and in some below",
        limit(1000, None): "at no latency_ms that was tried",
        limit(None, 0): "at every latency_ms that was tried",
        limit(None, None): "in some runs, and not in others, at every latency_ms that was tried",
    }
    assert {each: each.told(what, 5) for each in told} == {each: f"{what} {words}" for each, words in told.items()}
    words = {
        limit(30, 44): "30 to 44 ms",
        limit(44, 30): "30 to 44 ms",
        limit(30, None): "more than 30 ms",
        limit(None, 44): "less than 44 ms",
        limit(None, None): "it depends on the run",
    }
    assert {each: each.words for each in words} == words
    assert [limit(30, 44).rises, limit(30, None).rises, limit(44, 30).rises, limit(None, 44).rises] == [
        *(True, True),
        *(False, False),
    ]


def test_the_limit_of_a_share() -> None:
    """In percent; other figures by the condition as it was given; other axes by their names."""
    share = {**border("f", 0, 30, 31), "condition": SHARE}
    assert said(share) == ["With f, 15 % of the changes or more are lost from 31 ms on, and not up to 30 ms."]
    nameless = {name: each for name, each in border("", 0, 30, 31).items() if name != "function"}
    assert said(nameless, best="") == ["`lost_updates == 0` fails from 31 ms on, and not up to 30 ms."]
    assert list(limit_column(limits_of([nameless], AXES), SHARE)) == []
    retries = {**border("f", 0, 2, 3), "over": "workload.retries"}
    assert said(retries) == [
        "With f, `lost_updates == 0` fails from workload.retries 3 on, and not up to workload.retries 2."
    ]
    assert limit_question("latency_ms", SHARE) == "At which latency are 15 % lost?"
    assert limit_question("clock_skew_ms", "refreshes < 9") == "At which clock_skew_ms does refreshes < 9 fail?"


def test_of_borders_on_both_sides_the_upper_one_counts() -> None:
    """It holds between two values of another axis: what is too much is above."""
    both = limits_of([border("f", 0, 30, 20), border("f", 50, 60, 70)], AXES)["f"]
    assert (both.holds, both.fails) == (60, 70)
    below = limits_of([border("f", 0, 30, 20), border("f", 50, 40, 35)], AXES)["f"]
    assert (below.holds, below.fails) == (40, 35)
    some = limits_of([border("f", 0, 30, 44), border("f", 50, None, 70)], AXES)["f"]
    assert (some.holds, some.fails) == (None, 44), "at some skew a run fails everywhere"


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


def test_points_of_several_axes() -> None:
    """A function by its name, a binlog type as such, and any other value with its axis."""
    lost = Grid(("function", "binlog_type", "x"), None, (None,), {})
    assert point_label(lost, ("f", 7, True)) == "f, type 7, x True"
    assert point_label(Grid((), None, (None,), {}), ()) == "this model"


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
