"""Run files: how they are read, and how they are refused."""

import json
import shutil
from pathlib import Path

import pytest

from conflict.config.run_file import RunFile, load_run_file
from conflict.errors import ConfigurationError
from conflict.history.scheduling.hints import hints_of_run_file
from conflict.history.scheduling.schedule import Hint
from conflict.history.scheduling.summaries import Summary
from conflict.rules.replication_filter import ReplicationFilter
from conflict.rules.replication_table import ReplicationRow, Role
from tests.corpora import DEMO

SCHEMA = "CREATE TABLE t (k INT PRIMARY KEY, s VARCHAR(9)); CREATE TABLE other.u (k INT PRIMARY KEY);"
HEAD = 'schema = "schema.sql"\ndatabase = "shop"\n'
CLUSTERS = """
[clusters.A]
server_id = 1
binlogs = ["a/binlog.0*"]
[clusters.B]
server_id = 2
binlogs = ["b.000001"]
role = "SECONDARY"
"""
LAST_GROUP = 2**31 - 1
ID = "it must be a whole number from 0 to 4294967295"
NUMBER = "it must be a whole number from 0 to 18446744073709551615"
NEEDS_SOURCES = "needs replicates_from, the clusters whose binlogs its applier applies; it is [] if it applies none"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a schema and binlogs; what the binlogs hold is not read."""
    (tmp_path / "a").mkdir()
    for name in ("a/binlog.000002", "a/binlog.000001", "a/binlog.index", "b.000001"):
        (tmp_path / name).touch()
    (tmp_path / "schema.sql").write_text(SCHEMA)
    return tmp_path


def network(**sources: str | None) -> str:
    """Return clusters with these values of replicates_from; None leaves it out."""
    return "".join(
        f'[clusters.{name}]\nserver_id = {place}\nbinlogs = ["b.000001"]\n'
        + ("" if given is None else f"replicates_from = {given}\n")
        for place, (name, given) in enumerate(sources.items(), start=1)
    )


def load(folder: Path, text: str) -> RunFile:
    """Write a run file and read it."""
    path = folder / "run.toml"
    path.write_text(text)
    return load_run_file(path)


def refusal(folder: Path, text: str) -> str:
    """Return why a run file is refused; it starts with the file's name."""
    with pytest.raises(ConfigurationError) as caught:
        load(folder, text)
    message = str(caught.value)
    assert message.startswith(f"{folder}/")
    return message.removeprefix(f"{folder}/")


