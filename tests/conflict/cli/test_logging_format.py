"""`ndb-conflict logging`."""

import json
from pathlib import Path

from typer.testing import CliRunner

from conflict.cli.app import app
from conflict.cli.refusals import ExitCode
from tests.conflict.cli.commands import invoke


def test_a_statement_in_every_format() -> None:
    """With the server's warning, its number and its name."""
    code, output = invoke("logging", "INSERT INTO t VALUES (RAND())", "--engine", "innodb")
    assert code == ExitCode.DONE
    assert "STATEMENT ROW MIXED" in output
    assert "statement row row" in output
    assert "1 STATEMENT: Note 1592 ER_BINLOG_UNSAFE_STATEMENT, SYSTEM_FUNCTION:" in output


def test_a_file_with_its_schema_as_json(tmp_path: Path) -> None:
    """One entry per statement, with outcomes, messages and what is not known."""
    schema, file, out = (tmp_path / name for name in ("schema.sql", "statements.sql", "out.json"))
    schema.write_text("CREATE DATABASE d; USE d; CREATE TABLE t (a INT) ENGINE=NDB;")
    file.write_text("USE d;\nINSERT INTO t VALUES (1); DELETE FROM t LIMIT 1;\n")
    code, output = invoke("logging", file, "--schema", schema, "--format", "MIXED", "--json", out)
    assert code == ExitCode.DONE, output
    assert "3 MIXED: not known: do rows change?" in output
    use, insert, delete = json.loads(out.read_text("utf-8"))["statements"]
    assert [each["statement"] for each in (use, insert, delete)] == [
        "USE d",
        "INSERT INTO t VALUES (1)",
        "DELETE FROM t LIMIT 1",
    ]
    assert insert["formats"]["MIXED"]["outcomes"][0]["logged"] == ["row"]
    assert insert["formats"]["MIXED"]["known"]
    assert [outcome["logged"] for outcome in delete["formats"]["MIXED"]["outcomes"]] == [["row"], []]
    assert delete["formats"]["MIXED"]["unknown"] == ["do rows change?"]


def test_the_standard_input() -> None:
    """With ``-``; a refused statement shows the error."""
    text = "SET transaction_isolation = 'READ-COMMITTED'; SET autocommit = 1; INSERT INTO t VALUES (1);"
    done = CliRunner().invoke(app, ["logging", "-", "--format", "STATEMENT", "--engine", "INNODB"], input=text)
    assert done.exit_code == ExitCode.DONE
    assert "refused" in done.output
    assert "Error 1665 ER_BINLOG_STMT_MODE_AND_ROW_ENGINE" in " ".join(done.output.split())


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """A missing file, no statement, text that is no SQL, and an output that is an input."""
    file = tmp_path / "a.sql"
    file.write_text("SELECT 1")
    for arguments, message in (
        (["nosuch.sql"], "nosuch.sql: No such file or directory"),
        ([""], "there is no statement"),
        (["SELECT 'a"], "cannot be read as SQL"),
        ([file, "--json", file], "is an input of this command"),
    ):
        code, output = invoke("logging", *arguments)
        assert (code, message in output) == (ExitCode.REFUSED, True), output


def test_a_statement_that_is_nested_too_deeply_is_not_known() -> None:
    """The statements around it are."""
    deep = f"SELECT {'(' * 5000}1{')' * 5000}"
    code, output = invoke("logging", f"{deep}; INSERT INTO t VALUES (1)", "--format", "ROW", "--engine", "innodb")
    assert code == ExitCode.DONE
    assert "it is nested too deeply to be read" in output
    assert "2 statement: INSERT INTO t VALUES (1) ROW: row" in output
