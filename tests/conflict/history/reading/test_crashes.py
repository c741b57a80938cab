"""Data nodes that all went down: when a log shows it, what may be gone, and what is said of it."""

import json
from collections.abc import Collection, Sequence
from pathlib import Path

import attrs
import pyarrow.parquet as pq
import pytest

from conflict.config.configuration import LoggingServer
from conflict.explaining.explainer import Explainer
from conflict.history.grid.folder import Folder
from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.reading.crashes import crashes_in_rows, crashes_of
from conflict.history.reading.unlogged_changes import MISSING, LoggedState
from conflict.history.restarts import Disconnect
from conflict.history.timeline import START, Position
from conflict.history.unlogged import Crash, UnloggedKind
from conflict.judge.case import ConflictCase
from conflict.judge.judged_run import JudgedRun
from conflict.results.result import Result
from conflict.results.telling import tell_result
from conflict.runs.pipeline import ENGINES
from tests.conflict.judge.test_operations import figures_of
from tests.corpora import RECORDINGS

OPERATIONS = RECORDINGS / "operations"
CRASHED = OPERATIONS / "data_node_crash/data_node_crash_max_type7"
START_OF_LOG = 1_700_000_000
ROW, OTHER_ROW = ("d.t", b"1"), ("d.t", b"2")
OLD, NEW, NEWEST = (1 << 32 | each for each in (5, 6, 7))  # digests of images with the same columns


def epoch(gci: float) -> tuple[int, int]:
    """Return an epoch of a cluster with a GCI every 2 s and 20 epochs in each, and when it committed."""
    whole = int(gci)
    return whole << 32 | round((gci - whole) * 20), int((START_OF_LOG + 2 * gci + 0.1) * 1_000_000)


def after(second: float, number: tuple[int, int]) -> tuple[int, int]:
    """Return an epoch that committed some seconds later than its GCI says: the data nodes had stood still."""
    return number[0], number[1] + int(second * 1_000_000)


def lost_at(last: tuple[int, int], gci: float) -> Disconnect:
    """Return an incident that was logged when a GCI was reached."""
    moment = START_OF_LOG + 2 * gci
    return Disconnect("A", 1, "a.000001", 500, moment, moment, last[0])


RUNNING = [epoch(each / 4) for each in range(40, 78)]  # GCI 10 to 19.25


def found(disconnects: Sequence[Disconnect], *epochs: tuple[int, int]) -> list[tuple[int, int, int | None]]:
    """Return the GCIs that survive at least and at most, and the GCI of the first epoch afterwards."""
    crashes = crashes_of(disconnects, [*RUNNING, *epochs])
    return [(each.durable, each.latest, None if each.first is None else each.first >> 32) for each in crashes]


def test_the_gci_under_way_is_gone_and_the_one_before_it_may_be() -> None:
    """Two GCIs back one is saved, or the next would not have begun; nothing after the last whole one is."""
    last = RUNNING[-1]
    assert found([lost_at(last, 19.4)], after(8, epoch(20.5))) == [(17, 18, 20)]
    assert found([lost_at(last, 20.3)], after(8, epoch(21.5))) == [(17, 19, 21)]


def test_changes_long_before_are_durable() -> None:
    """Ten seconds before the incident: six in which a server notices that its cluster is gone, and two GCIs."""
    assert found([lost_at(RUNNING[-1], 25)], after(8, epoch(26))) == []


def test_gcis_that_go_on_tell_that_the_server_alone_was_cut_off() -> None:
    """The cluster ran on: nothing is gone from it, though the log lacks what it did in the meantime."""
    assert found([lost_at(RUNNING[-1], 19.4)], epoch(23), epoch(24)) == []
    assert found([lost_at(RUNNING[-1], 19.4)], after(4, epoch(22)), after(4, epoch(24))) == [(17, 18, 22)]


