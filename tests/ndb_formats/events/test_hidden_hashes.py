"""The columns that MariaDB hides: hashes of unique keys that are too long for an index."""

import pytest

from ndb_formats.events.agreed_definition import agreed_definition, agreed_layout
from ndb_formats.events.table_map import TableMap, decode_table_map
from ndb_formats.schema.create_table import parse_create_table
from ndb_formats.schema.tables import Table

SERVER = "10.11.19-MariaDB-0+deb12u1-log"
# As MariaDB 10.11 logged it, without optional metadata: CREATE TABLE h.t (a INT PRIMARY KEY, b BLOB UNIQUE, c INT).
BODY = bytes.fromhex("5b5400000000 0100 0168 00 0174 00 04 03fc0308 01 02 0e")
LONG = "CREATE TABLE h.t (a INT PRIMARY KEY, b BLOB UNIQUE, c INT)"


def table_map(server: str = SERVER) -> TableMap:
    """Return the event of a server."""
    return decode_table_map(BODY, server)


def table(create: str) -> Table:
    """Return a table of database h."""
    return parse_create_table(create, database="h")


def test_names_of_a_table_with_a_hidden_hash():
    """The hash comes last, under the name that binlog_row_metadata=FULL has for it, and nothing is to be said."""
    layout, note = agreed_layout(table_map(), table(LONG))
    assert (layout.names, note) == (("a", "b", "c", "DB_ROW_HASH_1"), "")
    agreed = agreed_definition(table_map(), table(LONG))
    assert agreed is not None
    assert agreed.columns[3].sql_type == "bigint unsigned"


@pytest.mark.parametrize(
    ("create", "server"),
    [
        (LONG, "9.7.0"),
        ("CREATE TABLE h.t (a INT PRIMARY KEY, b BLOB, c INT UNIQUE)", SERVER),
        ("CREATE TABLE h.t (a INT PRIMARY KEY, b BLOB UNIQUE)", SERVER),
    ],
)
def test_a_column_that_is_no_hash_is_said(create: str, server: str):
    """Of MySQL, without a key that is too long, or beside another column that the definition lacks."""
    layout, note = agreed_layout(table_map(server), table(create))
    assert layout.names == ("@1", "@2", "@3", "@4")
    assert "columns and the binlog 4" in note
