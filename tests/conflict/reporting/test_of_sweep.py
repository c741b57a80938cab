"""What is told of a sweep: which function loses least, where a condition ceases to hold, and what one must know."""

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import Console

from conflict.history.grid.folder import Folder
from conflict.telling.terminal import print_table
from conflict.telling.value import Table
from conflict.whatif.sweeping.result import Limit, SweepResult, limit_column, limit_question, limits_of
from conflict.whatif.sweeping.summary import point_label
from conflict.whatif.sweeping.telling import _headlines as sweep_headlines
from conflict.whatif.sweeping.telling import sweep_part, tell_sweep
from tests.conflict.cli.commands import invoke


def border(function: str, skew: int, holds: float | None, fails: float | None, **others: Any) -> dict[str, Any]:
    """Return a row of `borders.parquet`."""
    what = {"condition": "lost_updates == 0", "over": "latency_ms"}
    point = {"function": function, "clock_skew_ms": skew}
    return {**what, **point, "holds": holds, "fails": fails, "only": 1, **others}


AXES = {"latency_ms": [0, 10, 1000], "workload.retries": [2, 3]}
SHARE = "lost_share < 0.15"


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
    (column,) = limit_column(limits, "lost_updates == 0")
    assert (column.heading, column.cells["f"]) == ("lost_updates == 0 fails at latency_ms, simulated", "12.5 to 13 ms")
    assert next(limit_column(limits, SHARE)).heading == "15 % are lost at latency_ms, simulated"
    nameless = {name: each for name, each in border("", 0, 30, 31).items() if name != "function"}
    assert list(limit_column(limits_of([nameless], AXES), SHARE)) == []


def test_what_a_limit_is_called() -> None:
    """Between two values, on either side, beyond the last one; or that it depends on the run."""
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
    assert Limit("workload.retries", (2, 3), 2, 3).words == "2 to workload.retries 3"
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


def swept(
    shares: dict[str, list[list[float]]], borders: tuple[dict[str, Any], ...] = (), model: Any = None, **columns: Any
) -> SweepResult:
    """Return a sweep: by function, at the latencies 10, 100 and 1,000, the shares of its seeds."""
    cells = [
        (name, latency, seed, share)
        for name, at in shares.items()
        for latency, own in zip((10, 100, 1000), at, strict=False)
        for seed, share in enumerate(own)
    ]
    names, latencies, numbers, lost = (list(each) for each in zip(*cells, strict=True))
    figures = {"lost_share": lost, "lost_share_at_most": lost}
    figures |= {name: [0] * len(cells) for name in ("unsettled_changes", "stopped_appliers", "conflicts")}
    figures |= {"rows_that_end_different": [0] * len(cells), "stale_ms_p99": [1.5] * len(cells)}
    results = pa.table({"function": names, "latency_ms": latencies, "seed": numbers, **figures, **columns})
    axes = {"function": list(shares), "latency_ms": sorted(set(latencies))}
    seeds = list(range(len(next(iter(shares.values()))[0])))
    return SweepResult({"axes": axes, "seeds": seeds, "model": model or {}}, results, borders)


def first(sweep: SweepResult) -> Table:
    """Return the table of what is lost."""
    return tell_sweep(sweep).tables[0]


def seeds_of(share: float) -> list[float]:
    """Return shares of six seeds, from one to twice as much."""
    return [share * factor for factor in (1.0, 1.2, 1.4, 1.6, 1.8, 2.0)]


def test_the_function_that_loses_least_is_marked() -> None:
    """If seed by seed it loses less, however much seeds differ; one under which an applier stops is not compared."""
    lost = {name: [seeds_of(share), seeds_of(share)] for name, share in (("f", 0.03), ("g", 0.02), ("h", 0.0))}
    table = first(swept(lost))
    assert [list(row) for row in table.rows] == [
        ["f", "4.50", "4.50"],
        ["g", "3.00", "3.00"],
        ["h", "0.00", "0.00"],
    ]
    assert table.headings == ("function", "10", "100")
    assert table.marked == (2, None)
    assert table.note.startswith("* loses least on average over latency_ms")
    stopping = swept(lost, stopped_appliers=[0] * 24 + [1] + [0] * 11)
    assert (stopping.best, first(stopping).marked) == (("g",), (1, None))
    assert "In 1 run an applier stopped" in tell_sweep(stopping).alarms[0]
    assert first(swept({"f": [[0.01], [0.02]]})).marked is None, "there is nothing to compare it with"


