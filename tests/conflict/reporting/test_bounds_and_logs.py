"""Figures keep their bound and their log: what is a lower bound is said, and results of two logs are not joined."""

from __future__ import annotations

from typing import Any

import attrs

from conflict.reporting.cost import cost_column, cost_headline, cost_table
from conflict.reporting.joining import joined
from conflict.telling.part import Bytes, Measured, RowCounts
from conflict.whatif.sizing.telling import sizes_part
from tests.conflict.reporting.test_joining import BOUNDS, SIZES, TIMED, part, sized

# A log of type 9: it has no values before the change, which type 7 logs.
LOWER = attrs.evolve(TIMED, lower=frozenset({"7"}), servers={1: {"7": 300}, 2: {"7": 200}})
HERE, THERE = {"d1": "A/binlog.1", "d2": "B/binlog.1"}, {"d3": "C/binlog.1"}
LOGGED = RowCounts(7, "f", {"f": 3, "NDB$EPOCH()": 1})


def lacking(**others: Any) -> dict[str, Any]:
    """Return a document of `sizes` whose log lacks the values that type 7 logs."""
    document = sized(**others)
    document["totals"]["formats"]["7"]["rows_lacking_values"] = 3
    document["totals"]["logged"]["bytes"] = 110  # as type 9 takes
    document["total"] = 410
    return document


def test_a_lower_bound_is_no_estimate() -> None:
    """NDB$MAX can have type 7 alone: 6 rows of 20 bytes and 390 other bytes are 510 in 20 seconds, or more."""
    found = cost_headline(["NDB$MAX(x)"], LOWER)
    assert found.answer == "at least 2.20 MB a day"
    (table,) = cost_table(["NDB$MAX(x)"], LOWER)
    assert table.rows[0][:2] == ["type 7", "≥2.20 MB"]
    (column,) = cost_column(["NDB$MAX(x)"], LOWER)
    assert column.cells == {"NDB$MAX(x)": "≥2.20 MB, type 7"}
    untimed = attrs.evolve(SIZES, lower=frozenset({"7"}))
    assert cost_headline(["NDB$MAX(x)"], untimed).answer == "at least 200 bytes of row events"


def test_a_type_with_a_lower_bound_is_not_the_smallest() -> None:
    """The smallest is one whose bytes are known; the other may be smaller."""
    sizes = attrs.evolve(TIMED, bounds={"8": (10, 10), "9": (110, 110)}, lower=frozenset({"8"}))
    assert "type 9," in cost_headline(["NDB$EPOCH()"], sizes).sentences[0]
    (table,) = cost_table(["NDB$EPOCH()"], sizes)
    assert table.rows[0][0] == "type 8"
    assert str(table.rows[0][1]).startswith("≥")
    assert table.marked == (1, None)


def test_the_table_of_sizes_marks_lower_bounds() -> None:
    """By kind and in all; a chart by the name."""
    found = sizes_part(lacking(), "a file")
    row = next(each for each in found.telling.tables[0].rows if each[0] == "type 7")
    assert list(row[2:]) == ["≥200", "0", "≥500", "≥122 %"]
    assert "≥: the log lacks values that this format logs" in found.telling.tables[0].note
    assert "type 7 ≥" in found.telling.charts[0].data["format"].to_pylist()
    assert found.bytes is not None
    assert (found.bytes.lower, found.bytes.base) == (frozenset({"7"}), "type 9")


def test_a_log_is_exact_in_its_own_format() -> None:
    """An applier can log a row without values that its format has for others."""
    document = lacking()
    document["totals"]["formats"]["9"]["rows_lacking_values"] = 1
    found = sizes_part(document, "a file").bytes
    assert found is not None
    assert (found.lower, found.base) == (frozenset({"7"}), "type 9")


def test_sizes_of_another_log_are_not_joined() -> None:
    """Their bytes are told for no function of the comparison, and the page says of which log each is."""
    of_compare = Bytes(Measured.COMPARED, BOUNDS, "type 7", 200, "the recorded log", logged=LOGGED)
    compared = part("compare", source="c", best=("NDB$EPOCH()",), bytes=of_compare, log=HERE)
    for log, same in ((HERE, True), ({"d1": "A/binlog.1"}, True), (THERE, False), ({"d1": "A", "d3": "C"}, False)):
        measured = part("sizes", source="s", bytes=attrs.evolve(SIZES, rows=10), log=log)
        compare, sizes = joined([compared, measured])
        told = sizes.headlines[0].sentences[0]
        assert ("NDB$EPOCH()" in told) == same
        assert ("7 of them by users" in sizes.headlines[0].setting[0]) == same
        assert (compare.telling.warnings, sizes.telling.warnings == ()) == ((), same)
    assert sizes.telling.warnings[0].startswith("s is of A, C, and c of another log, A/binlog.1, B/binlog.1: ")


def test_sizes_that_do_not_say_their_log_are_doubtful() -> None:
    """An earlier version wrote no digests."""
    compared = part("compare", best=("NDB$EPOCH()",), log=HERE)
    (_, sizes) = joined([compared, part("sizes", source="s", bytes=SIZES)])
    assert sizes.telling.warnings == (
        "s does not say which binlog files it is of; measure again with `ndb-conflict sizes`.",
    )


def test_a_model_of_another_log_is_not_set_against_a_recording() -> None:
    """What both lose is told beside each other only if the model was learnt from that recording."""
    recorded = part("compare", lost_share=("NDB$EPOCH", 0.2), log=HERE)
    for log, told in ((HERE, True), ({}, True), (THERE, False)):
        simulated = part("simulate", lost_share=("NDB$EPOCH", 0.3), recorded=False, log=log)
        answer = joined([recorded, simulated])[1].telling.sentences
        assert any(each.startswith("Simulated with epochs") for each in answer) == told
