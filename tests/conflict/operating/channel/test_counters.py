"""Counters by SQL node, and since a restart: judged by what each server of a recording showed."""

from collections import Counter
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from conflict.config.configuration import ClusterConfiguration, LoggingServer, Span
from conflict.history.grid.folder import Folder
from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.restarts import restarts_before, stretches_of
from conflict.judge.case import ConflictCase, find_recordings
from conflict.judge.judge import CaseStatus, judge_recording
from conflict.judge.judged_run import JudgedRun
from conflict.results.run_document import RunDocument
from conflict.results.server_counters import ServerCounters, server_counters
from conflict.results.telling import tell_result
from conflict.runs.pipeline import ENGINES
from ndb_formats.constants import EventType
from ndb_formats.events.control_events import IncidentEvent, encode_incident
from tests.conflict.spliced_logs import spliced
from tests.corpora import RECORDINGS, SHARED

RESTARTED = RECORDINGS / "operations/server_restart/server_restart_max_type7"
MOVED = RECORDINGS / "operations/channel_failover/channel_failover_epoch_trans_type9"
OPERATIONS = SHARED / "conformance/operations"
SHARED_CASES = [
    case for kind in ("channel_failover", "server_restart") for case in sorted((OPERATIONS / kind).glob("*"))
]
STARTUP = encode_incident(IncidentEvent(1, "mysqld startup"))


def resolved(case: ConflictCase, out: Path, engine: str = "local", **changes: Any) -> RunDocument:
    """Return the result of a recording, with changes of its configuration."""
    run = make_run(attrs.evolve(case.configuration(), **changes))
    return ENGINES[engine](run, Folder(str(out)))


def counted(found: RunDocument) -> dict[int, ServerCounters]:
    """Return what each SQL node counted."""
    return {each.server: each for each in server_counters(found.run, found.summary.stretches)}


def assert_as_recorded(case: ConflictCase, found: RunDocument) -> None:
    """Compare with what each server showed at the end; one that applied nothing shows 0 everywhere."""
    mine = counted(found)
    for name, about in case.scenario["servers"].items():
        recorded = case.expected["servers"][name]["status_difference"]
        ours = mine[about["server_id"]].at_end if about["server_id"] in mine else {}
        assert {counter: ours.get(counter, 0) for counter in recorded} == recorded, name


@pytest.mark.parametrize("engine", ["local", "reference"])
@pytest.mark.parametrize("case", [MOVED, RESTARTED], ids=["moved", "restarted"])
def test_bundled_recordings(case: Path, engine: str, tmp_path: Path) -> None:
    """Each server shows its own counters; those of a cluster are their sum."""
    loaded = ConflictCase.load(case)
    found = resolved(loaded, tmp_path / "out", engine)
    assert_as_recorded(loaded, found)
    for name, counters in found.summary.counters.items():
        total = Counter[str]()
        for each in counted(found).values():
            if each.cluster == name:
                total.update(each.counters)
        assert {counter: total[counter] for counter in counters} == counters


@pytest.mark.corpus("conformance/operations")
@pytest.mark.parametrize("case", SHARED_CASES, ids=lambda case: case.name)
def test_shared_recordings(case: Path, tmp_path: Path) -> None:
    """All that moved or were restarted."""
    loaded = ConflictCase.load(case)
    assert_as_recorded(loaded, resolved(loaded, tmp_path / "out"))


def test_what_is_told(tmp_path: Path) -> None:
    """The whole and since the restart, with its place; of clusters alone that have more to tell than counters.json."""
    document = resolved(ConflictCase.load(RESTARTED), tmp_path / "out").to_json("local")
    assert document["server_counters"].keys() == {"B"}
    (told,) = document["server_counters"]["B"]
    assert (told["server"], told["counters"], told["since_restart"], told["since_restart_ranges"]) == (
        2,
        {"Ndb_conflict_fn_max": 7},
        {"Ndb_conflict_fn_max": 5},
        {},
    )
    assert (Path(told["restart"]["file"]).name, told["restart"]["position"]) == ("B1.binlog.000002", 235)
    (table,) = [each for each in tell_result(document).tables if each.title == "What each SQL node counted"]
    assert table.rows == [("B", "2", "Ndb_conflict_fn_max", 7, 5)]
    assert "server 2 at B1.binlog.000002, position 235" in table.note
    document = resolved(ConflictCase.load(MOVED), tmp_path / "moved").to_json("local")
    assert {name: [each["server"] for each in own] for name, own in document["server_counters"].items()} == {
        "A": [1, 3],
        "B": [2, 4],
    }
    (table,) = [each for each in tell_result(document).tables if each.title == "What each SQL node counted"]
    assert "since its restart" not in table.headings


