"""`ndb-conflict requirements`: one answer, or a table of them."""

import json
import re
from pathlib import Path

import pytest

from conflict.cli.refusals import ExitCode
from tests.conflict.cli.commands import invoke
from tests.corpora import DEMO

SCHEMA = DEMO / "schema.sql"


def test_without_options_all_functions_and_types_are_shown(tmp_path: Path) -> None:
    """Each mark is explained, and the JSON file has every answer."""
    file = tmp_path / "answers.json"
    code, output = invoke("requirements", "--json", file)
    assert code == 0
    assert "NDB$MAX_DEL_WIN_INS U? U? ok U? U? ok refused refused" in output
    assert "D!: a delete is logged without the value that the function compares" in output
    assert "binlog_type 0 DEFAULT (by the server options as 2 UPDATED_ONLY)" in output
    document = json.loads(file.read_text())
    assert (document["policy"], len(document["answers"])) == ("manual", 9 * 8)


def test_a_type_can_be_named_and_only_the_marks_shown_are_explained() -> None:
    """The name is that of the manual, without regard to case."""
    code, output = invoke("requirements", "--binlog-type", "updated_only_minimal", "--policy", "needs")
    assert code == 0
    assert "NDB$MAX U? D!" in output
    assert "W!" not in output


def test_a_function_alone_is_shown_under_all_types() -> None:
    """As one row of the table."""
    assert "NDB$EPOCH W! W! W! ok ok ok ok ok" in invoke("requirements", "--function", "NDB$EPOCH(3)")[1]


def test_a_function_and_a_type_give_the_answer_in_full(tmp_path: Path) -> None:
    """Status, reasons, what arrives, what would work; of a table of a schema."""
    file = tmp_path / "answer.json"
    arguments = ("--function", "NDB$OLD(x)", "--binlog-type", 9, "--schema", SCHEMA, "--table", "t2")
    code, output = invoke("requirements", *arguments, "--json", file)
    assert code == 2
    assert "on table cft.t2 (policy manual) is refused." in output
    assert "refused NDB-E015 a function and a binlog type" in output
    assert re.search(r"delete DELETE_ROW a, b, d, x, f, w - is judged", output)
    assert "What would work, the smallest change first binlog_type = 7 FULL_USE_UPDATE" in output
    (answer,) = json.loads(file.read_text())["answers"]
    assert (answer["status"], answer["nearest"]) == ("refused", [["binlog_type = 7 FULL_USE_UPDATE"]])
    assert [(reason["kind"], reason["error"]) for reason in answer["reasons"]] == [
        ("POLICY", None),
        ("NO_UPDATE", 1296),
    ]
    assert answer["changes"][3]["before"] == ["a", "b", "d", "x", "f", "w"]


def test_roles_transaction_ids_and_server_options_count() -> None:
    """They are options of the command."""
    arguments = ("requirements", "--function", "NDB$EPOCH2_TRANS()", "--binlog-type", 0, "--role", "NONE")
    _, output = invoke(*arguments, "--no-transaction-ids", "--option", "ndb_log_update_as_write=OFF")
    assert "needs ndb_applier_conflict_role" in output
    assert "logs no transaction ids" in output
    assert "as 6 UPDATED_ONLY_USE_UPDATE" in output


def test_where_no_setting_helps_the_answer_says_so(tmp_path: Path) -> None:
    """A unique key is compared under no setting."""
    schema = tmp_path / "schema.sql"
    schema.write_text("CREATE TABLE t (k INT PRIMARY KEY, x INT UNSIGNED, v INT UNIQUE);")
    output = invoke("requirements", "--function", "NDB$MAX(x)", "--binlog-type", 7, "--schema", schema)[1]
    assert "is usable, but" in output
    assert "warning NDB-E041 a further unique key (v) The unique key on v" in output
    assert "No other setting helps." in output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--function", "NDB$MOST(x)"], "unknown conflict resolution function"),
        (["--binlog-type", "11"], "binlog_type '11' is not known; there are 0 DEFAULT"),
        (["--table", "t1"], "give --schema, too"),
        (["--schema", SCHEMA, "--table", "t1"], "--schema needs --function"),
        (["--schema", SCHEMA, "--function", "NDB$MAX(x)"], "--table must name one of cft.t1, cft.t1$EX, cft.t2"),
        (["--option", "ndb_log_update_minimal=MAYBE"], "it can be ON or OFF"),
        (["--option", "ndb_log_updates=ON"], "ndb_log_updates is unknown"),
    ],
)
def test_unusable_input_is_refused(arguments: list[object], words: str) -> None:
    """With exit code 2, and a message that says what to change."""
    code, output = invoke("requirements", *arguments)
    assert code == ExitCode.REFUSED
    assert words in output
