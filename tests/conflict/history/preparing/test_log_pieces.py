"""What is read of the logs of several SQL nodes: one log, and from the others what it lacks."""

from collections.abc import Collection
from pathlib import Path

import attrs
import numpy as np
import pytest

from conflict.config.configuration import ClusterConfiguration, LoggingServer
from conflict.errors import ConfigurationError
from conflict.history.grid.folder import Folder
from conflict.history.ingestion.logged_epochs import scan_epochs
from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.preparing.log_pieces import pieces_of
from conflict.judge.case import ConflictCase
from conflict.judge.judged_run import JudgedRun
from conflict.runs.pipeline import ENGINES
from ndb_formats.constants import EventType
from ndb_formats.events.control_events import IncidentEvent, encode_incident
from tests.conflict.spliced_logs import part_of, spliced
from tests.corpora import RECORDINGS
from tests.ndb_formats.building import query_body

CASE = ConflictCase.load(RECORDINGS / "operations/every_node_writes/every_node_writes_epoch_trans_type7")
FIRST, SECOND = (server.files[0] for server in CASE.configuration().clusters[0].servers)


def cluster(first: list[Path], second: list[Path]) -> ClusterConfiguration:
    """Return a cluster with two SQL nodes."""
    return ClusterConfiguration("A", (LoggingServer(1, tuple(first)), LoggingServer(3, tuple(second))))


def read_back(found: ClusterConfiguration) -> list[int]:
    """Return the epochs of the pieces, in order."""
    numbers: list[int] = []
    for piece in pieces_of(found).pieces:
        log = scan_epochs(piece.server_id, [piece.file])
        stop = piece.file.stat().st_size if piece.stop is None else piece.stop
        inside = (log.start >= piece.start) & (log.stop <= stop)
        numbers += log.number[inside].tolist()
    return numbers


ALL = scan_epochs(1, [FIRST]).number.tolist()
COUNT = len(ALL)


def test_two_logs_of_one_cluster_hold_the_same_changes() -> None:
    """In every epoch, though ids of servers and tables differ."""
    first, second = scan_epochs(1, [FIRST]), scan_epochs(3, [SECOND])
    assert first.number.tolist() == second.number.tolist()
    assert not len(first.differing(second))
    assert first.shares_changes(second)


def test_one_log_is_read_where_it_has_all() -> None:
    """The first one, whole; nothing is to be said."""
    found = pieces_of(cluster([FIRST], [SECOND]))
    assert [(piece.server_id, piece.file, piece.start, piece.stop) for piece in found.pieces] == [(1, FIRST, 0, None)]
    assert (found.remarks, found.notes) == ((), ())


@pytest.mark.parametrize(
    "lacking",
    [range(3), range(5, 9), [4, 8, 9, 20], range(COUNT - 2, COUNT), [0, COUNT - 1], range(COUNT)],
    ids=["first", "middle", "several", "last", "both ends", "all"],
)
def test_what_a_log_lacks_is_read_from_the_other(lacking: Collection[int], tmp_path: Path) -> None:
    """Every epoch once and in order, wherever epochs are missing, and it is said which."""
    left = part_of(FIRST, set(range(COUNT)) - set(lacking), 1, tmp_path / "A1.000001")
    given = cluster([left], [SECOND])
    assert read_back(given) == ALL
    said = pieces_of(given).notes
    assert said
    assert all("lacks" in each and "server 3" in each for each in said)


def test_results_are_those_of_whole_logs(tmp_path: Path) -> None:
    """With half of the epochs in each of two logs, on both clusters, in turns of three."""
    configuration = CASE.configuration()
    found = []
    for name, whole in (("whole", True), ("halves", False)):
        clusters = configuration.clusters if whole else tuple(halves(each, tmp_path) for each in configuration.clusters)
        out = Folder(str(tmp_path / name))
        resolved = ENGINES["local"](make_run(attrs.evolve(configuration, clusters=clusters)), out)
        found.append(JudgedRun.read(CASE, out, resolved).results)
        assert not resolved.contradicted
    assert found[0] == found[1]


