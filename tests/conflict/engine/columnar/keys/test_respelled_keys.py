"""Keys in several spellings: what an applier makes of an update that spells its key anew, in both engines."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from conflict.config.configuration import ClusterConfiguration, Configuration, LoggingServer
from conflict.engine.columnar.beyond_kernels import compares_reflected
from conflict.engine.ledger.careful import CareKind
from conflict.history.model import Cluster, History
from conflict.history.run import Run
from conflict.history.tasks import in_process
from conflict.history.timeline import EpochApply, RowChange, Transaction
from conflict.rules.replication_table import ReplicationRow, Role
from ndb_formats.constants import ColumnCode
from ndb_formats.events.row_image import RowImage, RowLayout, layout_of_types
from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.row_keys import key_of
from ndb_formats.types.column_types import WireType
from tests.conflict import random_histories
from tests.conflict.engine.columnar.both_engines import by_kernels, by_reference, with_care
from tests.conflict.random_histories import ROLES, USUAL_ROLES
from tests.examples import examples

SCHEMA = """
CREATE TABLE named (
    k VARCHAR(4) CHARACTER SET latin1 NOT NULL PRIMARY KEY, x BIGINT UNSIGNED NOT NULL, v INT
);
CREATE TABLE `named$EX` (
    NDB$server_id INT UNSIGNED, NDB$source_server_id INT UNSIGNED, NDB$source_epoch BIGINT UNSIGNED,
    NDB$count INT UNSIGNED, k VARCHAR(4) CHARACTER SET latin1 NOT NULL, NDB$OP_TYPE INT UNSIGNED,
    NDB$CFT_CAUSE INT UNSIGNED, NDB$ORIG_TRANSID BIGINT UNSIGNED,
    PRIMARY KEY (NDB$server_id, NDB$source_server_id, NDB$source_epoch, NDB$count)
);
CREATE TABLE plain (k INT NOT NULL PRIMARY KEY, x BIGINT UNSIGNED NOT NULL, v INT);
"""
INT, BIGINT = WireType(ColumnCode.LONG), WireType(ColumnCode.LONGLONG)
TABLES = {table.full_name: table for table in parse_schema(SCHEMA, database="db").tables}
LAYOUTS = {
    "db.named": layout_of_types(TABLES["db.named"], (WireType(ColumnCode.VARCHAR, 4), BIGINT, INT)),
    "db.plain": layout_of_types(TABLES["db.plain"], (INT, BIGINT, INT)),
}


def run_of(functions: dict[str, str | None], roles: tuple[Role, Role], binlog_type: int = 7) -> Run:
    """Return a run with functions by table."""
    rows = tuple(ReplicationRow("db", table, 0, binlog_type, function) for table, function in functions.items())
    clusters = tuple(
        ClusterConfiguration(name, (LoggingServer(number),), role)
        for number, (name, role) in enumerate(zip("AB", roles, strict=True), start=1)
    )
    return Run(Configuration(clusters, parse_schema(SCHEMA, database="db"), rows, skip_missing=True))


Values = tuple[str, int, int | None]


def image(*values: Any) -> RowImage:
    """Return a full image of a row of `named`; of its key alone, if no other values are given."""
    codecs = LAYOUTS["db.named"].codecs
    payloads = tuple(
        None if value is None else codec.encode(value) for codec, value in zip(codecs, values, strict=False)
    )
    return RowImage(LAYOUTS["db.named"], tuple(range(len(values))), payloads)


def change(before: Values | None, after: Values | None) -> RowChange:
    """Return a change of a row of `named`."""
    kind = Operation.UPDATE_ROW
    if before is None or after is None:
        kind = Operation.WRITE_ROW if before is None else Operation.DELETE_ROW
    images = [None if values is None else image(*values) for values in (before, after)]
    named = images[0] or images[1]
    assert named is not None
    return RowChange("db.named", key_of(TABLES["db.named"].columns[:1], named.payloads[:1]), kind, *images, 1)


OLD: Values = ("ab", 1, 7)
# A has the row on both clusters, then changes it or not; B gives its key another spelling, before it knows of that.
STORIES: dict[str, tuple[Values | None, ...]] = {"unchanged": (), "changed": (("ab", 2, 8),), "gone": (None,)}
NEW: Values = ("AB", 3, 7)


def history_of(story: str, function: str) -> tuple[History, Run]:
    """Return what happened, with the function on both clusters."""
    made = [Transaction(1, 0, (change(None, OLD),)), EpochApply(2, 0, "B", 11)]
    mine = [Transaction(3, 0, (change(OLD, after),)) for after in STORIES[story]]
    theirs = [EpochApply(11, 0, "A", 1), Transaction(12, 0, (change(OLD, NEW),))]
    clusters = (
        Cluster("A", 1, (*made, *mine, EpochApply(4, 0, "B", 12)), Role.PRIMARY),
        Cluster("B", 2, tuple(theirs), Role.SECONDARY),
    )
    functions = {"named": None if function == "none" else function}
    return History(clusters, LAYOUTS), run_of(functions, USUAL_ROLES)


COLUMN = ["NDB$OLD(x)", "NDB$MAX(x)", "NDB$MAX_DELETE_WIN(x)", "NDB$MAX_INS(x)", "NDB$MAX_DEL_WIN_INS(x)"]
APPLIED = ("APPLIED", "APPLIED")
IN_CONFLICT, WITH_TRANSACTION = ("ROW_IN_CONFLICT", "ROW_ALREADY_EXISTS"), ("TRANS_IN_CONFLICT", "TRANS_IN_CONFLICT")
GONE = ("ROW_DOES_NOT_EXIST", "APPLIED")
# What becomes of the delete and of the write, where A changed the row and where it deleted it; worked out by hand: each
# is judged as any delete and any write. As it was recorded, NDB$MAX rejects both where A changed the row.
BY_HAND = {
    "none": (APPLIED, ("IGNORED", "APPLIED")),
    "NDB$OLD(x)": (IN_CONFLICT, GONE),
    "NDB$MAX(x)": (IN_CONFLICT, GONE),
    "NDB$MAX_DELETE_WIN(x)": (APPLIED, GONE),
    "NDB$MAX_INS(x)": (("ROW_IN_CONFLICT", "APPLIED"), GONE),  # the write brings 3, which is greater than 2
    "NDB$MAX_DEL_WIN_INS(x)": (APPLIED, GONE),
    "NDB$EPOCH()": (IN_CONFLICT, GONE),
    "NDB$EPOCH_TRANS()": (WITH_TRANSACTION, GONE),
    "NDB$EPOCH2()": (IN_CONFLICT, GONE),
    "NDB$EPOCH2_TRANS()": (WITH_TRANSACTION, WITH_TRANSACTION),  # which takes a delete of no row for a conflict
}


def outcomes(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what A decided on epoch 12 of B: operation, and cause or verdict."""
    rows = [dict(each) for each in found["outcomes A"] if dict(each)["source_epoch"] == 12]
    return sorted((each["operation"], each["cause"] or each["verdict"]) for each in rows)