def test_a_log_that_ends_there() -> None:
    """Nothing tells that the cluster ran on; a log that begins there holds nothing that can be gone."""
    assert found([lost_at(RUNNING[-1], 19.4)]) == [(17, 18, None)]
    assert crashes_of([lost_at((0, 0), 5)], RUNNING) == []
    assert crashes_of([lost_at((0, 0), 5)], []) == []


def test_two_crashes() -> None:
    """What came back from the first one was durable in the second one."""
    second = [after(8, epoch(20.5)), after(8, epoch(20.75))]
    disconnects = [lost_at(RUNNING[-1], 19.4), lost_at(second[-1], 25)]
    assert found(disconnects, *second, after(16, epoch(22))) == [(17, 18, 20), (19, 20, 22)]


def test_several_servers_of_a_cluster_lose_it_together() -> None:
    """Each log has an incident; there was one crash."""
    both = [lost_at(RUNNING[-1], 19.4), attrs.evolve(lost_at(RUNNING[-1], 19.4), server_id=3, file="b.000001")]
    assert found(both, after(8, epoch(20.5))) == [(17, 18, 20)]


def own(gci: int, before: int | None, digest: int) -> LoggedState:
    """Return an own change in the first epoch of a GCI."""
    return LoggedState((gci << 32, 0), True, (0,), before, digest)


def applied(gci: int, met: int | None, digest: int) -> LoggedState:
    """Return what the applier did."""
    return LoggedState((gci << 32, 0), False, (), None, digest, met=met)


CRASH = Crash(lost_at(epoch(19), 19.5), epoch(19)[0], epoch(22)[0], 17, 19)
CHANGED = [own(12, MISSING, OLD), own(18, OLD, NEW), own(19, NEW, NEWEST)]


@pytest.mark.parametrize(
    ("later", "kind", "kept"),
    [
        ([], UnloggedKind.MAY_BE_GONE, None),
        ([own(22, OLD, NEW)], UnloggedKind.GONE, (12 << 32, 0)),
        ([own(22, NEW, OLD)], UnloggedKind.GONE, (18 << 32, 0)),
        ([own(22, NEWEST, OLD)], None, None),
        ([applied(22, NEW, OLD)], UnloggedKind.GONE, (18 << 32, 0)),
        ([applied(22, None, OLD)], UnloggedKind.MAY_BE_GONE, None),
        ([applied(22, None, OLD), own(23, OLD, NEW)], UnloggedKind.MAY_BE_GONE, None),
        ([own(22, 1 << 32 | 99, OLD)], UnloggedKind.MAY_BE_GONE, None),  # something else changed it
    ],
)
def test_what_the_first_image_afterwards_tells(
    later: Collection[LoggedState], kind: UnloggedKind | None, kept: Position | None
) -> None:
    """It shows the row as it came back; what the row was given after that tells nothing."""
    _, rows = crashes_in_rows([CRASH], {ROW: [*CHANGED, *later]})
    assert [(each.kind, each.kept, each.after) for each in rows] == ([(kind, kept, (19 << 32, 0))] if kind else [])


def test_one_row_tells_of_the_others() -> None:
    """A GCI is gone as a whole, and so is all that came after it."""
    states = {ROW: [*CHANGED, own(22, NEW, OLD)], OTHER_ROW: [own(19, MISSING, OLD)], ("d.t", b"3"): CHANGED[:2]}
    (crash,), rows = crashes_in_rows([CRASH], states)
    assert (crash.durable, crash.latest) == (18, 18)
    assert [(each.key, each.kind, each.kept) for each in rows] == [
        (b"1", UnloggedKind.GONE, (18 << 32, 0)),
        (b"2", UnloggedKind.GONE, START),
    ]