def test_nothing_is_marked_that_is_not_sure() -> None:
    """Where the interval of a difference covers 0, where seeds are few, and where functions lose the same."""
    f, g = seeds_of(0.02), [0.021, 0.023, 0.03, 0.031, 0.036, 0.041]  # the differences: -1, 1, -2, 1, 0, -1 thousandths
    unsure = swept({"f": [f, f], "g": [g, g]})
    assert (unsure.least, first(unsure).marked) == ((("f",), ("g",)), None)
    assert "Not told apart on average over latency_ms: f and g" in first(unsure).note
    (headline, *_) = sweep_headlines(unsure)
    assert headline.answer == "not sure"
    few = swept({"f": [[0.1, 0.1, 0.1]], "g": [[0.2, 0.2, 0.2]]})
    assert first(few).marked is None
    assert "that takes 6 seeds" in first(few).note
    alike = swept({"f": [f], "g": [f], "h": [seeds_of(0.04)]})
    assert alike.least == (("f",), ("g",))
    assert first(alike).marked is None


def test_intervals_stand_in_the_charts() -> None:
    """Of the medians of six seeds that are all alike, by hand; none of fewer, or of points that other axes divide."""
    lost = swept({"f": [[0.02] * 6, [0.05] * 6], "g": [[0.01] * 6, [0.01] * 6]})
    chart = tell_sweep(lost).charts[0]
    assert chart.spans == {"f": [(2.0, 2.0), (5.0, 5.0)], "g": [(1.0, 1.0)] * 2}
    assert chart.note == "The upright lines are 95 % intervals of the medians."
    few = tell_sweep(swept({"f": [[0.02], [0.05]]})).charts[0]
    assert (few.spans, few.note) == ({"f": [None, None]}, "")


def test_by_how_much_more_is_lost() -> None:
    """Means of differences paired by seed, with intervals; worked out by hand where all differences are the same."""
    f, g = seeds_of(0.02), [share + 0.01 for share in seeds_of(0.02)]
    (table,) = [each for each in tell_sweep(swept({"g": [g, g], "f": [f, f]})).tables if "More" in each.title]
    assert table.title == "More lost than under f, % of all changes, by latency_ms"
    assert table.headings == ["function", "10", "100", "on average"]
    assert table.rows == [["g", *["1.00 (1.00 to 1.00)"] * 3]]


def test_intervals_fit_a_terminal() -> None:
    """Of many latencies, the average alone has one; nothing is cut on 80 columns."""
    shares = {name: [seeds_of(share)] * 3 for name, share in (("NDB$MAX_DELETE_WIN(x)", 0.1), ("NDB$EPOCH()", 0.3))}
    sweep = swept(shares)
    tables = [table for table in tell_sweep(sweep).tables if "More" in table.title]
    results = sweep.results.append_column("retries", pa.array([0] * sweep.results.num_rows))
    many = pa.concat_tables(
        results.set_column(1, "latency_ms", pa.array([each + at for each in results["latency_ms"].to_pylist()]))
        for at in (0, 1)
    )
    axes = {**sweep.axes, "latency_ms": sorted({*many["latency_ms"].to_pylist()})}
    more = SweepResult({**sweep.document, "axes": axes}, many, ())
    tables += [table for table in tell_sweep(more).tables if "More" in table.title]
    assert [len(table.headings) for table in tables] == [5, 2]
    for table in tables:
        out = io.StringIO()
        print_table(Console(file=out, width=80), table)
        assert out.getvalue().count(" to ") == len(table.headings) - 1


def test_what_seeds_can_tell() -> None:
    """Cells are medians; the note has the greatest difference between seeds of one point, which one seed has not."""
    table = first(swept({"f": [[0.1, 0.112], [0.3, 0.305]]}))
    assert [list(row) for row in table.rows] == [["f", "10.60", "30.25"]]
    assert "by up to 1.20 %" in table.note
    assert table.title.endswith("by latency_ms (median)")
    alone = first(swept({"f": [[0.1], [0.3]]}))
    assert alone.title.endswith("by latency_ms")
    assert "One seed" in alone.note