class TestReading:
    """From a run file to a configuration."""

    def test_binlogs_are_relative_to_the_file_and_sorted_by_pattern(self, folder: Path):
        """Each cluster has a name, a server id and a role."""
        first, second = load(folder, HEAD + CLUSTERS).configuration.clusters
        assert (first.name, first.server_id, first.role) == ("A", 1, "NONE")
        assert first.log.files == (folder / "a/binlog.000001", folder / "a/binlog.000002")
        assert (second.name, second.server_id, second.role) == ("B", 2, "SECONDARY")
        assert second.log.files == (folder / "b.000001",)

    def test_logging_options_have_the_server_s_defaults(self, folder: Path):
        """But transaction ids may be unknown."""
        text = CLUSTERS.replace(
            "[clusters.B]",
            """ndb_log_update_as_write = "OFF"
            ndb_log_transaction_id = "ON"
            [clusters.B]""",
        )
        first, second = load(folder, HEAD + text).configuration.clusters
        assert (first.options.ndb_log_update_as_write, first.transaction_ids) == (False, True)
        assert (second.options.ndb_log_update_as_write, second.transaction_ids) == (True, None)
        text = text.replace('transaction_id = "ON"', 'transaction_id = "MAYBE"')
        assert "clusters.A.ndb_log_transaction_id: it is 'MAYBE'; it can be ON or OFF, 1 or 0" in refusal(
            folder, HEAD + text
        )

    def test_several_patterns_keep_their_order(self, folder: Path):
        """Also absolute ones."""
        patterns = f'["{folder}/b.*", "a/binlog.000002", "a/binlog.000001"]'
        text = HEAD + CLUSTERS.replace('["a/binlog.0*"]', patterns)
        assert [file.name for file in load(folder, text).configuration.clusters[0].log.files] == [
            "b.000001",
            "binlog.000002",
            "binlog.000001",
        ]

    def test_database_and_charset_are_those_of_tables_that_declare_none(self, folder: Path):
        """Others keep their own."""
        configuration = load(folder, 'charset = "latin1"\n' + HEAD + CLUSTERS).configuration
        first, second = configuration.schema.tables
        assert (first.full_name, first.columns[1].charset) == ("shop.t", "latin1")
        assert second.full_name == "other.u"

    def test_the_default_charset_is_utf8mb4(self, folder: Path):
        """As in MySQL 8 and later."""
        (table, _) = load(folder, HEAD + CLUSTERS).configuration.schema.tables
        assert table.columns[1].charset == "utf8mb4"

    def test_replication_rows_have_defaults(self, folder: Path):
        """For all but the names."""
        rows = """
            [[ndb_replication]]
            db = "shop"
            table_name = "%"
            server_id = 1
            binlog_type = 7
            conflict_fn = "NDB$MAX(x)"
            [[ndb_replication]]
            db = "%"
            table_name = "t"
        """
        assert load(folder, HEAD + CLUSTERS + rows).configuration.replication == (
            ReplicationRow("shop", "%", 1, 7, "NDB$MAX(x)"),
            ReplicationRow("%", "t", 0, None, None),
        )

    def test_replication_rows_can_be_in_a_file(self, folder: Path):
        """A dump of the table beside the run file."""
        (folder / "rows.sql").write_text("INSERT INTO ndb_replication VALUES ('shop', '%', 1, 7, 'NDB$MAX(x)')")
        loaded = load(folder, 'ndb_replication = "rows.sql"\n' + HEAD + CLUSTERS)
        assert loaded.configuration.replication == (ReplicationRow("shop", "%", 1, 7, "NDB$MAX(x)"),)