def test_an_insert_that_finds_no_row_tells_that_a_delete_survived() -> None:
    """No before image is needed."""
    states = {ROW: [own(12, None, OLD), own(18, 0, MISSING), own(22, MISSING, NEW)], OTHER_ROW: [own(19, 0, OLD)]}
    (crash,), rows = crashes_in_rows([CRASH], states)
    assert (crash.durable, crash.latest) == (18, 19)
    assert [(each.key, each.kind) for each in rows] == [(b"2", UnloggedKind.MAY_BE_GONE)]


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_a_crash_is_told(engine: str, tmp_path: Path) -> None:
    """Its epochs, its rows, and what to do; seven rows are what they were before, as images show."""
    case, out = ConflictCase.load(CRASHED), Folder(str(tmp_path))
    resolved = ENGINES[engine](make_run(case.configuration()), out)
    document = json.loads(json.dumps(resolved.to_json(engine)))
    ((crash,),) = document["crashes"].values()
    assert (crash["from_epoch"], crash["to_epoch"], crash["certain"]) == (1641 << 32, 1641 << 32 | 6, True)
    assert (crash["tables"], crash["known_rows"]) == ({"opx.t1": 1, "opx.t2": 3, "opx.plain": 3}, 7)
    warnings = tell_result(document).warnings
    assert sum("all data nodes of B went down" in each for each in warnings) == 1
    assert not any("without a log" in each for each in warnings)
    assert any("its data nodes went down and lost it" in each for each in warnings)
    rows = pq.read_table(tmp_path / "unlogged_changes/cluster=B.parquet").to_pylist()
    assert {(each["change"], each["position"]) for each in rows} == {("gone", crash["position"])}
    story = Explainer(Result(out, document, {}), resolved.run).row("opx.t2", "a=1, b=x4")
    assert any("its last changes of the row are gone" in each for each in story.notes)


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_nothing_is_said_of_data_nodes_that_were_stopped_in_order(engine: str, tmp_path: Path) -> None:
    """The same incident; nobody had changed anything for ten seconds."""
    case = ConflictCase.load(OPERATIONS / "data_node_restart/data_node_restart_epoch2_trans_type9")
    document = ENGINES[engine](make_run(case.configuration()), Folder(str(tmp_path))).to_json(engine)
    assert (document["crashes"], document["unlogged_changes"]) == ({}, {})


@pytest.mark.parametrize("engine", ["reference", "local"])
@pytest.mark.parametrize("case", ["max_type7", "epoch2_trans_type9"])
def test_a_log_that_ends_with_the_crash(case: str, engine: str, tmp_path: Path) -> None:
    """No image follows: rows that B then has are right, or not known."""
    loaded = ConflictCase.load(OPERATIONS / f"data_node_crash/data_node_crash_{case}")
    configuration = loaded.configuration()
    first, second = configuration.clusters
    cut = attrs.evolve(second, servers=(LoggingServer(2, second.files[:1]),))
    run = make_run(attrs.evolve(configuration, clusters=(first, cut)))
    document = json.loads(json.dumps(ENGINES[engine](run, Folder(str(tmp_path))).to_json(engine)))
    ((crash,),) = document["crashes"].values()
    assert (crash["certain"], crash["next_epoch"], crash["known_rows"]) == (False, None, 0)
    assert sum(each["rows"] for each in document["not_known"]["B"].values()) == sum(crash["tables"].values())
    assert any("It is not known what they were then" in each for each in tell_result(document).warnings)


def test_in_large_logs_the_rows_alone_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels resolve all other rows, and the result is that of the reference engine."""
    monkeypatch.setattr("conflict.runs.resolving.finding_careful.MOST_CHANGES", 10)
    case, results = ConflictCase.load(CRASHED), []
    for engine in ("local", "reference"):
        out = Folder(str(tmp_path / engine))
        resolved = ENGINES[engine](make_run(case.configuration()), out)
        assert resolved.engine == ""
        judged = JudgedRun.read(case, out, resolved).results
        figures = {name: figures_of(result) for name, result in judged.items()}
        results.append((figures, resolved.crashes, {name: set(own) for name, own in resolved.unlogged.items()}))
    assert results[0] == results[1]
