"""Tables and sentences on terminals of several widths."""

import io

import pyarrow as pa
import pytest
from rich.console import Console
from rich.table import Table

from conflict.cli.views.comparison import _CAUSES, _LOSSES, _TRANSACTIONS
from conflict.cli.views.sweep import print_sweep
from conflict.telling.terminal import table_of
from conflict.whatif.sweeping.sweep import Swept
from conflict.whatif.sweeping.sweep_file import Sweep

LONGEST = "NDB$EPOCH2_TRANS() @A *"  # of the names of functions in a comparison


def printed(table: Table, width: int) -> list[str]:
    """Return the lines of a table on a terminal."""
    out = io.StringIO()
    Console(file=out, width=width).print(table)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_a_title_is_as_wide_as_the_terminal() -> None:
    """A narrow table does not fold it; a narrow terminal does, between words."""
    title = "What users did, and what they lost"
    table = table_of(title, ["a"], ["b"], [["x", 1]])
    assert printed(table, 80)[0] == title
    assert printed(table, 20)[:2] == ["What users did, and", "what they lost"]


@pytest.mark.parametrize("figures", [_LOSSES, (*_CAUSES.values(), _TRANSACTIONS)])
def test_a_comparison_fits_80_columns(figures: tuple[str, ...]) -> None:
    """The longest name of a function stays on one line beside figures of four digits."""
    headings, cells = figures, [LONGEST, "7", *[2345] * len(figures)]
    if figures == _LOSSES:
        headings, cells = (*figures, "log,\nMB"), [*cells, "0.7"]
    table = table_of("t", ["function", "type"], headings, [cells])
    lines = printed(table, 80)
    assert max(map(len, lines)) <= 80
    assert len([line for line in lines if "2,345" in line and LONGEST in line]) == 1
    assert not any(line.strip() == "*" for line in lines)


def test_lines_of_a_cell_stand_below_each_other() -> None:
    """A figure is as wide as its widest line, and never cut."""
    table = table_of("t", [""], ["A", "B", "C"], [["a name that folds", *["1,603\n(1,562 to 1,644)"] * 3]])
    lines = printed(table, 80)
    assert max(map(len, lines)) <= 80
    assert lines[4].split() == ["a", "name", "that", "folds", "1,603", "1,603", "1,603"]
    assert lines[5].count("(1,562 to 1,644)") == 3


def swept(seeds: int, skews: tuple[int, ...]) -> str:
    """Return what is printed of a sweep over two latencies, with some seeds and values of an axis not shown."""
    axes = {"function": ("NDB$EPOCH()",), "latency_ms": (0, 2_000_000), "clock_skew_ms": skews}
    points = [(latency, skew, seed) for latency in axes["latency_ms"] for skew in skews for seed in range(seeds)]
    latencies, drawn, numbers = (list(each) for each in zip(*points, strict=True))
    columns = {"function": ["NDB$EPOCH()"] * len(points), "latency_ms": latencies, "clock_skew_ms": drawn}
    results = pa.table(
        {
            **columns,
            **dict.fromkeys(("lost_share", "lost_share_at_most"), [0.25] * len(points)),
            "unsettled_changes": [0] * len(points),
            "seed": numbers,
            "stopped_appliers": [0] * len(points),
        }
    )
    out = io.StringIO()
    sweep = Sweep({}, axes, seeds)
    print_sweep(Console(file=out, width=80), sweep, Swept(results, (), len(points), 0), None, "build/sweep")
    return out.getvalue()


def test_medians_are_named_where_a_cell_holds_several_runs() -> None:
    """Of several seeds, or of an axis that is not shown; one run is its own figure."""
    assert "Lost updates, % of all changes, by latency_ms\n" in swept(1, (0,))
    assert "Lost updates, % of all changes, by latency_ms (median)\n" in swept(2, (0,))
    assert "Lost updates, % of all changes, by latency_ms (median)\n" in swept(1, (0, 50))


def test_values_of_an_axis_are_numbers_as_people_read_them() -> None:
    """With commas, and without an exponent."""
    text = swept(1, (0,))
    assert "2,000,000" in text
    assert "e+" not in text
    assert "2 runs; 2 from an earlier sweep, 0 new." in text
