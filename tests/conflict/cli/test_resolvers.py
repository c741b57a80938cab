"""Resolvers on the command line: what takes them, what they leave in a result, and what refuses them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import conflict
from conflict.cli.refusals import ExitCode
from conflict.resolvers.examples.sum_of_deltas import sum_of_deltas
from tests.conflict.cli.commands import invoke

ROWS = '[[conflict_function]]\nname = "NEWEST"\nwrite = "at least"\nupdate = "at least"\ndelete = "at least"\n'


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run whose updates of one row cross: A sets v = 1 and B sets v = 2, from 0."""
    folder = tmp_path_factory.mktemp("crossing") / "found"
    invoke("diverge", "--function", "NDB$EPOCH()", "--find", "lost", "--recording", folder)
    run = folder / "lost" / "run.toml"
    run.write_text(run.read_text().replace("NDB$EPOCH()", "sum_of_deltas()"))
    return run


def test_a_merge_in_a_result(recording: Path, tmp_path: Path) -> None:
    """It is an outcome, with what was written; counters and exceptions have nothing of it, and rows are those of it."""
    out = tmp_path / "result"
    code, output = invoke("resolve", recording, "--function", "sum_of_deltas", "--out", out)
    assert code == ExitCode.CONTRADICTED  # the binlogs were written under another function
    assert "What else became of changes, which is not what happened applier table merged" in output
    (outcome,) = [each for each in pq.read_table(out / "outcomes").to_pylist() if each["verdict"] == "MERGED"]
    assert (outcome["operation"], outcome["cause"]) == ("UPDATE_ROW", None)
    (merged,) = pq.read_table(out / "merged").to_pylist()
    assert [(each["name"], each["value"]) for each in merged["columns"]] == [("v", "3")]
    assert merged["source_epoch"] == outcome["source_epoch"]
    result = conflict.read_result(out)
    assert result.rows("A", "d.t").to_pylist() == [{"k": 1, "v": 3}]
    assert json.loads((out / "counters.json").read_text())["A"]["Ndb_conflict_fn_sum_of_deltas"] == 0
    assert result.run["inputs"]["resolvers"] == ["sum_of_deltas"]


def test_a_merge_in_a_story(recording: Path, tmp_path: Path) -> None:
    """It is told with its values, and the row stands as it left it; the resolver is found again."""
    result = conflict.resolve(recording, function=sum_of_deltas, out=tmp_path / "result")
    assert result.run["inputs"]["resolvers"] == ["conflict.resolvers.examples.sum_of_deltas:sum_of_deltas"]
    _, output = invoke("explain", tmp_path / "result", "--table", "d.t", "--key", "k=1")
    assert "A merges B's update (event 3)" in output
    assert "the update was applied with other values: v = 3. row on A then: k=1, v=3" in output


def test_bare_binlogs(recording: Path, tmp_path: Path) -> None:
    """Their function can be a resolver by name, which the drafted run knows from then on."""
    for name in "AB":
        (tmp_path / name).mkdir()
        source = recording.parent / f"{name}.binlog.000001"
        (tmp_path / name / "binlog.000001").write_bytes(source.read_bytes())
    schema = "--schema", recording.parent / "schema.sql"
    given = (tmp_path / "A", tmp_path / "B", *schema, "--conflict-fn", "d.t=last_writer()", "--out", tmp_path / "out")
    _, output = invoke("resolve", *given)
    assert "3 row changes, 1 conflict" in output
    assert 'rule = "last_writer"' in conflict.read_result(tmp_path / "out").run["inputs"]["text"]
    assert "last_writer() rejects" in output or "last_writer() does not do" in output


def test_formats_are_refused() -> None:
    """By `requirements` and `diverge`, for what the resolver says that it needs."""
    code, output = invoke("requirements", "--function", "sum_of_deltas", "--binlog-type", "8")
    assert code == ExitCode.REFUSED
    assert "every update lacks columns that it changes in its before image, where sum_of_deltas looks for it" in output
    code, output = invoke("diverge", "--function", "sum_of_deltas", "--binlog-type", "8")
    assert code == ExitCode.REFUSED
    assert "sum_of_deltas() is refused with binlog type 8" in output


