"""How many conflicts a result holds, where and when; and why transactions are in conflict."""

import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conflict.config.database_names import DatabaseNames
from conflict.engine.ledger.layout import OUTCOMES, outcomes_path
from conflict.history.grid.folder import Folder
from conflict.results.conflicts import (
    UNITS,
    By,
    Totals,
    at_a_glance,
    count_conflicts,
    read_conflicts,
    root_outcomes,
    totals_of,
)

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
PLAIN = {
    "source": "B",
    "source_epoch": 7,
    "group": 0,
    "ordinal": 0,
    "epoch": 3,
    "table": "d.t",
    "key": "k=1",
    "operation": "UPDATE_ROW",
    "refresh": False,
    "verdict": "REJECTED",
    "cause": "ROW_IN_CONFLICT",
    "time": NOON,
    "transaction_id": 201,
}


def conflicts(rows: Sequence[dict[str, Any]], since: datetime | None = None) -> pa.Table:
    """Write outcomes of the applier of A, each as `PLAIN` but for some columns, and read the conflicts."""
    with tempfile.TemporaryDirectory() as folder:
        out = Folder(folder)
        found = [with_identity({**dict.fromkeys(OUTCOMES.names), **PLAIN, **row}) for row in rows]
        out.write_table(outcomes_path("A", 0), pa.Table.from_pylist(found, OUTCOMES))
        return read_conflicts(out, ["A", "B"], since)


def with_identity(row: dict[str, Any]) -> dict[str, Any]:
    """Return an outcome with the identity that its text stands for, unless it has another."""
    return {**row, "identity": row["identity"] or str(row["key"]).encode()}


def in_conflict(group: int, key: str, own_cause: str | None = None, **others: Any) -> dict[str, Any]:
    """Return an operation that was rejected with its transaction."""
    numbers = {"group": group, "transaction_id": 200 + group}
    return {"key": key, "cause": "TRANS_IN_CONFLICT", "own_cause": own_cause, **numbers, **others}


ROWS = [
    {},
    {"ordinal": 1, "key": "k=2", "time": NOON + timedelta(minutes=70), "source_epoch": 8},
    {"ordinal": 2, "time": NOON + timedelta(minutes=59), "cause": "ROW_DOES_NOT_EXIST", "operation": "DELETE_ROW"},
    {"table": "d.n", "verdict": "IGNORED", "cause": None},
    {"table": "d.n", "group": 1, "transaction_id": 202},
]


def test_conflicts_in_all():
    """An ignored operation is none."""
    totals = totals_of(conflicts(ROWS))
    assert totals == Totals(4, 2, 3, 3, ("A",), NOON, NOON + timedelta(minutes=70), of_gone_rows=1)


@pytest.mark.parametrize(
    ("by", "names", "expected"),
    [
        (By.TABLE, ("table", "conflicts", "keys", "transactions"), [("d.t", 3, 2, 2), ("d.n", 1, 1, 1)]),
        (By.CAUSE, ("applier", "cause", "conflicts"), [("A", "ROW_IN_CONFLICT", 3), ("A", "ROW_DOES_NOT_EXIST", 1)]),
        (
            By.HOUR,
            ("hour", "conflicts", "keys", "transactions"),
            [(NOON, 3, 2, 2), (NOON + timedelta(hours=1), 1, 1, 1)],
        ),
        (
            By.MINUTE,
            ("minute", "conflicts"),
            [(NOON, 2), (NOON + timedelta(minutes=59), 1), (NOON + timedelta(minutes=70), 1)],
        ),
        (By.KEY, ("table", "key", "conflicts"), [("d.t", "k=1", 2), ("d.n", "k=1", 1), ("d.t", "k=2", 1)]),
        (
            By.TRANSACTION,
            ("source_epoch", "group", "transaction_id", "conflicts", "root_table"),
            [(7, 0, 201, 2, None), (7, 1, 202, 1, None), (8, 0, 201, 1, None)],
        ),
    ],
)
def test_counts(by: By, names: tuple[str, ...], expected: list[tuple[Any, ...]]):
    """Most conflicts first; hours in order."""
    rows = count_conflicts(conflicts(ROWS), by, DatabaseNames()).select(names).to_pylist()
    assert [tuple(row.values()) for row in rows] == expected


@pytest.mark.parametrize(
    ("length", "unit"),
    [
        (timedelta(0), By.SECOND),
        (timedelta(minutes=2), By.SECOND),
        (timedelta(seconds=121), By.MINUTE),
        (timedelta(hours=2), By.MINUTE),
        (timedelta(hours=3), By.HOUR),
        (timedelta(days=90), By.HOUR),
    ],
)
def test_the_unit_of_time_fits_the_length(length: timedelta, unit: By):
    """Of an hour there are minutes to tell apart, and no hours."""
    assert set(at_a_glance(Totals(2, 1, 1, 1, ("A",), NOON, NOON + length))) & {*UNITS} == {unit}


def test_since():
    """What committed at that moment counts, what committed before does not."""
    assert len(conflicts(ROWS, NOON + timedelta(minutes=59))) == 2
    assert len(conflicts(ROWS, NOON + timedelta(minutes=71))) == 0


def test_without_conflicts(tmp_path: Path):
    """Neither outcomes nor counts have rows."""
    none = read_conflicts(Folder(str(tmp_path)), ["A", "B"])
    assert totals_of(none) == Totals(0, 0, 0, 0, (), None, None)
    assert [len(count_conflicts(none, by, DatabaseNames())) for by in By] == [0] * len(By)


