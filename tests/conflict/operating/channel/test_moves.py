"""Channels that moved, and epochs that came again: found from the logs, and told; judged by recordings."""

from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import attrs
import pytest

import conflict
from conflict.explaining.explainer import Explainer
from conflict.history.grid.folder import Folder
from conflict.history.ingestion.epoch_table import scan_epoch_table
from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.timeline import EpochApply
from conflict.judge.case import ConflictCase
from conflict.results.cutovers import REPEATED, moves_of, repeated_path
from conflict.results.result import Result
from conflict.results.run_document import RunDocument
from conflict.results.telling import tell_result
from conflict.runs.pipeline import ENGINES
from tests.conflict.operating.channel.test_channels import BUNDLED, CASES, IDS, failovers
from tests.corpora import RECORDINGS, SHARED

TWICE = SHARED / "conformance/operations/channel_failover/channel_failover_max_type7"


def resolved(case: Path, folder: Path, engine: str = "local") -> tuple[RunDocument, dict[str, Any], Folder]:
    """Return the result of a recording, its document, and its folder."""
    out = Folder(str(folder / engine))
    found = ENGINES[engine](make_run(ConflictCase.load(case).configuration()), out)
    return found, found.to_json(engine), out


@pytest.mark.corpus("conformance/operations/channel_failover")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_recorded_moves(case: Path, tmp_path: Path) -> None:
    """Each is found where the recording has it, with its SQL nodes at both ends, by both engines."""
    _, document, out = resolved(case, tmp_path)
    found = [
        (each["last_epoch"], tuple(each["applier_servers"]), tuple(each["source_servers"]))
        for each in document["cutovers"]
    ]
    recorded = [
        (
            step["after_epoch"],
            (IDS[step["applier"]], IDS[step["to"]]),
            (IDS[f"{step['source'][0]}1"], IDS[step["source"]]),
        )
        for step in failovers(case)
    ]
    assert found == recorded
    _, other, beside = resolved(case, tmp_path, "reference")
    for name in ("cutovers", "repeated_epochs"):
        assert document[name] == other[name]
    for applier in "AB":
        if out.exists(repeated_path(applier)):
            tables = [folder.read_table(repeated_path(applier), REPEATED) for folder in (out, beside)]
            assert tables[0].equals(tables[1])


@pytest.mark.corpus("conformance/operations/channel_failover")
def test_epochs_that_came_twice(tmp_path: Path) -> None:
    """One in all recordings: both rows of mysql.ndb_apply_status are in A's log; its rows are listed, and explained."""
    steps = [step for case in CASES for step in failovers(case)]
    found, document, out = resolved(TWICE, tmp_path)
    (repeat,) = document["repeated_epochs"]
    (moved,) = [each for each in document["cutovers"] if each["applied_again"]]
    assert moved["applied_again"] == [repeat["source_epoch"]] == [moved["last_epoch"]]
    assert (moved["applier"], repeat["shown"]) == ("A", True)
    assert sum(step["after_epoch"] == repeat["source_epoch"] for step in steps) == 1
    table = scan_epoch_table(1, [TWICE / "A1.binlog.000001"])
    twice = Counter(table.applied.epoch[table.applied.server_id % 2 == 0].tolist())  # B's servers
    assert [epoch for epoch, times in twice.items() if times > 1] == [repeat["source_epoch"]]
    rows = out.read_table(repeated_path("A"), REPEATED).to_pylist()
    logged = conflict.read_binlog(
        TWICE / "B1.binlog.000001",
        server_ids=[2],
        start_epoch=repeat["source_epoch"],
        stop_epoch=repeat["source_epoch"],
    ).to_arrow()
    own = [each for each in logged.to_pylist() if not each["flags"] and each["table"] != "ndb_apply_status"]
    assert Counter(f"ops.{each['table']}" for each in own) == repeat["changes"] == Counter(row["table"] for row in rows)
    assert {row["epoch"] for row in rows} == {moved["epoch"]}
    said = " ".join(tell_result(document).sentences)
    assert f"moved from server 2 to server 4 of B in epoch {moved['epoch']} of A" in said
    assert "A applied 1 epoch of B again" in said
    story = Explainer(Result(out, document, {}), found.run).row("ops.plain", rows[0]["key"])
    again = [each for each in story.events if "was applied before: the channel had moved to server 4" in each.sentence]
    assert [(each.cluster, each.epoch, each.source_epoch) for each in again] == [
        ("A", moved["epoch"], repeat["source_epoch"])
    ]


