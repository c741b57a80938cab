"""What `import conflict` gives: load, resolve, read."""

import json
import re
import subprocess
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import conflict
from conflict.config.arguments import ConflictFns
from conflict.results.glance import summary_of
from tests.conflict.cli.commands import invoke
from tests.corpora import DEMO

# What tells an outcome from others.
PLACE = ("applier", "source_epoch", "epoch", "group", "ordinal", "table", "key")


def test_a_run_is_resolved_and_read(tmp_path: Path):
    """With the recorded counters and rows of the demo, and figures at a glance."""
    result = conflict.resolve(DEMO / "run.toml", out=tmp_path / "result", engine="local")
    assert result.counters["A"]["Ndb_conflict_fn_epoch"] == 25  # recorded
    assert result.run["differing_rows"] == {"cft.t1": 0, "cft.t2": 0, "cft.plain": 1}
    assert (result.outcomes("A").num_rows, result.applied_epochs("B").num_rows) == (25, 16)
    assert result.rows("B", "cft.t1").num_rows == 2
    ends = {name: result.rows(name, "cft.plain") for name in "AB"}
    assert ends["A"].column_names == ends["B"].column_names == ["id", "x", "n"]
    assert (ends["A"].num_rows, ends["B"].num_rows) == (2, 2)  # recorded
    with pytest.raises(conflict.HistoryError, match=r"the result has no table cft.none; it has cft.t1"):
        result.rows("B", "cft.none")
    with pytest.raises(conflict.HistoryError, match=r"the result has no cluster C; it has A and B"):
        result.rows("C", "cft.t1")
    summary = result.summary
    assert (summary.changes, summary.converged, summary.conflicts, summary.contradicted) == (90, False, 25, 0)
    assert conflict.read_result(str(tmp_path / "result")).summary == summary
    assert "90 row changes, 25 conflicts; the clusters did not converge." in repr(result)
    assert re.search(r"A +cft\.t1 +13 +3 +0 +10 +6", repr(result))
    assert re.search(r"B +cft\.t2 +31 +29 +2 +0 +0", repr(result))
    assert result._repr_html_().count("<tr>") == 7 + 3 + 4  # what appliers did, causes, rows at the end


def test_rows_that_are_not_there(tmp_path: Path):
    """A table without rows has its columns; rows that nobody asked for are refused, not empty."""
    files = {name: DEMO / f"{name}.binlog.000001" for name in "AB"}
    schema = tmp_path / "schema.sql"
    schema.write_text(
        (DEMO / "schema.sql").read_text("utf-8") + "CREATE TABLE cft.unused (id INT PRIMARY KEY, n BIGINT UNSIGNED);"
    )
    whole = conflict.resolve(
        *files.values(), schema=schema, conflict_fn={"cft.t?": "NDB$EPOCH()"}, primary="server1", engine="local"
    )
    assert whole.rows("server1", "cft.unused").schema == pa.schema([("id", pa.int32()), ("n", pa.uint64())])
    without = conflict.resolve(DEMO / "run.toml", out=tmp_path / "result", engine="local", final_rows=False)
    with pytest.raises(conflict.HistoryError, match="the result was made without final rows"):
        without.rows("A", "cft.t1")


@pytest.mark.parametrize(
    "given",
    ["cft.t*=NDB$EPOCH()", "cft.t1=NDB$EPOCH(), cft.t2 = NDB$EPOCH()", ["cft.t1=NDB$EPOCH()", "cft.t2=NDB$EPOCH()"]],
)
def test_functions_as_on_the_command_line(given: str | list[str]):
    """A text, several with commas between, or a list: the demo's recorded counter."""
    schema = DEMO / "schema.sql"
    result = conflict.resolve(DEMO, schema=schema, conflict_fn=given, primary="server1", engine="local")
    assert result.counters["server1"]["Ndb_conflict_fn_epoch"] == 25  # recorded
    tables = conflict.check(schema=schema, conflict_fn=given, primary="server1").tables
    assert {each.table for each in tables if each.function is not None} == {"cft.t1", "cft.t2"}


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ("cft.t1", "cft.t1 is not understood"),
        (["cft.t2=NDB$EPOCH()", "cft.t1="], "cft.t1= is not understood"),
        ({"": "NDB$MAX(x)"}, "=NDB$MAX(x) is not understood"),
        ("cft.t1=NDB$MAX(x),cft.t2=NDB$MAX(x", "NDB$MAX(x, missing ')'"),
        ({"cft.t1": "NDB(x)"}, "NDB$MAX(x)"),
    ],
)
def test_wrong_functions_are_named(given: ConflictFns, wrong: str, tmp_path: Path):
    """By every function that takes them, as by the commands."""
    ingest = partial(conflict.ingest, out=tmp_path / "history")
    calls = [partial(each, DEMO) for each in (conflict.resolve, conflict.compare, conflict.workload, ingest)]
    for call in (*calls, conflict.check):
        with pytest.raises(conflict.ConfigurationError, match=re.escape(wrong)):
            call(schema=DEMO / "schema.sql", conflict_fn=given)
    texts = [f"{table}={text}" for table, text in given.items()] if isinstance(given, dict) else given
    options = [option for text in ([texts] if isinstance(texts, str) else texts) for option in ("--conflict-fn", text)]
    code, said = invoke("resolve", DEMO, "--schema", DEMO / "schema.sql", *options, "--out", tmp_path / "out")
    assert (code, wrong in said) == (2, True)
    assert not [*tmp_path.iterdir()]


