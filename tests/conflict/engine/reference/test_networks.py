"""Chains, rings and stars of clusters: worked by hand, and their laws."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import conflict.runs.ingesting
import conflict.runs.pipeline
from conflict.api.explaining import opened
from conflict.cli.app import app
from conflict.cli.refusals import ExitCode
from conflict.config.configuration import Span
from conflict.config.run_file import load_run_file
from conflict.engine.reference.replay import resolve
from conflict.errors import ConfigurationError
from conflict.explaining.events import EventKind
from conflict.explaining.keys_asked import identity_asked
from conflict.history.model import Cluster
from conflict.results.result import read_result
from conflict.rules.decision import Verdict
from conflict.rules.replication_table import Role
from ndb_formats.events.rows_event import Operation
from tests.conflict.engine.inference.test_placement import FUNCTIONS, check
from tests.conflict.histories import CLUSTERS, TABLES, Setups, counters, resolved, rows, setups
from tests.conflict.random_histories import ROLES, SETTINGS, configuration, make_history
from tests.conflict.world_binlogs import write_world
from tests.conflict.worlds import World, random_steps, world
from tests.examples import examples

MAX, OLD = "NDB$MAX(x)", "NDB$OLD(x)"
UPDATE = Operation.UPDATE_ROW
SEEDS, COUNTS = st.integers(0, 2**32 - 1), st.sampled_from([10, 30, 80])


@attrs.frozen
class Network:
    """
    Clusters, and from which each one replicates.

    Attributes:
        sources: Per cluster, its sources.
        ignored: Per cluster and source, server ids that are left out: where a hub takes changes from several clusters,
            each of them would send those of the others back.
    """

    sources: tuple[tuple[int, ...], ...]
    ignored: dict[tuple[int, int], frozenset[int]] = attrs.field(factory=dict)

    def world(self, function: str | None) -> World:
        """Return clusters in this network."""
        size = len(self.sources)
        return world(function, clusters=size, sources=self.sources, ignored=self.ignored)


def star(size: int) -> Network:
    """Return a hub, A, that replicates with each of the others, both ways."""
    others = range(1, size)
    ignored = {(0, source): frozenset(each + 1 for each in others if each != source) for source in others}
    return Network((tuple(others), *((0,) for _ in others)), ignored)


NETWORKS = {
    "chain": Network(((), (0,), (1,))),
    "long chain": Network(((), (0,), (1,), (2,))),
    "ring": Network(((2,), (0,), (1,))),
    "ring of four": Network(((3,), (0,), (1,), (2,))),
    "star": star(3),
    "star of four": star(4),
    "one source": Network(((), (0,), (0,))),
}
BOTH_WAYS = ["ring", "ring of four", "star", "star of four"]


def tables(function: str | None, size: int) -> Setups:
    """Return the setups of a world's tables."""
    return setups(function, function, tables=TABLES, others=CLUSTERS[2:size])


@pytest.mark.parametrize("name", NETWORKS)
@examples(6, long=25)
@given(function=st.sampled_from(FUNCTIONS), seed=SEEDS, count=COUNTS)
def test_what_happened_is_found_from_binlogs_alone(name: str, function: str, seed: int, count: int) -> None:
    """Rows are right, no effect is contradicted, counters are within their ranges, and the answers go together."""
    made = NETWORKS[name].world(function)
    made.run(random_steps(seed, count, "tn"))
    for cluster in range(len(made.replayed)):
        made.close(cluster)
    check(made, tables(function, len(made.replayed)), {})


@pytest.mark.parametrize("name", BOTH_WAYS)
@pytest.mark.parametrize("function", FUNCTIONS[1:])
@examples(5, long=15)
@given(seed=SEEDS, count=COUNTS)
def test_the_greatest_value_survives_everywhere(name: str, function: str, seed: int, count: int) -> None:
    """Of updates with values that no two share, all functions of the MAX family keep the greatest one's whole row."""
    made = NETWORKS[name].world(function)
    made.rising = True
    made.allowed = lambda cluster, number, operation: operation is UPDATE
    made.run(random_steps(seed, count))
    made.find_fixed_point()
    size = len(made.replayed)
    assert all(made.contents(cluster) == made.contents(0) for cluster in range(size))
    for number in (1, 2, 3):
        values = [each.value for each in made.made if each.key == number and each.value is not None]
        assert made.x(0, number) == max(values, default=10)


