"""Which logs are of one cluster."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from conflict.config.configuration import ClusterConfiguration, LoggingServer
from conflict.discovery.clusters import clusters_of
from conflict.discovery.logs import FoundLog
from conflict.history.preparing.log_pieces import pieces_of
from tests.conflict.raw_events import BEGIN, COMMIT, MAPS, Raw, insert, status
from tests.ndb_formats.building import FORMAT_DESCRIPTION, MAGIC, description_body, event_bytes

FIRST, COUNT = 0x30700000000, 60


def log_of(folder: Path, server_id: int, keys: Iterable[int], first: int = FIRST) -> FoundLog:
    """Return a log under ndb_log_empty_epochs=ON: every epoch, and a row with the number of some as its key."""
    events, changed = [(FORMAT_DESCRIPTION, server_id, description_body())], set(keys)
    for number in range(COUNT):
        rows: list[Raw] = [insert(number, transaction=number)] if number in changed else []
        events += [BEGIN, *(MAPS if rows else MAPS[:1]), status(server_id, first + number), *rows, COMMIT]
    file = folder / f"{server_id}.000001"
    file.write_bytes(MAGIC + b"".join(event_bytes(code, body, server_id=server_id) for code, _, body in events))
    return FoundLog(f"server{server_id}", server_id, (file,))


@pytest.mark.parametrize("mine", [{5, 6, 20}, {5}, ()], ids=["three", "one", "none"])
@pytest.mark.parametrize("theirs", [{9, 21, 40}, {30}], ids=["three", "one"])
@pytest.mark.parametrize("later", [0, 3], ids=["the same", "some of the same"])
def test_empty_epochs_are_alike_in_all_clusters(
    mine: Iterable[int], theirs: Iterable[int], later: int, tmp_path: Path
) -> None:
    """Two clusters whose epochs have the same numbers by chance are two, though most epochs of both are empty."""
    logs = [log_of(tmp_path, 1, mine), log_of(tmp_path, 2, theirs, FIRST + later)]
    assert [[log.server_id for log in each.logs] for each in clusters_of(logs)] == [[1], [2]]


def test_changes_tell_the_logs_of_one_cluster(tmp_path: Path) -> None:
    """Two SQL nodes with the same changes in the same epochs, among empty ones."""
    logs = [log_of(tmp_path, 1, {5, 20}), log_of(tmp_path, 2, {8}), log_of(tmp_path, 3, {5, 20})]
    assert [[log.server_id for log in each.logs] for each in clusters_of(logs)] == [[1, 3], [2]]


def test_empty_epochs_alone_do_not_refuse_a_cluster(tmp_path: Path) -> None:
    """A run file gives two logs to one cluster: that nothing was changed in any epoch is no contradiction."""
    servers = tuple(LoggingServer(each, log_of(tmp_path, each, ()).files) for each in (1, 3))
    pieces = pieces_of(ClusterConfiguration("A", servers))
    assert [piece.server_id for piece in pieces.pieces] == [1]
    assert (pieces.remarks, pieces.notes) == ((), ())
