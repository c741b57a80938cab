"""Which cluster a server id belongs to, and the SQL nodes at the ends of a channel."""

import pytest

from conflict.config.configuration import ClusterConfiguration, Links, LoggingServer
from conflict.config.definitions import DefinitionStep, Moment
from conflict.history.epochs import AppliedEpoch
from conflict.history.scheduling.schedule_columns import ScheduleColumns
from conflict.history.scheduling.servers import clusters_of_servers, of_clusters, with_servers, with_statements
from conflict.history.scheduling.summaries import Summary
from conflict.history.timeline import DefinitionChange, EpochApply


def links(*servers: tuple[int, ...]) -> Links:
    """Return clusters A, B, ... with these server ids."""
    return Links(
        tuple(
            ClusterConfiguration(name, tuple(LoggingServer(each) for each in own))
            for name, own in zip("ABC", servers, strict=False)
        )
    )


def epoch(number: int, *applied: tuple[int, int, int]) -> Summary:
    """Return an own epoch with rows of ndb_apply_status: group, server id and epoch."""
    return Summary(number, (), tuple(AppliedEpoch(*each) for each in applied))


PAIR = links((1,), (2,))


def test_one_node_a_cluster_stays_as_it_is() -> None:
    """Nothing is looked for."""
    logged = {"A": [epoch(10, (0, 2, 100))], "B": [epoch(100)]}
    assert of_clusters(PAIR, logged) == logged


def test_a_channel_that_moved_goes_on_under_another_id() -> None:
    """B's epochs come through server 4 after they came through server 2; A's log says it, and no run file."""
    logged = {
        "A": [epoch(10, (0, 2, 100)), epoch(11, (0, 4, 101)), epoch(12, (0, 4, 102))],
        "B": [epoch(100), epoch(101), epoch(102)],
    }
    assert clusters_of_servers(PAIR, logged) == {1: "A", 2: "B", 4: "B"}
    found = of_clusters(PAIR, logged)
    assert [[(each.server_id, each.through) for each in own.applied] for own in found["A"]] == [
        [(2, 2)],
        [(2, 4)],
        [(2, 4)],
    ]


def test_own_epochs_that_come_back_under_a_sister_id_are_no_foreign_epochs() -> None:
    """A's log holds rows of server 3 beside those of server 2: what A itself did, come back through B."""
    logged = {
        "A": [epoch(10), epoch(11, (0, 2, 100), (0, 3, 10)), epoch(12, (1, 3, 11), (1, 2, 101))],
        "B": [epoch(100, (0, 3, 10)), epoch(101, (0, 3, 11))],
    }
    found = of_clusters(PAIR, logged)
    assert [[each.epoch for each in own.applied] for own in found["A"]] == [[], [100], [101]]
    assert [[(each.server_id, each.epoch) for each in own.applied] for own in found["B"]] == [[(1, 10)], [(1, 11)]]


def test_clusters_with_the_same_epoch_numbers_are_told_by_what_stands_alone() -> None:
    """Both clusters have epochs 10 to 12. Server 4 stands alone in A's log, so it is B's; server 3 in B's, so A's."""
    logged = {
        "A": [epoch(10, (0, 4, 10)), epoch(11, (0, 4, 11), (0, 3, 10)), epoch(12)],
        "B": [epoch(10), epoch(11, (0, 3, 10)), epoch(12, (0, 3, 11), (0, 4, 11))],
    }
    assert clusters_of_servers(PAIR, logged) == {1: "A", 2: "B", 4: "B", 3: "A"}


def test_an_id_whose_epochs_no_cluster_has_stays_unknown() -> None:
    """A third cluster's, whose log is not given."""
    logged = {"A": [epoch(10, (0, 2, 100)), epoch(11, (0, 9, 101))], "B": [epoch(100), epoch(102)]}
    assert clusters_of_servers(PAIR, logged) == {1: "A", 2: "B"}
    assert of_clusters(PAIR, logged)["A"][1].applied[0].server_id == 9


def test_the_nodes_at_both_ends_of_a_channel() -> None:
    """The second node applies from the second node, begins anew, and epochs without a trace go with those before."""
    both = links((1, 3), (2, 4))
    logged = of_clusters(
        both, {"A": [epoch(10, (0, 2, 100)), epoch(12, (0, 4, 102))], "B": [epoch(100), epoch(101), epoch(102)]}
    )
    applies = [
        EpochApply(10, 0, "B", 100),
        EpochApply(12, -1, "B", 101, traced=False),
        EpochApply(12, 0, "B", 102),
    ]
    found = with_servers(ScheduleColumns.of_applies("B", applies), *both.clusters, logged)
    assert [(each.server, each.source_server, each.restarted) for each in found.applies()] == [
        (1, 2, False),
        (1, 2, False),
        (3, 4, True),
    ]


@pytest.mark.parametrize(
    ("follows", "commits", "begins_anew"), [(101, True, 102), (100, True, 102), (101, False, None), (-1, True, None)]
)
def test_an_applier_begins_anew_after_a_statement_that_it_committed(
    follows: int, commits: bool, begins_anew: int | None
) -> None:
    """TRUNCATE and an ALTER that copies commit between two epochs of the source; epoch 101 was not applied."""
    applies = [
        EpochApply(10, 0, "B", 100),
        EpochApply(11, 0, "B", 101, applied=False),
        EpochApply(12, 0, "B", 102),
        EpochApply(13, 0, "B", 103),
    ]
    step = DefinitionStep("B.000001", 4, 2, "TRUNCATE TABLE t", Moment({}, {}), commits=commits)
    found = with_statements(ScheduleColumns.of_applies("B", applies), [DefinitionChange(11, step, follows=follows)])
    assert [each.foreign_epoch for each in found.applies() if each.restarted] == ([begins_anew] if begins_anew else [])


def test_the_epochs_of_a_third_cluster_are_of_no_other_one() -> None:
    """A replicates from B and from a third cluster, server 9, whose epochs have the numbers of B's by chance."""
    logged = {
        "A": [epoch(10 + each, (0, 2, 100 + each), (1, 9, 100 + each)) for each in range(20)],
        "B": [epoch(100 + each) for each in range(20)],
    }
    assert clusters_of_servers(PAIR, logged) == {1: "A", 2: "B"}
    assert [len(each.applied) for each in of_clusters(PAIR, logged)["A"]] == [2] * 20


def test_an_id_alone_in_the_log_of_the_cluster_with_its_epochs_is_unknown() -> None:
    """It stands alone in A's log, so it is a source's; and only A has such epochs."""
    logged = {"A": [epoch(10), epoch(11, (0, 9, 10)), epoch(12, (0, 9, 11))], "B": [epoch(100)]}
    assert clusters_of_servers(PAIR, logged) == {1: "A", 2: "B"}
