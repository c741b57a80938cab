"""`ndb-conflict check`: a whole run, from its run file."""

import json
from pathlib import Path

from conflict.cli.common import ExitCode
from tests.conflict.cli.commands import invoke
from tests.corpora import DEMO


def test_every_table_of_the_demo_is_usable_on_both_clusters(tmp_path: Path) -> None:
    """The table on the terminal and the JSON file have a row per cluster and table."""
    file = tmp_path / "check.json"
    code, output = invoke("check", DEMO / "run.toml", "--json", file)
    assert code == 0
    assert "A cft.t1 9 NDB$EPOCH(6) cft.t1$EX ok" in output
    assert "B cft.t1 9 none none ok" in output
    assert "Every conflict function can judge every change that arrives." in output
    tables = json.loads(file.read_text())["tables"]
    assert [(each["cluster"], each["table"], each["status"]) for each in tables] == [
        (cluster, f"cft.{table}", "ok") for cluster in "AB" for table in ("t1", "t2", "plain")
    ]


def test_check_reads_no_binlog(max_run: Path) -> None:
    """Files that are not binlogs change nothing."""
    for file in max_run.parent.glob("*.binlog.*"):
        file.write_bytes(b"nothing")
    assert invoke("check", max_run, "--policy", "needs")[0] == 0


def test_a_function_that_the_policy_refuses_gives_exit_code_2(max_run: Path) -> None:
    """The output says why, and what would work; the other policy allows it."""
    code, output = invoke("check", max_run)
    assert code == ExitCode.REFUSED
    assert "A cft.t1 9 NDB$MAX(x) cft.t1$EX refused" in output
    assert "A, cft.t1: The manual says that NDB$OLD and NDB$MAX do not work correctly" in output
    assert "What would work: binlog_type = 7 FULL_USE_UPDATE." in output
    assert "Refused: 2 of 6." in output
    assert "Only one of the clusters has the function" in output
    assert invoke("check", max_run, "--policy", "needs")[0] == 0


def test_limits_are_no_refusal(max_run: Path) -> None:
    """A function that cannot judge some changes is usable, and the exit code says that there are warnings."""
    max_run.write_text(max_run.read_text().replace("binlog_type = 9", "binlog_type = 6"))
    code, output = invoke("check", max_run)
    assert code == ExitCode.WARNED
    assert "Nothing is refused, but 2 of 6 have limits." in output


def test_a_conflict_fn_that_cannot_be_parsed_is_refused(max_run: Path) -> None:
    """As the CREATE TABLE would be."""
    max_run.write_text(max_run.read_text().replace("NDB$MAX(x)", "NDB$MAX(x"))
    code, output = invoke("check", max_run)
    assert code == ExitCode.REFUSED
    assert "missing ')'" in output


def test_a_user_s_function_is_usable_under_any_policy(max_run: Path) -> None:
    """The manual does not name it; its author says what it needs."""
    max_run.write_text(max_run.read_text().replace("NDB$MAX(x)", "at_least(x)"))
    code, output = invoke("check", max_run, "--function", "docs.examples.at_least:at_least")
    assert code == 0
    assert "at_least(x)" in output
    assert "does not say which images it needs" in output


def test_the_other_cluster_must_log_transaction_ids(max_run: Path) -> None:
    """For a function that judges transactions, the ids of the cluster count whose changes arrive."""
    text = max_run.read_text().replace("NDB$MAX(x)", "NDB$EPOCH_TRANS()")
    for cluster, code in (("A", 0), ("B", ExitCode.REFUSED)):
        head = f"[clusters.{cluster}]\n"
        max_run.write_text(text.replace(head, f'{head}ndb_log_transaction_id = "OFF"\n'))
        assert invoke("check", max_run)[0] == code
