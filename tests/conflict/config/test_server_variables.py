"""A server's variables from the files that people have."""

from pathlib import Path

import attrs
import pytest

from conflict.config.configuration import Configuration
from conflict.config.run_file import load_run_file
from conflict.config.server_settings import (
    DEFAULTS,
    EpochTimes,
    load_epoch_times,
    load_server_variables,
    parse_epoch_times,
    parse_server_variables,
)
from conflict.errors import ConfigurationError
from conflict.rules.replication_table import Role
from ndb_formats.rules.update_format import UpdateFormat

OPTIONS = """
[client]
server-id = 9
[mysqld]
server-id=7                  # after a comment
log-bin = /data/binlog
--ndb_log_transaction_id
skip-log-slave-updates
loose-ndb-log-apply-status = "1"
ndb-slave-conflict-role = 'PRIMARY'
[mysqld-9.7]
replica_type_conversions = ALL_NON_LOSSY
"""


def test_an_option_file() -> None:
    """Groups of mysqld alone; dashes, prefixes, older names; what is not set has its default."""
    changed = {
        "server_id": "7",
        "log_bin": "ON",
        "ndb_log_transaction_id": "ON",
        "log_replica_updates": "OFF",
        "ndb_log_apply_status": "1",
        "ndb_applier_conflict_role": "PRIMARY",
        "replica_type_conversions": "ALL_NON_LOSSY",
    }
    assert parse_server_variables(OPTIONS) == {**DEFAULTS, **changed}


# What mysqld 9.7.4 made of them (--defaults-file=FILE --verbose --help).
LOGS = {
    "log_bin=OFF": "ON",
    "log_bin = 0": "ON",
    "log-bin": "ON",
    "log_bin=": "ON",
    "log_bin=OFF\nlog_bin_index=OFF\nrelay_log=0": "ON",
    "skip-log-bin": "OFF",
    "skip_log_bin=1": "OFF",
    "skip_log_bin=OFF": "OFF",
    "skip_log_bin=0": "ON",
    "skip_log_bin=0  # a comment": "ON",
    "disable-log-bin": "OFF",
    "disable_log_bin=1": "OFF",
    "disable_log_bin=0": "ON",
    "loose-skip_log_bin": "OFF",
    "enable_log_bin": "ON",
    "enable-log-bin=0": "OFF",
    "log_bin=x\nskip_log_bin": "OFF",
    "skip_log_bin\nlog_bin=x": "ON",
}


@pytest.mark.parametrize("text", LOGS)
def test_whether_an_option_file_turns_the_log_on(text: str) -> None:
    """What log_bin is set to names files; a prefix turns it off, with 0 on again; the last line counts."""
    assert parse_server_variables(f"[mysqld]\n{text}\n")["log_bin"] == LOGS[text]


@pytest.mark.parametrize(
    ("text", "on"),
    [
        ("skip-log-replica-updates=0", "ON"),
        ("skip_log_replica_updates=1", "OFF"),
        ("disable-log-slave-updates", "OFF"),
        ("enable-log-slave-updates", "ON"),
        ("log_replica_updates = 0", "0"),
    ],
)
def test_a_prefix_turns_any_option_off_or_on(text: str, on: str) -> None:
    """With the value 0 it does the opposite."""
    assert parse_server_variables(f"[mysqld]\n{text}\n")["log_replica_updates"] == on


@pytest.mark.parametrize(
    "text",
    [
        "+----+---+\n| Variable_name | Value |\n+----+---+\n| server_id | 7 |\n| ndb_log_bin   | ON    |\n+----+---+\n",
        "Variable_name\tValue\nserver_id\t7\nndb_log_bin\tON\n",
        "server_id\t7\nndb_log_bin\tON\n",
        '{"server_id": 7, "ndb_log_bin": true}',
        '[{"Variable_name": "server_id", "Value": "7"}, {"VARIABLE_NAME": "ndb-log-bin", "VARIABLE_VALUE": "ON"}]',
    ],
)
def test_what_a_server_says(text: str) -> None:
    """A table, tabs, JSON: nothing is added to what is there."""
    assert parse_server_variables(text) == {"server_id": "7", "ndb_log_bin": "ON"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "v.txt: it holds no variables"),
        ("CREATE TABLE t (a INT);", "v.txt: it holds no variables"),
        ('{"server_id": 7,\n', "v.txt, line 2: this is not JSON"),
        ('{"A": {"server_id": 7}}', "v.txt: the value of A is not a text or a number"),
        ('[{"name": 1}]', "v.txt: a row has no Variable_name and Value"),
        ("[ndbd default]\nNoOfReplicas=2\n", "v.txt: it holds no variables"),
        ("[mysqld]\nndb-log-bin = yes\n", "v.txt: ndb_log_bin is 'yes'; it can be ON or OFF"),
        ("[mysqld]\n!include other.cnf\n", "v.txt, line 2: !include other.cnf is not followed"),
    ],
)
def test_files_without_variables_are_refused(text: str, message: str, tmp_path: Path) -> None:
    """The message names the file, the line, and what to give."""
    file = tmp_path / "v.txt"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=message):
        load_server_variables(file)


