"""Final rows and exceptions rows of tables with columns of every type: the kernels give what the reference does."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conflict.config.configuration import ClusterConfiguration, Configuration, LoggingServer
from conflict.engine.columnar import image_values
from conflict.history.model import Cluster, History
from conflict.history.run import Run
from conflict.history.tasks import in_process
from conflict.history.timeline import RowChange, Transaction
from conflict.rules.replication_table import ReplicationRow
from ndb_formats.constants import ColumnCode
from ndb_formats.errors import SchemaError
from ndb_formats.events.row_image import RowImage, RowLayout, layout_of_types
from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.row_keys import key_of
from ndb_formats.types.column_types import WireType
from ndb_formats.types.json_binary import JsonDocument
from ndb_formats.types.values import Geometry, Vector
from tests.conflict.engine.columnar.both_engines import by_kernels, by_reference
from tests.conflict.random_histories import USUAL_ROLES, _Maker
from tests.examples import examples

LATIN, UTF8 = "CHARACTER SET latin1", "CHARACTER SET utf8mb4"
# Definition, default of it, wire type, values.
COLUMNS: list[tuple[str, str, WireType, list[Any]]] = [
    ("INT NOT NULL PRIMARY KEY", "", WireType(ColumnCode.LONG), []),
    ("BIGINT UNSIGNED NOT NULL", "", WireType(ColumnCode.LONGLONG), [0, 1, 2, 2**63, 2**64 - 1]),
    ("TINYINT", "DEFAULT -7", WireType(ColumnCode.TINY), [-128, 0, 127]),
    ("TINYINT UNSIGNED", "DEFAULT 255", WireType(ColumnCode.TINY), [0, 255]),
    ("SMALLINT", "", WireType(ColumnCode.SHORT), [-(2**15), 2**15 - 1]),
    ("SMALLINT UNSIGNED", "", WireType(ColumnCode.SHORT), [0, 2**16 - 1]),
    ("MEDIUMINT", "", WireType(ColumnCode.INT24), [-(2**23), -1, 2**23 - 1]),
    ("MEDIUMINT UNSIGNED", "", WireType(ColumnCode.INT24), [0, 2**24 - 1]),
    ("INT UNSIGNED", "", WireType(ColumnCode.LONG), [0, 2**32 - 1]),
    ("BIGINT", "", WireType(ColumnCode.LONGLONG), [-(2**63), 2**63 - 1]),
    ("FLOAT", "DEFAULT 0.5", WireType(ColumnCode.FLOAT), [0.0, -0.0, -1.5]),
    ("DOUBLE", "", WireType(ColumnCode.DOUBLE), [0.0, -0.0, 1e-320]),
    (
        "DECIMAL(10,2)",
        "DEFAULT 1.5",
        WireType(ColumnCode.NEWDECIMAL, 10, 2),
        [Decimal("-0.01"), Decimal("99999999.99")],
    ),
    ("DECIMAL(38,10)", "", WireType(ColumnCode.NEWDECIMAL, 38, 10), [Decimal("0.0000000001")]),
    ("DECIMAL(65,30)", "", WireType(ColumnCode.NEWDECIMAL, 65, 30), [Decimal("-" + "9" * 35 + "." + "9" * 30)]),
    ("BIT(11)", "DEFAULT 5", WireType(ColumnCode.BIT, 11), [0, 2**11 - 1]),
    ("BIT(64)", "", WireType(ColumnCode.BIT, 64), [0, 2**64 - 1]),
    ("YEAR", "", WireType(ColumnCode.YEAR), [0, 1901, 2155]),
    ("DATE", "DEFAULT '2000-01-02'", WireType(ColumnCode.DATE), ["0000-00-00", "2024-02-00"]),
    ("TIME(3)", "", WireType(ColumnCode.TIME2, 3), ["-838:59:59.000", "00:00:00.001"]),
    (
        "DATETIME(6)",
        "",
        WireType(ColumnCode.DATETIME2, 6),
        ["0000-00-00 00:00:00.000000", "9999-12-31 23:59:59.999999"][:],
    ),
    ("TIMESTAMP NULL", "", WireType(ColumnCode.TIMESTAMP2, 0), ["0000-00-00 00:00:00", "2038-01-19 03:14:08"]),
    (f"CHAR(5) {LATIN}", "", WireType(ColumnCode.STRING, 5), ["", "ä€"]),
    (f"VARCHAR(20) {LATIN}", "DEFAULT 'é'", WireType(ColumnCode.VARCHAR, 20), ["", "abc", "ÿ\x81"]),
    (f"VARCHAR(90) {UTF8}", "", WireType(ColumnCode.VARCHAR, 360), ["", "a\0é\U0001f600", "x" * 90]),
    ("VARCHAR(9) CHARACTER SET utf16", "", WireType(ColumnCode.VARCHAR, 36), ["", "é\U0001f600"]),
    (f"TEXT {UTF8}", "", WireType(ColumnCode.BLOB, 2), ["", "long " * 60]),
    ("BINARY(4)", "", WireType(ColumnCode.STRING, 4), [b"\0\0\0\0", b"a\0\0\0", b"\0\xff\0\1"]),
    ("VARBINARY(9)", "DEFAULT 'd'", WireType(ColumnCode.VARCHAR, 9), [b"", b"\0\xff"]),
    ("BLOB", "", WireType(ColumnCode.BLOB, 2), [b"", b"\0" * 300]),
    (f"ENUM('a','é') {LATIN}", "DEFAULT 'a'", WireType(ColumnCode.ENUM, 1), ["", "a", "é"]),
    (f"SET('a','b') {LATIN}", "", WireType(ColumnCode.SET, 1), ["", "a,b"]),
    ("JSON", "", WireType(ColumnCode.JSON, 4), [JsonDocument(b""), JsonDocument.of(None), JsonDocument.of({"a": [1]})]),
    ("GEOMETRY", "", WireType(ColumnCode.GEOMETRY, 4), [Geometry(b"\0\0\0\0\1"), Geometry(b"\0\0\0\0\2")]),
    ("VECTOR(2)", "", WireType(ColumnCode.VECTOR, 4), [Vector(b"\1\0\xc0\x7f" * 2), Vector(b"\0\0\0\0" * 2)]),
]
NAMES = ["k", "x", *(f"c{place}" for place in range(2, len(COLUMNS)))]
FIXED = (
    "NDB$server_id INT UNSIGNED, NDB$source_server_id INT UNSIGNED, NDB$source_epoch BIGINT UNSIGNED, "
    "NDB$count INT UNSIGNED"
)
WORDS = """
    NDB$OP_TYPE ENUM('WRITE_ROW','UPDATE_ROW','DELETE_ROW','REFRESH_ROW','READ_ROW') NOT NULL,
    NDB$CFT_CAUSE ENUM('ROW_DOES_NOT_EXIST','ROW_ALREADY_EXISTS','DATA_IN_CONFLICT','TRANS_IN_CONFLICT') NOT NULL,
    NDB$ORIG_TRANSID BIGINT UNSIGNED NOT NULL, note VARCHAR(5) DEFAULT 'none'