def test_the_bundled_recording(tmp_path: Path) -> None:
    """What `run.json` and the summary say, and when: the commit times of the applier's log."""
    _, document, _ = resolved(BUNDLED, tmp_path)
    assert document["repeated_epochs"] == []
    assert [each["last_epoch"] for each in document["cutovers"]] == [step["after_epoch"] for step in failovers(BUNDLED)]
    for each, node in zip(document["cutovers"], ("A1", "B1"), strict=True):
        table = scan_epoch_table(IDS[node], [BUNDLED / f"{node}.binlog.000001"])
        committed = int(table.committed[table.log.number.tolist().index(each["epoch"])])
        assert datetime.fromisoformat(each["committed"]).timestamp() == pytest.approx(committed / 1e6, abs=1e-5)
    said = [each for each in tell_result(document).sentences if "moved" in each]
    assert len(said) == 2
    assert "No log says which SQL node of A applies; 1 then 3 is assumed." in said[0]


def test_the_logs_of_one_node_tell_of_the_move(tmp_path: Path) -> None:
    """Though none of the other's is given."""
    configuration = ConflictCase.load(BUNDLED).configuration()
    clusters = tuple(attrs.evolve(each, servers=each.servers[:1]) for each in configuration.clusters)
    found = ENGINES["local"](make_run(attrs.evolve(configuration, clusters=clusters)), Folder(str(tmp_path / "out")))
    whole = resolved(BUNDLED, tmp_path)[1]["cutovers"]
    assert found.to_json("local")["cutovers"] == whole


@pytest.mark.parametrize("engine", ["local", "reference"])
def test_a_replica_that_was_set_back(engine: str, tmp_path: Path) -> None:
    """Without a move: its epochs came again, and are listed."""
    _, document, out = resolved(RECORDINGS / "conflict/epoch/rewound_type7", tmp_path, engine)
    assert document["cutovers"] == []
    for applier in "AB":  # both were, says the scenario
        mine = [each for each in document["repeated_epochs"] if each["applier"] == applier]
        rows = out.read_table(repeated_path(applier), REPEATED)
        assert rows.num_rows == sum(sum(each["changes"].values()) for each in mine) > 0
        assert all(each["shown"] and each["first"] < each["epoch"] for each in mine)
    said = " ".join(tell_result(document).sentences)
    assert "A applied 6 epochs of B again, the first 6154688135170 (5 row changes)" in said


def applied(*places: tuple[int, int, int], source: str = "B") -> list[EpochApply]:
    """Return epoch applies: own epoch, foreign epoch and SQL node of the source; one without a trace has server 0."""
    return [
        EpochApply(own, 0, source, foreign, traced=bool(server), server=max(server - 1, 0), source_server=server)
        for own, foreign, server in places
    ]


def test_moves_of_a_schedule() -> None:
    """Back and forth; epochs without a trace belong to neither; a skip between is told; each source for itself."""
    own = applied((1, 10, 2), (2, 11, 0), (3, 13, 4), (4, 12, 4), (5, 13, 4), (6, 14, 2))
    other = applied((1, 10, 7), (3, 11, 7), source="C")
    moves = moves_of({"A": [*own[:3], *other, *own[3:]]}, {"A": {3: 3_000_000}})
    assert [(each.epoch, each.last_epoch, each.first_epoch, each.source_servers) for each in moves.cutovers] == [
        (3, 10, 13, (2, 4)),
        (6, 13, 14, (4, 2)),
    ]
    assert [(each.source_epoch, each.first, each.epoch) for each in moves.repeats] == [(13, 3, 5)]
    document = moves.to_json([("A", "B", 12), ("A", "B", 9), ("B", "A", 12)])["cutovers"]
    assert [each["never_applied"] for each in document] == [[12], []]
    assert [each["committed"] for each in document] == ["1970-01-01T00:00:03+00:00", None]
    assert [each["applied_again"] for each in document] == [[], []]