def test_epoch_times() -> None:
    """Of all data nodes, or of the one with most epochs; 0 makes one epoch of each global checkpoint."""
    assert parse_epoch_times("[ndb_mgmd]\nTimeBetweenEpochs=1\n[ndbd]\n") == EpochTimes(100, 2000)
    text = "[ndbd default]\nTimeBetweenEpochs=200 # ms\n[ndbd]\nNodeId=2\n[NDBD]\ntimebetweenglobalcheckpoints: 3000\n"
    assert parse_epoch_times(text) == EpochTimes(200, 3000)
    assert [EpochTimes(*times).epochs for times in ((100, 2000), (150, 2000), (0, 2000), (200, 3000))] == [
        20,
        14,
        1,
        15,
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("TimeBetweenEpochs=100", "config.ini: it has no section"),
        ("[mysqld]\nserver-id=1", "config.ini: it has no section"),
        ("[ndbd default]\n\nTimeBetweenEpochs=fast", "config.ini, line 3: TimeBetweenEpochs is 'fast'"),
    ],
)
def test_a_wrong_config_ini_is_refused(text: str, message: str, tmp_path: Path) -> None:
    """The message names the file and the line."""
    file = tmp_path / "config.ini"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=message):
        load_epoch_times(file)


def run_with(folder: Path, entries: str) -> Configuration:
    """Return a run with these entries of cluster A, and with its variables."""
    (folder / "a.cnf").write_text(
        "[mysqld]\nserver-id = 7\nndb-applier-conflict-role = primary\nndb-log-transaction-id\n"
    )
    (folder / "rows.sql").write_text("INSERT INTO ndb_replication VALUES ('d', 't', 0, 7, NULL);")
    (folder / "run.toml").write_text(f'[clusters.A]\nvariables = "a.cnf"\n{entries}\n[clusters.B]\nserver_id = 2\n')
    run = load_run_file(folder / "run.toml", binlogs=False)
    assert folder / "a.cnf" in run.inputs
    return run.configuration


def test_variables_give_the_entries_that_a_run_file_leaves_out(tmp_path: Path) -> None:
    """What the run file says itself counts."""
    cluster = run_with(tmp_path, "").clusters[0]
    assert (cluster.server_id, cluster.role, cluster.transaction_ids) == (7, Role.PRIMARY, True)
    cluster = run_with(tmp_path, 'server_id = 1\nrole = "PASS"\nndb_log_transaction_id = "OFF"').clusters[0]
    assert (cluster.server_id, cluster.role, cluster.transaction_ids) == (1, Role.PASS, False)


def test_a_cluster_can_have_rows_of_its_own(tmp_path: Path) -> None:
    """Its setups follow them; the other cluster keeps those of the run."""
    (tmp_path / "schema.sql").write_text("CREATE TABLE d.t (k INT PRIMARY KEY) ENGINE=NDB;")
    configuration = run_with(tmp_path, 'ndb_replication = "rows.sql"\nschema = "schema.sql"')
    own, others = map(configuration.replication_of, configuration.clusters)
    assert ([(row.db, row.table_name, row.binlog_type) for row in own], others) == ([("d", "t", 7)], ())
    everywhere = attrs.evolve(configuration, schema=configuration.schema_of(configuration.clusters[0]))
    formats = {name: setups["d.t"].format for name, setups in everywhere.setups().items()}
    assert formats == {"A": UpdateFormat(), "B": UpdateFormat(updated_only=True, as_write=True)}