"""


def _schema(*, required: bool, blobs: bool) -> tuple[str, list[int]]:
    """Return definitions of a table and its exceptions table, and which columns it has."""
    kept = [place for place, column in enumerate(COLUMNS) if blobs or column[2].code not in BLOBS]
    columns, shown = [], ["k INT NOT NULL"]
    for place in kept:
        kind, default, _, _ = COLUMNS[place]
        given = "NOT NULL" if required and place > 1 and "NULL" not in kind else ""
        columns.append(f"{NAMES[place]} {kind} {given} {default}")
        if place:
            kind = kind.replace(" NOT NULL", "").replace("(20)", "(30)")
            shown += [f"{NAMES[place]}{version} {kind} NULL {default}" for version in ("", "$OLD", "$NEW")]
    key = "PRIMARY KEY (NDB$server_id, NDB$source_server_id, NDB$source_epoch, NDB$count)"
    exceptions = f"CREATE TABLE `typed$EX` ({FIXED}, {', '.join(shown)}, {WORDS}, {key});"
    return f"CREATE TABLE typed ({', '.join(columns)}); {exceptions}", kept


BLOBS = {ColumnCode.BLOB, ColumnCode.JSON, ColumnCode.GEOMETRY, ColumnCode.VECTOR}


class _TypedMaker(_Maker):
    """Makes Histories of one table with columns of every type."""

    def __init__(self, seed: int, steps: int, run: Run, kept: list[int]) -> None:
        super().__init__(seed, steps, complete=False)
        (table,) = run.data_schema.tables
        self.tables, self.names = {table.full_name: table}, [table.full_name]
        self.layouts = {table.full_name: layout_of_types(table, tuple(COLUMNS[place][2] for place in kept))}
        self.kept, self.run = kept, run

    def row(self, layout: RowLayout, number: int) -> dict[int, bytes | None]:
        """Return a row's bytes."""
        (table,) = self.run.data_schema.tables
        payloads: dict[int, bytes | None] = {0: layout.codecs[0].encode(number)}
        for place, column in enumerate(self.kept):
            values = COLUMNS[column][3] + ([None] if table.columns[place].nullable else [])
            if place:
                value = self.chance.choice(values)
                payloads[place] = None if value is None else layout.codecs[place].encode(value)
        return payloads