class TestRefusals:
    """Messages start with the file at fault."""

    def test_a_missing_run_file_is_refused(self, folder: Path):
        """With the system's reason."""
        with pytest.raises(ConfigurationError) as caught:
            load_run_file(folder / "none.toml")
        assert str(caught.value) == f"{folder}/none.toml: No such file or directory"

    def test_text_that_is_not_toml_is_refused(self, folder: Path):
        """With the line."""
        message = refusal(folder, "schema = \n")
        assert message.startswith("run.toml: ")
        assert "line 1" in message

    @pytest.mark.parametrize("text", ["", 'schema = "schema.sql"', HEAD + "[clusters.A]\nserver_id = 1\nbinlogs = []"])
    def test_fewer_than_two_clusters_are_refused(self, folder: Path, text: str):
        """Also if there is no cluster at all."""
        assert refusal(folder, text) == "run.toml: two or more tables [clusters.NAME] are needed"

    def test_more_than_two_clusters_say_where_they_replicate_from(self, folder: Path):
        """By name; an empty list is a cluster that applies nothing."""
        configuration = load(folder, HEAD + network(A="[]", B='["A"]', C='["A", "B"]')).configuration
        assert [[source.name for source in configuration.links.sources(name)] for name in "ABC"] == [
            [],
            ["A"],
            ["A", "B"],
        ]
        assert not configuration.links.is_pair

    def test_two_clusters_replicate_to_each_other(self, folder: Path):
        """Unless the run file says something else."""
        pair = load(folder, HEAD + CLUSTERS).configuration
        assert (pair.links.is_pair, [pair.links.sources(name)[0].name for name in "AB"]) == (True, ["B", "A"])
        same = load(folder, HEAD + network(A='["B"]', B='["A"]')).configuration
        one_way = load(folder, HEAD + network(A="[]", B='["A"]')).configuration
        assert (same.links.is_pair, one_way.links.is_pair) == (True, False)

    @pytest.mark.parametrize(
        ("sources", "complaint"),
        [
            (
                {"A": "[]", "B": '["A"]', "C": None},
                f"cluster C {NEEDS_SOURCES}",
            ),
            (
                {"A": None, "B": '["A"]'},
                f"cluster A {NEEDS_SOURCES}",
            ),
            ({"A": '["D"]', "B": "[]"}, "replicates_from of cluster A has 'D'; it may name each of B once"),
            ({"A": '["A"]', "B": "[]"}, "replicates_from of cluster A has 'A'; it may name each of B once"),
            (
                {"A": "[]", "B": "[]", "C": '["B", "B"]'},
                "replicates_from of cluster C has 'B'; it may name each of A, B once",
            ),
            ({"A": "[]", "B": "[]"}, "no cluster replicates from another one; give replicates_from"),
            (
                {"A": '"B"', "B": "[]"},
                "clusters.A.replicates_from is 'B'; it must be a list of clusters, like [\"A\"]",
            ),
        ],
    )
    def test_wrong_sources_are_refused(self, folder: Path, sources: dict[str, str | None], complaint: str):
        """Missing, unknown, the cluster itself, or twice."""
        assert refusal(folder, HEAD + network(**sources)) == f"run.toml: {complaint}"

    def test_the_schema_is_a_file(self, folder: Path):
        """Given as a text."""
        assert refusal(folder, "schema = 7\n" + CLUSTERS) == ("run.toml: schema is 7; it must be a file name")

    def test_schema_at_is_start_or_end(self, folder: Path):
        """No other time has a name."""
        message = refusal(folder, 'schema_at = "middle"\n' + HEAD + CLUSTERS)
        assert message == "run.toml: schema_at is 'middle'; it must be one of start, end"

    def test_a_missing_schema_file_is_refused(self, folder: Path):
        """The message names it, not the run file."""
        message = refusal(folder, HEAD.replace("schema.sql", "gone.sql") + CLUSTERS)
        assert message == "gone.sql: No such file or directory"

    def test_a_definition_that_cannot_be_read_is_refused(self, folder: Path):
        """With its file and table."""
        (folder / "schema.sql").write_text("CREATE TABLE t LIKE u")
        message = refusal(folder, HEAD + CLUSTERS)
        assert (
            message
            == "schema.sql: table shop.t: the statement makes a table like shop.u, whose definition is not known"
        )

    @pytest.mark.parametrize(
        ("old", "new", "complaint"),
        [
            (
                "server_id = 2",
                'server_id = "2"',
                "clusters.B.server_id is '2'; it must be a whole number from 0 to 4294967295",
            ),
            (
                "server_id = 1",
                "",
                f"clusters.A.server_id is missing; {ID}",
            ),
            (
                'binlogs = ["b.000001"]',
                "",
                "clusters.B.binlogs is missing; it must be a list of file names or patterns",
            ),
            ('"b.000001"', '"c.*"', "no file matches c.*, binlogs of cluster B"),
            (
                "SECONDARY",
                "REPLICA",
                "clusters.B.role is 'REPLICA'; it must be one of NONE, PRIMARY, SECONDARY, PASS",
            ),
            (
                "role =",
                "rolle =",
                (
                    "clusters.B has unknown entries rolle (did you mean role?); known are "
                    "binlogs, config_ini, ignore_server_ids, "
                    "ndb_log_transaction_id, ndb_log_update_as_write, ndb_log_update_minimal, ndb_log_updated_only, "
                    "ndb_replication, replica_status, replica_type_conversions, replicate_do_db, replicate_do_table, "
                    "replicate_ignore_db, replicate_ignore_table, replicate_rewrite_db, replicate_wild_do_table, "
                    "replicate_wild_ignore_table, replicates_from, role, rows, rows_epoch, rows_of, "
                    "schema, server_id, server_ids, variables"
                ),
            ),
            (
                "[clusters.A]",
                "[cluster]\n[clusters.A]",
                (
                    "it has unknown entries cluster (did you mean clusters?); known are "
                    "charset, clusters, conflict_function, database, inexact_keys, ndb_replication, schedule, schema, "
                    "schema_at, start"
                ),
            ),
        ],
    )
    def test_wrong_entries_of_a_cluster_are_refused(self, folder: Path, old: str, new: str, complaint: str):
        """Missing, of the wrong type, or unknown."""
        assert old in CLUSTERS
        assert refusal(folder, HEAD + CLUSTERS.replace(old, new)) == f"run.toml: {complaint}"

    @pytest.mark.parametrize(
        ("row", "complaint"),
        [
            ('db = "shop"', "table_name is missing; it must be a name or a pattern"),
            ('db = 1\ntable_name = "t"', "db is 1; a text is needed"),
            (
                'db = "shop"\ntable_name = "t"\nfunction = "NDB$MAX(x)"',
                (
                    "unknown entries function; known are binlog_row_slice_count, binlog_row_slice_id, "
                    "binlog_type, conflict_fn, db, server_id, table_name"
                ),
            ),
        ],
    )
    def test_wrong_replication_rows_are_refused(self, folder: Path, row: str, complaint: str):
        """With the number of the row."""
        message = refusal(folder, HEAD + CLUSTERS + "[[ndb_replication]]\n" + row)
        assert message == f"run.toml, row 1 of [[ndb_replication]]: {complaint}"

    @pytest.mark.parametrize("given", ["1", "{}", "['rows.sql']"])
    def test_replication_rows_must_be_tables_or_a_file_name(self, folder: Path, given: str):
        """One file name."""
        message = refusal(folder, f"ndb_replication = {given}\n" + HEAD + CLUSTERS)
        rule = "it must be tables [[ndb_replication]], or a file name"
        assert message == f"run.toml: ndb_replication is {given}; {rule}"

    @pytest.mark.parametrize(
        ("schedule", "complaint"),
        [
            (
                "[schedule]\nstep = 1",
                "schedule has unknown entries step (did you mean steps?); known are applied, role, steps, stopped",
            ),
            (
                '[[schedule.applied]]\napplier = "C"\nepoch = 1\nafter_epoch = 2',
                "schedule.applied#1.applier: the run file has no cluster C; it has A and B",
            ),
            (
                '[[schedule.applied]]\napplier = "A"\nafter_epoch = 2',
                "schedule.applied#1.epoch is missing; it must be a whole number from 0 to 18446744073709551615",
            ),
            (
                '[[schedule.stopped]]\napplier = "A"',
                f"schedule.stopped#1.after_epoch is missing; {NUMBER}",
            ),
            (
                '[[schedule.stopped]]\napplier = "A"\nepoch = 1\nafter_epoch = 1',
                (
                    "schedule.stopped#1 has unknown entries epoch (did you mean after_epoch?); known are "
                    "after_epoch, applier"
                ),
            ),
            (
                '[[schedule.role]]\napplier = "A"\nafter_epoch = 1\nrole = "MAIN"',
                "schedule.role#1.role is 'MAIN'; it must be one of NONE, PRIMARY, SECONDARY, PASS",
            ),
        ],
    )
    def test_wrong_entries_of_the_schedule_are_refused(self, folder: Path, schedule: str, complaint: str):
        """They need an applier and epochs."""
        assert refusal(folder, HEAD + CLUSTERS + schedule) == f"run.toml: {complaint}"


