"""Sizes in columns: those of the events that are written, and those that a real server wrote in other formats."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndb_formats.errors import CutFileError
from ndb_formats.events.table_map_of_table import RowMetadata
from ndb_formats.rules.formats import FORMATS
from ndb_formats.rules.images import Logging
from ndb_formats.rules.row_image_rules import RowImageRule, updated_columns
from ndb_formats.schema.create_table import parse_create_table, parse_schema
from ndb_formats.schema.tables import Column, Schema, Table
from ndb_formats.sizes.log_sizes import LEAST, MOST, LogSizer, Tally, size_log
from ndb_formats.sizes.report import size_report
from ndb_formats.writing.binlog_writer import BinlogSettings, BinlogWriter, WrittenChange
from tests.corpora import RECORDINGS, SHARED
from tests.examples import examples
from tests.strategies import ndb_tables

NAMES = [form.name for form in FORMATS]
NDB_TYPES = ("2", "3", "6", "7", "8", "9")


def written(path: Path, settings: BinlogSettings, transactions: list[list[WrittenChange]]) -> Path:
    """Write row changes, one transaction or epoch after the other."""
    with path.open("wb") as out:
        writer = BinlogWriter(out, settings)
        writer.start(1_000_000)
        for number, changes in enumerate(transactions, start=1):
            if changes[0].table.engine == "NDB":
                writer.write_epoch(number << 32, changes, 1_000_000)
            else:
                writer.write_transaction([changes], 1_000_000, transaction_id=number)
        writer.finish()
    return path


def logging_of(name: str) -> Logging:
    """Return the settings of a server that logs in one of `FORMATS`."""
    rule = FORMATS[NAMES.index(name)].rule
    return Logging(row_image=rule) if isinstance(rule, RowImageRule) else Logging(update_format=rule)


def rows_bytes(tally: Tally) -> int:
    """Return the bytes of rows events as they are."""
    return int(tally.logged[:, 0].sum())


def values_of(column: Column) -> st.SearchStrategy[Any]:
    """Return values of a column of `ndb_tables`."""
    if column.type in ("int", "bigint"):
        known: st.SearchStrategy[Any] = st.integers(0, 3)
    elif column.type == "timestamp":
        known = st.sampled_from(["2001-01-01 00:00:00", "2002-02-02 00:00:00"])
    else:
        known = st.sampled_from(["", "a", "A", "abc", "x" * 9 if column.type == "varchar" else "x" * 300])
    known = known.map(lambda value: value[:5] if column.name == "k" and isinstance(value, str) else value)
    return known | st.none() if column.nullable else known


@st.composite
def changes(draw: st.DrawFn, table: Table) -> WrittenChange:
    """Return a change of a row of a table, with the columns that its statement names or sets."""
    rows = st.fixed_dictionaries({place: values_of(column) for place, column in enumerate(table.columns)})
    kind = draw(st.sampled_from(["insert", "update", "update", "delete"]))
    plain = [place for place, column in enumerate(table.columns) if not column.generated]
    named = frozenset(draw(st.sets(st.sampled_from(plain))))
    before = draw(rows)
    if kind == "insert":
        return WrittenChange(table, None, before, named | {place for place in plain if before[place] is not None})
    if kind == "delete":
        return WrittenChange(table, before, None)
    fresh, changing = draw(rows), updated_columns(table, named)
    after = {place: fresh[place] if place in changing else value for place, value in before.items()}
    return WrittenChange(table, before, after, named)


@st.composite
def logs(draw: st.DrawFn) -> tuple[Table, str, list[list[WrittenChange]]]:
    """Return a table of any engine, a format of that engine, and transactions."""
    table = draw(ndb_tables())
    if draw(st.booleans()):
        table = attrs.evolve(table, engine="INNODB")
    name = draw(st.sampled_from(NDB_TYPES if table.engine == "NDB" else ("FULL", "MINIMAL", "NOBLOB")))
    return table, name, draw(st.lists(st.lists(changes(table), min_size=1, max_size=6), min_size=1, max_size=4))


@examples(12, long=1000)
@given(log=logs(), checksums=st.booleans(), version=st.sampled_from([1, 2]), event_size=st.sampled_from([256, 8192]))
def test_a_log_in_its_own_format_has_the_bytes_that_were_written(
    tmp_path_factory: pytest.TempPathFactory, log: Any, checksums: bool, version: int, event_size: int
) -> None:
    """Whatever the schema, the images and the format: the same bytes in as many events, by kind of change."""
    table, name, transactions = log
    settings = BinlogSettings(
        logging_of(name), checksums=checksums, rows_version=version, row_event_max_size=event_size
    )
    path = written(tmp_path_factory.mktemp("log") / "binlog.000001", settings, transactions)
    sizer = LogSizer(Schema((table,)), event_size=event_size)
    sizer.add(path)
    tally, form = sizer.tally, NAMES.index(name)
    report = size_report(sizer, [path.stat().st_size])
    assert report.total == path.stat().st_size
    least, most, events = (array[:, form].sum(axis=-1) for array in (tally.bytes, tally.bytes, tally.events))
    assert least[LEAST] <= rows_bytes(tally) <= most[MOST]
    if not tally.rows[:, 1].any():
        assert (most[MOST], events[MOST]) == tuple(tally.logged.sum(axis=0))


@examples(6, long=500)
@given(table=ndb_tables(), data=st.data())
def test_a_log_with_all_columns_bounds_every_format(
    tmp_path_factory: pytest.TempPathFactory, table: Table, data: st.DataObject
) -> None:
    """From type 7, or FULL, come the bytes of a change in the other formats: equal where the bounds are."""
    table = attrs.evolve(table, engine=data.draw(st.sampled_from(["NDB", "INNODB"])))
    full, others = ("7", NDB_TYPES) if table.engine == "NDB" else ("FULL", ("MINIMAL", "NOBLOB"))
    change = data.draw(changes(table))
    folder = tmp_path_factory.mktemp("log")
    source = written(folder / "full", BinlogSettings(logging_of(full)), [[change]])
    tally = size_log(source, schema=Schema((table,))).tally
    virtual_follows = any(column.generated == "virtual" for column in table.columns)
    for name in others:
        other = written(folder / name, BinlogSettings(logging_of(name)), [[change]])
        found = rows_bytes(size_log(other, schema=Schema((table,))).tally)
        least, most = (int(tally.bytes[bound, NAMES.index(name)].sum()) for bound in (LEAST, MOST))
        # A virtual column's mark falls on the next stored one, so that fewer written columns can be more logged ones.
        assert least <= found or virtual_follows
        assert found <= most or virtual_follows


def statement_sizes(folder: Path) -> list[tuple[str, Tally]]:
    """Return the statements of a recording, and the sizes of what each made."""
    schema = parse_schema((folder / "schema.sql").read_text("utf-8"))
    found = []
    for group in json.loads((folder / "statements.json").read_text("utf-8")):
        start, stop = group["start"], group["end"]
        sizer = LogSizer(schema)
        if start < stop:
            sizer.add(folder / "binlog.000001", start=start, stop=stop)
        found.append((json.dumps([statement["sql"] for statement in group["statements"]]), sizer.tally))
    return found


def judged(source: Path, recorded: Path, name: str) -> Counter[str]:
    """Compare, statement by statement, what a log gives for a format with what was recorded in it."""
    form, counts = NAMES.index(name), Counter[str]()
    for (sql, tally), (same, other) in zip(statement_sizes(source), statement_sizes(recorded), strict=True):
        assert sql == same
        least, most = (int(tally.bytes[bound, form].sum()) for bound in (LEAST, MOST))
        assert least <= rows_bytes(other) <= most, (recorded.name, sql)
        counts["equal" if least == most else "within bounds"] += 1
    return counts


@pytest.mark.parametrize(
    ("source", "recorded", "name", "equal", "within"),
    [
        ("charkey_type7", "charkey_type8", "8", 11, 1),
        ("charkey_type7", "charkey_type9", "9", 12, 0),
        ("composite_type7", "composite_type8", "8", 7, 5),
        ("composite_type7", "composite_type9", "9", 12, 0),
        ("gencols_type7", "gencols_type8", "8", 2, 4),
        ("gencols_type7", "gencols_type9", "9", 6, 0),
        ("defaults_full", "defaults_minimal", "MINIMAL", 1, 7),
        ("defaults_full", "defaults_noblob", "NOBLOB", 8, 0),
    ],
)
def test_sizes_of_another_format_are_those_that_a_server_wrote(
    source: str, recorded: str, name: str, equal: int, within: int
) -> None:
    """Statement by statement, from the log with all columns."""
    folder = RECORDINGS / "ndb_formats"
    counts = judged(folder / source, folder / recorded, name)
    assert (counts["equal"], counts["within bounds"]) == (equal, within)


FORMATS_FOLDER = SHARED / "conformance" / "formats"


@pytest.mark.slow
@pytest.mark.corpus("conformance/formats")
@pytest.mark.parametrize(
    ("source", "folder", "name"),
    [
        *(("ndb/type7", f"ndb/type{name}", name) for name in NDB_TYPES),
        *(("innodb/full", f"innodb/{name.lower()}", name) for name in ("FULL", "MINIMAL", "NOBLOB")),
    ],
)
def test_sizes_of_every_recorded_table(source: str, folder: str, name: str) -> None:
    """All tables of the corpus; those of types 3, 7, 9 and FULL are told exactly."""
    counts = Counter[str]()
    for table in sorted(path.name for path in (FORMATS_FOLDER / folder).iterdir()):
        counts += judged(FORMATS_FOLDER / source / table, FORMATS_FOLDER / folder / table, name)
    assert counts["equal"] > 0
    if name in ("3", "7", "9", "FULL"):
        assert counts["within bounds"] == 0


@pytest.mark.parametrize("name", ["charkey_type8", "composite_type7", "defaults_minimal", "metadata_full"])
def test_all_bytes_of_a_file_are_accounted_for(name: str) -> None:
    """Frames, table maps, rows events as they are, and the magic number."""
    path = RECORDINGS / "ndb_formats" / name / "binlog.000001"
    sizer = size_log(path, schema=parse_schema(path.with_name("schema.sql").read_text("utf-8")))
    assert size_report(sizer, [path.stat().st_size]).total == path.stat().st_size


def test_the_pieces_of_a_file_make_the_whole() -> None:
    """A file added transaction by transaction gives the same sums."""
    folder = RECORDINGS / "ndb_formats" / "composite_type7"
    schema = parse_schema((folder / "schema.sql").read_text("utf-8"))
    whole = size_log(folder / "binlog.000001", schema=schema).tally
    parts = sum((tally.bytes.sum(axis=-1) for _, tally in statement_sizes(folder)), np.zeros_like(whole.bytes[..., 0]))
    assert (parts == whole.bytes.sum(axis=-1)).all()


def test_a_cut_file_keeps_what_comes_before(tmp_path: Path) -> None:
    """The error names the file; sizes up to it stay."""
    folder = RECORDINGS / "ndb_formats" / "composite_type7"
    whole = (folder / "binlog.000001").read_bytes()
    cut = tmp_path / "cut.000001"
    cut.write_bytes(whole[:-100])
    sizer = LogSizer(parse_schema((folder / "schema.sql").read_text("utf-8")))
    with pytest.raises(CutFileError, match=r"cut\.000001"):
        sizer.add(cut)
    assert sizer.tally.rows[:, 0].sum() > 0


CLASSIC_TEXT = parse_create_table(
    "CREATE TABLE t1 (c1 INT PRIMARY KEY, c2 CHAR(1), c3 LONGTEXT) ENGINE=MYISAM DEFAULT CHARSET=latin1",
    database="test",
)
CLASSIC_DEFAULT = parse_create_table(
    "CREATE TABLE t1 (c1 INT PRIMARY KEY, c2 CHAR(1), c3 VARCHAR(1024) DEFAULT 'aaaaaaaaaaaaaaaaaaaa')"
    " ENGINE=MYISAM DEFAULT CHARSET=latin1",
    database="test",
)
DELETE = WrittenChange(CLASSIC_TEXT, {0: 1, 1: "a", 2: "a" * (1 << 20)}, None)
INSERT = WrittenChange(CLASSIC_DEFAULT, None, {0: 1, 1: "a", 2: "a" * 20}, {0, 1})


@pytest.mark.parametrize(
    ("change", "full", "minimal"),
    [
        # From a blog post on a pre-release 5.6.2; the settings (no checksums, a file that starts at 114) are fitted.
        (DELETE, 1048913, (331, 331)),
        # From a full log: the value is the default, so it may have been given or not.
        (INSERT, 356, (334, 356)),
    ],
)
def test_the_classic_sizes(change: WrittenChange, full: int, minimal: tuple[int, int], tmp_path: Path) -> None:
    """A delete of 1048913 bytes that takes 331 with minimal images, an insert of 356 that takes 334."""
    before = BinlogSettings(
        logging_of("FULL"), server_version="5.6.2", post_header_sizes=bytes(29), checksums=False,
        metadata=RowMetadata.NONE, rows_version=1, gtid_events=False, session=bytes(26),
    )  # fmt: skip
    for server, size in ((before, full), (attrs.evolve(before, logging=logging_of("MINIMAL")), minimal[0])):
        path = tmp_path / "binlog.000001"
        with path.open("wb") as out:
            writer = BinlogWriter(out, server)
            writer.start(0)
            assert writer.position == 114
            writer.write_transaction([[change]], 0)
        assert path.stat().st_size == size
        if server is before:
            report = size_report(size_log(path, schema=Schema((change.table,))), [size])
    found = report.changes.formats[NAMES.index("MINIMAL")]
    assert tuple(report.frame.bytes + amount.bytes for amount in (found.least, found.most)) == minimal
