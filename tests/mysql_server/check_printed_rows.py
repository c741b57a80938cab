"""
Values of every type that a real client prints are those that the server logs: `conflicts --observed` compares them so.

`make test-mysql` runs this; the name keeps it out of other test runs. MySQL is at `MYSQL_SOCKET`; `MYSQL` and
`MYSQLDUMP` are its clients, by default those on the path.
"""

import os
import subprocess
from collections.abc import Iterator

import pyarrow as pa
import pytest

import conflict
from conflict.config.printed_rows import printed_rows
from conflict.config.statement_rows import created_columns, inserted_values
from conflict.operating.observing.exceptions_rows import comparable
from tests.mysql_server.server import Server, given_server

DATABASE = "ndb_conflict_printed"
# By type, values as SQL; where a key has none left, the column is NULL.
VALUES = {
    "TINYINT": ["-128", "0", "127"],
    "BIGINT UNSIGNED": ["18446744073709551615", "9223372036854775808", "0"],
    "BIGINT": ["-9223372036854775808", "9223372036854775807"],
    "DECIMAL(30,10)": ["-12345678901234567890.0123456789", "0", "0.5"],
    "FLOAT": ["0.1", "16777217", "-1.5e-30", "3"],
    "DOUBLE": ["0.1", "1e100", "123456789012345680", "-2"],
    "BIT(10)": ["b'1000000001'", "b'0'", "b'1000001'"],
    "BIT(64)": ["18446744073709551615", "65"],
    "YEAR": ["1901", "2155", "0"],
    "DATE": ["'2026-11-27'", "'1000-01-01'"],
    "TIME(6)": ["'-838:59:59'", "'00:00:00.000001'"],
    "DATETIME(3)": ["'2026-11-27 18:00:00.5'", "'9999-12-31 23:59:59'"],
    "TIMESTAMP": ["'2026-11-27 18:00:00'", "'1970-01-02 00:00:00'"],
    "CHAR(10)": ["'a'", "''", "'NULLs'", "'a|b'"],
    "VARCHAR(90) CHARACTER SET utf8mb4": [
        "'ä 漢 😀'",
        "'tab\\there'",
        "'back\\\\slash'",
        "'it''s \"so\": x'",
        "'0xzz'",
    ],
    "VARCHAR(90) CHARACTER SET latin1": ["'ä: b'", "'***'", "'+---+'"],
    "TEXT": ["'long'", "REPEAT('x', 300)"],
    "BINARY(4)": ["x'00FF'", "x'41424344'", "x''"],
    "VARBINARY(9)": ["x'00'", "x'5C0A097C'", "''"],
    "BLOB": ["x'FFFEFD'", "'text'"],
    "ENUM('WRITE_ROW','UPDATE_ROW')": ["'UPDATE_ROW'", "'WRITE_ROW'"],
    "SET('a','b')": ["'a,b'", "''"],
    "JSON": ['\'{"a": [1, 2.5, "x"]}\'', "'\"text\"'"],
    "POINT": ["ST_GeomFromText('POINT(1 2)')"],
}
NAMES = {kind: f"c{number}" for number, kind in enumerate(VALUES)}
COLUMNS = ", ".join(f"{name} {kind}" for kind, name in NAMES.items())
TABLE = f"CREATE TABLE {DATABASE}.t (k INT PRIMARY KEY, {COLUMNS})"
Logged = tuple[dict[str, pa.DataType], dict[str, list[object]]]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Yield the server with the table, or end the run with what is missing."""
    found = given_server()
    rows = [
        ", ".join([str(key), *(values[key] if key < len(values) else "NULL" for values in VALUES.values())])
        for key in range(1 + max(map(len, VALUES.values())))
    ]
    found.run(
        f"DROP DATABASE IF EXISTS {DATABASE}; CREATE DATABASE {DATABASE}; FLUSH BINARY LOGS; SET time_zone = '+00:00'; "
        f"{TABLE}; "
        f"INSERT INTO {DATABASE}.t VALUES {', '.join(f'({row})' for row in rows)}"
    )
    yield found
    found.run(f"DROP DATABASE {DATABASE}")


def client(server: Server, *options: str) -> str:
    """Return the rows as the client prints them, with the names of the columns."""
    account = [f"--user={server.setup.user}", f"--socket={server.setup.socket}"]
    select = f"SET time_zone = '+00:00'; SELECT * FROM {DATABASE}.t ORDER BY k"
    command = [
        server.setup.client,
        "--no-defaults",
        *account,
        "--default-character-set=utf8mb4",
        *options,
        "-e",
        select,
    ]
    return subprocess.run(command, capture_output=True, check=True).stdout.decode()


def dumped(server: Server) -> str:
    account = [f"--user={server.setup.user}", f"--socket={server.setup.socket}"]
    program = os.environ.get("MYSQLDUMP") or "mysqldump"
    command = [program, "--no-defaults", *account, "--hex-blob", "--default-character-set=utf8mb4", DATABASE, "t"]
    return subprocess.run(command, capture_output=True, check=True).stdout.decode()


@pytest.fixture(scope="module")
def logged(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Logged:
    """Return the types of the columns, and their values as the binlog has them, in the order of the key."""
    folder = tmp_path_factory.mktemp("log")
    (folder / "schema.sql").write_text(TABLE)
    log, schema = server.own_log(folder), folder / "schema.sql"
    table = conflict.decode(log, f"{DATABASE}.t", schema=schema, temporals="text").to_arrow()  # as a result has them
    assert table.num_rows == 1 + max(map(len, VALUES.values()))
    images, kinds = table["after"].to_pylist(), table.schema.field("after").type
    names = ["k", *NAMES.values()]
    types = {name: kinds.field(kinds.get_field_index(name)).type for name in names}
    return types, {name: [comparable(image[name], types[name]) for image in images] for name in names}


FORMS = {
    "with tabs": ["--batch", "--binary-as-hex"],
    "in a box": ["--table", "--binary-as-hex"],
    "below each other": ["--vertical", "--binary-as-hex"],
}


@pytest.mark.parametrize("form", [*FORMS, "a dump"])
def test_every_value(server: Server, logged: Logged, form: str):
    """Column by column."""
    if form == "a dump":
        text = dumped(server)
        columns = created_columns(text, "t")
        rows = [each.named(columns or ()).cells for each in inserted_values(text, "t")]
    else:
        rows = [each.cells for each in printed_rows(client(server, *FORMS[form]))]
    types, values = logged
    wrong = {
        (kind, row["k"]): (row[name], value)
        for kind, name in {"INT": "k", **NAMES}.items()
        for row, value in zip(rows, values[name], strict=True)
        if comparable(row[name], types[name]) != value
    }
    assert wrong == {}