@pytest.mark.parametrize("function", BY_HAND)
@pytest.mark.parametrize("story", STORIES)
def test_an_update_that_spells_its_key_anew_is_a_delete_and_a_write(function: str, story: str) -> None:
    """Each is judged, counted and excepted by itself, and the row has the new spelling if the write was applied."""
    history, run = history_of(story, function)
    expected = {"unchanged": APPLIED, "changed": BY_HAND[function][0], "gone": BY_HAND[function][1]}[story]
    left = {"unchanged": OLD, "changed": ("ab", 2, 8), "gone": None}[story]
    if function == "NDB$MAX_INS(x)" and story == "changed":
        left = NEW
    row = NEW if expected[1] == "APPLIED" else left
    found = by_reference(history, run)
    assert outcomes(found) == [("DELETE_ROW", expected[0]), ("WRITE_ROW", expected[1])]
    assert found["rows A named"] == ([] if row is None else [row])
    rejected = [each for each in expected if each not in ("APPLIED", "IGNORED")]
    assert len(found["exceptions A named$EX"]) == len(rejected)
    keys = [each[4] for each in sorted(found["exceptions A named$EX"], key=lambda each: each[3])]
    assert keys == [key for key, each in zip(("ab", "AB"), expected, strict=True) if each in rejected]
    by_both, care = with_care(history, run, in_process, buckets=2, epochs_per_segment=2)
    assert by_both == found
    assert care == {CareKind.RESPELLED.value.name: 1}


def test_a_secondary_writes_the_row_anew() -> None:
    """The primary's update of a row that is gone there makes none; one that spells the key anew does."""
    for after, rows in ((("ab", 9, 7), []), (("AB", 9, 7), [("AB", 9, 7)])):
        a = [
            Transaction(1, 0, (change(None, OLD),)),
            EpochApply(2, 0, "B", 11),
            Transaction(3, 0, (change(OLD, after),)),
        ]
        b = [EpochApply(11, 0, "A", 1), Transaction(12, 0, (change(OLD, None),)), EpochApply(13, 0, "A", 3)]
        clusters = Cluster("A", 1, tuple(a), Role.PRIMARY), Cluster("B", 2, tuple(b), Role.SECONDARY)
        history, run = History(clusters, LAYOUTS), run_of({"named": "NDB$EPOCH2()"}, USUAL_ROLES)
        found = by_reference(history, run)
        assert found["rows B named"] == rows
        assert by_kernels(history, run, in_process, buckets=1, epochs_per_segment=9) == found