ANY = st.fixed_dictionaries(
    {
        "source_epoch": st.integers(1, 3),
        "group": st.integers(0, 2),
        "table": st.sampled_from(["d.t", "d.n"]),
        "key": st.sampled_from(["k=1", "k=2", ""]),
        "cause": st.sampled_from(["ROW_IN_CONFLICT", "ROW_DOES_NOT_EXIST", "TRANS_IN_CONFLICT"]),
        "own_cause": st.sampled_from([None, "ROW_ALREADY_EXISTS"]),
        "transaction_id": st.sampled_from([None, 2**64 - 2]),
        "time": st.one_of(st.none(), st.integers(0, 200).map(lambda minutes: NOON + timedelta(minutes=minutes))),
    }
)


@given(st.lists(ANY, max_size=30))
def test_counts_add_up(rows: list[dict[str, Any]]):
    """Whatever is counted by, every conflict is counted once."""
    found = conflicts([{**row, "ordinal": number} for number, row in enumerate(rows)])
    totals = totals_of(found)
    assert totals.conflicts == len(rows)
    counts = {by: count_conflicts(found, by, DatabaseNames()) for by in By}
    assert {by: sum(each["conflicts"].to_pylist()) for by, each in counts.items()} == dict.fromkeys(By, len(rows))
    assert (len(counts[By.KEY]), len(counts[By.TRANSACTION])) == (totals.keys, totals.transactions)


def roots(rows: list[dict[str, Any]]) -> list[int]:
    """Return the number of the outcome from which each one comes."""
    found: list[int] = root_outcomes(
        conflicts([{**row, "ordinal": number} for number, row in enumerate(rows)])
    ).tolist()
    return found


def test_where_a_transaction_in_conflict_comes_from():
    """Its own first conflict; else that of the transaction that touched its rows before."""
    rows = [
        in_conflict(0, "k=1"),
        in_conflict(0, "k=2", "ROW_IN_CONFLICT"),
        in_conflict(0, "k=3", "ROW_ALREADY_EXISTS"),
        in_conflict(1, "k=1"),
        in_conflict(1, "k=4"),
        in_conflict(2, "k=4"),
        in_conflict(3, "k=1", "ROW_DOES_NOT_EXIST"),
        in_conflict(4, "k=9", "ROW_IN_CONFLICT", source_epoch=8),
        {"group": 5},
    ]
    assert roots(rows) == [1, 1, 1, 1, 1, 1, 6, 7, -1]


def test_the_nearest_transaction_counts():
    """The last one follows on two: one that is in conflict through another, and one by itself."""
    rows = [
        in_conflict(0, "k=1", "ROW_IN_CONFLICT"),
        in_conflict(1, "k=1"),
        in_conflict(2, "k=2", "ROW_IN_CONFLICT"),
        in_conflict(3, "k=1"),
        in_conflict(3, "k=2"),
    ]
    assert roots(rows) == [0, 0, 2, 2, 2]


def test_a_transaction_of_another_epoch_or_table_is_none_of_these():
    """Dependencies are within an epoch, and of rows of one table; without what they come from, it is not known."""
    rows = [
        in_conflict(0, "k=1", "ROW_IN_CONFLICT"),
        in_conflict(1, "k=1", source_epoch=8),
        in_conflict(2, "k=1", table="d.n"),
    ]
    assert roots(rows) == [0, -1, -1]


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from("abcd"), st.sampled_from([None, "ROW_IN_CONFLICT"]))))
def test_every_root_is_a_conflict_that_came_before(operations: list[tuple[int, str, str | None]]):
    """It stands in the same transaction or an earlier one, and all operations of a transaction have the same."""
    rows = [in_conflict(*each) for each in operations]
    found = roots(rows)
    for row, root in zip(rows, found, strict=True):
        if root >= 0:
            assert rows[root]["own_cause"] is not None
            assert rows[root]["group"] <= row["group"]
    for group in range(6):
        mine = {root for row, root in zip(rows, found, strict=True) if row["group"] == group}
        assert len(mine) <= 1
        own = [number for number, row in enumerate(rows) if row["group"] == group and row["own_cause"]]
        assert not own or mine == {own[0]}


def test_two_rows_of_one_text() -> None:
    """The keys ('x, b=1', '2') and ('x', '1, b=2') are both ``a=x, b=1, b=2``: they are counted apart."""
    one, other = {"key": "a=x, b=1, b=2", "identity": b"one"}, {"key": "a=x, b=1, b=2", "identity": b"other"}
    found = conflicts([one, {**one, "ordinal": 1}, {**other, "ordinal": 2}])
    assert totals_of(found).keys == 2
    (table,) = count_conflicts(found, By.TABLE, DatabaseNames()).to_pylist()
    (second,) = count_conflicts(found, By.SECOND, DatabaseNames()).to_pylist()
    assert (table["keys"], second["keys"]) == (2, 2)
    by_key = count_conflicts(found, By.KEY, DatabaseNames()).to_pylist()
    assert [(each["identity"], each["conflicts"]) for each in by_key] == [(b"one", 2), (b"other", 1)]
    own, through = in_conflict(1, own_cause="ROW_IN_CONFLICT", **one), in_conflict(2, **other)
    assert root_outcomes(conflicts([own, through])).tolist() == [0, -1]


def test_a_row_with_two_texts() -> None:
    """Clusters that have other names for the columns of a key give a row two texts: it is counted once."""
    row = {"identity": b"one"}
    found = conflicts([{**row, "key": "id=1"}, {**row, "key": "k=1", "ordinal": 1}])
    assert [each["conflicts"] for each in count_conflicts(found, By.KEY, DatabaseNames()).to_pylist()] == [2]