SUMMARIES = {
    "A": [Summary(10, (0,), ()), Summary(20, (0,), ())],
    "B": [Summary(100, (0,), ()), Summary(101, (0,), ()), Summary(102, (0,), ())],
}


class TestHints:
    """From the schedule to hints on when epochs were applied."""

    def test_without_a_schedule_there_are_none(self, folder: Path):
        """For either cluster."""
        assert hints_of_run_file(load(folder, HEAD + CLUSTERS), SUMMARIES) == {"A": [{}], "B": [{}]}

    def test_an_applied_epoch_follows_the_last_group_of_an_own_epoch(self, folder: Path):
        """It comes before the first group of the next one."""
        schedule = '[[schedule.applied]]\napplier = "A"\nepoch = 100\nafter_epoch = 10'
        place = (10, LAST_GROUP)
        assert hints_of_run_file(load(folder, HEAD + CLUSTERS + schedule), SUMMARIES) == {
            "A": [{100: Hint(place, place)}],
            "B": [{}],
        }

    def test_after_a_stop_no_epoch_was_applied(self, folder: Path):
        """Not until the end."""
        schedule = '[[schedule.stopped]]\napplier = "A"\nafter_epoch = 100'
        not_applied = Hint(applied=False)
        assert hints_of_run_file(load(folder, HEAD + CLUSTERS + schedule), SUMMARIES) == {
            "A": [{101: not_applied, 102: not_applied}],
            "B": [{}],
        }

    def test_a_role_holds_for_later_epochs(self, folder: Path):
        """The applier was stopped for each change, so it began another run."""
        entry = '[[schedule.role]]\napplier = "A"\nafter_epoch = {}\nrole = "{}"\n'
        schedule = entry.format(101, "PRIMARY") + entry.format(100, "NONE")
        assert hints_of_run_file(load(folder, HEAD + CLUSTERS + schedule), SUMMARIES) == {
            "A": [{101: Hint(run=1, role=Role.NONE), 102: Hint(run=2, role=Role.PRIMARY)}],
            "B": [{}],
        }

    def test_steps_are_read_from_their_file(self, folder: Path):
        """Which is relative to the run file."""
        steps = [
            {"action": "stop", "applier": "A"},
            {"on": "B", "epoch": 100, "result": [{"affected": 1}]},
        ]
        (folder / "scenario.json").write_text(json.dumps({"steps": steps}))
        loaded = load(folder, HEAD + CLUSTERS + '[schedule]\nsteps = "scenario.json"')
        hints = hints_of_run_file(loaded, {"A": [], "B": SUMMARIES["B"][:1]})
        assert hints == {"A": [{100: Hint(applied=False)}], "B": [{}]}

    def test_a_missing_file_of_steps_is_refused(self, folder: Path):
        """With its name."""
        message = refusal(folder, HEAD + CLUSTERS + '[schedule]\nsteps = "none.json"')
        assert message == "none.json: No such file or directory"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("server_id = 2", "server_id = 1", "clusters A and B have server_id 1"),
        ("binlog_type = 9", 'binlog_type = "NINE"', "FULL_USE_UPDATE_MINIMAL"),
        ("steps.json", "run.toml", "a JSON object with a list of steps is needed"),
    ],
)
def test_one_mistake_in_the_demo_is_refused(old: str, new: str, message: str, tmp_path: Path) -> None:
    """The message says what is wrong."""
    for file in DEMO.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    text = (DEMO / "run.toml").read_text()
    (tmp_path / "run.toml").write_text(text.replace(old, new, 1))
    with pytest.raises(ConfigurationError, match=message):
        hints_of_run_file(load_run_file(tmp_path / "run.toml"), {"A": [], "B": []})