@pytest.mark.parametrize("name", BOTH_WAYS)
@pytest.mark.parametrize("function", [None, MAX, OLD])
@examples(5, long=15)
@given(seed=SEEDS, count=COUNTS)
def test_all_end_equal_where_each_row_has_one_writer(name: str, function: str | None, seed: int, count: int) -> None:
    """Also where a link fails for a while: what waited is applied afterwards. Nothing is rejected."""
    made = NETWORKS[name].world(function)
    size = len(made.replayed)
    made.rising = True
    made.allowed = lambda cluster, number, operation: number % size == cluster
    made.cut.add((seed % size, made.sources[seed % size][0]))
    made.run(random_steps(seed, count))
    made.cut.clear()
    made.find_fixed_point()
    assert all(made.contents(cluster) == made.contents(0) for cluster in range(size))
    assert {outcome.verdict for each in made.replayed for outcome in each.outcomes} <= {Verdict.APPLIED}


@pytest.mark.parametrize("name", ["chain", "long chain", "one source"])
@examples(5, long=15)
@given(function=st.sampled_from([None, *FUNCTIONS]), seed=SEEDS, count=COUNTS)
def test_replicas_follow_the_only_writer(name: str, function: str | None, seed: int, count: int) -> None:
    """Down a chain, all clusters end as the first one, which alone writes."""
    made = NETWORKS[name].world(function)
    made.rising = True
    made.allowed = lambda cluster, number, operation: cluster == 0
    made.run(random_steps(seed, count))
    made.find_fixed_point()
    assert all(made.contents(cluster) == made.contents(0) for cluster in range(len(made.replayed)))


@examples(15, long=60)
@given(
    seed=SEEDS,
    count=st.integers(0, 120),
    setting=st.integers(0, len(SETTINGS) - 1),
    roles=st.sampled_from(ROLES),
    complete=st.booleans(),
)
def test_two_clusters_beside_a_third_are_two_clusters(
    seed: int, count: int, setting: int, roles: tuple[Role, Role], complete: bool
) -> None:
    """With a third cluster to which nothing goes, outcomes, rows, exceptions and counters are those of the two."""
    run = configuration(setting, roles)
    pair = make_history(seed, count, complete=complete, roles=roles)
    network = attrs.evolve(pair, clusters=(*pair.clusters, Cluster("C", 3, ())))
    tables = run.setups.at_end
    expected, found = resolve(pair, tables), resolve(network, {**tables, "C": tables["A"]})
    assert found.outcomes == expected.outcomes
    for name in "AB":
        mine, theirs = found.clusters[name], expected.clusters[name]
        assert (mine.rows, mine.exceptions, mine.counters) == (theirs.rows, theirs.exceptions, theirs.counters)
        assert (mine.versions, mine.effects, mine.stop) == (theirs.versions, theirs.effects, theirs.stop)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("function", [MAX, None])
def test_binlogs_of_a_network(name: str, function: str | None, tmp_path: Path) -> None:
    """From binlog files and a run file to the rows of every cluster; the binlogs agree with all that is derived."""
    made = NETWORKS[name].world(function)
    made.run(random_steps(7, 60, "tn"))
    for cluster in range(len(made.replayed)):
        made.close(cluster)
    run_file = load_run_file(write_world(made, function, tmp_path))
    run = conflict.runs.pipeline.resolve(run_file, str(tmp_path / "out"), engine="local")
    assert (run.engine, run.summary.contradicted, run.likely_causes) == ("reference", 0, ())
    assert run.summary.compared > 10
    result = read_result(str(tmp_path / "out"))
    for number, cluster in enumerate(made.replayed):
        for table in "tn":
            rows = {row["k"]: row["x"] for row in result.rows(cluster.name, f"d.{table}").to_pylist()}
            assert rows == {key: made.x(number, key, table) for key in rows}
            assert rows.keys() == made.contents(number, table).keys()