def test_no_recording_of_what_no_server_runs(tmp_path: Path) -> None:
    """A schedule under a resolver is not written as one of servers."""
    code, output = invoke("diverge", "--function", "last_writer", "--recording", tmp_path / "new")
    assert (code, "no server runs last_writer" in output) == (ExitCode.REFUSED, True)


def test_check(recording: Path) -> None:
    """Needs the resolver, which a run file can name itself."""
    with_rule = recording.with_name("own.toml")
    with_rule.write_text(recording.read_text() + '\n[[conflict_function]]\nrule = "sum_of_deltas"\n')
    code, output = invoke("check", with_rule)
    assert code in (ExitCode.DONE, ExitCode.WARNED), output
    assert "sum_of_deltas()" in output


def test_models_take_rows_of_cells(tmp_path: Path) -> None:
    """A simulation runs them, and names them in the run file of its binlogs, which agree."""
    model = tmp_path / "model.toml"
    model.write_text(
        f'seconds = 2\nfunction = "NEWEST(x)"\nrecordcount = 20\n{ROWS}[workload]\ntransactions_per_second = 100\n'
    )
    assert conflict.simulate(model, write_binlogs=tmp_path / "binlogs").settled
    assert ROWS in (tmp_path / "binlogs" / "run.toml").read_text()
    result = conflict.resolve(tmp_path / "binlogs" / "run.toml", engine="reference")
    assert not result.run["contradicted_by_binlogs"]


def test_models_take_other_rules(tmp_path: Path) -> None:
    """By [[conflict_function]], by name, and as an option; a cluster's log of it would be of no server."""
    model, plain = tmp_path / "model.toml", tmp_path / "plain.toml"
    small = "seconds = 1\nrecordcount = 5\nbinlog_type = 7\n"
    model.write_text(f'function = "last_writer()"\n{small}[[conflict_function]]\nrule = "last_writer"\n')
    plain.write_text(small)
    printed = [invoke("simulate", model), invoke("simulate", plain, "--function", "last_writer")]
    assert printed[0] == printed[1]
    assert (printed[0][0], "conflicts" in printed[0][1]) == (ExitCode.DONE, True)
    code, output = invoke("simulate", model, "--out", tmp_path / "result")
    assert code == ExitCode.REFUSED
    assert "no server runs last_writer, so there are no binlogs of it; leave out --out and --write-binlogs" in output


def test_compare(recording: Path) -> None:
    """A rule is compared beside functions of the server, asked for or configured."""
    with_rule = recording.with_name("compared.toml")
    with_rule.write_text(recording.read_text().replace("sum_of_deltas()", "NDB$EPOCH()"))
    code, output = invoke("compare", with_rule, "--functions", "last_writer")
    assert (code, "last_writer()" in output) == (ExitCode.DONE, True)
    with_rule.write_text(recording.read_text() + '\n[[conflict_function]]\nrule = "sum_of_deltas"\n')
    code, output = invoke("compare", with_rule, "--functions", "NDB$EPOCH()")
    assert (code, "sum_of_deltas() *" in output) == (ExitCode.CONTRADICTED, True)  # written under another function


def test_the_bundled_recordings(tmp_path: Path) -> None:
    """`demo --cases` writes them, and says what takes them; a folder that is there is kept."""
    code, output = invoke("demo", "--cases", tmp_path / "cases")
    assert (code, "111 recordings of real clusters" in output) == (ExitCode.DONE, True)
    code, output = invoke("conformance", tmp_path / "cases" / "parse", "--engine", "reference")
    assert code == ExitCode.DONE, output
    assert invoke("demo", "--cases", tmp_path / "cases")[0] == ExitCode.REFUSED
