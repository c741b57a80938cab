"""
Databases that appliers rename (replicate_rewrite_db): recordings whose B has its database under another name.

The recordings judge: nothing but the name is other than what was recorded.
"""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import attrs
import pyarrow.dataset as pads
import pytest

import conflict
from conflict.config.configuration import Configuration, Span
from conflict.config.database_names import names_of_databases, possible_renames
from conflict.errors import ConfigurationError, HistoryError
from conflict.history.grid.folder import Folder
from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.reading.readings import read_cluster
from conflict.judge.case import ConflictCase, find_recordings
from conflict.judge.judge import CaseStatus, judge_recording
from conflict.results.cause_kinds import CauseKind
from conflict.rules.replication_filter import ReplicationFilter
from conflict.rules.replication_table import ReplicationRow
from conflict.runs.pipeline import ENGINES
from ndb_formats.types.column_types import ColumnCode, WireType
from tests.conflict.renamed_logs import rename_on_b, renamed_log
from tests.corpora import RECORDINGS

CASES = (
    "conflict/epoch/concurrent_5021_type8",
    "conflict/epoch/ex_lower_case_name_type7",
    "conflict/epoch_trans/dependent_chain_type8",
    "conflict/epoch2/concurrent_5021_type8",
    "conflict/epoch2/role_none_type7",
    "conflict/epoch2_trans/dependent_chain_type8",
    "conflict/max/hot_3021_type7",
    "conflict/old/concurrent_5020_type7",
    "everyday/epoch2/ddl_drop_column_type8",
    "everyday/max/ddl_drop_and_create_type7",
    "everyday/max/foreign_key_cascade_type7",
    "everyday/epoch2/schema_wider_column_type7",
    "operations/channel_failover/channel_failover_epoch_trans_type9",
    "operations/filter_ignore_table/filter_ignore_table_epoch_trans_type7",
    "operations/filter_wild_do/filter_wild_do_max_type7",
    "operations/rewrite_db/rewrite_db_max_type7",
)


@pytest.mark.parametrize("engine", ["reference", "local"])
@pytest.mark.parametrize("case", CASES)
def test_an_engine_agrees_with_a_recording_under_two_names(case: str, engine: str, tmp_path: Path) -> None:
    """Rows, exceptions, counters, stops and what the servers say of their tables."""
    if (RECORDINGS / case / "scenario.json").read_text("utf-8").find("REWRITE_DB") < 0:
        rename_on_b(RECORDINGS / case, tmp_path)
    else:
        shutil.copytree(RECORDINGS / case, tmp_path, dirs_exist_ok=True)
    (found,) = find_recordings(tmp_path)
    verdict = judge_recording(found, engine, use_steps=False)
    assert (verdict.status, verdict.detail) == (CaseStatus.PASS, "")


def resolved(configuration: Configuration, folder: Path, engine: str) -> tuple[object, ...]:
    """Return counters, figures of the tables, and rows of both clusters by the names of tables alone."""
    out = Folder(str(folder))
    found = ENGINES[engine](make_run(configuration), out)
    assert not found.contradicted
    rows = {
        (cluster.name, part.name.rpartition(".")[2], str(row))
        for cluster in configuration.clusters
        for part in (folder / "rows" / cluster.name).iterdir()
        for row in pa_rows(part)
    }
    tables = {
        (cluster, name.rpartition(".")[2]): figures
        for cluster, own in found.summary.tables.items()
        for name, figures in own.items()
    }
    return found.summary.counters, found.summary.counter_ranges, tables, rows