def test_parts_of_a_result_for_all_clusters():
    """Outcomes and exceptions with a column that says whose they are; an exceptions table by its table's name."""
    result = conflict.resolve(
        *(DEMO / f"{name}.binlog.000001" for name in "AB"),
        schema=DEMO / "schema.sql",
        conflict_fn={"cft.t*": "NDB$EPOCH()"},
        primary="server1",
    )
    assert set(result.conflicts["applier"].to_pylist()) == {"server1"}
    assert result.conflicts.num_rows == 25
    refreshes = result.outcomes().filter(pc.field("refresh"))
    assert refreshes.num_rows == 18  # Ndb_conflict_refresh_op_count of the other cluster, recorded
    assert set(refreshes["applier"].to_pylist()) == {"server2"}
    found = result.exceptions("cft.t1")
    assert (found.num_rows, set(found["cluster"].to_pylist())) == (10, {"server1"})  # recorded
    assert result.exceptions("cft.t1$EX", "server1").num_rows == 10
    assert result.exceptions("cft.t1", "server2").num_rows == 0


def test_tables_by_their_short_names_and_names_that_nothing_has(tmp_path: Path):
    """One rule for all that takes a table or a cluster: nothing is empty because its name is wrong."""
    result = conflict.resolve(DEMO / "run.toml", out=tmp_path / "result", engine="local")
    assert [result.exceptions(name).num_rows for name in ("t1", "t1$EX", "cft.t1$EX")] == [10] * 3  # recorded
    assert result.exceptions("t2", "A").num_rows == result.outcomes("A", "t2").num_rows == 15  # recorded
    assert result.rows("B", "t1").num_rows == 2  # recorded
    for wrong in (
        lambda: result.exceptions("cft.t9"),
        lambda: result.exceptions("cft.t9$EX", "A"),
        lambda: result.outcomes("A", "t9"),
        lambda: result.rows("B", "t9"),
        lambda: result.conflicts_by("table", table="t9"),
        lambda: conflict.explain(result, table="t9", key="1"),
    ):
        with pytest.raises(conflict.HistoryError, match=r"the result has no table (cft\.)?t9.*; it has cft\.t1"):
            wrong()
    for wrong in (
        lambda: result.outcomes("north"),
        lambda: result.applied_epochs("north"),
        lambda: result.exceptions("t1", "north"),
        lambda: result.rows("north", "t1"),
    ):
        with pytest.raises(conflict.HistoryError, match="the result has no cluster north; it has A and B"):
            wrong()


def test_names_in_a_result_are_no_markup():
    """A table can have any name; control characters are shown as escapes."""
    run = json.loads(json.dumps(conflict.resolve(DEMO / "run.toml").run).replace("cft.t1", r"d.<b>\u001b"))
    shown = summary_of({**run, "compared_with_binlogs": 0})._repr_html_()
    assert r">d.&lt;b&gt;\x1b</td>" in shown
    assert "<b>" not in shown.replace("<b>B → A</b>", "")
    assert "Nothing is checked" in shown


@pytest.mark.parametrize("sources", [(), (conflict.load_run_file(DEMO / "run.toml"), DEMO)])
def test_a_run_file_is_given_alone(sources: tuple[object, ...]):
    """Beside it, binlogs would say the same twice."""
    with pytest.raises(conflict.ConfigurationError, match="run file"):
        conflict.resolve(*sources)


def test_a_folder_without_a_result_is_refused(tmp_path: Path):
    """By its name."""
    with pytest.raises(conflict.HistoryError, match="there is no result in"):
        conflict.read_result(str(tmp_path))


