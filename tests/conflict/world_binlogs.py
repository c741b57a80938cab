"""The binlogs that the servers of a world write, and a run file for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from conflict.engine.reference.cluster import LoggedChange
from ndb_formats.events.row_image import RowImage
from ndb_formats.events.rows_event import Operation
from tests.conflict.histories import TABLES
from tests.conflict.raw_events import (
    BEGIN,
    COMMIT,
    DELETE,
    LONG,
    LONGLONG,
    QUERY,
    STATUS_MAP,
    TABLE_MAP,
    UPDATE,
    WRITE,
    Raw,
    extra,
    status,
)
from tests.conflict.worlds import World
from tests.ndb_formats.building import (
    FORMAT_DESCRIPTION,
    MAGIC,
    description_body,
    event_bytes,
    rows_body,
    table_map_body,
)

TABLE_IDS = {"d.t": 7, "d.n": 8}
CODES = {Operation.WRITE_ROW: WRITE, Operation.UPDATE_ROW: UPDATE, Operation.DELETE_ROW: DELETE}
TYPES = LONG + LONGLONG + LONG
MAPS: list[Raw] = [
    (TABLE_MAP, 0, STATUS_MAP),
    *(
        (TABLE_MAP, 0, table_map_body(TYPES, table_id=number, database=b"d", table=name[2:].encode(), nullable=(1, 2)))
        for name, number in TABLE_IDS.items()
    ),
]


Traces = Mapping[tuple[int, int], Raw]
NO_TRACES: Traces = {}
NOTHING_BETWEEN: Mapping[int, list[Raw]] = {}


def write_world(made: World, function: str | None, folder: Path) -> Path:
    """Write the binlogs of all clusters, and return the path of their run file."""
    for number, cluster in enumerate(made.replayed):
        (folder / f"{cluster.name}.000001").write_bytes(file_of(made, number)[0])
    return write_run(made, function, folder)


def write_run(made: World, function: str | None, folder: Path) -> Path:
    """Write a run file for the binlogs of all clusters, and return its path."""
    lines = ['schema = "schema.sql"', 'database = "d"', 'start = "empty"']
    (folder / "schema.sql").write_text(TABLES)
    for number, cluster in enumerate(made.replayed):
        sources = [made.replayed[source].name for source in made.sources[number]]
        ignored = ", ".join(f"{source} = {sorted(ids)}" for source, ids in cluster.cluster.ignored.items())
        lines += [
            f"[clusters.{cluster.name}]",
            f"server_id = {cluster.server_id}",
            f'binlogs = ["{cluster.name}.000001"]',
            f"replicates_from = {sources}",
            f"ignore_server_ids = {{ {ignored} }}",
        ]
    setting = f'conflict_fn = "{function}"' if function else ""
    lines += ["[[ndb_replication]]", 'db = "d"', 'table_name = "t"', "binlog_type = 7", setting]
    lines += ["[[ndb_replication]]", 'db = "d"', 'table_name = "n"', "binlog_type = 7"]
    path = folder / "run.toml"
    path.write_text("\n".join(lines))
    return path


def file_of(
    made: World, number: int, between: Mapping[int, list[Raw]] = NOTHING_BETWEEN, traces: Traces = NO_TRACES
) -> tuple[bytes, list[int]]:
    """
    Return a cluster's binlog, the epochs that are logged, and where each event ends that stands between them.

    Args:
        made: The world.
        number: Number of the cluster.
        between: Events by how many epochs stand before them.
        traces: By epoch and group, rows of ndb_apply_status of other groups than those of epochs.
    """
    server_id = made.replayed[number].server_id
    content, ends = MAGIC + event_bytes(FORMAT_DESCRIPTION, description_body(), server_id=server_id), list[int]()
    for place, epoch in enumerate([*made.closed[number], None]):
        for code, author, body in between.get(place, ()):
            content += event_bytes(code, body, position=len(content), server_id=author)
            ends.append(len(content))
        if epoch is not None:
            rows = [status(server_id, epoch), *_groups(made, number, epoch, traces)]
            for code, author, body in [BEGIN, *MAPS, *rows, COMMIT]:
                own = code == QUERY or author in (BEGIN[1], 0)
                content += event_bytes(code, body, server_id=server_id if own else author)
    return content, ends


def _groups(made: World, number: int, epoch: int, traces: Traces) -> Iterator[Raw]:
    """Yield the events of an epoch's groups: first the rows of ndb_apply_status that came with each applied epoch."""
    cluster = made.replayed[number]
    applied = {
        group: (source, foreign)
        for (applier, source, foreign), (own, group) in made.places.items()
        if (applier, own) == (number, epoch)
    }
    entries = [entry for entry in cluster.log.get(epoch, []) if isinstance(entry, LoggedChange)]
    stated = {group for own, group in traces if own == epoch}
    for group in sorted(applied.keys() | stated | {entry.group for entry in entries}):
        if group in stated:
            yield traces[epoch, group]
        # Numbered as transactions of this server: the id only tells groups apart.
        transaction = epoch << 8 | group
        if group in applied:
            for server_id, foreign in _status_rows(made, *applied[group]).items():
                if server_id != cluster.server_id:
                    yield WRITE, cluster.server_id, status(server_id, foreign, transaction, b"log")[2]
        for entry in (entry for entry in entries if entry.group == group):
            yield _rows(entry, transaction)


def _status_rows(made: World, number: int, epoch: int) -> dict[int, int]:
    """Return the rows of ndb_apply_status in an epoch of a cluster: its own, and those of what it applied."""
    found: dict[int, int] = {}
    for (applier, source, foreign), (own, _) in made.places.items():
        if (applier, own) == (number, epoch):
            found |= _status_rows(made, source, foreign)
    return {**found, made.replayed[number].server_id: epoch}


def _rows(entry: LoggedChange, transaction: int) -> Raw:
    change = entry.change
    images = [image for image in (change.before, change.after) if image is not None]
    body = rows_body(
        b"".join(map(_image, images)),
        3,
        [image.present for image in images],
        table_id=TABLE_IDS[change.table],
        extra=extra(transaction, int(change.flags)),
    )
    return CODES[change.operation], entry.server_id, body


def _image(image: RowImage) -> bytes:
    nulls = sum(1 << place for place, payload in enumerate(image.payloads) if payload is None)
    return nulls.to_bytes((len(image.present) + 7) // 8, "little") + b"".join(each or b"" for each in image.payloads)
