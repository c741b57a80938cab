"""The binlogs that the servers of a world write, and a run file for them."""

from __future__ import annotations

from collections.abc import Iterator
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


def write_world(made: World, function: str | None, folder: Path) -> Path:
    """Write the binlogs of all clusters, and return the path of their run file."""
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
        (folder / f"{cluster.name}.000001").write_bytes(_file(made, number))
    setting = f'conflict_fn = "{function}"' if function else ""
    lines += ["[[ndb_replication]]", 'db = "d"', 'table_name = "t"', "binlog_type = 7", setting]
    lines += ["[[ndb_replication]]", 'db = "d"', 'table_name = "n"', "binlog_type = 7"]
    path = folder / "run.toml"
    path.write_text("\n".join(lines))
    return path


def _file(made: World, number: int) -> bytes:
    """Return a cluster's binlog: the epochs that are logged."""
    server_id = made.replayed[number].server_id
    events = [(FORMAT_DESCRIPTION, server_id, description_body())]
    for epoch in made.closed[number]:
        events += [BEGIN, *MAPS, status(server_id, epoch), *_groups(made, number, epoch), COMMIT]
    own = {BEGIN[1], 0}
    return MAGIC + b"".join(
        event_bytes(code, body, server_id=server_id if code == QUERY or each in own else each)
        for code, each, body in events
    )


def _groups(made: World, number: int, epoch: int) -> Iterator[Raw]:
    """Yield the events of an epoch's groups: first the rows of ndb_apply_status that came with each applied epoch."""
    cluster = made.replayed[number]
    applied = {
        group: (source, foreign)
        for (applier, source, foreign), (own, group) in made.places.items()
        if (applier, own) == (number, epoch)
    }
    entries = [entry for entry in cluster.log.get(epoch, []) if isinstance(entry, LoggedChange)]
    for group in sorted(applied.keys() | {entry.group for entry in entries}):
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