def pa_rows(folder: Path) -> list[dict[str, object]]:
    """Return the rows of a folder of Parquet files."""
    found: list[dict[str, object]] = pads.dataset(folder, partitioning=None).to_table().to_pylist()
    return found


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_two_databases_that_change_places(engine: str, tmp_path: Path) -> None:
    """A's caa is B's cbb and the other way round, so each name stands for two databases; several rules count."""
    case = ConflictCase.load(RECORDINGS / "conflict" / "epoch_trans" / "dependent_chain_type8")
    plain = case.configuration()
    places = {"A": ("caa", "cbb"), "B": ("cbb", "caa")}

    def database(cluster: str, table: str) -> str:
        return places[cluster][not table.startswith("t1")]

    clusters = []
    for cluster in plain.clusters:
        (file,) = cluster.files
        path = tmp_path / file.name
        path.write_bytes(renamed_log(file, "cft", lambda table, name=cluster.name: database(name, table)))
        swap = ReplicationFilter.of({"replicate_rewrite_db": ["caa->cbb", "cbb -> caa"]})
        clusters.append(attrs.evolve(cluster, servers=(attrs.evolve(cluster.log, files=(path,)),), filter=swap))
    tables = tuple(attrs.evolve(each, database=database("A", each.name)) for each in plain.schema.tables)
    rows = tuple(attrs.evolve(row, db=name) for row in plain.replication for name in ("caa", "cbb") if row.db == "cft")
    renamed = attrs.evolve(
        plain, clusters=tuple(clusters), schema=attrs.evolve(plain.schema, tables=tables), replication=rows
    )
    assert resolved(renamed, tmp_path / "renamed", engine) == resolved(plain, tmp_path / "plain", engine)
    assert {each.name for each in (tmp_path / "renamed" / "rows" / "B").iterdir()} == {"cbb.t1", "caa.t2"}


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_a_log_from_the_middle(engine: str, tmp_path: Path) -> None:
    """A cut log under two names is resolved as under one."""
    recording = RECORDINGS / "conflict" / "epoch" / "concurrent_5021_type8"
    (tmp_path / "case").mkdir()
    rename_on_b(recording, tmp_path / "case")
    found = []
    for number, folder in enumerate((recording, tmp_path / "case")):
        configuration = ConflictCase.load(folder).configuration()
        run = make_run(configuration)
        epochs = read_cluster(run.clusters[0], run).epochs
        cut = attrs.evolve(configuration, span=Span(empty=False, first={"A": epochs[len(epochs) // 3].number}))
        found.append(resolved(cut, tmp_path / str(number), engine))
    assert found[0] == found[1]


@pytest.mark.parametrize("engine", ["reference", "local"])
@pytest.mark.parametrize("both", [False, True])
def test_a_rule_that_is_missing_is_the_likely_cause(engine: str, both: bool, tmp_path: Path) -> None:
    """Whether the schema has the tables under one name or under both."""
    configuration = ConflictCase.load(RECORDINGS / "operations" / "rewrite_db" / "rewrite_db_max_type7").configuration()
    clusters = tuple(attrs.evolve(each, filter=ReplicationFilter()) for each in configuration.clusters)
    tables = configuration.schema.tables
    tables += tuple(attrs.evolve(table, database="ops_b") for table in tables) if both else ()
    schema = attrs.evolve(configuration.schema, tables=tables)
    plain = attrs.evolve(configuration, clusters=clusters, schema=schema)
    found = ENGINES[engine](make_run(plain), Folder(str(tmp_path)))
    assert found.contradicted
    assert {(each.cluster, each.kind) for each in found.likely_causes} == {
        ("A", CauseKind.RENAME),
        ("B", CauseKind.RENAME),
    }
    assert any('replicate_rewrite_db = ["ops->ops_b"] for [clusters.B]' in each.shown for each in found.likely_causes)


def test_what_seems_to_be_renamed() -> None:
    """Tables of the same names and types in a database that the source does not have; not where some arrive."""
    types = (WireType(ColumnCode.LONG), WireType(ColumnCode.LONGLONG))
    channels = {("B", "A"): ReplicationFilter()}

    def renames(a: list[str], b: list[str]) -> list[tuple[str, str]]:
        logged = {
            name: {(each.split(".")[0], each.split(".")[1]): types for each in own}
            for name, own in (("A", a), ("B", b))
        }
        return [(each.before, each.after) for each in possible_renames(channels, logged)]

    assert renames(["a.t", "a.u"], ["b.t"]) == [("a", "b")]
    assert renames(["a.t", "a.u"], ["a.u", "b.t"]) == []
    assert renames(["a.t", "b.t"], ["b.t"]) == []
    assert renames(["a.t"], ["b.t", "b.other"]) == []
    assert renames(["mysql.ndb_apply_status"], ["b.t"]) == []


def test_the_new_name_is_asked_for(tmp_path: Path) -> None:
    """Rows of mysql.ndb_replication for the name on A give B's table no function."""
    rename_on_b(RECORDINGS / "conflict" / "max" / "hot_3021_type7", tmp_path)
    configuration = ConflictCase.load(tmp_path).configuration()
    rows = tuple(row for row in configuration.replication if row.db == "cft")
    run = make_run(attrs.evolve(configuration, replication=rows))
    assert {name: setups["cft.t1"].function is None for name, setups in run.setups.at_end.items()} == {
        "A": False,
        "B": True,
    }
    run = make_run(attrs.evolve(configuration, replication=(ReplicationRow("cfx", "t1", 0, 7, "NDB$MAX(x)"),)))
    assert {name: setups["cft.t1"].function is None for name, setups in run.setups.at_end.items()} == {
        "A": True,
        "B": False,
    }


def test_filters_see_the_new_name() -> None:
    """Filters are asked after the name was changed."""
    filters = ReplicationFilter.of({"replicate_rewrite_db": ["a->b"], "replicate_do_db": ["b"]})
    assert not filters.drops(filters.rewritten("a"), "t")
    assert filters.drops(filters.rewritten("c"), "t")


PAIR = (("A", "B"), ("B", "A"))


class TestNames:
    """Which databases are one."""

    def names(
        self, *, schema: str = "a", channels: Sequence[tuple[str, str]] = PAIR, **rules: str
    ) -> dict[str, dict[str, str]]:
        """Return the run's names by cluster, given rules as from->to with spaces between, and what logs show."""
        logged = {name: set(rules.pop(f"logged_{name}", "").split()) for name in "ABC"}
        filters = {
            channel: ReplicationFilter.of({"replicate_rewrite_db": rules.get(channel[0], "").split()})
            for channel in channels
        }
        found = names_of_databases(sorted({*sum(channels, ())}), filters, schema.split(), logged, {"t"})
        return {cluster: dict(own) for cluster, own in found.own.items()}

    def test_both_ways(self) -> None:
        """The run has the first cluster's name; the schema may have either."""
        for schema in ("a", "b", "a b"):
            assert self.names(schema=schema, A="b->a", B="a->b") == {"A": {"a": "a"}, "B": {"b": "a"}}

    def test_several_rules(self) -> None:
        """Each pair for itself."""
        found = self.names(schema="a c", A="b->a d->c", B="a->b c->d")
        assert found == {"A": {"a": "a", "c": "c"}, "B": {"b": "a", "d": "c"}}

    def test_the_first_of_two_rules_counts(self) -> None:
        """As in the server's list of rules."""
        assert self.names(A="b->a", B="a->b a->c") == {"A": {"a": "a"}, "B": {"b": "a"}}

    def test_one_way(self) -> None:
        """A database of the target that has the source's name is another one."""
        found = self.names(channels=(("B", "A"),), B="a->b", logged_B="a")
        assert found == {"A": {"a": "a"}, "B": {"a": "a of B", "b": "a"}}

    def test_a_ring(self) -> None:
        """A name that the next cluster keeps is known there, too."""
        found = self.names(channels=(("B", "A"), ("C", "B"), ("A", "C")), B="a->b", A="b->a", C="x->y")
        assert found == {"A": {"a": "a"}, "B": {"b": "a"}, "C": {"b": "a"}}

    @pytest.mark.parametrize(
        "rules",
        [
            {"B": "a->b"},  # what B changes in b arrives in b on A
            {"schema": "a c", "B": "a->b c->b", "A": "b->a"},  # two become one
            {"A": "b->a", "B": "a->b", "logged_A": "a b"},  # the target is a database of A, too
            {"A": "b->a", "B": "a->b", "logged_B": "a b"},
        ],
    )
    def test_two_databases_that_would_be_one_are_refused(self, rules: dict[str, str]) -> None:
        """The message names them, and what to do."""
        with pytest.raises(ConfigurationError, match=r"Two databases in one are not followed\. Give the rule of each"):
            self.names(**rules)

    def test_mysql_keeps_its_name(self) -> None:
        """Without ndb_apply_status nothing tells which epochs were applied."""
        with pytest.raises(ConfigurationError, match="replicate_rewrite_db renames mysql"):
            self.names(B="mysql->other")


def test_what_is_told_has_the_names_of_each_cluster(tmp_path: Path) -> None:
    """Results of one cluster alone have its names; a table can be asked for by either."""
    (tmp_path / "case").mkdir()
    rename_on_b(RECORDINGS / "conflict" / "max" / "hot_3021_type7", tmp_path / "case")
    case = ConflictCase.load(tmp_path / "case")
    scenario = case.scenario
    statements = [each for table in scenario["tables"] for each in (table["create"], table["ex"]) if each]
    (tmp_path / "schema.sql").write_text("USE cft;\n" + ";\n".join(statements) + ";\n")
    lines = ['schema = "schema.sql"']
    for name, other, rule in (("A", 1, "cfx->cft"), ("B", 2, "cft->cfx")):
        lines += [f"[clusters.{name}]", f"server_id = {other}", f'binlogs = ["case/{name}.binlog.0*"]']
        lines += [f'replicate_rewrite_db = ["{rule}"]']
    for row in scenario["ndb_replication"]:
        lines += ["[[ndb_replication]]", f'db = "{row["db"]}"', f'table_name = "{row["table_name"]}"']
        lines += [f"binlog_type = {row['binlog_type']}"]
        lines += [f'conflict_fn = "{row["conflict_fn"]}"'] if row["conflict_fn"] else []
    (tmp_path / "run.toml").write_text("\n".join(lines))
    result = conflict.resolve(tmp_path / "run.toml", engine="reference", out=tmp_path / "result")
    told = str(result.summary)
    assert "cfx.t1" in told
    assert "cft is cfx on B" in told
    counts = result.conflicts_by("table").to_pylist()
    assert {(row["applier"], row["table"][:3]) for row in counts} == {("A", "cft"), ("B", "cfx")}
    assert result.rows("B", "cfx.t1").equals(result.rows("B", "cft.t1"))
    assert len(result.rows("B", "t1"))
    assert result.exceptions("cfx.t1", "B").num_rows == result.exceptions("t1", "B").num_rows > 0
    assert min(each.name for each in (tmp_path / "result" / "exceptions" / "B").iterdir()).startswith("cfx.t1")
    story = result_story(tmp_path, result)
    assert "cft is cfx on B" in story
    conflict.ingest(tmp_path / "run.toml", out=tmp_path / "history")
    conflict.resolve(tmp_path / "run.toml", history=tmp_path / "history", out=tmp_path / "again", engine="local")
    assert json.loads((tmp_path / "again" / "counters.json").read_text()) == result.counters
    same = (tmp_path / "run.toml").read_text().replace('["cft->cfx"]', "[]").replace('["cfx->cft"]', "[]")
    (tmp_path / "plain.toml").write_text(same)
    with pytest.raises(HistoryError, match="appliers renamed databases otherwise: cft is cfx on B, not none is"):
        conflict.resolve(tmp_path / "plain.toml", history=tmp_path / "history", out=tmp_path / "other", engine="local")


def result_story(folder: Path, result: conflict.Result) -> str:
    """Return the story of a row of B's that was rejected."""
    row = next(each for each in result.conflicts.to_pylist() if each["applier"] == "B")
    _, _, table = row["table"].partition(".")
    return str(conflict.explain(folder / "result", table=f"cfx.{table}", key=row["key"]))
