"""Tables and sentences on terminals of several widths."""

import io

import attrs
from rich.console import Console
from rich.table import Table

from conflict.telling.terminal import print_table, table_of
from conflict.whatif.comparing.figures import COMPARISON
from conflict.whatif.comparing.telling import tell_comparison

LONGEST = "NDB$EPOCH2_TRANS() @A"  # of the names of functions in a comparison


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


def test_a_comparison_fits_80_columns() -> None:
    """The longest name of a function stays on one line beside figures of four digits; headings fold before names do."""
    pair = dict.fromkeys((*COMPARISON.names, "changes"), 2345) | {"function": LONGEST, "used": True}
    pairs = [pair | {"binlog_type": each, "caveat": None, "stops": None, "error": None} for each in ("7", "9")]
    pairs = [{**each, "partly_rejected_transactions": number} for number, each in enumerate(pairs)]  # a row each
    told = tell_comparison({"pairs": pairs, "changes": 9999, "prefer": ["traffic"]})
    for table in told.tables[:2]:
        out = io.StringIO()
        print_table(Console(file=out, width=80), attrs.evolve(table, note=""))
        lines = [line.rstrip() for line in out.getvalue().splitlines()]
        assert max(map(len, lines)) <= 80
        assert len([line for line in lines if "2,345" in line and LONGEST in line]) == 2
        assert not any(line.strip() == "*" for line in lines)


def test_lines_of_a_cell_stand_below_each_other() -> None:
    """A figure is as wide as its widest line, and never cut."""
    table = table_of("t", [""], ["A", "B", "C"], [["a name that folds", *["1,603\n(1,562 to 1,644)"] * 3]])
    lines = printed(table, 80)
    assert max(map(len, lines)) <= 80
    assert lines[4].split() == ["a", "name", "that", "folds", "1,603", "1,603", "1,603"]
    assert lines[5].count("(1,562 to 1,644)") == 3
