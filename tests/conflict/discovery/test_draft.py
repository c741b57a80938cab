"""Run files that are drafted from bare binlogs."""

import json
import shutil
import tomllib
from pathlib import Path

import pytest

from conflict.config.additions import Additions
from conflict.config.run_file import load_run_file
from conflict.discovery.draft import draft_run
from conflict.discovery.logged_types import logged_types, types_by_table
from conflict.errors import ConfigurationError
from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.run import Run
from conflict.judge.case import ConflictCase
from tests.corpora import DEMO, RECORDINGS

SCHEMA = DEMO / "schema.sql"


def draft(path: Path, **additions: object) -> str:
    """Return the draft of the demo's run file."""
    return draft_run([DEMO], Additions(schema=SCHEMA, **additions), path).text  # type: ignore[arg-type]


def test_a_draft_says_what_the_binlogs_show(tmp_path: Path) -> None:
    """Server ids, files, tables and binlog types of the demo, which its own run file states."""
    document, stated = tomllib.loads(draft(tmp_path / "run.toml")), load_run_file(DEMO / "run.toml").configuration
    assert {each["server_id"] for each in document["clusters"].values()} == set(stated.links.server_ids.values())
    drafted = {(row["db"], row["table_name"], row["binlog_type"]) for row in document["ndb_replication"]}
    assert drafted == {(row.db, row.table_name, row.binlog_type) for row in stated.replication}
    assert not any("conflict_fn" in row for row in document["ndb_replication"])


def test_refreshes_do_not_hide_the_type() -> None:
    """A refresh of a row that is gone holds the key alone, also in type 9; A refreshed such a row of cft.t2."""
    configuration = Run(load_run_file(DEMO / "run.toml").configuration)
    for cluster in configuration.clusters:
        assert logged_types(configuration, cluster) == {"cft.t1": 9, "cft.t2": 9, "cft.plain": 9}


@pytest.mark.parametrize(
    "name", ["max/ddl_drop_column_type7", "epoch2/ddl_drop_column_type8", "epoch2/ddl_add_column_type8"]
)
def test_columns_that_come_and_go_do_not_hide_the_type(name: str) -> None:
    """Images are held against the definition that was in force when they were logged."""
    run = make_run(ConflictCase.load(RECORDINGS / "everyday" / name).configuration())
    (recorded,) = {row.binlog_type for row in run.configuration.replication}
    for cluster in run.clusters:
        fitting = {table.name: types for table, types in types_by_table(run, cluster)}
        assert fitting.keys() == {"t1", "t2"}
        assert all(recorded in types for types in fitting.values()), fitting


def test_the_primary_alone_has_a_function_by_epoch(tmp_path: Path) -> None:
    """With NDB$EPOCH on cft.t1 and cft.t2, the rows are those of the demo's own run file."""
    text = draft(tmp_path / "run.toml", functions={"cft.t*": "NDB$EPOCH()"}, primary="server1")
    rows = tomllib.loads(text)["ndb_replication"]
    stated = load_run_file(DEMO / "run.toml").configuration.replication
    functions = {(row["table_name"], row["server_id"]): "conflict_fn" in row for row in rows}
    assert functions == {(row.table_name, row.server_id): row.conflict_fn is not None for row in stated}


def test_functions_with_roles_give_the_clusters_roles(tmp_path: Path) -> None:
    """The primary is PRIMARY, and the other one SECONDARY; both have the function."""
    document = tomllib.loads(draft(tmp_path / "run.toml", functions={"*": "NDB$EPOCH2()"}, primary="server2"))
    roles = {name: table["role"] for name, table in document["clusters"].items()}
    assert roles == {"server1": "SECONDARY", "server2": "PRIMARY"}
    assert {row["server_id"] for row in document["ndb_replication"]} == {0}


def test_names_with_wildcards_are_files_of_that_name(tmp_path: Path) -> None:
    """A folder whose name is a pattern, and a file that stands beside others of its name."""
    folder = tmp_path / "[a]*"
    folder.mkdir()
    for file in ("A.binlog.000001", "B.binlog.000001"):
        shutil.copy(DEMO / file, folder)
    shutil.copy(DEMO / "A.binlog.000001", folder / "A.binlog.000002")
    given = [folder / "A.binlog.000001", folder / "B.binlog.000001"]
    run = draft_run(given, Additions(schema=SCHEMA), tmp_path / "run.toml").run
    assert [cluster.log.files for cluster in run.configuration.clusters] == [(given[0],), (given[1],)]


