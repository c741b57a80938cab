"""Epochs that an applier never applied: both engines list all that they would have changed."""

from pathlib import Path

import pytest

from conflict.config.configuration import ClusterConfiguration, Configuration, LoggingServer
from conflict.history.grid.folder import Folder
from conflict.history.preparing.definitions_over_time import make_run
from conflict.runs.pipeline import ENGINES
from tests.conflict.raw_events import BEGIN, COMMIT, SCHEMA, WRITE, Raw, insert, status, update
from tests.conflict.world_binlogs import MAPS
from tests.ndb_formats.building import FORMAT_DESCRIPTION, MAGIC, description_body, event_bytes

A, B = 1, 2


def log(file: Path, server_id: int, epochs: dict[int, list[Raw]]) -> LoggingServer:
    """Write a log: by epoch, the rows in it."""
    events: list[Raw] = [(FORMAT_DESCRIPTION, server_id, description_body())]
    for epoch, rows in epochs.items():
        own = [BEGIN, *MAPS, status(server_id, epoch), COMMIT]
        *head, end = [(code, server_id, body) for code, _, body in own]
        events += [*head, *rows, end]
    file.write_bytes(MAGIC + b"".join(event_bytes(code, body, server_id=author) for code, author, body in events))
    return LoggingServer(server_id, (file,))


def applied(epoch: int, keys: range) -> list[Raw]:
    """Return what B logs of an epoch of A that inserted rows."""
    return [
        (WRITE, B, status(A, epoch, epoch, b"log")[2]),
        *(insert(key, transaction=epoch, author=A) for key in keys),
    ]


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_all_rows_of_a_skipped_epoch_are_told(engine: str, tmp_path: Path) -> None:
    """A updates two rows and inserts two; one row would be enough to show that B skipped the epoch."""
    own = {
        1: [insert(key, transaction=1, author=A) for key in range(4)],
        2: [update(1, 5, author=A), update(2, 5, author=A), *(insert(key, author=A) for key in (8, 9))],
        3: [insert(20, transaction=3, author=A)],
    }
    logs = (
        log(tmp_path / "a.000001", A, own),
        log(tmp_path / "b.000001", B, {11: applied(1, range(4)), 12: applied(3, range(20, 21))}),
    )
    clusters = tuple(ClusterConfiguration(name, (each,)) for name, each in zip("AB", logs, strict=True))
    resolved = ENGINES[engine](make_run(Configuration(clusters, SCHEMA, ())), Folder(str(tmp_path / "out")))
    (skipped,) = resolved.to_json(engine)["skipped_epochs"]
    assert (skipped["applier"], skipped["source_epoch"], skipped["changes"]) == ("B", 2, {"d.t": 4})
