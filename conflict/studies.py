"""
What Python users call besides `conflict.library`: commands about models, sizes and results, as functions.

Each has the name, the options and the defaults of its command, and returns what the command prints or writes to
``--json``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from conflict.cli.views.conflicts import conflicts_json
from conflict.cli.views.sizes import sizes_json
from conflict.cli.views.sizes_chart import check_chart_file, draw_sizes
from conflict.cli.views.sizes_files import configured_types, measured_log
from conflict.config.arguments import StageProgress, no_progress
from conflict.config.option_values import Moment, moment_of
from conflict.decoding.binlog_table import BinlogTable, read_binlog
from conflict.decoding.staging import check_output, refuse_same_output
from conflict.discovery.log_source import log_source
from conflict.errors import ConfigurationError
from conflict.history.grid.catalogue import refusing_contradictions
from conflict.history.grid.folder import Folder
from conflict.library import path_of
from conflict.reporting.joining import joined
from conflict.reporting.reading import part_of
from conflict.reporting.report import write_figures, write_page
from conflict.result import Result, read_result
from conflict.results.catalogue import RESOLVE_AGAIN
from conflict.results.conflicts import Chosen, at_a_glance, count_conflicts, read_conflicts, totals_of
from conflict.results.counting import By
from conflict.results.doubts import doubts_of
from conflict.results.files import check_target, whole_or_not_at_all
from ndb_formats.constants import DEFAULT_EVENT_SIZE
from ndb_formats.errors import did_you_mean

__all__ = ["conflicts", "decode", "report", "sizes"]


Paths = Path | str | Iterable[Path | str]


def decode(
    files: Paths,
    table: str | None = None,
    *,
    schema: Path | str | None = None,
    schema_at: str = "start",
    temporals: str = "typed",
    start_epoch: int = 0,
    stop_epoch: int | None = None,
    start_datetime: Moment | None = None,
    stop_datetime: Moment | None = None,
    server_id: str | int | Iterable[int] | None = None,
    transaction: str | int | Iterable[int] | None = None,
    key: Mapping[str, object] | None = None,
) -> BinlogTable:
    """
    Return the row changes of binlog files; `conflict.read_binlog` with the names of the command ``decode``.

    Args:
        files: As for `conflict.read_binlog`, as are the others but for their names.
        table: ``database.table``; all tables without it.
        schema: File of CREATE TABLE statements.
        schema_at: ``start`` or ``end``.
        temporals: ``typed`` or ``text``.
        start_epoch: First NDB epoch.
        stop_epoch: Last NDB epoch.
        start_datetime: First moment: a datetime, or a text such as ``2026-01-31T08:00:00+01:00``; UTC without an
            offset.
        stop_datetime: Moment to stop before.
        server_id: Servers on which the changes were first made.
        transaction: Ids of NDB transactions.
        key: Values of columns.

    Raises:
        ConfigurationError: A path is missing or holds no binlog, or an argument cannot be used.
    """
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
        transactions=transaction or (),
        key=key,
    )


def sizes(
    files: Paths,
    *,
    schema: Path | str | None = None,
    ndb_replication: Path | str | None = None,
    row_event_max_size: int = DEFAULT_EVENT_SIZE,
    inexact_keys: bool = False,
    plot: Path | str | None = None,
    force: bool = False,
    progress: StageProgress = no_progress,
) -> dict[str, Any]:
    """
    Return how many bytes a log would take in every format; as the command ``sizes``.

    Args:
        files: Binlogs, in order: files, folders, index files, patterns; or a run file.
        schema: File of CREATE TABLE statements.
        ndb_replication: File with rows of ``mysql.ndb_replication``, for the sizes with the type of each table.
        row_event_max_size: ``binlog_row_event_max_size`` of the server.
        inexact_keys: As for `workload`.
        plot: File for a chart, ``*.png`` or ``*.svg``; None for none.
        force: Replace a chart that is there already.
        progress: As for `conflict.resolve`.

    Returns:
        The document of ``--json``. Bytes of a format with ``rows_lacking_values`` are lower bounds.

    Raises:
        ConfigurationError: A file is given twice, or no table's definition is known.
        CutFileError: A file ends inside an event.
    """
    source = log_source([Path(file) for file in ([files] if isinstance(files, Path | str) else files)], path_of(schema))
    paths, chart = source.files, path_of(plot)
    check_output(chart, [*paths, path_of(schema), path_of(ndb_replication)], force=force)
    check_chart_file(chart)
    definitions = source.definitions_at_start(inexact_keys=inexact_keys)
    types = configured_types(path_of(ndb_replication), paths, definitions)
    found = measured_log(paths, definitions, row_event_max_size, progress)
    if found.cuts:
        raise found.cuts[0]
    if chart is not None:
        draw_sizes(found.report, chart)
    return sizes_json(found.report, types) | {"files": [each.document() for each in found.facts]}


def conflicts(
    result: Result | Path | str,
    *,
    by: str | None = None,
    since: Moment | None = None,
    until: Moment | None = None,
    table: str | None = None,
    top: int | None = None,
) -> dict[str, Any]:
    """
    Count the conflicts of a result; as the command ``conflicts``. `Result.conflicts_by` returns one count as a table.

    Args:
        result: A result, or its folder.
        by: ``table``, ``cause``, ``hour``, ``minute``, ``second``, ``key`` or ``transaction``; without it all of them,
            with hours and, of a short time, minutes or seconds.
        since: Leave out what committed before: a datetime, or a text as in ISO 8601; UTC without an offset.
        until: Leave out what committed then or later.
        table: Of this table alone: ``database.table``, or a table that one database alone has.
        top: Rows of each count; all without it.

    Returns:
        The document of ``--json``: totals, and under ``by`` each count, most conflicts first.

    Raises:
        ConfigurationError: `by` or `since` is not understood.
        HistoryError: There is no result in the folder.
    """
    if by is not None and by not in tuple(By):
        message = f"by {by} is not known{did_you_mean(str(by), By)}; give {', '.join(By)}"
        raise ConfigurationError(message)
    found = result if isinstance(result, Result) else read_result(str(result))
    first, last = (
        None if each is None else moment_of(each, name) for each, name in ((since, "since"), (until, "until"))
    )
    which = Chosen(first, last, None if table is None else found.table_named(table))
    with refusing_contradictions(found.folder, RESOLVE_AGAIN):
        rows = read_conflicts(found.folder, found.clusters, which.since, until=which.until, table=which.table)
        totals = totals_of(rows)
        wanted = (By(by),) if by else dict.fromkeys((*at_a_glance(totals), By.HOUR))
        counts = {each: count_conflicts(rows, each).slice(0, top) for each in wanted}
        return conflicts_json(totals, counts, which, doubts_of(found.run))


def report(
    results: Paths,
    *,
    out: Path | str = "report.html",
    figures: Path | str | None = None,
    title: str = "Conflicts between clusters",
    force: bool = False,
) -> Path:
    """
    Write results as one HTML page; as the command ``report``.

    Args:
        results: Folders of `resolve`, `compare` or `sweep`; JSON files of compare, simulate, sizes or diverge.
        out: The page.
        figures: Folder for the figures; None for none.
        title: Title of the page.
        force: Replace a page and a folder that are there already.

    Returns:
        The page.

    Raises:
        ConfigurationError: Something is no result that a report knows, or the page cannot be written.
    """
    paths = [Path(each) for each in ([results] if isinstance(results, Path | str) else results)]
    page, folder = Path(out), path_of(figures)
    check_output(page, paths, force=force)
    refuse_same_output(page, folder)
    target = None if folder is None else Folder(str(folder.absolute()))
    if target is not None:
        check_target(target, [*paths, page], replace=force)
    parts = joined([part_of(path) for path in paths])
    if target is not None:
        with whole_or_not_at_all(target, replace=force) as work:
            write_figures(work, parts)
    write_page(page, title, parts)
    return page
