"""`ndb-conflict check`: a configuration from a run file, or from options."""

import json
from pathlib import Path

import pytest

import conflict
from conflict.cli.refusals import ExitCode
from conflict.errors import ConfigurationError
from tests.conflict.cli.commands import invoke
from tests.corpora import DEMO
from tests.layers import ROOT

EXAMPLE = ROOT / "docs/examples/check"


def test_the_demo_has_notes_alone(tmp_path: Path) -> None:
    """The table on the terminal and the JSON file have every table; notes give exit code 0."""
    file = tmp_path / "check.json"
    code, output = invoke("check", DEMO / "run.toml", "--json", file)
    assert code == ExitCode.DONE
    assert "cft.t1 A 9 NDB$EPOCH(6) nothing yes" in output
    assert "cft.t1 B 9 none none" in output
    assert "0 refused, 0 warnings, 4 notes." in output
    document = json.loads(file.read_text())
    assert (document["policy"], document["worst"]) == ("manual", "note")
    assert [(each["cluster"], each["table"], each["function"], each["created"]) for each in document["tables"]] == [
        (cluster, f"cft.{table}", "NDB$EPOCH(6)" if (cluster, table) in {("A", "t1"), ("A", "t2")} else None, True)
        for cluster in "AB"
        for table in ("t1", "t2", "plain")
    ]
    assert {each["code"]: each["places"] for each in document["findings"]}["NDB-E038"] == [
        {"cluster": "A", "table": "cft.t1"},
        {"cluster": "A", "table": "cft.t2"},
    ]


def test_tables_without_a_database_are_those_of_the_rows(max_run: Path) -> None:
    """The rows of mysql.ndb_replication name the database, so none of them is said to match no table."""
    before = invoke("check", max_run)
    schema = max_run.parent / "schema.sql"
    schema.write_text(schema.read_text().replace("USE cft;", ""))
    assert invoke("check", max_run) == before
    max_run.write_text(max_run.read_text().replace('db = "cft"', 'db = "c%"'))
    assert "c% matches no database of the schema" in invoke("check", max_run)[1]


def test_check_needs_no_binlog(max_run: Path) -> None:
    """Binlogs that are gone change nothing; the run file need not even name them."""
    for file in max_run.parent.glob("*.binlog.*"):
        file.unlink()
    code, output = invoke("check", max_run, "--policy", "needs")
    max_run.write_text(max_run.read_text().replace('binlogs = ["A.binlog.*"]\n', ""))
    assert invoke("check", max_run, "--policy", "needs") == (code, output)
    assert code == ExitCode.WARNED


def test_what_the_manual_advises_against_is_a_warning(max_run: Path) -> None:
    """The finding says what would work; the policy of the server leaves it out."""
    code, output = invoke("check", max_run)
    assert code == ExitCode.WARNED
    assert "NDB-E015" in output
    assert "The manual says that NDB$OLD and NDB$MAX do not work correctly" in output
    assert "UPDATE mysql.ndb_replication SET binlog_type = 7 WHERE" in output
    assert "NDB-E015" not in invoke("check", max_run, "--policy", "needs")[1]


def test_what_the_server_refuses_gives_exit_code_2(max_run: Path) -> None:
    """As the CREATE TABLE would fail, with its error."""
    max_run.write_text(max_run.read_text().replace("NDB$MAX(x)", "NDB$MAX(x"))
    code, output = invoke("check", max_run)
    assert code == ExitCode.REFUSED
    assert "refused NDB-E001" in output
    assert "missing ')'" in output
    assert "not created" in output


def test_a_user_s_function_is_usable_under_any_policy(max_run: Path) -> None:
    """The manual does not name it; its author says what it needs."""
    max_run.write_text(max_run.read_text().replace("NDB$MAX(x)", "at_least(x)"))
    _, output = invoke("check", max_run, "--function", "docs.examples.at_least:at_least")
    assert "at_least(x) nothing" in output
    assert "NDB-E015" not in output