def test_a_part_of_the_log_before_the_restart(tmp_path: Path) -> None:
    """Tells of none: what was counted up to there is the whole."""
    case = ConflictCase.load(RESTARTED)
    (restart,) = make_run(case.configuration()).restarts
    assert restart.epoch is not None
    for span, told in (
        (Span(last={"B": restart.epoch - 1}), False),
        (Span(last={"B": restart.epoch}), True),
        (Span(stop_time=restart.second), False),
        (Span(stop_time=restart.second + 60), True),
    ):
        found = resolved(case, tmp_path / str(len(list(tmp_path.iterdir()))), span=span)
        assert (counted(found)[2].restart is not None) is told
        assert bool(found.to_json("local")["server_counters"]) is told


@pytest.mark.parametrize(("node", "restarted"), [("A1", {1}), ("A2", {3})])
def test_a_restart_of_one_of_several_nodes(node: str, restarted: set[int], tmp_path: Path) -> None:
    """It forgets the counters of that one, whether its log is the one that is read or not."""
    case = ConflictCase.load(MOVED)
    log = tmp_path / f"{node}.binlog.000001"
    log.write_bytes(spliced(MOVED / log.name, [(EventType.INCIDENT_EVENT, 1, STARTUP)], after=80))

    def with_incident(cluster: ClusterConfiguration) -> ClusterConfiguration:
        servers = (
            LoggingServer(each.server_id, tuple(log if file.name == log.name else file for file in each.files))
            for each in cluster.servers
        )
        return attrs.evolve(cluster, servers=tuple(servers))

    clusters = tuple(map(with_incident, case.configuration().clusters))
    found = counted(resolved(case, tmp_path / "out", clusters=clusters))
    plain = counted(resolved(case, tmp_path / "plain"))
    assert {each.server for each in found.values() if each.restart is not None} == restarted
    for server, each in found.items():
        assert each.counters == plain[server].counters
        less = {name for name, value in each.counters.items() if each.at_end.get(name, 0) < value}
        assert bool(less) is (server in restarted)
    if node == "A1":  # the channel had moved by then
        assert not any(found[1].at_end.values())


def test_epochs_on_either_side_of_a_restart() -> None:
    """Those without a trace next to it may belong to either; other servers' and traced ones do not."""
    epoch = np.array([1, 2, 3, 3, 5, 5, 6, 7], np.uint64)
    server = np.array([2, 2, 2, 4, 2, 2, 2, 2], np.uint64)
    traced = np.array([1, 0, 1, 0, 0, 1, 0, 1], np.bool_)
    of, stretches = stretches_of(server, epoch, traced, {2: (1, 4)})
    assert [stretches[each] for each in of] == [
        (2, False, False),
        (2, False, False),
        (2, False, False),
        (4, False, False),
        (2, True, True),
        (2, True, False),
        (2, True, False),
        (2, True, False),
    ]
    assert restarts_before(server, epoch, {2: (1, 4)}).tolist() == [1, 1, 1, 0, 2, 2, 2, 2]
    of, stretches = stretches_of(server, epoch, np.zeros(8, np.bool_), {2: (2**64,)})
    assert {stretches[each] for each in of} == {(2, False, True), (4, False, False)}


def test_the_judge_looks_at_each_node(tmp_path: Path) -> None:
    """Counters that are right together and wrong for each are a difference."""
    (recording,) = find_recordings(MOVED)
    assert judge_recording(recording, "local", use_steps=False).status is CaseStatus.PASS
    case = ConflictCase.load(MOVED)
    out = Folder(str(tmp_path / "out"))
    judged = JudgedRun.read(case, out, ENGINES["local"](make_run(case.configuration()), out))
    assert judged.compare(case.recorded).differences == []
    recorded = case.recorded
    servers = recorded["A"]["servers"]
    recorded["A"]["servers"] = {1: servers[3], 3: servers[1]}
    assert any("A: server 1: Ndb_conflict_" in each for each in judged.compare(recorded).differences)
