"""The text of a log, built from columns."""

from pathlib import Path

import pytest

from ndb_formats.columnar.selected_changes import ChangeReading
from ndb_formats.errors import FormatError
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.tables import Schema
from ndb_formats.selection import Selection, select_events
from ndb_formats.text.log_text import log_text
from ndb_formats.text.row_lines import rows_event_lines
from ndb_formats.text.row_printer import TextOptions
from tests.corpora import DEMO
from tests.ndb_formats.recordings import ALL_RECORDINGS, RECORDINGS, TYPES

BINLOG = DEMO / "A.binlog.000001"
MARIADB = ALL_RECORDINGS / "servers" / "mariadb_10_11_text"


def text(path: Path, selection: Selection | None = None, *, rows: int = 4096, schema: Schema | None = None) -> bytes:
    reading = ChangeReading(schema or Schema(), rows=rows)
    options = TextOptions(2, names=schema is not None)
    return b"".join(log_text([str(path)], selection or Selection(), reading, options))


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("case", ["types_type8", "composite_type7", "metadata_full"])
def test_a_block_may_end_anywhere(case: str, rows: int) -> None:
    """The lines are those that mysqlbinlog printed, however few rows a block has."""
    recorded = (RECORDINGS / case / "mysqlbinlog.txt").read_bytes().split(b"\n")
    shown = text(RECORDINGS / case / "binlog.000001", rows=rows).split(b"\n")
    assert [line for line in shown if line.startswith(b"###")] == [line for line in recorded if line.startswith(b"###")]


@pytest.mark.parametrize("rows", [1, 4096])
def test_a_log_of_mariadb_is_printed_as_its_tool_does(rows: int) -> None:
    """
    Spatial values as text, control characters by their numbers and nothing else escaped, members without blanks.

    A column COMPRESSED leads its tool astray among the columns after it (so does YEAR, of signs); it is not compared.
    """
    recorded = (MARIADB / "printed.txt").read_bytes().split(b"\n")
    options = TextOptions(2, table_metadata=True)
    printed = log_text([str(MARIADB / "binlog.000001")], Selection(), ChangeReading(Schema(), rows=rows), options)
    shown = b"".join(printed).split(b"\n")
    found, expected = (
        [line for line in lines if line.startswith((b"###", b"# Col", b"#   ")) and b"INVALID_TYPE" not in line]
        for lines in (shown, recorded)
    )
    assert len(expected) > 100
    assert found == expected


def test_lines_of_mariadb_are_the_same_by_columns_and_one_by_one() -> None:
    """Row by row, from events that are decoded one at a time."""
    recorded = (MARIADB / "printed.txt").read_bytes().split(b"\n")
    changes = select_events([str(MARIADB / "binlog.000001")], Selection(), verify=True)
    lines = [
        line
        for change in changes
        if change.rows is not None and change.table_map is not None
        for line in rows_event_lines(change.table_map, change.rows)
    ]
    assert lines == [line for line in recorded if line.startswith(b"###")]


def test_everything_before_an_error_is_shown(tmp_path: Path) -> None:
    """A file that is cut inside a rows event shows the events before it, byte for byte."""
    cut = tmp_path / "binlog.000001"
    cut.write_bytes(BINLOG.read_bytes()[:5000])
    shown = []
    with pytest.raises(FormatError, match=r"binlog\.000001, position \d+"):
        shown.extend(log_text([str(cut)], Selection(), ChangeReading(Schema()), TextOptions(2)))
    whole = text(BINLOG)
    assert len(b"".join(shown)) > 1000
    assert whole.startswith(b"".join(shown))


def test_a_start_inside_a_transaction_has_the_tables_before_it() -> None:
    """Rows events are shown from their position on, though their Table_map events come before it."""
    whole = text(BINLOG)
    place = whole.index(b"\tWrite_rows")
    start = whole.rindex(b"# at ", 0, place)
    position = int(whole[start + 5 : whole.index(b"\n", start)])
    assert text(BINLOG, Selection(start_position=position)) == whole[start:]
    with pytest.raises(FormatError, match=f"no event starts at position {position + 1}"):
        text(BINLOG, Selection(start_position=position + 1))


def test_rows_are_chosen_by_key_and_have_names() -> None:
    """Only rows with the key are shown, under the event that they are in; the block size changes nothing."""
    schema = parse_schema((DEMO / "schema.sql").read_text("utf-8"))
    selection = Selection(tables=frozenset({"cft.t1"}), key=(("k", "1"),))
    shown = text(BINLOG, selection, schema=schema)
    lines = shown.split(b"\n")
    assert {line for line in lines if line.startswith(b"###   k=")} == {
        b"###   k=1 /* INT meta=0 nullable=0 is_null=0 */"
    }
    assert {line.split(b"\t")[1].split(b":")[0] for line in lines if line.startswith(b"#2")} <= {
        b"Write_rows",
        b"Update_rows",
        b"Delete_rows",
    }
    assert text(BINLOG, selection, schema=schema, rows=1) == shown


def test_events_are_chosen_by_server_and_transaction() -> None:
    """A transaction id chooses the rows events of that NDB transaction; a server id the events of that server."""
    transaction = text(BINLOG, Selection(transactions=frozenset({78546371358976})))
    # In the recording: INSERT INTO t1 of k = 1 and k = 3.
    assert transaction.count(b"### INSERT INTO") == 2
    assert b"Query" not in transaction
    servers = [text(BINLOG, Selection(server_ids=frozenset({server}))) for server in (1, 2)]
    assert [shown.count(b" server id 2 ") > 0 for shown in servers] == [False, True]
    assert sum(shown.count(b"\n### ") for shown in servers) == text(BINLOG).count(b"\n### ")


def test_names_come_from_the_log_without_definitions() -> None:
    """Without names in the log, columns keep their numbers."""
    options = TextOptions(1, names=True)
    shown = b"".join(log_text([str(TYPES / "binlog.000001")], Selection(), ChangeReading(Schema()), options))
    assert b"###   @1=" in shown
    full = RECORDINGS / "metadata_full" / "binlog.000001"
    named = b"".join(log_text([str(full)], Selection(), ChangeReading(Schema()), options))
    assert b"### INSERT" in named
    assert b"###   @1=" not in named