def test_options_amount_to_a_run_file(tmp_path: Path) -> None:
    """The same findings for the same files, clusters named by the options."""
    files = [tmp_path / "run.json", tmp_path / "options.json"]
    run = invoke("check", EXAMPLE / "run.toml", "--json", files[0])
    options = invoke(
        *("check", "--schema", EXAMPLE / "schema.sql", "--ndb-replication", EXAMPLE / "ndb_replication.sql"),
        *("--variables", f"london={EXAMPLE / 'london.cnf'}", "--variables", f"paris={EXAMPLE / 'paris.txt'}"),
        *("--config-ini", f"london={EXAMPLE / 'config.ini'}", "--config-ini", f"paris={EXAMPLE / 'config.ini'}"),
        *("--json", files[1]),
    )
    assert run == options
    assert files[0].read_text() == files[1].read_text()
    assert run[0] == ExitCode.REFUSED


def test_the_quickest_start() -> None:
    """Definitions and a function; nothing is known of the servers, so their defaults count."""
    asked = ("check", "--schema", EXAMPLE / "schema.sql", "--conflict-fn", "shop.o*=NDB$EPOCH()")
    code, output = invoke(*asked)
    assert (code, "say which cluster it is: --primary server1 or --primary server2" in output) == (
        ExitCode.REFUSED,
        True,
    )
    code, output = invoke(*asked, "--primary", "server1")
    assert code == ExitCode.WARNED
    assert "shop.orders server1 0 NDB$EPOCH(6) W! none" in output
    assert "NDB-E014" in output


def test_clusters_without_a_name_are_the_servers_of_the_rows(tmp_path: Path) -> None:
    """Each is named after its server, and has the functions of its rows; one that variables name keeps that name."""
    rows, variables = tmp_path / "rows.csv", tmp_path / "my.cnf"
    rows.write_text(
        "db,table_name,server_id,binlog_type,conflict_fn\nshop,orders,12,7,\\N\nshop,orders,11,7,NDB$EPOCH()\n"
    )
    variables.write_text("[mysqld]\nserver-id=12\n")
    asked = ("check", "--schema", EXAMPLE / "schema.sql", "--ndb-replication", rows)
    _, output = invoke(*asked)
    assert "shop.orders server11 7 NDB$EPOCH(6)" in output
    assert "shop.orders server12 7 none" in output
    _, output = invoke(*asked, "--variables", f"east={variables}")
    assert "shop.orders east 7 none" in output
    assert "shop.orders server11 7 NDB$EPOCH(6)" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give a run file, or --schema"),
        ((EXAMPLE / "run.toml", "--primary", "london"), "is a run file; put the other arguments into it"),
        (("--variables", "london"), "--variables london is not understood; give CLUSTER=FILE"),
        (
            ("--schema", EXAMPLE / "schema.sql", "--primary", "C"),
            "--primary C is no cluster; they are server1 and server2",
        ),
        (
            ("--schema", EXAMPLE / "schema.sql", *(f"--config-ini={name}={EXAMPLE / 'config.ini'}" for name in "ABC")),
            "3 clusters (A, B, C) need a run file",
        ),
        (("--schema", EXAMPLE / "schema.sql", "--variables", f"A={EXAMPLE / 'schema.sql'}"), "holds no variables"),
    ],
)
def test_refused_input(arguments: tuple[object, ...], message: str) -> None:
    """A sentence says what to give."""
    code, output = invoke("check", *arguments)
    assert (code, message in output) == (ExitCode.REFUSED, True), output


def test_the_function_for_python() -> None:
    """`conflict.check` gives the same report, as rows."""
    report = conflict.check(EXAMPLE / "run.toml")
    same = conflict.check(
        schema=EXAMPLE / "schema.sql",
        ndb_replication=EXAMPLE / "ndb_replication.sql",
        variables={"london": EXAMPLE / "london.cnf", "paris": EXAMPLE / "paris.txt"},
        config_ini={"london": EXAMPLE / "config.ini", "paris": EXAMPLE / "config.ini"},
    )
    assert same.rows == report.rows
    assert {(row["code"], row["cluster"], row["table"]) for row in report.rows if row["severity"] == "refused"} == {
        ("NDB-E004", "london", "shop.notes"),
        ("NDB-E004", "paris", "shop.notes"),
    }
    with pytest.raises(ConfigurationError, match="is a run file; put the other arguments into it"):
        conflict.check(EXAMPLE / "run.toml", primary="london")