def _make(seed: int, steps: int, function: str, *, required: bool, blobs: bool) -> tuple[History, Run]:
    sql, kept = _schema(required=required, blobs=blobs)
    first, second = USUAL_ROLES
    clusters = (
        ClusterConfiguration("A", (LoggingServer(1),), first),
        ClusterConfiguration("B", (LoggingServer(2),), second),
    )
    rules = (ReplicationRow("db", "typed", 0, 7, function),)
    run = Run(Configuration(clusters, parse_schema(sql, database="db"), rules, skip_missing=True))
    maker = _TypedMaker(seed, steps, run, kept)
    for _ in range(steps):
        maker.step()
    sides = tuple(
        Cluster(side, server_id, tuple(maker.timeline[side]), role)
        for server_id, (side, role) in enumerate(zip("AB", USUAL_ROLES, strict=True), start=1)
    )
    return History(sides, maker.layouts), run


FUNCTIONS = ["NDB$MAX(x)", "NDB$OLD(x)", "NDB$EPOCH()", "NDB$EPOCH2()", "NDB$EPOCH_TRANS()", "NDB$EPOCH2_TRANS()"]
MADE = {
    "seed": st.integers(0, 2**32 - 1),
    "steps": st.integers(0, 60),
    "function": st.sampled_from(FUNCTIONS),
    "required": st.booleans(),
    "blobs": st.booleans(),
}


@given(**MADE)
@examples(6, long=500)
def test_columns_of_every_type(seed: int, steps: int, function: str, required: bool, blobs: bool) -> None:
    """Rows and exceptions rows hold what the scalar codecs give, defaults and zeros among them."""
    history, run = _make(seed, steps, function, required=required, blobs=blobs)
    expected = by_reference(history, run)
    assert expected == by_kernels(history, run, in_process, buckets=2, epochs_per_segment=3)


def test_the_tables_are_what_they_are_made_for() -> None:
    """Every History of a fixed range of seeds has rows; many have exceptions rows and rows that differ."""
    found = [by_reference(*_make(seed, 60, FUNCTIONS[0], required=False, blobs=True)) for seed in range(5)]
    assert all(each["rows A typed"] for each in found)
    assert any(each["exceptions A typed$EX"] for each in found)
    assert any(each["summary"]["differing_rows"]["db.typed"] for each in found)
    assert {len(row) for each in found for row in each["rows A typed"]} == {len(COLUMNS)}


