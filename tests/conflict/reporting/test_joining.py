"""What the results of one report say together: bytes for the best function, and what losses rest on."""

from typing import Any

import attrs

from conflict.reporting.bytes_by_type import BYTES_CHART, bytes_chart
from conflict.reporting.cost_answer import cost_answer
from conflict.reporting.joining import joined
from conflict.reporting.model_words import rows_at_first, travel_times, without_function
from conflict.reporting.of_sizes import sizes_part
from conflict.reporting.parts import Bytes, Measured, Part, Table

BOUNDS = {"2": (70, 120), "3": (90, 90), "7": (200, 200), "8": (95, 130), "9": (110, 110)}
SIZES = Bytes(Measured.MEASURED, BOUNDS, "7", 200, "as logged, the same as with type 7", "the log", rows=10)
OF = "These are bytes of row events before compression: of the log."


def sized(**others: Any) -> dict[str, Any]:
    """Return a document as `sizes` writes it, with 5 row changes."""
    formats = {name: {"least": {"bytes": each[0]}, "most": {"bytes": each[1]}} for name, each in BOUNDS.items()}
    totals = {"logged": {"bytes": 200}, "rows": 5, "formats": formats}
    return {"formats": dict.fromkeys(BOUNDS, "F"), "totals": totals, "file_bytes": 300, "tables": [], **others}


def part(title: str, **others: Any) -> Part:
    """Return what a report says of a result, with nothing but what is given."""
    return attrs.evolve(Part(title, "a file", {}, ("It is.",), (), Table("t", (), []), (), (), {}), **others)


def test_the_cost_is_that_of_the_best_function() -> None:
    """Types 2 and 3 are smaller, and NDB$EPOCH cannot have them; which of 8 and 9 is smaller depends on statements."""
    assert list(cost_answer(["NDB$EPOCH() @A"], SIZES)) == [
        (
            "NDB$EPOCH() @A, which loses least, can be used with binlog type 7, 8 or 9. Which of them takes least is "
            "not certain: type 9: 110 bytes (-45.0 %, 11.0 for each row change); "
            "type 8: 95 to 130 bytes (-52.5 to -35.0 %, 9.5 to 13.0 for each row change)."
        ),
        (
            "Row events take 200 bytes (20.0 for each row change) as logged, the same as with type 7. "
            "% is against these."
        ),
        f"{OF} A range means: the log does not show which columns statements set.",
    ]


def test_the_cost_where_no_function_is_best() -> None:
    """All types count that some function can have; a comparison with one type says that no other was measured."""
    some = {"2": (70, 70), "3": (90, 90), "7": (200, 200)}
    first, *_ = cost_answer([], attrs.evolve(SIZES, bounds=some, rows=0))
    assert first == (
        "Least of the binlog types takes type 3, for NDB$MAX_INS, NDB$MAX_DEL_WIN_INS: 90 bytes (-55.0 %)."
    )
    first, *_ = cost_answer(["NDB$MAX(x)"], attrs.evolve(SIZES, bounds={"3": (90, 90), "9": (110, 110)}), least=False)
    assert first.startswith("NDB$MAX(x) can be used with none of the binlog types here. Least of the binlog types")
    first, base, last = cost_answer(["NDB$MAX(x)"], attrs.evolve(SIZES, bounds={"7": (200, 200)}))
    assert first == "Only binlog type 7 was tried; the command `sizes` measures all."
    assert base == "Row events take 200 bytes (20.0 for each row change) as logged, the same as with type 7."
    assert last == OF


def test_bytes_are_told_once() -> None:
    """Where they are measured, for the function that loses least on recorded changes; else where they are compared."""
    chart = next(bytes_chart({"7": 200, "9": 110}))
    measured = part("sizes", bytes=SIZES, charts=(chart,))
    of_compare = attrs.evolve(SIZES, source=Measured.COMPARED)
    compared = part("compare", best=("NDB$EPOCH()",), bytes=of_compare, charts=(chart,), basis="are recorded")
    simulated = part(
        "sweep",
        best=("NDB$MAX(x)",),
        bytes=attrs.evolve(SIZES, source=Measured.SIMULATED),
        charts=(chart,),
        basis="are simulated",
        recorded=False,
    )
    sweep, compare, sizes = joined([simulated, compared, measured])
    assert sweep.answer == (
        "It is.",
        "Why these losses are not those of “compare”: these are simulated; those are recorded.",
    )
    assert [each.name for each in sweep.charts] == [BYTES_CHART], "the bytes of a simulation are others"
    assert (compare.answer, compare.charts) == (("It is.",), ())
    assert sizes.answer[1].startswith("NDB$EPOCH(), which loses least, ")
    sweep, compare = joined([simulated, compared])
    assert compare.answer[1].startswith("NDB$EPOCH(), which loses least, ")
    (sweep,) = joined([simulated])
    assert sweep.answer[1].startswith("NDB$MAX(x), which loses least, ")


def test_whose_bytes_are_measured() -> None:
    """Of one cluster or of several, if the document says it; with what compression would leave."""
    compression = {"transactions": 2, "plain": 400, "compressed": 100}
    (found,) = joined([sizes_part(sized(server_ids=[1, 2, 2], compression=compression), "a file")])
    assert "of 5 row changes in 3 binlog files of servers 1 and 2. A range" in found.answer[2]
    assert found.answer[3].startswith(
        "Compressed with binlog_transaction_compression, 2 transactions of 400 bytes would take 100 (25.0 %), "
    )
    (found,) = joined([sizes_part(sized(server_ids=[1]), "a file")])
    assert "in 1 binlog file of server 1, so of one cluster alone." in found.answer[2]
    (found,) = joined([sizes_part(sized(), "a file")])
    assert "in the binlog files that were given." in found.answer[2]


def test_what_a_model_says_of_its_binlogs() -> None:
    """The median travel time of each cluster's epochs, tables without a function, and rows, if it says them all."""
    model = {
        "tables": [{"name": "t", "recordcount": 40, "function": "f"}, {"name": "u", "recordcount": 2, "function": {}}],
        "clusters": {"A": {"link": {"trace_ms": [[0, 5], [1, 4000], [2, 30]]}}, "B": {"link": {"latency_ms": 5}}},
    }
    assert travel_times(model) == ["30 ms from A"]
    assert without_function(model) == ["u"]
    assert rows_at_first(model) == 42
    assert rows_at_first({"tables": [{"name": "t"}]}) == 0
    assert without_function({"tables": [{"name": "t"}]}) == []
