"""
Small logs that real servers wrote for what users of binlog readers reported; the values are those of their statements.

The logs are in tests/recordings/reports; MySQL 9.7 and MariaDB 10.11 wrote them.
"""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import conflict
from conflict.errors import LogWarning
from tests.conflict.cli.commands import invoke

REPORTS = Path("tests/recordings/reports")
Rows = list[dict[str, Any]]


def rows_of(name: str, folder: Path, *options: str) -> tuple[int, str, Rows]:
    """Return exit code, what is said, and the after images of a log as JSON lines, each with its table."""
    out = folder / "rows.json"
    code, said = invoke("decode", "--format", "json", "-r", out, *options, REPORTS / f"{name}.binlog")
    if not out.exists():
        return code, said, []
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    return code, said, [{"table": line["table"], **line["after"]} for line in lines if "after" in line]


VALUES: dict[str, Rows] = {
    "01-procedure-body": [{"table": "t", "id": 9, "price": 100, "qty": 3}],
    "06-client-gbk.full": [
        {"table": "t", "id": 1, "列": 2, "e": "誠", "v": "中"},
        {"table": "t", "id": 2, "列": 2, "e": "b", "v": "中", "z": 9},
    ],
    "06-client-gbk.minimal": [
        {"table": "t", "id": 1, "列": 2, "e": "誠", "v": "中"},
        {"table": "t", "id": 2, "列": 2, "e": "b", "v": "中", "z": 9},
    ],
    "06-client-latin1.minimal": [{"table": "tä", "id": 1, "größe": 2, "e": "ö", "c": "é"}],
    "07a-rename-swap": [
        {"table": "t", "id": 1, "a": 2, "b": 3},
        {"table": "t", "id": 2, "b": 2, "a": 3},
        {"table": "o", "id": 1, "w": 1},
    ],
    "07c-add-drop-same": [{"table": "t", "id": 1, "a": 2}],
    "07f-convert-binary": [{"table": "t", "id": 1, "a": "0x78"}],
    "07h-real-as-float": [{"table": "t", "id": 1, "a": 1.5}],
    "08-char-set": [{"table": "t", "id": 1, "a": "Привет"}, {"table": "u", "id": 1, "a": "Привет"}],
    "09a-add-column-if-not-exists": [{"table": "t", "id": 1, "a": 2, "b": 3, "n": 4}],
    "09c-create-or-replace": [{"table": "t", "x": 1, "y": 2}],
    "09e-wait": [{"table": "t", "id": 1, "a": 2, "b": 3, "w": 4}],
    "09g-oracle-date": [{"table": "t", "id": "1", "d": "2020-01-01 00:00:00"}],
    "09j-drop-index-if-exists": [{"table": "t", "id": 1, "a": 2, "b": 3}],
    "10a-uca1400": [{"table": "t", "id": 1, "a": "x"}, {"table": "u", "k": 5}],
    "10b-compressed-column": [{"table": "t", "id": 1, "a": 200 * "x"}, {"table": "u", "k": 5}],
    "compressed-columns": [
        {"table": "cc", "a": 3, "b": 200 * "é", "c": "0x" + 700 * "7A", "d": "ab", "e": ""},
        {"table": "cc", "a": 4, "b": None, "c": None, "d": "", "e": 300 * "q"},
    ],
    "11-enum-empty": [{"table": "e1", "id": 1, "a": ""}, {"table": "e1", "id": 2, "a": "Y"}],
    "12-decimal": [
        {"table": "d1", "id": 1, "a": "0.0000000000", "b": "0.0000000"},
        {"table": "d1", "id": 2, "a": "0.0000000001", "b": "0.0000001"},
    ],
    "17-unsigned": [{"table": "t", "id": 1, "a": 255, "b": 18446744073709551615}],
    "19a-big5": [{"table": "c", "id": 1, "a": "恒"}],
    "19b-silent-characters": [
        {"table": "c2", "id": 1, "b": "\uff5e\uff0d", "c": "ⁿ²", "d": "•", "e": "\u02bd", "f": "\\"}
    ],
    "21-no-schema": [{"table": "t", "id": 1, "name": "x"}],
    "23-no-backslash-escapes": [
        {"table": "t", "id": 1, "e": r"x\n", "s": r"a\b"},
        {"table": "t", "id": 2, "e": r"c:\temp", "s": "z"},
    ],
}


@pytest.mark.parametrize("name", VALUES)
def test_values(name: str, tmp_path: Path):
    """Names, members and values are those of the server, without any schema and without a word."""
    assert rows_of(name, tmp_path) == (0, "", VALUES[name])


def test_row_versions(tmp_path: Path):
    """MariaDB's system versioning has two more columns in the log."""
    _, _, rows = rows_of("09f-system-versioning", tmp_path)
    assert list(rows[0]) == ["table", "id", "a", "row_start", "row_end"]
    assert rows[0]["row_end"] == "2038-01-19 03:14:07.999999"
    assert rows[1] == {"table": "u", "k": 5}


@pytest.mark.parametrize("text", ["0.0000000001", "1E-10", "1e-10", ".0000000001"])
def test_a_decimal_is_found_in_any_spelling(text: str, tmp_path: Path):
    """It is compared as a number."""
    assert rows_of("12-decimal", tmp_path, "--key", f"a={text}")[2] == VALUES["12-decimal"][1:]


@pytest.mark.parametrize("text", ["0", "0.0", "-0", "0E-10"])
def test_a_decimal_zero_is_found_in_any_spelling(text: str, tmp_path: Path):
    """Its sign does not count."""
    assert rows_of("12-decimal", tmp_path, "--key", f"a={text}")[2] == VALUES["12-decimal"][:1]