@pytest.mark.parametrize("seed", range(6))
def test_without_final_rows(seed: int) -> None:
    """Everything else is the same, and rows are counted; the number that differ may stay unknown, but is not wrong."""
    history, run = _make(seed, 60, FUNCTIONS[seed], required=False, blobs=False)
    expected = by_kernels(history, run, in_process, buckets=2, epochs_per_segment=3)
    found = by_kernels(history, run, in_process, buckets=2, epochs_per_segment=3, final_rows=False)
    assert (found.pop("rows A typed"), found.pop("rows B typed")) == ([], [])
    differing = found["summary"]["differing_rows"]["db.typed"]
    if differing is None:
        found["summary"]["differing_rows"] = expected["summary"]["differing_rows"]
        assert found["summary"]["converged"] in (None, False)
        found["summary"]["converged"] = expected["summary"]["converged"]
    assert {name: expected[name] for name in found} == found


SMALL = "CREATE TABLE s (k INT NOT NULL PRIMARY KEY, e ENUM('a','b') CHARACTER SET latin1);"


def _small(first: Sequence[int], second: Sequence[int]) -> tuple[History, Run]:
    """Return a History in which each cluster writes these members of an ENUM to one row, one after the other."""
    clusters = (ClusterConfiguration("A", (LoggingServer(1),)), ClusterConfiguration("B", (LoggingServer(2),)))
    run = Run(Configuration(clusters, parse_schema(SMALL, database="db"), ()))
    (table,) = run.data_schema.tables
    layout = layout_of_types(table, (WireType(ColumnCode.LONG), WireType(ColumnCode.ENUM, 1)))
    sides = []
    for name, members in (("A", first), ("B", second)):
        images = [RowImage(layout, (0, 1), (b"\1\0\0\0", bytes([member]))) for member in members]
        key = key_of([table.columns[0]], [b"\1\0\0\0"])
        changes = [
            RowChange("db.s", key, Operation.UPDATE_ROW if before else Operation.WRITE_ROW, before, after)
            for before, after in zip([None, *images], images, strict=False)
        ]
        timeline = tuple(Transaction(epoch, 0, (change,)) for epoch, change in enumerate(changes, start=1))
        sides.append(Cluster(name, len(sides) + 1, timeline))
    return History(tuple(sides), {"db.s": layout}), run


@pytest.mark.parametrize(
    ("first", "second", "differing", "without_values"),
    [([1], [], 1, 1), ([], [], 0, 0), ([1], [1], 0, None), ([1], [2], 1, None), ([2, 1], [1], 0, None)],
)
def test_how_many_rows_differ(
    first: list[int],
    second: list[int],
    differing: int,
    without_values: int | None,
) -> None:
    """A row on one cluster alone differs; rows from different images differ if their values do."""
    history, run = _small(first, second)
    found = by_kernels(history, run, in_process, buckets=1, epochs_per_segment=1)["summary"]
    assert (found["differing_rows"], found["converged"]) == ({"db.s": differing}, differing == 0)
    found = by_kernels(history, run, in_process, buckets=1, epochs_per_segment=1, final_rows=False)["summary"]
    converged = None if without_values is None else without_values == 0
    assert (found["differing_rows"], found["converged"]) == ({"db.s": without_values}, converged)


def test_a_value_that_cannot_be_decoded() -> None:
    """The error names table and column; a value that was overwritten since is not decoded."""
    history, run = _small([9, 1], [1])
    assert by_kernels(history, run, in_process, buckets=1, epochs_per_segment=1)["rows A s"] == [(1, "a")]
    history, run = _small([1, 9], [1])
    with pytest.raises(SchemaError, match=r"db\.s, column e: holds member 9 "):
        by_kernels(history, run, in_process, buckets=1, epochs_per_segment=1)


@pytest.mark.parametrize(("most_rows", "most_bytes"), [(2, 1 << 29), (1 << 17, 60), (3, 1)])
def test_a_few_rows_at_a_time(most_rows: int, most_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rows are made at once, and however large they are, the result is the same."""
    monkeypatch.setattr(image_values, "_ROWS", most_rows)
    monkeypatch.setattr(image_values, "_BYTES", most_bytes)
    history, run = _make(3, 60, FUNCTIONS[0], required=False, blobs=True)
    assert by_reference(history, run) == by_kernels(history, run, in_process, buckets=1, epochs_per_segment=3)
