"""The ledger's tables, and what a result says of them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conflict.engine.kernels.open_decisions import outcome_bit as bit_in_kernels
from conflict.engine.ledger.contradictions import CONTRADICTIONS
from conflict.engine.ledger.ledger import (
    CONTRADICTED,
    OPEN_DECISIONS,
    ClusterLedger,
    FinalTable,
    LedgerPart,
    candidates_of,
    has_a_line,
    kinds_of,
    undecided_table,
    write_part,
)
from conflict.engine.ledger.resolution import NotKnown
from conflict.engine.ledger.summary import BucketSummary
from conflict.history.grid.folder import Folder
from conflict.history.shown_effects import Effect
from conflict.rules.decision import Cause, Decision, Verdict, outcome_bit
from conflict.rules.functions import parse_conflict_function
from ndb_formats.events.rows_event import Operation

TABLES = ["d.t", "d.n"]
FUNCTIONS = [parse_conflict_function("NDB$EPOCH_TRANS()").spec, None]
UPDATE, DELETE = int(Operation.UPDATE_ROW), int(Operation.DELETE_ROW)
REJECTED, IN_CONFLICT, MISSING = int(Verdict.REJECTED), int(Cause.ROW_IN_CONFLICT), int(Cause.ROW_DOES_NOT_EXIST)
APPLIED_BIT, CONFLICT_BIT, MISSING_BIT = (
    outcome_bit(*each) for each in ((Verdict.APPLIED, 0), (REJECTED, IN_CONFLICT), (REJECTED, MISSING))
)
ALL_OUTCOMES = [(verdict, cause) for verdict in Verdict for cause in (Cause if verdict == REJECTED else [Cause.NONE])]


def table(schema: pa.Schema, *rows: Sequence[object]) -> pa.Table:
    """Return rows as a table."""
    return pa.table([list(column) for column in zip(*rows, strict=True)] or [[]] * len(schema), schema=schema)


def ledger(undecided: Sequence[Sequence[object]] = (), contradicted: Sequence[Sequence[object]] = ()) -> ClusterLedger:
    """Return the ledger of an applier: one update applied, one rejected, and one row refreshed."""
    counts = np.zeros((2, len(Verdict), len(Cause)), np.int64)
    counts[0, Verdict.APPLIED, 0] = counts[0, REJECTED, IN_CONFLICT] = 1
    return ClusterLedger(
        name="A",
        functions=FUNCTIONS,
        counts=counts,
        refreshes=np.array([1, 0]),
        counters={"Ndb_conflict_fn_epoch_trans": 1},
        outcomes=None,
        overwritten=None,
        undecided=table(OPEN_DECISIONS, *undecided),
        compared=4,
        contradicted=table(CONTRADICTED, *contradicted),
        rows={"d.t": 3, "d.n": 0},
        not_known={"d.n": NotKnown(1, 0, 0)},
        unexplained=2,
    )


def written(folder: Folder, cluster: ClusterLedger, *final: FinalTable) -> BucketSummary:
    """Write a part, and return its figures."""
    return write_part(LedgerPart(7, TABLES, [cluster], final), folder)


@pytest.fixture
def out(tmp_path: Path) -> Folder:
    """A folder for a result."""
    return Folder(str(tmp_path / "out"))


@given(st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 2), st.integers(0, 2**14))))
def test_kinds(rows: list[tuple[int, int, int]]):
    """The different rows, in order, and the number of each row's."""
    schema = pa.schema([("a", pa.int8()), ("b", pa.int16()), ("c", pa.int64())])
    kinds, of_each = kinds_of(table(schema, *rows), schema.names)
    assert kinds == sorted(set(rows))
    assert [kinds[number] for number in of_each] == rows


@pytest.mark.parametrize("outcome", ALL_OUTCOMES)
def test_bits(outcome: tuple[Verdict, Cause]):
    """Each outcome has a bit of its own, the same in kernels; of a set of bits the outcomes are told."""
    bit = outcome_bit(*outcome)
    others = sum(outcome_bit(*each) for each in ALL_OUTCOMES) - bit
    assert candidates_of(bit) == (Decision(*outcome),)
    assert Decision(*outcome) not in candidates_of(others)
    assert bit_in_kernels.function(*outcome) == bit


def test_lines():
    """Operations that were simply applied have none, unless an applier logged them or every one has."""
    verdict, logged = np.array([Verdict.APPLIED, REJECTED, Verdict.APPLIED]), np.array([False, False, True])
    assert has_a_line(verdict, logged, every=False).tolist() == [1, 2]
    assert has_a_line(verdict, logged, every=True).tolist() == [0, 1, 2]