@pytest.mark.parametrize(
    ("additions", "what"),
    [
        ({"functions": {"cft.t9": "NDB$MAX(x)"}}, "--conflict-fn cft.t9 matches no table (did you mean cft.t2?); the"),
        ({"functions": {"cft.t1": "NDB$EPOCH()"}}, "say which cluster it is: --primary server1 or --primary server2"),
        ({"functions": {"cft.t1": "NDB$MAXI(x)"}}, "Error in parsing conflict function"),
        ({"primary": "C"}, "--primary C is no cluster; they are server1 and server2"),
    ],
)
def test_additions_that_do_not_fit_are_refused(additions: dict[str, object], what: str, tmp_path: Path) -> None:
    """Each is named, with what there is."""
    with pytest.raises(ConfigurationError) as caught:
        draft(tmp_path / "run.toml", **additions)
    assert what in str(caught.value)


def test_the_binlogs_of_one_server_are_not_enough(tmp_path: Path) -> None:
    """The message says which server ids there are."""
    with pytest.raises(ConfigurationError, match="binlogs of two clusters are needed; these have the server ids 1 "):
        draft_run([DEMO / "A.binlog.000001"], Additions(), tmp_path / "run.toml")


def test_server_options_are_those_of_the_images(tmp_path: Path) -> None:
    """The demo was logged in type 9; with type 0 in mysql.ndb_replication, the options of the servers gave it."""
    rows = tmp_path / "rows.csv"
    rows.write_text("db,table_name,server_id,binlog_type,conflict_fn\ncft,t1,1,0,NDB$EPOCH()\ncft,%,0,0,NULL\n")
    document = tomllib.loads(draft(tmp_path / "run.toml", ndb_replication=rows, primary="server1"))
    for cluster in document["clusters"].values():
        options = {name: value for name, value in cluster.items() if name.startswith("ndb_log")}
        assert options == {
            "ndb_log_updated_only": "OFF",
            "ndb_log_update_as_write": "OFF",
            "ndb_log_update_minimal": "ON",
        }


def test_server_options_at_their_defaults_are_left_out(tmp_path: Path) -> None:
    """A recording of type 0 under default options: its images fit them."""
    (case,) = (RECORDINGS / "conflict").glob("*/probe_type0")
    scenario = json.loads((case / "scenario.json").read_text("utf-8"))
    schema, rows = tmp_path / "schema.sql", tmp_path / "rows.csv"
    schema.write_text(f"USE {scenario['database']};" + "".join(each["create"] + ";" for each in scenario["tables"]))
    rows.write_text("db,table_name,server_id,binlog_type,conflict_fn\ncft,%,0,0,NULL\n")
    found = draft_run([case], Additions(schema=schema, ndb_replication=rows), tmp_path / "run.toml")
    assert "ndb_log" not in found.text


@pytest.mark.parametrize("function", ["NDB$EPOCH()", "NDB$EPOCH_TRANS()"])
def test_rows_that_contradict_the_primary_are_refused(function: str, tmp_path: Path) -> None:
    """They set the function on the server of the other cluster alone; on both, or with roles, either may be it."""
    rows = tmp_path / "rows.csv"

    def put(*servers: int, function: str = function) -> None:
        lines = [f"cft,t1,{server},7,{function}" for server in servers]
        rows.write_text("\n".join(("db,table_name,server_id,binlog_type,conflict_fn", *lines)) + "\n")

    put(1)
    said = (
        r"--primary server2: .*rows.csv sets NDB\$EPOCH.* for cft.t1 on server 1, which is server1, .*--primary server1"
    )
    with pytest.raises(ConfigurationError, match=said):
        draft(tmp_path / "run.toml", ndb_replication=rows, primary="server2")
    draft(tmp_path / "run.toml", ndb_replication=rows, primary="server1")
    for servers, text in (((1, 2), function), ((0,), function), ((1, 2), "NDB$EPOCH2()")):
        put(*servers, function=text)
        draft(tmp_path / "run.toml", ndb_replication=rows, primary="server2")


def test_a_run_file_beside_the_binlogs_is_named() -> None:
    """Without definitions, whoever gives the folder is told of it."""
    with pytest.raises(ConfigurationError, match=rf"no schema is given.*or give {DEMO / 'run.toml'}, if that is"):
        draft_run([DEMO], Additions(), Path("run.toml"))
