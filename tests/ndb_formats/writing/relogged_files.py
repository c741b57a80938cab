"""
Rewritten files beside what the real server wrote for the same statements.

Events are compared byte for byte, but for the numbers that differ from run to run: table ids and transaction ids.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import attrs

from ndb_formats.binlog_reader import Event, read_events
from ndb_formats.constants import EventType
from ndb_formats.events.rows_event import Operation, RowsEvent, encode_rows_event, extra_row_info_block
from ndb_formats.row_reader import LoggedRow, read_rows
from ndb_formats.rules.relogging import LoggedAs
from ndb_formats.rules.row_image_rules import parse_row_image
from ndb_formats.rules.update_format import effective_format
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.tables import Schema, Table
from ndb_formats.writing.rewriting import Rewriter
from ndb_formats.writing.rewriting_plans import Counts, Plans, Target
from tests.ndb_formats.recordings import row_events


def schema_of(case: Path) -> Schema:
    """Return the tables of a recording of logged statements."""
    return parse_schema((case / "schema.sql").read_text("utf-8"))


def target_of(number: int | str) -> Target:
    """Return a binlog type, or a value of binlog_row_image, as a format to write."""
    if isinstance(number, int):
        return Target(update_format=effective_format(number))
    return Target(row_image=parse_row_image(number))


def rewritten(
    binlog: Path, schema: Schema, target: int | str, logged_as: int | str | None = None
) -> tuple[bytes, Counts]:
    """Return a file in another format, and what became of its changes."""
    known = Target() if logged_as is None else target_of(logged_as)
    plans = Plans(target_of(target), schema, LoggedAs(known.update_format, known.row_image))
    out = io.BytesIO()
    Rewriter(out, plans).rewrite(read_events(binlog))
    return out.getvalue(), plans.counts


def transaction_starts(path: Path) -> list[int]:
    """Return the position of each transaction's Gtid event."""
    kinds = (EventType.ANONYMOUS_GTID_LOG_EVENT, EventType.GTID_LOG_EVENT)
    return [event.position for event in read_events(path) if event.type in kinds]


def masked(event: Event, rows: RowsEvent) -> tuple[int, bytes]:
    """Return type and body of a rows event without table id and transaction id."""
    extra = rows.extra and attrs.evolve(rows.extra, transaction_id=0 if rows.extra.transaction_id else None)
    bare = attrs.evolve(rows, table_id=0, extra_bytes=extra_row_info_block(extra or None))
    return event.header.type_code, encode_rows_event(bare)


@attrs.frozen
class StatementEvents:
    """The rows events of one statement or transaction, masked, and its rows as the first file has them."""

    sql: str
    source: tuple[LoggedRow, ...]
    mine: tuple[tuple[int, bytes], ...]
    server: tuple[tuple[int, bytes], ...]
    server_rows: tuple[LoggedRow, ...]


def by_statement(source: Path, server: Path, target: int | str, scratch: Path) -> Iterator[StatementEvents]:
    """Yield, for each statement, the events of `source` rewritten and those of `server`, recorded in that format."""
    schema = schema_of(source)
    mine = scratch / "binlog.000001"
    mine.write_bytes(rewritten(source / "binlog.000001", schema, target)[0])
    old, new = transaction_starts(source / "binlog.000001"), [*transaction_starts(mine), mine.stat().st_size]
    groups, theirs = (json.loads((case / "statements.json").read_text("utf-8")) for case in (source, server))
    for group, other in zip(groups, theirs, strict=True):
        places = [place for place, start in enumerate(old) if group["start"] <= start < group["end"]]
        span = (new[places[0]], new[places[-1] + 1]) if places else (0, 0)
        stretch = (other["start"], other["end"])
        yield StatementEvents(
            "; ".join(statement["sql"] for statement in group["statements"]),
            tuple(read_rows(source / "binlog.000001", start=group["start"], stop=group["end"], schema=schema)),
            tuple(_events(mine, *span)),
            tuple(_events(server / "binlog.000001", *stretch)),
            tuple(read_rows(server / "binlog.000001", start=stretch[0], stop=stretch[1], schema=schema)),
        )


def _events(path: Path, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
    for event, table_map, rows in row_events(path):
        if start <= event.position < stop and table_map.full_name != "mysql.ndb_apply_status":
            yield masked(event, rows)


def unseen_columns(found: StatementEvents, schema: Schema) -> set[str]:
    """
    Return the columns that the statement set without changing them in some row, so that the log does not show them.

    They are in the server's event, and have the same value before and after in the source.
    """
    return {
        table.columns[ordinal].name
        for before, after in zip(found.source, found.server_rows, strict=True)
        if (table := schema.find(before.database, before.table)) is not None
        for ordinal in _same(table, before) & set(after.after.present if after.after is not None else ())
    }


def _same(table: Table, row: LoggedRow) -> set[int]:
    if row.operation is not Operation.UPDATE_ROW or row.before is None or row.after is None:
        return set()
    common = set(row.before.present) & set(row.after.present) - set(table.key_ordinals)
    return {ordinal for ordinal in common if row.before.raw(ordinal) == row.after.raw(ordinal)}