def test_where_more_may_be_lost() -> None:
    """A share that is a lower bound is marked, and a warning says of how many runs."""
    sweep = swept({"f": [[0.1], [0.2]]}, lost_share_at_most=[0.1, 0.5], unsettled_changes=[0, 7])
    assert [list(row) for row in first(sweep).rows] == [["f", "10.00", "≥20.00"]]
    (warning,) = tell_sweep(sweep).warnings
    assert "in 1 run " in warning


def test_runs_after_which_rows_differ_are_counted() -> None:
    """A median of 0 does not show them; a figure that is 0 everywhere has no table."""
    sweep = swept({"f": [[0.1, 0.1, 0.1]]}, rows_that_end_different=[0, 0, 3])
    assert "in 1 of 3 runs" in tell_sweep(sweep).sentences[0]
    titles = [table.title for table in tell_sweep(sweep).tables]
    assert [title.partition(",")[0] for title in titles] == ["Lost updates", "Stale time of rows"]


def test_borders_are_a_table() -> None:
    """By the other axes: values on both sides, or nowhere; a border that is not the only one says so."""
    rows = (border("f", 0, 30, 44), border("f", 50, None, 70, only=0))
    sweep = swept({"f": [[0.1], [0.2]]}, rows, lost_updates=[1, None])
    table = tell_sweep(sweep).tables[1]
    assert table.title == "lost_updates == 0, by latency_ms"
    assert list(table.headings) == ["function", "clock_skew_ms", "holds at", "fails at", "border"]
    assert table.rows == [["f", 0, "30", "44", ""], ["f", 50, "nowhere", "70", "the first of several"]]
    assert "lost_updates is empty in 1 run" in tell_sweep(sweep).alarms[0]


def test_epochs_of_the_recording_beside_the_limit() -> None:
    """How many took less than the latency up to which the condition holds."""
    traces = {"A": [[0, 5], [1, 4000], [2, 30]], "B": [[0, 29]]}
    model = {"clusters": {name: {"link": {"trace_ms": trace}} for name, trace in traces.items()}}
    sweep = swept({"f": [[0.1], [0.2]]}, (border("f", 0, 30, 44),), model, lost_updates=[1, 1])
    table = tell_sweep(sweep).tables[2]
    assert list(table.headings)[1:] == ["epochs", "median, ms", "longest, ms", "less than 30 ms"]
    assert table.rows == [["from A", 3, 30, 4000, 1], ["from B", 1, 29, 29, 1]]
    assert tell_sweep(swept({"f": [[0.1]]}, model=model)).tables[1].rows == [row[:4] for row in table.rows]


def test_points_of_several_axes() -> None:
    """A function by its name, a binlog type as such, and any other value with its axis."""
    assert point_label(("function", "binlog_type", "x"), ("f", 7, True)) == "f, type 7, x True"
    assert point_label((), ()) == "this model"


def test_values_of_an_axis_are_numbers_as_people_read_them() -> None:
    """With commas, and without an exponent."""
    sweep = swept({"f": [[0.1]]})
    results = sweep.results.set_column(1, "latency_ms", pa.array([2_000_000]))
    document = {**sweep.document, "axes": {"function": ["f"], "latency_ms": [2_000_000, 1]}}
    assert "2,000,000" in first(SweepResult(document, results, ())).headings


def test_the_terminal_and_the_page_tell_the_same(results: dict[str, Path], tmp_path: Path) -> None:
    """The tables of a sweep on the terminal are those of its part of a report."""
    code, output = invoke("sweep", results["sweep"].with_name("sweep.toml"), "--out", results["sweep"], "--workers", 1)
    assert code == 0
    assert "8 runs; 8 from an earlier sweep, 0 new." in output
    code, _ = invoke("report", results["sweep"], "--out", tmp_path / "r.html")
    assert code == 0
    page = (tmp_path / "r.html").read_text("utf-8")
    document = json.loads((results["sweep"] / "run.json").read_text("utf-8"))
    assert document["axes"]["latency_ms"] == [0, 400]
    for table in sweep_part(Folder(str(results["sweep"]))).telling.tables:
        assert table.title in output
        assert table.title in page
        for row in range(len(table.rows)):
            assert table.text(row, 0) in output
            assert table.text(row, 0) in page