def halves(given: ClusterConfiguration, folder: Path) -> ClusterConfiguration:
    """Return a cluster whose two SQL nodes each logged every second stretch of three epochs."""
    servers = []
    for turn, server in enumerate(given.servers):
        count = len(scan_epochs(server.server_id, server.files))
        mine = [number for number in range(count) if number // 3 % 2 == turn]
        file = part_of(server.files[0], mine, server.server_id, folder / f"{given.name}{turn}.000001")
        servers.append(LoggingServer(server.server_id, (file,)))
    return attrs.evolve(given, servers=tuple(servers))


def test_a_log_that_ends_torn_is_continued_by_the_other(tmp_path: Path) -> None:
    """It is read up to the last whole epoch."""
    torn = tmp_path / "A1.000001"
    torn.write_bytes(FIRST.read_bytes()[: FIRST.stat().st_size // 2])
    assert read_back(cluster([torn], [SECOND])) == ALL


def test_logs_that_all_end_torn(tmp_path: Path) -> None:
    """The one that goes on longest is read up to its error, which is reported; nothing ends in silence."""
    torn = [tmp_path / "A1.000001", tmp_path / "A2.000001"]
    for file, whole, share in zip(torn, (FIRST, SECOND), (0.5, 0.8), strict=True):
        file.write_bytes(whole.read_bytes()[: int(whole.stat().st_size * share)])
    configuration = CASE.configuration()
    clusters = (cluster([torn[0]], [torn[1]]), configuration.clusters[1])
    run = make_run(attrs.evolve(configuration, clusters=clusters))
    assert run.log_of(run.clusters[0])[-1].stop is None
    resolved = ENGINES["local"](run, Folder(str(tmp_path / "out")))
    assert "A2.000001" in resolved.errors["A"]
    longest = len(scan_epochs(3, [torn[1]]))
    assert read_back(clusters[0]) == ALL[:longest]


@pytest.mark.parametrize(("share", "gap"), [(range(8), True), (range(9), False)], ids=["apart", "overlapping"])
def test_logs_that_follow_each_other(share: range, gap: bool, tmp_path: Path) -> None:
    """If they have no epoch in common, changes may be missing between them; with one they go on without a break."""
    first = part_of(FIRST, set(share), 1, tmp_path / "A1.000001")
    second = part_of(SECOND, set(range(8, COUNT)), 3, tmp_path / "A2.000001")
    given = cluster([first], [second])
    assert read_back(given) == ALL
    remarks = pieces_of(given).remarks
    assert [remark.lost for remark in remarks] == [True] * gap
    assert all(f"epoch {ALL[7]} of server 1 and epoch {ALL[8]} of server 3" in remark.sentence for remark in remarks)


CREATED = (EventType.QUERY_EVENT, 1, query_body(b"ops", b"CREATE TABLE later (i INT PRIMARY KEY) ENGINE=NDB"))


@pytest.mark.parametrize("after", [4, 5, 6, 7])
def test_definitions_that_change_are_followed_in_one_log_alone(after: int, tmp_path: Path) -> None:
    """Where logs are put together for the epochs 5 and 6, that is refused; where one has all, it is not."""
    first, second = tmp_path / "whole.000001", tmp_path / "A2.000001"
    first.write_bytes(spliced(FIRST, [CREATED], after=after))
    second.write_bytes(spliced(SECOND, [CREATED], after=after))
    left = without_epochs(first, {5, 6}, tmp_path / "A1.000001")
    configuration = CASE.configuration()
    other = configuration.clusters[1]
    with pytest.raises(ConfigurationError, match=r"cluster A: definitions change .* servers 1 and 3 are put together"):
        make_run(attrs.evolve(configuration, clusters=(cluster([left], [second]), other)))
    whole = ClusterConfiguration("A", (LoggingServer(3, (second,)), LoggingServer(1, (left,))))
    found = make_run(attrs.evolve(configuration, clusters=(whole, other)))
    assert [step.file for step in found.definitions["A"].steps] == [str(second)]


def without_epochs(binlog: Path, epochs: Collection[int], file: Path) -> Path:
    """Write a binlog without some of its epochs, with all else that it holds."""
    logged, data, kept, place = scan_epochs(1, [binlog]), binlog.read_bytes(), [], 0
    for each in sorted(epochs):
        kept.append(data[place : int(logged.start[each])])
        place = int(logged.stop[each])
    file.write_bytes(b"".join([*kept, data[place:]]))
    return file


def test_logs_of_two_clusters_are_refused() -> None:
    """They have epochs of the same numbers, and other changes in them."""
    other = CASE.configuration().clusters[1].servers[0].files[0]
    with pytest.raises(ConfigurationError, match=r"logs of servers 1 and 2 hold other changes .* not of one cluster"):
        pieces_of(ClusterConfiguration("A", (LoggingServer(1, (FIRST,)), LoggingServer(2, (other,)))))


def test_an_epoch_that_differs_is_named() -> None:
    """The digest of one epoch decides which."""
    first = scan_epochs(1, [FIRST])
    content = first.content.copy()
    content[5] += np.uint64(1)
    other = attrs.evolve(first, content=content)
    assert first.differing(other).tolist() == [ALL[5]]
    assert first.shares_changes(other)


LOST = (EventType.INCIDENT_EVENT, 1, encode_incident(IncidentEvent(1, "mysqld startup")))


@pytest.mark.parametrize("after", [1, 7, COUNT - 1])
def test_an_incident_that_the_other_log_covers(after: int, tmp_path: Path) -> None:
    """The other node has the epochs before and after it, and no incident between: nothing is missing, which is said."""
    broken = tmp_path / "A1.000001"
    broken.write_bytes(spliced(FIRST, [LOST], after=after))
    configuration = CASE.configuration()
    first, second = configuration.clusters
    found = make_run(attrs.evolve(configuration, clusters=(cluster([broken], [SECOND]), second)))
    assert not [remark for remark in found.remarks if remark.lost]
    (note,) = [each for each in found.notes if "incident LOST_EVENTS (mysqld startup)" in each]
    assert "the log of server 3 has all epochs around it" in note
    alone = make_run(attrs.evolve(configuration, clusters=(attrs.evolve(first, servers=(one(broken),)), second)))
    assert [remark.lost for remark in alone.remarks] == [True]


def one(file: Path) -> LoggingServer:
    """Return the first SQL node with this log."""
    return LoggingServer(1, (file,))


@pytest.mark.parametrize("lacking", [[7], [6, 7], []])
def test_an_incident_that_the_other_log_does_not_cover(lacking: list[int], tmp_path: Path) -> None:
    """It lacks an epoch beside it, or has an incident at the same place: changes may be missing."""
    broken, other = tmp_path / "A1.000001", tmp_path / "A2.000001"
    broken.write_bytes(spliced(FIRST, [LOST], after=7))
    part_of(SECOND, set(range(COUNT)) - set(lacking), 3, other)
    if not lacking:
        other.write_bytes(spliced(SECOND, [LOST], after=7))
    configuration = CASE.configuration()
    clusters = (cluster([broken], [other]), configuration.clusters[1])
    assert [each.lost for each in make_run(attrs.evolve(configuration, clusters=clusters)).remarks] == [True]