def test_signs_that_nothing_tells(tmp_path: Path):
    """Negative values are marked as doubtful: they may be large ones."""
    code, said, rows = rows_of("unsigned-without-definition", tmp_path)
    assert (code, rows) == (4, [{"table": "t", "@1": 1, "@2": -1, "@3": -1}])
    assert "table f.t: columns @2, @3: the log does not say which integers are unsigned" in said
    with pytest.warns(LogWarning, match="which integers are unsigned"):
        conflict.read_binlog(REPORTS / "unsigned-without-definition.binlog").to_arrow()


def test_changes_that_are_statements(tmp_path: Path):
    """Are counted."""
    code, said, rows = rows_of("15-statement-format", tmp_path)
    assert (code, rows) == (4, [])
    assert "3 changes are logged as statements and are not among the rows; the first is at" in said


UNDONE = "1 rollback is logged after the changes that were undone, which are among the rows as far as these files hold"
OPEN = "1 XA transaction is prepared, and neither committed nor rolled back in these files"


@pytest.mark.parametrize(
    ("name", "count", "said"),
    [
        ("xa.mysql", 6, f"{UNDONE} them; the first is at"),
        ("xa.mariadb", 6, f"{UNDONE} them; the first is at"),
        ("xa-compressed.mysql", 3, ""),
        ("rollback-compressed.mysql", 4, ""),
        ("savepoint.mariadb", 4, f"{UNDONE} them; the first is at"),
        ("rollback.mariadb", 2, f"{UNDONE} them; the first is at"),
    ],
)
def test_changes_that_were_rolled_back(name: str, count: int, said: str, tmp_path: Path):
    """
    Are among the rows of a log, and it is said.

    MySQL compresses no such transaction: what a rollback undoes in InnoDB tables it does not log, and what stays in
    those of MyISAM is a transaction of its own.

    Of XA transactions x1 was committed, x2 rolled back, x3 committed in one phase. MariaDB logs ROLLBACK TO a savepoint
    after what was changed since, and a ROLLBACK where the transaction created a temporary table.
    """
    code, found, rows = rows_of(name, tmp_path)
    assert (code, len(rows)) == (4 if said else 0, count)
    assert said in found
    assert OPEN not in found
    text = invoke("decode", "-r", tmp_path / "text", REPORTS / f"{name}.binlog")
    assert text == (0, "")  # which shows the statements


_COMPRESSED = "position 277: XA PREPARE X'7835'"


def test_a_transaction_that_is_only_prepared(tmp_path: Path):
    """Is said, too: here the files end before its commit; the second one is compressed."""
    cuts = [("xa.mysql", 1034, "position 917: XA PREPARE X'7831'"), ("xa-compressed.mysql", 476, _COMPRESSED)]
    for name, size, said in cuts:
        whole = (REPORTS / f"{name}.binlog").read_bytes()
        (tmp_path / "cut.binlog").write_bytes(whole[:size])
        code, found = invoke("decode", "--format", "json", tmp_path / "cut.binlog")
        assert code == 4
        assert f"{OPEN}; the first is at {tmp_path}/cut.binlog, {said},X'',1" in found


def test_statements_of_other_events(tmp_path: Path):
    """XA transactions, compressed statements and LOAD DATA are shown as text."""
    shown = {
        "xa.mysql": ["XA PREPARE X'7831',X'',1", "XA COMMIT X'7833',X'',1 ONE PHASE"],
        "compressed-statements.mariadb": [
            "insert into t values (60,'zzzzzzzzzzzz')",
            "alter table packed add w int first",
        ],
        "load.mysql": ["LOAD DATA INFILE 'load.csv' INTO TABLE `u` FIELDS TERMINATED BY ','"],
    }
    for name, statements in shown.items():
        out = tmp_path / name
        assert invoke("decode", "-r", out, REPORTS / f"{name}.binlog") == (0, "")
        lines = out.read_text(encoding="utf-8").splitlines()
        for statement in statements:
            assert any(line.startswith(statement) for line in lines), statement


def test_rows_beside_compressed_statements(tmp_path: Path):
    """Definitions in compressed statements are followed, and changes in them said."""
    code, found, rows = rows_of("compressed-statements.mariadb", tmp_path)
    assert (code, rows[1:]) == (4, [{"table": "packed", "id": 1, "v": 16 * "z"}])
    assert "2 changes are logged as statements and are not among the rows" in found


def test_moments_of_old_mariadb_servers(tmp_path: Path):
    """Of a size that the log does not tell are refused by name; other tables are read."""
    code, said, rows = rows_of("25-mariadb-old-temporal", tmp_path)
    assert (code, rows) == (2, [])
    assert "table m1.t, column a: time(3) in MariaDB's form from before 10.1 (mysql56_temporal_format=OFF)" in said
    code, said = invoke("decode", "-v", "-r", tmp_path / "text", REPORTS / "25-mariadb-old-temporal.binlog")
    assert (code, "holds -3230976, which is no TIME" in said) == (2, True)


def test_members_that_are_empty():
    """An ENUM with the member '' becomes a categorical column."""
    frame = conflict.read_binlog(REPORTS / "11-enum-empty.binlog")["v1.e1"].to_pandas()
    assert frame["after.a"].tolist() == ["", "Y"]
    assert frame["after.a"].dtype.name == "category"


def test_integers_whose_sign_changed():
    """Have a type that holds all values."""
    binlog = conflict.read_binlog(REPORTS / "20-types.binlog")
    table = binlog["v1.t"].to_arrow()
    assert [row["v"] for row in table["after"].to_pylist()] == [Decimal(-1), None, Decimal(18446744073709551615)]
    assert [row["v"] for row in binlog["v1.u"].to_arrow()["after"].to_pylist()] == [4294967295]
