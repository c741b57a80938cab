"""
Binlogs of two clusters with a table `h` of INT columns and no primary key, written by hand.

A log is a list of SQL statements and epochs. Rows are tuples of the columns that `h` then has; None is NULL. `BARE` is
an image without columns: the row of defaults that an insert logs which sets none.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs

from conflict.config.configuration import ClusterConfiguration, Configuration, LoggingServer, Span
from conflict.rules.replication_table import ReplicationRow
from ndb_formats.schema.create_table import parse_schema
from tests.conflict.raw_events import (
    BEGIN,
    COMMIT,
    DELETE,
    LONG,
    QUERY,
    STATUS_MAP,
    TABLE_MAP,
    UPDATE,
    WRITE,
    Raw,
    extra,
    status,
)
from tests.ndb_formats.building import (
    FORMAT_DESCRIPTION,
    MAGIC,
    description_body,
    event_bytes,
    query_body,
    rows_body,
    table_map_body,
)

__all__ = ["BARE", "Arrived", "Change", "Epoch", "Log", "Row", "Statement", "keyless_run"]

SERVER_IDS = {"A": 1, "B": 2}
H_ID = 8
Row = tuple[int | None, ...]
BARE: Row = ()
# The row before and the row after; no row before an insert, none after a delete.
Change = tuple[Row | None, Row | None]


@attrs.frozen
class Arrived:
    """An epoch of the other cluster that the applier applied, and the changes of `h` that it logged for it."""

    number: int
    changes: Sequence[Change] = ()


@attrs.frozen
class Epoch:
    """An epoch: its number, and one transaction of the cluster's own or the epoch that its applier applied."""

    number: int
    content: Sequence[Change] | Arrived


@attrs.frozen
class Statement:
    """A statement, and the cluster on which it was run first."""

    side: str
    text: str


Log = Sequence[Epoch | Statement]


def keyless_run(folder: Path, schemas: tuple[str, str | None], logs: tuple[Log, Log], *, key: int = 0) -> Configuration:
    """
    Write the logs of A and B into a folder, and return their run.

    Args:
        folder: Where the files go.
        schemas: The schema of the run, and that of B if it has its own.
        logs: What each of them logged.
        key: How many columns, from the first, are a primary key after all, and so not nullable.
    """
    schema, other = (None if text is None else parse_schema(text, database="d") for text in schemas)
    assert schema is not None
    clusters = []
    for (name, server_id), log, own in zip(SERVER_IDS.items(), logs, (None, other), strict=True):
        path = folder / f"{name}.000001"
        _write(path, server_id, log, key)
        clusters.append(ClusterConfiguration(name, (LoggingServer(server_id, (path,)),), schema=own))
    return Configuration(tuple(clusters), schema, (ReplicationRow("d", "%", 0, 7, None),), span=Span(empty=True))


def _write(path: Path, server_id: int, log: Log, key: int) -> None:
    raws: list[Raw] = []
    for item in log:
        if isinstance(item, Statement):
            raws.append((QUERY, SERVER_IDS[item.side], query_body(b"d", item.text.encode())))
        else:
            raws += _epoch(server_id, item, key)
    start = event_bytes(FORMAT_DESCRIPTION, description_body(), server_id=server_id)
    path.write_bytes(MAGIC + start + b"".join(event_bytes(code, body, server_id=author) for code, author, body in raws))


def _epoch(server_id: int, epoch: Epoch, key: int) -> list[Raw]:
    content, author = epoch.content, server_id
    changes = content.changes if isinstance(content, Arrived) else content
    transaction = server_id * 1000 + epoch.number
    events: list[Raw] = []
    if isinstance(content, Arrived):
        author = 3 - server_id
        events.append((WRITE, server_id, status(author, content.number, transaction, b"log")[2]))
    columns = max((len(row) for change in changes for row in change if row is not None), default=0)
    events += [_change(change, columns, transaction, author) for change in changes]
    maps = [(TABLE_MAP, server_id, STATUS_MAP)]
    if columns:
        body = table_map_body(LONG * columns, table_id=H_ID, database=b"d", table=b"h", nullable=range(key, columns))
        maps.append((TABLE_MAP, server_id, body))
    own = (WRITE, server_id, status(server_id, epoch.number)[2])
    return [BEGIN, *maps, own, *events, COMMIT]


def _change(change: Change, columns: int, transaction: int, author: int) -> Raw:
    before, after = change
    code = WRITE if before is None else DELETE if after is None else UPDATE
    rows = [row for row in change if row is not None]
    images = b"".join(_image(row) for row in rows)
    body = rows_body(images, columns, [range(len(row)) for row in rows], table_id=H_ID, extra=extra(transaction))
    return code, author, body


def _image(row: Row) -> bytes:
    nulls = sum(1 << place for place, value in enumerate(row) if value is None)
    values = b"".join(value.to_bytes(4, "little", signed=True) for value in row if value is not None)
    return nulls.to_bytes((len(row) + 7) // 8, "little") + values