def test_a_binlog_type_can_be_named(tmp_path: Path) -> None:
    """By both of its names."""
    for file in DEMO.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    text = (DEMO / "run.toml").read_text()
    text = text.replace("binlog_type = 9", 'binlog_type = "FULL_USE_UPDATE_MINIMAL"', 1)
    text = text.replace("binlog_type = 9", 'binlog_type = "NBT_UPDATED_FULL_MINIMAL"', 1)
    (tmp_path / "run.toml").write_text(text)
    rows = load_run_file(tmp_path / "run.toml").configuration.replication
    assert [9] * len(rows) == [row.binlog_type for row in rows]


def test_filters_of_a_run_file_and_of_an_option_file(folder: Path) -> None:
    """A list, a text with commas, and options that stand once per table; what the run file has counts."""
    (folder / "my.cnf").write_text(
        "[mysqld]\nserver_id = 1\nreplicate-do-db = shop\nreplicate-do-db = other\n"
        "replicate-wild-ignore-table = shop.log%\n"
    )
    own = 'variables = "my.cnf"\nreplicate_ignore_table = "shop.a, shop.b"\nreplicate_wild_ignore_table = ["shop.x%"]'
    text = HEAD + CLUSTERS.replace("server_id = 1", own)
    (folder / "run.toml").write_text(text)
    first, second = load_run_file(folder / "run.toml").configuration.clusters
    assert first.filter == ReplicationFilter(
        do_db=("shop", "other"), ignore_table=("shop.a", "shop.b"), wild_ignore_table=("shop.x%",)
    )
    assert second.filter == ReplicationFilter()


