"""Keys under collations of which equality is not known exactly."""

import pytest

from ndb_formats.errors import UnsupportedError
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.row_keys import refuse_inexact_keys, with_inexact_keys

COLUMNS = (
    "k INT NOT NULL, s VARCHAR(9) CHARACTER SET sjis NOT NULL, b VARCHAR(9) COLLATE sjis_bin NOT NULL, u VARCHAR(9)"
)


@pytest.mark.parametrize("key", ["PRIMARY KEY (k, s)", "PRIMARY KEY (k), UNIQUE KEY (u, s)"])
def test_refused(key: str):
    """The error has table and column, and names the collation; on demand there is none."""
    schema = parse_schema(f"CREATE TABLE t ({COLUMNS}, {key})", database="d")
    with pytest.raises(UnsupportedError, match="sjis_japanese_ci") as caught:
        refuse_inexact_keys(schema.tables)
    assert (caught.value.table, caught.value.column) == ("d.t", "s")
    refuse_inexact_keys(with_inexact_keys(schema).tables)


@pytest.mark.parametrize("key", ["PRIMARY KEY (k)", "PRIMARY KEY (b)", "PRIMARY KEY (k), KEY (s)"])
def test_not_refused(key: str):
    """Other keys, and columns outside of unique keys, do not matter."""
    refuse_inexact_keys(parse_schema(f"CREATE TABLE t ({COLUMNS}, {key})", database="d").tables)