@pytest.mark.parametrize("name", BOTH_WAYS)
def test_stories_of_a_network(name: str, tmp_path: Path) -> None:
    """Every change that a cluster made is told of its row, also in logs without Gtid events."""
    made = NETWORKS[name].world(MAX)
    made.run(random_steps(7, 60, "tn"))
    for cluster in range(len(made.replayed)):
        made.close(cluster)
    run_file = load_run_file(write_world(made, MAX, tmp_path))
    run = conflict.runs.pipeline.resolve(run_file, str(tmp_path / "out"), engine="local")
    rows = [(f"d.{table}", f"k={number}") for table in "tn" for number in range(20)]
    with opened(tmp_path / "out") as explainer:
        for table, key in rows:  # one by one, so that epochs without the row are left out
            (story,) = explainer.rows([(table, identity_asked(table, explainer.key_of(table), key))])
            run = attrs.evolve(
                run, changes=run.changes - sum(each.kind is EventKind.COMMITTED for each in story.events)
            )
    assert run.changes == 0


@pytest.mark.parametrize("command", ["compare", "ingest", "workload"])
def test_commands_for_two_clusters(command: str, tmp_path: Path) -> None:
    """They refuse a ring of three, and say why."""
    made = NETWORKS["ring"].world(MAX)
    made.run(random_steps(7, 60, "tn"))
    path = write_world(made, MAX, tmp_path)
    options = [] if command == "compare" else ["--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, [command, str(path), *options])
    assert done.exit_code == ExitCode.REFUSED
    assert "two clusters" in " ".join(done.output.split())


class TestByHand:
    """Worked by hand."""

    BASE = "A:i1=5/0@1 B:<A1@11 C:<B11@21 A:<C21?@2 "

    def test_a_chain(self):
        """B sends on what A wrote, under the server id of A; C's own changes go nowhere."""
        found = resolved("A:i1=5,i2=5@1 B:<A1@11 B:u2=5>6@12 C:i3=1@21 C:<B11@22 C:<B12@23", MAX, MAX)
        assert (rows(found, "A"), rows(found, "B")) == ([(1, 5, None), (2, 5, None)], [(1, 5, None), (2, 6, None)])
        assert rows(found, "C") == [(1, 5, None), (2, 6, None), (3, 1, None)]
        assert [(each.applier, each.source, each.source_epoch) for each in found.outcomes] == [
            ("B", "A", 1),
            ("B", "A", 1),
            ("C", "B", 11),
            ("C", "B", 11),
            ("C", "B", 12),
        ]
        assert found.differing_rows == {"d.t": 2}

    def test_a_change_that_comes_back_is_dropped(self):
        """A gets epoch 21 of C, which holds A's own insert alone: nothing is applied, counted or rejected."""
        found = resolved(self.BASE, MAX, MAX)
        assert [each.applier for each in found.outcomes] == ["B", "C"]
        assert (counters(found, "A"), found.differing_rows) == ({}, {})

    def test_concurrent_updates_under_max(self):
        """
        A writes 6, B 9 and C 7, all on 5.

        B rejects A's 6, so C never gets it; C takes B's 9 and sends it on; A takes C's 7 and then B's 9. B rejects the
        7 that A sent on, and does not take its own 9 back.
        """
        text = "A:u1=5>6@3 B:u1=5>9@12 C:u1=5>7@22 B:<A3?@13 C:<B12@23 A:<C22@4 A:<C23@5 B:<A4?@13 B:<A5?@13"
        found = resolved(self.BASE + text, MAX, MAX)
        assert [rows(found, name) for name in "ABC"] == [[(1, 9, 0)]] * 3
        assert [counters(found, name) for name in "ABC"] == [{}, {"fn_max": 2}, {}]
        assert found.differing_rows == {}

    def test_equal_values_under_max(self):
        """A and B both write 9, with another v: each rejects the other's. C keeps what comes first, B's."""
        text = "A:u1=5>9/1@3 B:u1=5>9/2@12 B:<A3?@13 C:<B12@22 A:<C22?@4"
        found = resolved(self.BASE + text, MAX, MAX)
        assert [rows(found, name) for name in "ABC"] == [[(1, 9, 1)], [(1, 9, 2)], [(1, 9, 2)]]
        assert [counters(found, name) for name in "ABC"] == [{"fn_max": 1}, {"fn_max": 1}, {}]
        assert found.differing_rows == {"d.t": 1}

    def test_concurrent_updates_under_old(self):
        """A writes 6 and B 7: each rejects the other's, as it no longer holds 5. C holds 5 and takes B's."""
        text = "A:u1=5>6@3 B:u1=5>7@12 B:<A3?@13 C:<B12@22 A:<C22?@4"
        found = resolved(self.BASE + text, OLD, OLD)
        assert [rows(found, name) for name in "ABC"] == [[(1, 6, 0)], [(1, 7, 0)], [(1, 7, 0)]]
        assert [counters(found, name) for name in "ABC"] == [{"fn_old": 1}, {"fn_old": 1}, {}]

    def test_what_a_cluster_rejects_goes_no_further(self):
        """In a chain, B holds 9 and rejects A's 7; C, which holds 5, does not hear of it."""
        text = "A:u1=5>7@3 B:u1=5>9@12 B:<A3?@13 B:i2=1@13 C:<B13@22"
        found = resolved(self.BASE + text, MAX, MAX)
        assert [row for row in rows(found, "C") if row[0] == 1] == [(1, 5, 0)]

    def test_an_outage_of_one_link(self):
        """C applies nothing of B any more; its own changes still reach A and, by way of A, B."""
        text = "A:u1=5>6@3 B:<A3@12 C:i2=1@22 A:<C22@4 B:<A4@13"
        found = resolved(self.BASE + text, MAX, MAX)
        assert rows(found, "A") == rows(found, "B") == [(1, 6, 0), (2, 1, None)]
        assert (rows(found, "C"), found.differing_rows) == ([(1, 5, 0), (2, 1, None)], {"d.t": 1})

    def test_a_hub(self):
        """A replicates with B and C; B sends back what C wrote and A gave it, and A leaves that out."""
        text = "A:i1=5@1 B:<A1@11 C:<A1@21 C:u1=5>7@22 A:<C22@2 B:<A2@12 A:<B12@3 B:u1=7>8@13 A:<B13@4 C:<A4@23"
        taken = resolved(text, MAX, MAX, ignored={"A": {"B": frozenset({3}), "C": frozenset({2})}})
        assert [rows(taken, name) for name in "ABC"] == [[(1, 8, None)]] * 3
        assert counters(taken, "A") == {}
        assert counters(resolved(text, MAX, MAX), "A") == {"fn_max": 1}

    def test_rows_of_a_replicated_exceptions_table_go_on(self):
        """B writes one for A's 6; C and A get it, and B does not take it back."""
        text = "A:u1=5>6@3 B:u1=5>9@12 B:<A3@13 C:<B12@22 C:<B13@23 A:<C22@4 A:<C23@5 B:<A5?@14"
        found = resolved(self.BASE + text, MAX, MAX, exceptions="t$ex")
        assert [found.clusters[name].exceptions["d.t$ex"] for name in "ABC"] == [[(2, 1, 3, 1, 1)]] * 3


@pytest.mark.parametrize("function", ["NDB$EPOCH()", "NDB$EPOCH_TRANS()", "NDB$EPOCH2()", "NDB$EPOCH2_TRANS()"])
def test_functions_by_epoch_are_refused(function: str, tmp_path: Path) -> None:
    """They know one other cluster; the message names table, cluster and function."""
    made = NETWORKS["ring"].world(MAX)
    run_file = load_run_file(write_world(made, function, tmp_path))
    with pytest.raises(ConfigurationError, match=r"table d\.t on A: NDB\$EPOCH.* works between two clusters"):
        conflict.runs.pipeline.resolve(run_file, str(tmp_path / "out"), engine="reference")


@pytest.mark.parametrize("span", [Span(empty=False), Span(first={"A": 2}), Span(last={"A": 2})])
def test_parts_of_logs_are_refused(span: Span, tmp_path: Path) -> None:
    """What older rows were is only found out between two clusters."""
    made = NETWORKS["ring"].world(MAX)
    run_file = load_run_file(write_world(made, MAX, tmp_path))
    run_file = attrs.evolve(run_file, configuration=attrs.evolve(run_file.configuration, span=span))
    with pytest.raises(ConfigurationError, match="are resolved only with two clusters that replicate to each other"):
        conflict.runs.pipeline.resolve(run_file, str(tmp_path / "out"), engine="reference")


def test_a_history_on_disk_is_one_of_two_clusters(tmp_path: Path) -> None:
    """So there is nothing to ingest."""
    run_file = load_run_file(write_world(NETWORKS["ring"].world(MAX), MAX, tmp_path))
    with pytest.raises(ConfigurationError, match="a History on disk is one of two clusters"):
        conflict.runs.ingesting.ingest(run_file, str(tmp_path / "history"))