@pytest.mark.parametrize("function", ["none", *COLUMN])
def test_any_other_update_keeps_the_spelling_of_the_row(function: str) -> None:
    """B has the row as 'AB' and A as 'ab'; an update of the one does not spell the key of the other, a write does."""
    a = [Transaction(1, 0, (change(None, OLD),)), Transaction(2, 0, (change(OLD, ("ab", 9, 8)),))]
    b = [Transaction(11, 0, (change(None, ("AB", 1, 7)),)), EpochApply(12, 0, "A", 2)]
    clusters = Cluster("A", 1, tuple(a), Role.PRIMARY), Cluster("B", 2, tuple(b), Role.SECONDARY)
    history, run = History(clusters, LAYOUTS), run_of({"named": None if function == "none" else function}, USUAL_ROLES)
    found = by_reference(history, run)
    assert found["rows B named"] == [("AB", 9, 8)]
    assert by_kernels(history, run, in_process, buckets=1, epochs_per_segment=9) == found
    if function == "none":
        written = [*b, EpochApply(13, 0, "A", 1)]
        history = History((clusters[0], Cluster("B", 2, tuple(written), Role.SECONDARY)), LAYOUTS)
        assert by_reference(history, run)["rows B named"] == [OLD]


class _Speller(random_histories._Maker):
    """Makes Histories whose rows have keys in several spellings, beside rows whose keys are numbers."""

    def __init__(self, seed: int, steps: int, *, complete: bool) -> None:
        super().__init__(seed, steps, complete=complete)
        self.tables, self.layouts, self.names = TABLES, LAYOUTS, ["db.named", "db.plain"]

    def row(self, layout: RowLayout, number: int) -> dict[int, bytes | None]:
        key: Any = number
        if layout.table == "db.named":
            plain = f"{chr(97 + number % 20)}{number // 20}"
            key = self.chance.choice([plain, plain, plain.upper(), f"{plain} "])
        values = key, self.chance.choice(random_histories.VALUES), self.chance.choice([None, -5, 7])
        return {
            place: None if value is None else codec.encode(value)
            for place, (codec, value) in enumerate(zip(layout.codecs, values, strict=True))
        }


SETTINGS: list[dict[str, str | None]] = [
    {"named": None, "plain": "NDB$MAX(x)"},
    *({"named": function, "plain": None} for function in COLUMN),
    {"named": "NDB$EPOCH()", "plain": "NDB$OLD(x)"},
    {"named": "NDB$EPOCH_TRANS(0)", "plain": "NDB$EPOCH_TRANS(0)"},
    {"named": None, "plain": "NDB$EPOCH2_TRANS()"},
    {"named": "NDB$EPOCH2()", "plain": "NDB$EPOCH2()"},
    {"named": "NDB$EPOCH2_TRANS()", "plain": "NDB$EPOCH2_TRANS()"},
]


@given(
    seed=st.integers(0, 2**32 - 1),
    steps=st.integers(0, 80),
    complete=st.booleans(),
    setting=st.sampled_from(SETTINGS),
    roles=st.sampled_from([*[USUAL_ROLES] * 4, *ROLES]),
    binlog_type=st.sampled_from([7, 6, 8, 9]),
    buckets=st.integers(1, 3),
    epochs_per_segment=st.sampled_from([1, 3, 1000]),
)
@example(213655788, 14, False, SETTINGS[-1], (Role.PRIMARY, Role.PRIMARY), 7, 1, 1)
@example(1, 80, True, SETTINGS[7], USUAL_ROLES, 7, 2, 3)
@example(2, 80, True, SETTINGS[10], USUAL_ROLES, 7, 2, 3)
@example(117, 39, False, SETTINGS[6], USUAL_ROLES, 7, 1, 1)  # two epochs are applied at one position
@examples(15, long=90)
def test_kernels_leave_such_rows_to_the_reference_engine(
    seed: int,
    steps: int,
    complete: bool,
    setting: dict[str, str | None],
    roles: tuple[Role, Role],
    binlog_type: int,
    buckets: int,
    epochs_per_segment: int,
) -> None:
    """Outcomes, exceptions rows with their numbers, counters, rows and stops are equal, however the grid is cut."""
    maker = _Speller(seed, steps, complete=complete)
    for _ in range(steps):
        maker.step()
    clusters = tuple(
        Cluster(name, number, tuple(maker.timeline[name]), role)
        for number, (name, role) in enumerate(zip("AB", roles, strict=True), start=1)
    )
    history, run = History(clusters, LAYOUTS), run_of(setting, roles, binlog_type)
    assume(not compares_reflected(run))
    expected = by_reference(history, run)
    assert expected == by_kernels(history, run, in_process, buckets=buckets, epochs_per_segment=epochs_per_segment)
