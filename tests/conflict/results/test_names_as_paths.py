"""Names of databases and tables in a result: they are data, and no paths or markup."""

from pathlib import Path

import attrs
import pytest

import conflict
from conflict.config.run_file import load_run_file
from conflict.engine.ledger.layout import exceptions_path, rows_path
from ndb_formats.constants import EventType
from ndb_formats.events.table_map import decode_table_map, encode_table_map
from tests.conflict.cli.commands import invoke
from tests.conflict.faults import Log
from tests.corpora import DEMO

# In place of cft, t1 and plain.
DATABASE, FIRST, LAST = "../../[red]", "..", "x\x1b[31m.y"


@pytest.fixture
def run_file(tmp_path: Path) -> Path:
    """Return the demo with other names."""
    names = {"cft": DATABASE, "t1": FIRST, "plain": LAST}
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    for cluster in load_run_file(DEMO / "run.toml").configuration.clusters:
        log = Log.read(cluster)
        for events in log.files:
            for place, (header, body) in enumerate(events):
                if header.type_code == EventType.TABLE_MAP_EVENT:
                    found = decode_table_map(body)
                    database, table = (names.get(each, each) for each in (found.database, found.table))
                    events[place] = header, encode_table_map(attrs.evolve(found, database=database, table=table))
        (written,) = log.written(folder).log.files
        written.rename(folder / f"{cluster.name}.binlog.000001")
    schema = (DEMO / "schema.sql").read_text()
    for old, new in (
        ("USE cft", f"USE `{DATABASE}`"),
        ("TABLE t1 (", f"TABLE `{FIRST}` ("),
        ("TABLE `t1$EX` (", f"TABLE `{FIRST}$EX` ("),
        ("TABLE plain (", f"TABLE `{LAST}` ("),
    ):
        assert old in schema
        schema = schema.replace(old, new)
    (folder / "schema.sql").write_text(schema)
    text = (DEMO / "run.toml").read_text()
    for old, new in names.items():
        text = text.replace(f'"{old}"', '"' + new.replace("\x1b", "\\u001b") + '"')
    (folder / "run.toml").write_text(text)
    (folder / "steps.json").write_bytes((DEMO / "steps.json").read_bytes())
    return folder / "run.toml"


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_nothing_is_written_outside_the_result(engine: str, run_file: Path, tmp_path: Path):
    """Whatever a table is called; its rows are found by its name."""
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    out = run_file.parent / "out"
    code, output = invoke("resolve", run_file, "--out", out, "--engine", engine)
    assert (code, "\x1b" in output) == (0, False)
    assert r"x\x1b[31m.y" in output
    new = {path for path in tmp_path.rglob("*") if path.is_file()} - before
    assert new
    assert all(out in path.parents for path in new)
    result = conflict.read_result(str(out))
    assert result.rows("B", f"`{DATABASE}`.`{FIRST}`").num_rows == 2
    assert result.rows("B", f"`{DATABASE}`.`{LAST}`").num_rows == 2
    assert result.run["differing_rows"] == {
        f"`{DATABASE}`.`{FIRST}`": 0,
        f"`{DATABASE}`.t2": 0,
        f"`{DATABASE}`.`{LAST}`": 1,
    }


def test_paths_stay_below():
    """Also without a database, and with names that look alike."""
    assert rows_path("A", "`..`.`..`", 0) == "rows/A/%2E%2E.%2E%2E/bucket=00000.parquet"
    assert exceptions_path("A", ".t$EX") == "exceptions/A/.t$EX.parquet"
    assert exceptions_path("A", "`a.b`.c") != exceptions_path("A", "a.`b.c`")
