"""
What Python users call besides `conflict.library`: commands about models, sizes and results, as functions.

Each has the name, the options and the defaults of its command, and returns what the command prints or writes to
``--json``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pyarrow as pa

from conflict.cli.commands.simulate import check_folders, keep_run
from conflict.cli.outputs import check_output, refuse_same_output
from conflict.cli.views.conflicts import conflicts_json
from conflict.cli.views.sizes import sizes_json
from conflict.cli.views.sizes_chart import check_chart_file, draw_sizes
from conflict.cli.views.sizes_files import configured_types, measured_log
from conflict.config.arguments import ConflictFns, StageProgress, no_progress
from conflict.config.option_values import Moment, moment_of
from conflict.decoding.binlog_table import BinlogTable, read_binlog
from conflict.decoding.staging import staged_file
from conflict.discovery.draft import additions_of
from conflict.discovery.log_source import log_source
from conflict.errors import ConfigurationError
from conflict.history.grid.catalogue import refusing_contradictions
from conflict.history.grid.folder import Folder
from conflict.history.grid.whole_files import only_writer
from conflict.library import path_of, run_of
from conflict.pipeline import spark_workers
from conflict.reporting.joining import joined
from conflict.reporting.kinds.simulate import simulation_document
from conflict.reporting.reading import part_of
from conflict.reporting.report import write_figures, write_page
from conflict.result import Result, read_result
from conflict.results.catalogue import RESOLVE_AGAIN
from conflict.results.conflicts import Chosen, at_a_glance, count_conflicts, read_conflicts, totals_of
from conflict.results.counting import By
from conflict.results.doubts import doubts_of
from conflict.results.files import check_target, whole_or_not_at_all
from conflict.runs.engine_choice import spark_asked_for
from conflict.runs.runner import process_runner
from conflict.whatif.simulating.learning import learnt_model
from conflict.whatif.simulating.model_file import model_document, model_text, parse_model
from conflict.whatif.simulating.report import run_seeds
from conflict.whatif.simulating.run import Simulated
from conflict.whatif.sweeping.border import check_axis, parse_condition
from conflict.whatif.sweeping.sweep import Search, check_folder, run_sweep
from conflict.whatif.sweeping.sweep_file import load_sweep
from ndb_formats.constants import DEFAULT_EVENT_SIZE
from ndb_formats.errors import did_you_mean

__all__ = ["conflicts", "decode", "report", "simulate", "sizes", "sweep", "workload"]

if TYPE_CHECKING:
    from conflict.library import Source

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


def simulate(
    model: Path | str | Mapping[str, Any],
    *,
    seeds: int = 1,
    seed: int | None = None,
    out: Path | str | None = None,
    write_binlogs: Path | str | None = None,
    force: bool = False,
    progress: StageProgress = no_progress,
) -> dict[str, Any]:
    """
    Simulate a workload on clusters that replicate to each other; as the command ``simulate``.

    Args:
        model: The file of the model, or its entries (docs/model.md).
        seeds: How many runs, each with a seed of its own.
        seed: The first seed, in place of the model's.
        out: Folder for the result of the first run.
        write_binlogs: Folder for the binlogs of the first run; by default, beside `out`.
        force: Replace folders that are there already.
        progress: As for `conflict.resolve`.

    Returns:
        The document of ``--json``: ``runs`` has the figures of each run, ``intervals`` their medians and extremes. Runs
        whose figure ``quiet_at_the_end`` is 0 are not settled, and may lose more.

    Raises:
        ConfigurationError: The model is wrong, or a folder cannot be written.
    """
    file = Path("model.toml") if isinstance(model, Mapping) else Path(model)
    document = dict(model) if isinstance(model, Mapping) else model_document(file)
    target, logs = path_of(out), path_of(write_binlogs) or (None if out is None else Path(f"{out}-binlogs"))
    refuse_same_output(target, logs)
    check_folders(target, logs, file, force=force)
    made = parse_model(document)
    made = made if seed is None else attrs.evolve(made, seed=seed)

    def keep(run: Simulated) -> None:
        keep_run(run, target, logs, progress, force=force)

    return {**simulation_document(made, run_seeds(made, seeds, progress, keep)), "model": document}


def workload(
    *sources: Source,
    out: Path | str | None = None,
    scale: float = 1.0,
    inexact_keys: bool = False,
    schema: Path | str | None = None,
    ndb_replication: Path | str | None = None,
    conflict_fn: ConflictFns | None = None,
    primary: str | None = None,
    force: bool = False,
) -> dict[str, Any]:
    """
    Learn a workload from the binlogs of two clusters, as a model for `simulate`; as the command ``workload``.

    Args:
        sources: As for `conflict.resolve`, as are `schema`, `ndb_replication`, `conflict_fn` and `primary`.
        out: File for the model; None for none.
        scale: Factor for the rates of transactions.
        inexact_keys: Take keys as equal by their bytes where a collation is not known.
        schema: See there.
        ndb_replication: See there.
        conflict_fn: See there.
        primary: See there.
        force: Replace a file that is there already.

    Returns:
        The entries of the model.

    Raises:
        ConfigurationError: It is not about two clusters, or the file cannot be written.
        HistoryError: There is nothing to learn.
    """
    additions = additions_of(schema, ndb_replication, conflict_fn, primary)
    run = run_of(sources, additions)
    target = path_of(out)
    check_output(target, run.inputs, force=force)
    configuration = run.configuration.with_inexact_keys() if inexact_keys else run.configuration
    document = learnt_model(configuration, scale)
    if target is not None:
        with staged_file(target) as file:
            file.write(model_text(document).encode())
    return document


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


def sweep(
    sweep_file: Path | str,
    *,
    out: Path | str,
    model: Path | str | None = None,
    find: str | None = None,
    over: str | None = None,
    within: float | None = None,
    engine: str = "auto",
    workers: int | None = None,
    progress: StageProgress = no_progress,
) -> pa.Table:
    """
    Simulate a grid of models; as the command ``sweep``.

    Args:
        sweep_file: The grid (docs/sweep.md).
        out: Folder of the sweep; its finished runs are not simulated again.
        model: The file of the model, in place of that of the grid.
        find: A condition whose border is looked for, ``lost_updates == 0``; it is in ``borders.parquet``.
        over: The axis that it is looked for along.
        within: Distance to the border that is near enough.
        engine: ``auto``, ``local`` or ``spark``.
        workers: Processes of engine ``local``; one per core by default.
        progress: As for `conflict.resolve`.

    Returns:
        A row per run of the grid; ``lost_updates`` are lower bounds where ``unsettled_changes`` is not 0.

    Raises:
        ConfigurationError: The grid, the model, the condition or the folder cannot be used.
    """
    if engine not in ("auto", "local", "spark"):
        message = f"engine {engine} does not sweep; use auto, local or spark"
        raise ConfigurationError(message)
    if (find is None) != (over is None) or (within is not None and find is None):
        message = "find and over go together, and within with both: a condition, and the axis of its border"
        raise ConfigurationError(message)
    loaded, search = load_sweep(Path(sweep_file), path_of(model)), None
    if find is not None and over is not None:
        check_axis(loaded, over, within)
        search = Search(parse_condition(find), over, within)
    folder = Folder(str(Path(out).resolve()))
    check_folder(folder)
    on_spark = engine == "spark" or (engine == "auto" and spark_asked_for())
    with only_writer(folder):
        runner = spark_workers(folder, progress) if on_spark else process_runner(workers)
        return run_sweep(loaded, folder, runner, search, progress).results


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