def test_a_result_and_what_it_is_made_of_are_told_apart(tmp_path: Path):
    """Who takes binlogs says of a result what it is, and who takes a result of binlogs and of a run file."""
    out = tmp_path / "result"
    conflict.resolve(DEMO / "run.toml", out=out, engine="local")
    for takes_binlogs in (conflict.compare, conflict.resolve, conflict.decode, conflict.sizes, conflict.workload):
        with pytest.raises(conflict.ConfigurationError, match="result is a result, not binlogs; give the run file or"):
            takes_binlogs(out)
    for given, what in (("run.toml", "a run file"), ("A.binlog.000001", "a binlog"), ("", "a folder of binlogs")):
        for takes_result in (conflict.read_result, conflict.conflicts, partial(conflict.report, out=tmp_path / "page")):
            with pytest.raises(conflict.HistoryError, match=f"is {what}, not a result; resolve it with"):
                takes_result(str(DEMO / given))
    for given in ("A.binlog.000001", ""):
        with pytest.raises(conflict.HistoryError, match="not a result; resolve it with"):
            conflict.explain_differences(DEMO / given)


def test_what_commands_wrote_is_told_apart(tmp_path: Path):
    """A result, a comparison or a History, given for something else, is called what it is, with what reads it."""
    made = {name: tmp_path / name for name in ("result", "comparison", "History")}
    conflict.resolve(DEMO / "run.toml", out=made["result"], keep_history=made["History"], engine="local")
    conflict.compare(DEMO / "run.toml", functions="OVERWRITE", out=made["comparison"])
    readers = {"result": ("explain", "report"), "comparison": ("report",), "History": ("resolve", "--history")}
    rewrite = ("--row-image", "full", "--out", tmp_path / "new")
    for name, folder in made.items():
        for wanted, command in (("a run file", ("check", folder)), ("a binlog file", ("rewrite", folder, *rewrite))):
            code, said = invoke(*command)
            assert code == 2
            assert all(text in said for text in (f"a {name}", f"not {wanted}", *readers[name])), said
        takers = [conflict.check, conflict.decode] + [conflict.read_result] * (name != "result")
        for takes_something_else in takers:
            with pytest.raises(conflict.ConflictError, match=f"{name} is a {name}") as caught:
                takes_something_else(folder)
            assert all(text in str(caught.value) for text in readers[name])
    assert not (tmp_path / "new").exists()


def test_every_name_can_be_had_and_none_loads_more_than_it_needs():
    """Importing the package loads neither Spark nor the compiled kernels."""
    assert [name for name in conflict.__all__ if not hasattr(conflict, name)] == []
    code = "import sys, json, conflict; conflict.load_run_file; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"pyspark", "numba", "pyarrow"} & set(json.loads(done.stdout)) == set()
    with pytest.raises(AttributeError, match="module conflict has no attribute nothing"):
        _ = conflict.nothing


def test_outcomes_of_a_table_have_typed_keys(tmp_path: Path):
    """They find the final rows; a table that is not there is refused."""
    result = conflict.resolve(DEMO / "run.toml", out=tmp_path / "result", engine="reference")
    found = result.outcomes(table="cft.t2")
    assert result.outcomes("A", "cft.t2").num_rows == 15  # recorded
    keys = {tuple(key.values()) for key in found["key_values"].to_pylist()}
    assert {(row["a"], row["b"]) for row in result.rows("A", "cft.t2").to_pylist()} <= keys
    with pytest.raises(
        conflict.HistoryError, match=r"the result has no table cft.t3 \(did you mean cft.t2\?\); it has cft.t1"
    ):
        result.outcomes(table="cft.t3")


def test_conflicts_are_counted(tmp_path: Path):
    """As the command does; an exceptions row names the outcome with the same cause."""
    result = conflict.resolve(DEMO / "run.toml", out=tmp_path / "result", engine="reference")
    assert [(row["table"], row["conflicts"]) for row in result.conflicts_by("table").to_pylist()] == [
        ("cft.t2", 15),
        ("cft.t1", 10),
    ]
    assert result.conflicts_by("hour", since=datetime(2026, 11, 21, tzinfo=UTC)).num_rows == 0
    outcomes = {tuple(row[name] for name in PLACE) for row in result.conflicts.to_pylist()}
    named = [row["NDB$outcome"] for table in ("t1", "t2") for row in result.exceptions(f"cft.{table}").to_pylist()]
    assert len(named) == len(outcomes) == 25
    assert {tuple(place[name] for name in PLACE) for place in named} == outcomes
