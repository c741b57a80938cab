"""
What Python users and commands call about results: conflicts, what was lost, why a row ended so, a page of all.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from conflict.config.arguments import (
    DATETIME,
    SERVER,
    Paths,
    StageProgress,
    Typed,
    answering,
    no_progress,
    typed,
)
from conflict.config.option_values import By, Moment, moment_of, path_of, words_of
from conflict.config.text_file import place_of, places_of
from conflict.errors import ConfigurationError
from ndb_formats.errors import did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

    from conflict.config.run_file import RunFile
    from conflict.explaining.story import Story
    from conflict.operating.observing.differences import Compared
    from conflict.operating.repairing.lost import Losses
    from conflict.results.conflicts import Chosen, Totals
    from conflict.results.doubts import Doubt
    from conflict.results.result import Result
    from conflict.telling.part import Part


_RESULT, _RESULTS = Typed("RESULT", "Folder that resolve wrote."), Typed("RESULT...")
_RESULT_OR_RUN = Typed("RESULT", "Folder that resolve wrote; or a run file, which is resolved.")
_TABLE = Typed("TABLE")
_OBSERVED = Typed("CLUSTER=FILE")
_KEY = Typed("KEY", "Primary key of the row: 5, or 'a=1, b=two' with several columns.")
_EXCEPTION = Typed(
    "N",
    "Explain the N-th exceptions row, or the one with this primary key: server_id,source_server_id,source_epoch,count; "
    "with --table, of that table.",
)


@attrs.frozen(eq=False)
class CountedConflicts:
    """
    The conflicts of a result, counted.

    Attributes:
        result: The result.
        which: Which of them were counted.
        totals: How many they are.
        counts: By what they were counted, a row per value, most conflicts first.
        doubts: What makes the result doubtful.
        observed: What real servers show beside it; None if they were not asked for.
    """

    result: Result
    which: Chosen
    totals: Totals
    counts: Mapping[By, pa.Table]
    doubts: tuple[Doubt, ...]
    observed: Compared | None = None

    def document(self) -> dict[str, Any]:
        """Return the same as a document. Moments are texts as in ISO 8601."""
        totals, which = self.totals, self.which
        return {
            "conflicts": totals.conflicts,
            "tables": totals.tables,
            "keys": totals.keys,
            "transactions": totals.transactions,
            "of_gone_rows": totals.of_gone_rows,
            "appliers": list(totals.appliers),
            "table": which.table,
            "since": _text(which.since),
            "until": _text(which.until),
            "first": _text(totals.first),
            "last": _text(totals.last),
            "doubts": [str(each) for each in self.doubts],
            "by": {
                by.value: [{name: _text(value) for name, value in row.items()} for row in table.to_pylist()]
                for by, table in self.counts.items()
            },
            "observed": None if self.observed is None else self.observed.document(),
        }


def _text(value: Any) -> Any:
    """Return a moment as text, bytes in hexadecimal digits, and any other value as it is."""
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if isinstance(value, datetime) else value


@answering(CountedConflicts.document)
@typed(result=_RESULT, since=DATETIME, until=DATETIME, table=_TABLE, observed=_OBSERVED, server=SERVER)
def conflicts(
    result: Result | Path | str,
    *,
    by: By | str | None = None,
    since: Moment | None = None,
    until: Moment | None = None,
    table: str | None = None,
    top: int | None = None,
    observed: str | Sequence[str] | None = None,
    server: str | Sequence[str] | None = None,
    defaults_file: Path | str | None = None,
) -> CountedConflicts:
    """
    Count the conflicts of a result; as the command ``conflicts``. `Result.conflicts_by` returns one count as a table.

    Args:
        result: A result, or its folder.
        by: Count by this alone; without it by all, with hours and, of a short time, minutes or seconds.
        since: Leave out changes that committed before this time; UTC without an offset.
        until: Leave out changes that committed at this time or later.
        table: Of this database.table alone, or of the table.
        top: Rows of each count; all without it.
        observed: What a real server shows, to be compared: ``CLUSTER=FILE`` with its status counters, or with rows of
            an exceptions table; of one of several SQL nodes ``CLUSTER:SERVER_ID=FILE``.
        server: As for `check`: the same, asked of a running server.
        defaults_file: As for `check`.

    Returns:
        The document of ``--json``: totals, under ``by`` each count, most conflicts first, and under ``observed`` what
        servers show.

    Raises:
        ConfigurationError: `by` or `since` is not understood, or something observed cannot be read.
        HistoryError: There is no result in the folder.
    """
    from conflict.engine.ledger.layout import RESOLVE_AGAIN
    from conflict.history.grid.catalogue import refusing_contradictions
    from conflict.results.conflicts import at_a_glance, count_conflicts, read_conflicts, totals_of
    from conflict.results.doubts import doubts_from_the_middle

    if by is not None and by not in tuple(By):
        message = f"by {by} is not known{did_you_mean(str(by), By)}; give {', '.join(By)}"
        raise ConfigurationError(message)
    found, which = chosen(result, since, until, table)
    with refusing_contradictions(found.folder, RESOLVE_AGAIN):
        rows = read_conflicts(found.folder, found.clusters, which.since, until=which.until, table=which.table)
        totals = totals_of(rows)
        wanted = (By(by),) if by else dict.fromkeys((*at_a_glance(totals), By.HOUR))
        counts = {each: count_conflicts(rows, each, found.databases).slice(0, top) for each in wanted}
        compared = _compared(found, words_of(observed), words_of(server), path_of(defaults_file))
        return CountedConflicts(found, which, totals, counts, doubts_from_the_middle(found.run), compared)


def _compared(
    result: Result, observed: Sequence[str], servers: Sequence[str], defaults_file: Path | None
) -> Compared | None:
    """Return what servers show beside a result; None if nothing is asked for."""
    from conflict.operating.observing.differences import compare_observed
    from conflict.operating.observing.observed import observed_in_files, observed_on_servers

    if not (observed or servers):
        return None
    files = observed_in_files(observed, result)
    return compare_observed(result, [*files, *observed_on_servers(servers, defaults_file, result)])


@typed(result=_RESULT, since=DATETIME, until=DATETIME, table=_TABLE, key=_KEY)
def lost(
    result: Result | Path | str,
    *,
    since: Moment | None = None,
    until: Moment | None = None,
    table: str | None = None,
    key: str | int | Mapping[str, object] | None = None,
    out: Path | str | None = None,
    force: bool = False,
    progress: StageProgress = no_progress,
) -> Losses:
    """
    Return the changes of users that did not survive, one row each; as the command ``lost``.

    Args:
        result: A result, or its folder; its binlogs are read.
        since: As for `conflicts`.
        until: As for `conflicts`.
        table: As for `conflicts`.
        key: Of this row of the table alone; as for `explain`.
        out: Write them to this file: .csv, .jsonl or .parquet.
        force: As for `resolve`.
        progress: As for `resolve`.

    Raises:
        ConfigurationError: `out` cannot be written, `since` or `key` is not understood, or `key` is without `table`.
        HistoryError: There is no result in the folder, or its binlogs are gone or have changed.
    """
    from conflict.decoding.staging import check_output
    from conflict.explaining.explainer import Explainer
    from conflict.explaining.keys_asked import identity_asked
    from conflict.operating.repairing.lost import Losses
    from conflict.operating.repairing.lost_files import check_suffix, write_lost
    from conflict.operating.repairing.reading_lost import count_not_known, read_lost, with_images
    from conflict.results.doubts import doubts_from_the_middle

    target = path_of(out)
    check_suffix(target)
    if key is not None and table is None:
        message = "a key is of a table; give that, too (--table)"
        raise ConfigurationError(message)
    found, which = chosen(result, since, until, table)
    check_output(target, [place_of(found.folder.uri)], force=force)
    if key is not None and which.table is not None:
        row_key = Explainer.of_result(found, progress).key_of(which.table)
        identity = identity_asked(which.table, row_key, key)
        which = attrs.evolve(which, identity=identity, key=row_key.text(identity))
    rows = read_lost(found, which)
    changes, not_known = with_images(rows, found, progress), count_not_known(found, which, rows)
    if target is not None:
        write_lost(changes, target)
    return Losses(found, which, changes, not_known, doubts_from_the_middle(found.run))


def records(
    result: Result | Path | str,
    *,
    since: Moment | None = None,
    until: Moment | None = None,
    table: str | None = None,
) -> pa.RecordBatchReader:
    """
    Return the conflicts and lost changes of a result as records, batch by batch: docs/records.md.

    Args:
        result: A result, or its folder; its binlogs are read, one batch at a time.
        since: As for `conflicts`.
        until: As for `conflicts`.
        table: As for `conflicts`.

    Returns:
        A reader of Arrow batches; its ``read_all`` gives a table, its ``read_pandas`` a DataFrame. Images of binlogs
        that are missing are NULL, and a warning names these.

    Raises:
        ConfigurationError: `since` or `until` is not understood.
        HistoryError: There is no result in the folder, or a binlog has changed.
    """
    from conflict.operating.records.reading import Logs, read_records

    found, which = chosen(result, since, until, table)
    logs = Logs.of(found)
    if logs.remark:
        warnings.warn(logs.remark, stacklevel=2)
    return read_records(found, which, logs)


def metrics(result: Result | Path | str) -> str:
    """
    Return the figures of a result in the text exposition format of Prometheus: docs/metrics.md.

    Args:
        result: A result, or its folder; its binlogs are read for the lag, if they are there.

    Raises:
        HistoryError: There is no result in the folder.
    """
    from conflict.operating.alerting.metrics import metrics_text

    return metrics_text(chosen(result, None, None, None)[0])


def chosen(
    result: Result | Path | str, since: Moment | None, until: Moment | None, table: str | None
) -> tuple[Result, Chosen]:
    """Return a result, and which of its changes are asked for; errors as of `conflicts`."""
    from conflict.results.conflicts import Chosen
    from conflict.results.result import Result, read_result

    first, last = (
        None if each is None else moment_of(each, name) for each, name in ((since, "since"), (until, "until"))
    )
    found = result if isinstance(result, Result) else read_result(str(result))
    return found, Chosen(first, last, None if table is None else found.table_named(table))


@typed(run=_RESULT_OR_RUN, table=_TABLE, key=_KEY, transaction=Typed("ID"), exception=_EXCEPTION)
def explain(
    run: Result | RunFile | Path | str,
    *,
    table: str | None = None,
    key: str | int | Mapping[str, object] | None = None,
    transaction: int | str | None = None,
    exception: int | str | None = None,
    progress: StageProgress = no_progress,
) -> Story:
    """
    Return why a row ended as it did, or what became of a transaction; as the command ``explain``.

    Args:
        run: A result, its folder, or a run file, which is resolved first.
        table: Table of the row, database.table, or the table alone.
        key: The key of the row: its values by column, or as text, ``a=1, b=two``.
        transaction: Explain the transaction with this id, not a row; ``CLUSTER:ID`` if two have it.
        exception: An exceptions row in place of a row: its number, from 1, or the four values of its primary key as
            text, ``1,2,5312874545162,1`` (docs/explain.md, "Exceptions rows"); with `table`, of that table.
        progress: As for `resolve`.

    Raises:
        ConfigurationError: Not one of the three is asked for, or what is asked for is not understood, or is not one.
        HistoryError: There is no such table, transaction or exceptions row, or a binlog has changed since.
    """
    from conflict.api.explaining import opened

    asked = [key is not None, transaction is not None, exception is not None]
    if sum(asked) != 1 or (key is not None and table is None) or (transaction is not None and table is not None):
        message = "ask for one thing: a row (table and key), a transaction, or an exceptions row"
        raise ConfigurationError(message)
    with opened(run, progress) as explainer:
        if transaction is not None:
            return explainer.transaction(transaction)
        if exception is not None:
            return explainer.exception(exception, table)
        assert table is not None
        assert key is not None
        return explainer.row(table, key)


def explain_differences(
    run: Result | RunFile | Path | str, *, table: str | None = None, progress: StageProgress = no_progress
) -> list[Story]:
    """
    Return the stories of the rows that end different, in the order of tables and keys of the result.

    Args:
        run: As for `explain`.
        table: Of this table alone, ``database.table``.
        progress: As for `resolve`.

    Raises:
        HistoryError: There is no such table, or a binlog has changed since.
    """
    from conflict.api.explaining import opened

    with opened(run, progress) as explainer:
        return explainer.differences(table)


def _page_of(found: tuple[Path, list[Part]]) -> Path:
    return found[0]


@answering(_page_of)
@typed(results=_RESULTS)
def report(
    results: Paths,
    *,
    out: Path | str = "report.html",
    figures: Path | str | None = None,
    title: str = "Conflicts between clusters",
    force: bool = False,
) -> tuple[Path, list[Part]]:
    """
    Write results as one HTML page; as the command ``report``.

    Args:
        results: Result folders of resolve, compare or sweep; JSON files of compare, simulate, sizes, diverge or
            window.
        out: The page.
        figures: Folder for the figures as SVG and PNG, and their data as CSV.
        title: Title of the page.
        force: As for `resolve`.

    Returns:
        The page.

    Raises:
        ConfigurationError: Something is no result that a report knows, or the page cannot be written.
    """
    from conflict.decoding.staging import check_output, refuse_same_output
    from conflict.history.grid.folder import Folder
    from conflict.reporting.joining import joined
    from conflict.reporting.reading import part_of
    from conflict.reporting.report import write_figures, write_page
    from conflict.results.files import check_target, whole_or_not_at_all

    paths, page, folder = places_of(results), Path(out), path_of(figures)
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
    return page, parts