def test_open_decisions_as_a_table():
    """Names in place of numbers; an operation that the applier did not come to has no decision."""
    found = table(
        OPEN_DECISIONS,
        (12, "1", b"1", 0, UPDATE, REJECTED, IN_CONFLICT, APPLIED_BIT | CONFLICT_BIT),
        (2**64 - 1, "2", b"2", 1, DELETE, -1, 0, MISSING_BIT),
    )
    assert [tuple(row.values()) for row in undecided_table(found, TABLES).to_pylist()] == [
        (12, "d.t", "1", b"1", "UPDATE_ROW", "ROW_IN_CONFLICT", ["APPLIED", "ROW_IN_CONFLICT"]),
        (2**64 - 1, "d.n", "2", b"2", "DELETE_ROW", None, ["ROW_DOES_NOT_EXIST"]),
    ]


def test_open_decisions_and_counters(out: Folder):
    """Two updates may have been applied, and a delete may have met no row; without a function nothing counts."""
    update = (UPDATE, REJECTED, IN_CONFLICT, APPLIED_BIT | CONFLICT_BIT)
    delete = (DELETE, REJECTED, IN_CONFLICT, CONFLICT_BIT | MISSING_BIT)
    rows = [
        (12, "1", b"1", 0, *update),
        (13, "1", b"1", 0, *update),
        (13, "2", b"2", 0, *delete),
        (13, "2", b"2", 1, *delete),
    ]
    figures = written(out, ledger(undecided=rows))
    assert figures.undecided == {"A": 4}
    names = "Ndb_conflict_fn_epoch_trans", "Ndb_conflict_trans_row_conflict_count"
    delete_delete = "Ndb_conflict_epoch_delete_delete_count"
    assert figures.less == {"A": {names[0]: 2, names[1]: 3, delete_delete: 0}}
    assert figures.more == {"A": {names[0]: 0, names[1]: 0, delete_delete: 1}}


def test_contradictions(out: Folder):
    """Each is a row of the result; the figures have how many there are of each kind."""
    changed, deleted = 1 << Effect.CHANGED, 1 << Effect.DELETED
    rows = [
        (3, 0, "1", b"1", 0, changed, 0, 0),
        (3, 1, "1", b"1", 0, changed, changed, 0),
        (4, 0, "2", b"2", 0, changed, changed, 1),
        (4, 0, "3", b"3", 0, 0, changed | deleted, 0),
        (5, 0, "3", b"3", 0, changed, 0, 0),
    ]
    figures = written(out, ledger(contradicted=rows))
    found = out.read_table("contradictions/applier=A/bucket=00007.parquet", CONTRADICTIONS).to_pylist()
    assert [tuple(row.values()) for row in found] == [
        (3, 0, "d.t", "1", b"1", "CHANGED", None),
        (3, 1, "d.t", "1", b"1", "CHANGED", "CHANGED to other values"),
        (4, 0, "d.t", "2", b"2", "CHANGED", "CHANGED as reflected"),
        (4, 0, "d.t", "3", b"3", None, "CHANGED and DELETED"),
        (5, 0, "d.t", "3", b"3", "CHANGED", None),
    ]
    assert (figures.compared, figures.contradicted) == (4, 5)
    assert figures.contradictions == {
        "A": {
            "d.t": {
                "derived CHANGED, shown nothing": 2,
                "derived CHANGED, shown CHANGED to other values": 1,
                "derived CHANGED, shown CHANGED as reflected": 1,
                "derived nothing, shown CHANGED and DELETED": 1,
            }
        }
    }


def test_figures(out: Folder):
    """Counts are by name; a table that nobody changed has zeros; files without rows are not written."""
    rows = pa.table({"k": [1, 2, 3]})
    final = FinalTable("d.t", {"A": rows, "B": rows.slice(0, 0)}, 1), FinalTable("d.n", {}, None)
    figures = written(out, ledger(), *final)
    told = {name: value for name, value in figures.tables["A"]["d.t"].items() if value}
    assert told == {"applied": 1, "rejected": 1, "ROW_IN_CONFLICT": 1, "refreshes": 1}
    assert not any(figures.tables["A"]["d.n"].values())
    assert (figures.rows, figures.differing_rows) == ({"A": {"d.t": 3, "d.n": 0}}, {"d.t": 1, "d.n": None})
    assert figures.not_known == {"A": {"d.n": {"rows": 1, "rows_in_part": 0, "columns": 0}}}
    assert (figures.unexplained, figures.copied) == ({"A": 2}, {})
    assert sorted(out.sizes()) == ["rows/A/d.t/bucket=00007.parquet"]
