"""`ndb-conflict resolve` on a part of the bundled demo, and with the rows that its tables held at the start."""

import json
import shutil
from pathlib import Path

import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from ndb_formats.binlog_reader import read_headers
from ndb_formats.constants import EventType
from tests.conflict.cli.commands import invoke
from tests.corpora import DEMO

LAST, NEXT = 5321464479746, 5321464479747  # two epochs of A, one after the other
TABLES = ("t1", "t2", "plain")


def resolve(run_file: Path, out: Path, *options: str) -> tuple[dict[str, object], str]:
    """Resolve with the reference engine; return run.json and what was printed."""
    code, output = invoke("resolve", run_file, "--out", out, "--engine", "reference", *options)
    assert code == 0, output
    return json.loads((out / "run.json").read_text()), output


def rows(out: Path, cluster: str, table: str) -> list[dict[str, object]]:
    """Return the final rows of a table."""
    folder = out / f"rows/{cluster}/cft.{table}"
    return sorted(pq.read_table(folder).to_pylist(), key=str) if folder.exists() else []


def inserts(table: str, found: list[dict[str, object]]) -> str:
    """Return the statement of a dump that makes some rows."""
    rows = ", ".join(f"({', '.join(map(literal, row.values()))})" for row in found)
    return f"INSERT INTO `{table}` VALUES {rows};\n"


def literal(value: object) -> str:
    """Return a value in SQL; texts of the demo hold no quotes."""
    return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)


@pytest.mark.parametrize("form", ["parquet", "csv", "sql"])
def test_rows_at_the_start_complete_the_rest(form: str, tmp_path: Path) -> None:
    """What A held after an epoch, given as files, and the rest of the logs make the final rows of the whole."""
    demo = tmp_path / "demo"
    shutil.copytree(DEMO, demo)
    resolve(DEMO / "run.toml", tmp_path / "first", f"--stop-epoch=A={LAST}")
    held = {table: rows(tmp_path / "first", "A", table) for table in TABLES}
    assert all(held.values())
    for table in TABLES:
        found = pq.read_table(tmp_path / f"first/rows/A/cft.{table}")
        if form == "parquet":
            pq.write_table(found, demo / f"cft.{table}.parquet")
        elif form == "csv":
            pc.write_csv(found, demo / f"cft.{table}.csv", pc.WriteOptions(quoting_style="none"))
    (demo / "rows.sql").write_text("".join(map(inserts, held, held.values())))
    pattern = "rows.sql" if form == "sql" else f"cft.*.{form}"
    text = (demo / "run.toml").read_text()
    given = f'binlogs = ["A.binlog.*"]\nrows = "{pattern}"\nrows_epoch = {LAST}'
    (demo / "run.toml").write_text(text.replace('binlogs = ["A.binlog.*"]', given))
    resolve(DEMO / "run.toml", tmp_path / "whole")
    run, output = resolve(demo / "run.toml", tmp_path / "rest")
    assert run["starts_in_the_middle"]["A"] == NEXT  # type: ignore[index]
    assert "A" not in run["not_known"]  # type: ignore[operator]
    assert {table: rows(tmp_path / "rest", "A", table) for table in TABLES} == {
        table: rows(tmp_path / "whole", "A", table) for table in TABLES
    }
    assert "start in the middle" in output


def test_a_part_is_resolved_by_the_columnar_engine(tmp_path: Path) -> None:
    """Itself, and with the rows and counters that the reference engine finds."""
    for engine in ("reference", "local"):
        asked = ("--engine", engine, "--start-epoch", f"A={NEXT}")
        code, output = invoke("resolve", DEMO / "run.toml", "--out", tmp_path / engine, *asked)
        assert code == 0, output
        assert json.loads((tmp_path / engine / "run.json").read_text())["engine"] == engine
    first, second = (json.loads((tmp_path / engine / "counters.json").read_text()) for engine in ("reference", "local"))
    assert first == second
    for cluster in "AB":
        for table in TABLES:
            assert rows(tmp_path / "local", cluster, table) == rows(tmp_path / "reference", cluster, table)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--start-epoch", "C=5"], "the run has no cluster C; it has A and B"),
        (["--start-epoch", "A=x"], "give CLUSTER=EPOCH"),
        (["--start-epoch", "A=9999999999999"], "cluster A has no epoch between"),
        (["--start-datetime", "2999-01-01"], "cluster A has no epoch between"),
    ],
)
def test_a_part_that_does_not_exist_is_refused(options: list[str], complaint: str, tmp_path: Path) -> None:
    """The message says what can be given."""
    code, output = invoke("resolve", DEMO / "run.toml", "--out", tmp_path / "out", "--engine", "reference", *options)
    assert (code, complaint in " ".join(output.split())) == (2, True), output


def without_beginning(path: Path, part: float) -> None:
    """Leave out a part of the transactions of a binlog, as if it had been rotated and the file before were purged."""
    starts = [at for at, header in read_headers(path) if header.type_code == EventType.ANONYMOUS_GTID_LOG_EVENT]
    log = path.read_bytes()
    path.write_bytes(log[: starts[0]] + log[starts[int(len(starts) * part)] :])


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_a_log_of_which_the_first_files_are_purged_starts_in_the_middle(engine: str, tmp_path: Path) -> None:
    """Without `start`, the logs show it: an applier applied epochs that are older than the other cluster's log."""
    shutil.copytree(DEMO, tmp_path / "demo")
    for cluster, part in (("A", 0.4), ("B", 0.6)):
        without_beginning(tmp_path / f"demo/{cluster}.binlog.000001", part)
    code, output = invoke("resolve", tmp_path / "demo/run.toml", "--out", tmp_path / "rest", "--engine", engine)
    assert code == 0, output
    run = json.loads((tmp_path / "rest/run.json").read_text())
    assert set(run["starts_in_the_middle"]) == {"A", "B"}
    assert run["engine"] == engine
    resolve(DEMO / "run.toml", tmp_path / "whole")
    for cluster in ("A", "B"):
        for table in TABLES:
            whole = rows(tmp_path / "whole", cluster, table)
            assert all(row in whole for row in rows(tmp_path / "rest", cluster, table))


def test_a_log_from_the_beginning_does_not_start_in_the_middle(tmp_path: Path) -> None:
    """All its rows are made in it."""
    run, output = resolve(DEMO / "run.toml", tmp_path / "whole")
    assert (run["starts_in_the_middle"], run["not_known"]) == ({}, {})
    assert "middle" not in output
