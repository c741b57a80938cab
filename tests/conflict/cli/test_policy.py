"""The policies of `ndb-conflict resolve`."""

from pathlib import Path

import pytest

from conflict.checking.check import refuse_by_policy
from conflict.checking.reasons import rules_out
from conflict.checking.subject import subject_of
from conflict.cli.refusals import ExitCode
from conflict.config.arguments import DeploymentPolicy
from conflict.config.run_file import load_run_file
from conflict.errors import ConfigurationError
from conflict.history.run import Run
from conflict.judge.case import ConflictCase
from tests.conflict.cli.commands import invoke
from tests.corpora import RECORDINGS


def test_a_function_that_the_manual_warns_of_is_refused_before_anything_is_read(max_run: Path, tmp_path: Path) -> None:
    """Nothing is written; the message names cluster, function and table, and says what would work."""
    out = tmp_path / "out"
    for file in max_run.parent.glob("*.binlog.*"):
        file.write_bytes(b"nothing")
    code, output = invoke("resolve", max_run, "--out", out, "--engine", "reference")
    assert code == ExitCode.REFUSED
    assert "A: NDB$MAX(x) with binlog_type 9 FULL_USE_UPDATE_MINIMAL on table cft.t1 is refused" in output
    assert "is refused by policy manual. If it was in force nevertheless, add --policy needs" in output
    assert "What would work from now on: binlog_type = 7 FULL_USE_UPDATE." in output
    assert not out.exists()


def test_of_a_column_that_does_not_exist_the_policy_says_nothing(max_run: Path, tmp_path: Path) -> None:
    """Under both policies, the column is the cause."""
    max_run.write_text(max_run.read_text().replace("NDB$MAX(x)", "NDB$MAX(z)"))
    outputs = {
        invoke("resolve", max_run, "--out", tmp_path / "out", "--engine", "reference", "--policy", policy)
        for policy in ("manual", "needs")
    }
    ((code, output),) = outputs
    assert code == ExitCode.REFUSED
    assert "Could not find resolve column z; columns that it can compare are x, of k, x, v, s." in output
    assert "manual" not in output


def test_policy_needs_resolves_the_same_run(max_run: Path, tmp_path: Path) -> None:
    """As the server would; the binlogs were written under another function, and contradict the result."""
    code, output = invoke("resolve", max_run, "--out", tmp_path / "out", "--engine", "reference", "--policy", "needs")
    assert code == ExitCode.CONTRADICTED
    assert "which NDB$MAX(x) does not do: another conflict function was in force" in output


def test_the_policy_leaves_refused_tables_and_stops_to_the_run() -> None:
    """A table that is not created, and an applier that would stop, are results."""
    for case in ("epoch/table_with_text_type7", "max/resolve_type_float_unsigned_type7", "max/probe_type3"):
        configuration = ConflictCase.load(RECORDINGS / "conflict" / case).configuration()
        refuse_by_policy(Run(configuration), DeploymentPolicy.MANUAL)


def test_policy_needs_refuses_nothing(max_run: Path) -> None:
    """Not even a function that can judge no update: its applier will stop, as the server's does."""
    max_run.write_text(max_run.read_text().replace("NDB$MAX(x)", "NDB$OLD(x)"))
    run = Run(load_run_file(max_run).configuration)
    arrivals = subject_of(run.configuration, DeploymentPolicy.NEEDS, run.setups.at_end).arrivals
    assert any(rules_out(reason) for arrival in arrivals for reason in arrival.reasons)
    refuse_by_policy(run, DeploymentPolicy.NEEDS)
    with pytest.raises(ConfigurationError, match="is refused by policy manual"):
        refuse_by_policy(run, DeploymentPolicy.MANUAL)