def test_databases_are_renamed(folder: Path) -> None:
    """Rules stand in the run file, or in an option file, which can have several."""
    (folder / "my.cnf").write_text(
        '[mysqld]\nserver_id = 1\nreplicate-rewrite-db = shop->other\nreplicate-rewrite-db="a -> b"\n'
    )
    (folder / "run.toml").write_text(HEAD + CLUSTERS.replace("server_id = 1", 'variables = "my.cnf"'))
    first, _ = load_run_file(folder / "run.toml").configuration.clusters
    assert first.filter.rewrite_db == (("shop", "other"), ("a", "b"))
    (folder / "run.toml").write_text(
        HEAD + CLUSTERS.replace("server_id = 1", 'server_id = 1\nreplicate_rewrite_db = ["shop"]')
    )
    with pytest.raises(ConfigurationError, match="replicate_rewrite_db is 'shop'; give each rule as from->to"):
        load_run_file(folder / "run.toml")


def test_several_sql_nodes(folder: Path) -> None:
    """Files belong to the node that wrote them; a file without events belongs to the first one."""
    shutil.copy(DEMO / "A.binlog.000001", folder / "a" / "binlog.000001")
    shutil.copy(DEMO / "B.binlog.000001", folder / "a" / "binlog.000002")
    (folder / "run.toml").write_text(
        HEAD + CLUSTERS.replace("server_id = 1", "server_ids = [1, 2]").replace("server_id = 2", "server_id = 4")
    )
    first, _ = load_run_file(folder / "run.toml").configuration.clusters
    assert [(each.server_id, [file.name for file in each.files]) for each in first.servers] == [
        (1, ["binlog.000001"]),
        (2, ["binlog.000002"]),
    ]
    assert (first.server_id, first.server_ids) == (1, {1, 2})


def test_files_of_several_sql_nodes(folder: Path) -> None:
    """Each node has its variables, of which those of the first count, and its channels; all are inputs of the run."""
    (folder / "a1.cnf").write_text("[mysqld]\nserver_id = 1\nndb-log-updated-only = OFF\n")
    (folder / "a3.txt").write_text("server_id\t3\nndb_log_updated_only\tON\n")
    status = "Replicate_Do_DB\tReplicate_Ignore_DB\tSource_Server_Id\tChannel_Name\n{}\t\t{}\t\n"
    (folder / "s1.txt").write_text(status.format("", 9))
    (folder / "s3.txt").write_text(status.format("shop", 2))
    own = 'variables = ["a1.cnf", "a3.txt"]\nreplica_status = ["s1.txt", "s3.txt"]'
    (folder / "run.toml").write_text(HEAD + CLUSTERS.replace("server_id = 1", own))
    loaded = load_run_file(folder / "run.toml")
    first, _ = loaded.configuration.clusters
    assert [each.server_id for each in first.servers] == [1, 3]
    assert (first.options.ndb_log_updated_only, [each["server_id"] for each in first.other_nodes]) == (False, ["3"])
    assert first.filter_of("B") == ReplicationFilter(do_db=("shop",))
    assert {folder / name for name in ("a1.cnf", "a3.txt", "s1.txt", "s3.txt")} <= {*loaded.inputs}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("server_ids = []", "clusters.A.server_ids is []; it must be a list of different server ids, like [1, 3]"),
        ("server_ids = [1, 1]", "clusters.A.server_ids is [1, 1]; it must be a list of different server ids"),
        (
            "server_id = 1\nserver_ids = [1]",
            "clusters.A.server_id and clusters.A.server_ids are both given; give one of them",
        ),
        ("server_ids = [1, 2]", "clusters A and B have server_id 2; it tells them apart in their binlogs"),
    ],
)
def test_wrong_sql_nodes(folder: Path, given: str, said: str) -> None:
    """None, one twice, both entries, and one of another cluster."""
    (folder / "run.toml").write_text(HEAD + CLUSTERS.replace("server_id = 1", given))
    with pytest.raises(ConfigurationError) as refusal:
        load_run_file(folder / "run.toml")
    assert said in str(refusal.value)
