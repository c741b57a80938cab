"""`history.json`."""

from pathlib import Path
from typing import Any

import attrs
import pytest

from conflict.config.configuration import ClusterConfiguration, Configuration, LoggingServer
from conflict.errors import HistoryError
from conflict.history.grid.catalogue import FileFacts, catalogue_part
from conflict.history.grid.folder import Folder
from conflict.history.grid.manifest import Manifest, SegmentFacts, load_manifest, read_manifest, write_manifest
from conflict.history.grid.schemas import SCHEDULE_PART
from conflict.history.ingestion.plan import load_plan
from conflict.history.run import Run, TableNumbers
from conflict.rules.replication_table import ReplicationRow
from ndb_formats.constants import ColumnCode
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.types.column_types import WireType
from tests.conflict.histories import BASIC_EXCEPTIONS, TABLES, numbers_of, setups

SCHEMA = parse_schema(TABLES + BASIC_EXCEPTIONS.format("t$EX"), database="d")
MANIFEST = Manifest(
    batches=(0, 1, 2),
    buckets=16,
    clusters={"A": 1, "B": 2},
    tables={"d.t": ("k int", "x bigint unsigned", "primary key k"), "d.n": ("k int", "primary key k")},
    files={"A": ("a/binlog.000001", "a/binlog.000002"), "B": ()},
    segments={
        "A": (
            SegmentFacts("a/binlog.000001", 158, 2000, 2**32, 2**63, 5),
            SegmentFacts("a/binlog.000002", 158, 900, 2**63 + 1, 2**64 - 1, 3),
        ),
        "B": (),
    },
    types={
        "d.t": (WireType(ColumnCode.LONG), WireType(ColumnCode.NEWDECIMAL, 65, 30), WireType(ColumnCode.VARCHAR, 9))
    },
    resolve_columns={"d.t": "x"},
    errors={"B": "binlog.000001, position 4: cut"},
    left_out={"B": 2},
    assumed={"A": 0, "B": 1},
    last_epochs={"A": 2**64 - 1, "B": 0},
    epochs_left_out={"A": 2, "B": 0},
    changes=8,
    listed=tuple(FileFacts(path, 1, 900, "00") for path in (*map(catalogue_part, range(3)), SCHEDULE_PART)),
)


def test_a_manifest_comes_back_from_disk(tmp_path: Path):
    """With epochs of 64 bits, types and names."""
    folder = Folder(str(tmp_path))
    assert load_manifest(folder) is None
    write_manifest(folder, MANIFEST)
    assert read_manifest(folder) == MANIFEST


@pytest.mark.parametrize(
    "change",
    [
        {"batches": [0, 1, 2, 3]},
        {"batches": [0, 2, 1]},
        {"buckets": 0},
        {"buckets": 2**62},
        {"last_epochs": {"A": 1}},
        {"files": {"A": ("a/binlog.000001",), "B": ()}},
        {"segments": {**MANIFEST.segments, "C": ()}},
        {"listed": MANIFEST.listed[1:]},
    ],
    ids=str,
)
def test_a_manifest_that_contradicts_itself(change: dict[str, Any], tmp_path: Path):
    """It is refused before anything is read."""
    folder = Folder(str(tmp_path))
    write_manifest(folder, attrs.evolve(MANIFEST, **change))
    with pytest.raises(HistoryError, match=r"history\.json contradicts itself; ingest the binlogs again"):
        read_manifest(folder)


@pytest.mark.parametrize("name", ["history.json", "ingest.json"])
@pytest.mark.parametrize(("content", "found"), [({"format": 7}, "7"), ({"format": 16}, "16"), ({}, "unknown")])
def test_another_format_is_refused(name: str, content: dict[str, int], found: str, tmp_path: Path):
    """In both documents; the error names the folder and both numbers, and says what to do."""
    folder = Folder(str(tmp_path))
    folder.write_json(name, content)
    read = load_manifest if name == "history.json" else load_plan
    with pytest.raises(HistoryError) as refusal:
        read(folder)
    assert str(refusal.value) == (
        f"{tmp_path}: the format of this History is {found}, and this version of ndb-conflict reads format 19; "
        "ingest the binlogs again into another folder"
    )


def test_no_history_is_refused(tmp_path: Path):
    """A folder without a manifest is no History."""
    with pytest.raises(HistoryError, match=r"there is no History in .*; make one with ndb-conflict ingest"):
        read_manifest(Folder(str(tmp_path)))


def test_layouts():
    """A table that no binlog mentions has no layout; the others are read by their wire types."""
    types = {"d.n": (WireType(ColumnCode.LONG), WireType(ColumnCode.LONGLONG), WireType(ColumnCode.LONG))}
    first, second = attrs.evolve(MANIFEST, types=types).layouts(TableNumbers(SCHEMA.tables[:2], {}))
    assert first is None
    assert second is not None
    assert (second.table, second.names, second.types) == ("d.n", ("k", "x", "v"), types["d.n"])


def test_resolve_columns():
    """Functions of a column name one, on whichever cluster; EPOCH names none."""
    assert numbers_of(setups(None, "NDB$MAX(x)")).resolve_columns == {"d.t": "x"}
    assert numbers_of(setups("NDB$EPOCH()", None)).resolve_columns == {}


def test_table_numbers():
    """Tables are numbered in the order of the schema, exceptions tables left out."""
    clusters = tuple(ClusterConfiguration(name, (LoggingServer(number),)) for number, name in ((1, "A"), (2, "B")))
    rows = (ReplicationRow("d", "t", 0, 7, "NDB$MAX(x)"),)
    numbers = Run(Configuration(clusters, SCHEMA, rows)).numbers
    assert [table.full_name for table in numbers.tables] == ["d.t", "d.n"]
    assert (numbers.number("d.n"), numbers.resolve_ordinal("d.t"), numbers.resolve_ordinal("d.n")) == (1, 1, None)
