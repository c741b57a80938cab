"""Types that a server makes the same are the same to the check of a replica, however a statement spells them."""

import pytest

from ndb_formats.rules.images import Logging
from ndb_formats.rules.replica.check import ReplicaSettings, check_table
from ndb_formats.rules.row_image_rules import RowImageRule
from ndb_formats.schema.create_table import parse_schema

# What `SHOW CREATE TABLE` of a MySQL 9.7 server prints alike; the database is of utf8mb4.
SAME = [
    ("TEXT(30)", "TINYTEXT"), ("TEXT(63)", "TINYTEXT"), ("TEXT(64)", "TEXT"), ("TEXT(16383)", "TEXT"),
    ("TEXT(16384)", "MEDIUMTEXT"), ("BLOB(100)", "TINYBLOB"), ("BLOB(255)", "TINYBLOB"), ("BLOB(256)", "BLOB"),
    ("BLOB(65536)", "MEDIUMBLOB"), ("FLOAT(24)", "FLOAT"), ("FLOAT(53)", "DOUBLE"), ("REAL", "DOUBLE"),
    ("DOUBLE PRECISION", "DOUBLE"), ("FLOAT8", "DOUBLE"), ("FLOAT4", "FLOAT"),
    ("CHAR(4) COLLATE utf8_bin", "CHAR(4) COLLATE utf8mb3_bin"), ("CHAR(4) CHARSET utf8", "CHAR(4) CHARSET utf8mb3"),
    ("NCHAR(4)", "CHAR(4) CHARSET utf8mb3"), ("NATIONAL VARCHAR(4)", "VARCHAR(4) CHARSET utf8mb3"),
    ("NVARCHAR(4)", "VARCHAR(4) CHARSET utf8mb3"), ("LONG", "MEDIUMTEXT"), ("LONG VARCHAR", "MEDIUMTEXT"),
    ("LONG VARBINARY", "MEDIUMBLOB"), ("LONG BYTE", "MEDIUMBLOB"), ("DECIMAL", "DECIMAL(10,0)"),
    ("DECIMAL(0)", "DECIMAL(10,0)"), ("NUMERIC(5)", "DECIMAL(5,0)"), ("DEC(5,2)", "DECIMAL(5,2)"),
    ("FIXED(5,2)", "DECIMAL(5,2)"), ("VARCHAR(5) BYTE", "VARBINARY(5)"), ("CHAR(5) BYTE", "BINARY(5)"),
    ("CHAR BYTE", "BINARY(1)"), ("CHAR", "CHAR(1)"), ("BINARY", "BINARY(1)"), ("TEXT BYTE", "BLOB"),
    ("VARCHAR(5) CHARSET binary", "VARBINARY(5)"), ("TEXT CHARSET binary", "BLOB"),
    ("CHAR(5) ASCII", "CHAR(5) CHARSET latin1"), ("CHAR(5) UNICODE", "CHAR(5) CHARSET ucs2"),
    ("CHAR(5) BINARY", "CHAR(5) COLLATE utf8mb4_bin"), ("VECTOR", "VECTOR(2048)"), ("BOOL", "TINYINT(1)"),
    ("BOOLEAN", "TINYINT(1)"), ("BIT", "BIT(1)"), ("INTEGER(5)", "INT"), ("INT4", "INT"),
    ("MIDDLEINT", "MEDIUMINT"), ("INT3", "MEDIUMINT"), ("INT1", "TINYINT"), ("INT2", "SMALLINT"), ("INT8", "BIGINT"),
    ("INT ZEROFILL", "INT UNSIGNED ZEROFILL"), ("YEAR(4)", "YEAR"), ("TIME(0)", "TIME"), ("DATETIME(0)", "DATETIME"),
    ("GEOMCOLLECTION", "GEOMETRYCOLLECTION"), ("CHARACTER VARYING(5)", "VARCHAR(5)"), ("CHARACTER(5)", "CHAR(5)"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "two"), SAME, ids=[" is ".join(pair) for pair in SAME])
def test_two_spellings_of_a_type_differ_in_nothing(one: str, two: str):
    """Neither as source nor as replica, with the images that ask for most and no conversion allowed."""
    tables = [
        parse_schema(f"CREATE TABLE d.t (k INT PRIMARY KEY, c {kind}) CHARSET utf8mb4").tables[0] for kind in (one, two)
    ]
    settings = ReplicaSettings(Logging(row_image=RowImageRule.MINIMAL))
    assert check_table(*tables, settings) == check_table(*reversed(tables), settings) == ()


# A unique key as typed, and as SHOW CREATE TABLE of MySQL 9.7.4 prints it.
SHOWN_KEYS = [
    ("(CAST(j->'$.A' AS UNSIGNED ARRAY))", "(cast(json_extract(`j`,_utf8mb4'$.A') as unsigned array))"),
    (
        "(CAST(j->>'$.b' AS CHAR(20)))",
        "(cast(json_unquote(json_extract(`j`,_utf8mb4'$.b')) as char(20) charset utf8mb4))",
    ),
    ("(LOWER(n))", "(lower(`n`))"),
    ("(LEFT(n, 3)), (k+1)", "(left(`n`,3)),((`k` + 1))"),
    ("(CONCAT(n, 'x')), k", "(concat(`n`,_utf8mb4'x')),`k`"),
    ("n(3) DESC", "`n`(3) DESC"),
]


@pytest.mark.parametrize(("typed", "shown"), SHOWN_KEYS)
def test_a_unique_key_as_it_is_shown(typed: str, shown: str):
    """Both are one key."""
    tables = [
        parse_schema(f"CREATE TABLE d.t (k INT PRIMARY KEY, n VARCHAR(20), j JSON, UNIQUE KEY u ({key}))").tables[0]
        for key in (typed, shown)
    ]
    assert check_table(*tables, ReplicaSettings()) == check_table(*reversed(tables), ReplicaSettings()) == ()
