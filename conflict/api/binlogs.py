"""
What Python users and commands call about binlogs alone: their row changes, and their sizes in every format.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from conflict.config.arguments import (
    Paths,
    SchemaAt,
    StageProgress,
    Temporals,
    Typed,
    answering,
    no_progress,
    typed,
)
from conflict.config.option_values import Moment, path_of
from conflict.config.text_file import places_of
from ndb_formats.constants import DEFAULT_EVENT_SIZE

if TYPE_CHECKING:
    from conflict.decoding.binlog_table import BinlogTable
    from conflict.whatif.sizing.measured_log import MeasuredLog


_FILES = Typed("FILES...", "Binlogs, in order: files, folders; or a run file.")


@typed(schema=Typed(is_file=True))
def decode(
    files: Paths,
    table: str | None = None,
    *,
    schema: Path | str | None = None,
    schema_at: SchemaAt | str = "start",
    temporals: Temporals | str = "typed",
    start_epoch: int = 0,
    stop_epoch: int | None = None,
    start_datetime: Moment | None = None,
    stop_datetime: Moment | None = None,
    server_id: str | int | Iterable[int] | None = None,
    server_id_bits: int = 32,
    transaction: str | int | Iterable[int] | None = None,
    key: Mapping[str, object] | None = None,
) -> BinlogTable:
    """
    Return the row changes of binlog files; `conflict.read_binlog` with the names of the command ``decode``.

    Args:
        files: As for `conflict.read_binlog`, as are the others but for their names.
        table: ``database.table``; all tables without it.
        schema: CREATE TABLE statements, for column names.
        schema_at: When in the log the schema held.
        temporals: CSV, Parquet: dates and timestamps as such, or as text.
        start_epoch: First NDB epoch.
        stop_epoch: Last NDB epoch of each server.
        start_datetime: First moment: a datetime, or a text such as ``2026-01-31T08:00:00+01:00``; UTC without an
            offset.
        stop_datetime: Moment to stop before.
        server_id: Changes first made there.
        server_id_bits: The lowest bits of a server id that count (NDB's server_id_bits).
        transaction: This NDB transaction id.
        key: Values of columns.

    Raises:
        ConfigurationError: A path is missing or holds no binlog, or an argument cannot be used.
    """
    from conflict.decoding.binlog_table import read_binlog

    return read_binlog(
        files,
        table,
        schema=schema,
        schema_at=schema_at,
        temporals=temporals,
        start_epoch=start_epoch,
        stop_epoch=stop_epoch,
        start_time=start_datetime,
        stop_time=stop_datetime,
        server_ids=server_id or (),
        server_id_bits=server_id_bits,
        transactions=transaction or (),
        key=key,
    )


def _sizes_of(found: MeasuredLog) -> dict[str, Any]:
    if found.cuts:
        raise found.cuts[0]
    return found.document()


@answering(_sizes_of)
@typed(files=_FILES, schema=Typed(is_file=True), row_event_max_size=Typed(at_least=256))
def sizes(
    files: Paths,
    *,
    schema: Path | str | None = None,
    ndb_replication: Path | str | None = None,
    row_event_max_size: int = DEFAULT_EVENT_SIZE,
    inexact_keys: bool = False,
    force: bool = False,
    plot: Path | str | None = None,
    progress: StageProgress = no_progress,
) -> MeasuredLog:
    """
    Return how many bytes a log would take in every format; as the command ``sizes``.

    Args:
        files: Binlogs, in order: files, folders, index files, patterns; or a run file.
        schema: CREATE TABLE statements, for keys and defaults.
        ndb_replication: Rows of mysql.ndb_replication: sizes with the binlog type that each gives its table.
        row_event_max_size: binlog_row_event_max_size of the server.
        inexact_keys: As for `resolve`.
        force: As for `resolve`.
        plot: Draw a chart: FILE.png or FILE.svg.
        progress: As for `resolve`.

    Returns:
        The document of ``--json``. Bytes of a format with ``rows_lacking_values`` are lower bounds.

    Raises:
        ConfigurationError: A file is given twice, or no table's definition is known.
        CutFileError: A file ends inside an event; a chart shows what comes before.
    """
    from conflict.decoding.staging import check_output
    from conflict.discovery.logs import log_source
    from conflict.telling.drawing import check_chart_file
    from conflict.whatif.sizing.measured_log import configured_types, measured_log
    from conflict.whatif.sizing.telling import draw_sizes

    given, definitions_file, rows, chart = places_of(files), path_of(schema), path_of(ndb_replication), path_of(plot)
    source = log_source(given, definitions_file)
    check_output(chart, [*source.files, definitions_file, rows], force=force)
    check_chart_file(chart)
    definitions = source.definitions_at_start(inexact_keys=inexact_keys)
    types = configured_types(rows, source.files, definitions)
    found = attrs.evolve(measured_log(source.files, definitions, row_event_max_size, progress), types=types)
    if chart is not None:
        draw_sizes(found.document(), chart)
    return found
