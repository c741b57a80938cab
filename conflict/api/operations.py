"""
What Python users and commands call about the operation of clusters.

How long changes take to the other cluster, what is wrong with compared values, where a channel goes on, how rows are
repaired.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conflict.config.arguments import RepairRules, StageProgress, Typed, answering, no_progress, typed
from conflict.config.option_values import Grid, path_of
from conflict.errors import ConfigurationError
from ndb_formats.errors import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conflict.config.configuration import Configuration
    from conflict.config.run_file import RunFile
    from conflict.operating.audit.audit import Audit
    from conflict.operating.channel.channels import MovedChannels
    from conflict.operating.repairing.plan import Plan
    from conflict.operating.window.window import Window
    from conflict.results.result import Result

    Source = Result | RunFile | Path | str | Iterable[Path | str]


_SOURCES = Typed(
    "RESULT | BINLOGS...",
    "A folder that resolve wrote, a run file (.toml), or binlogs: those of the SQL node, of the others of its cluster, "
    "and of the replica.",
)
_WINDOW_SOURCES = Typed(
    "RESULT | BINLOGS...", "A folder that resolve wrote, a run file (.toml), or the binlogs of both clusters."
)


def _document_of(found: MovedChannels) -> dict[str, Any]:
    return found.document()


@answering(_document_of)
@typed(sources=_SOURCES, to=Typed("SERVER", at_least=1), after_epoch=Typed("N", at_least=0))
def channel(
    *sources: Source,
    to: int,
    after_epoch: int | None = None,
    sql: Path | str | None = None,
    parquet: Path | str | None = None,
    force: bool = False,
) -> MovedChannels:
    """
    Return where the channels of a cluster go on that are to read from another of its SQL nodes; as the command.

    Args:
        sources: A result, its folder, a run file, or binlogs: those of the SQL node, of the others of its cluster, and
            of the replica.
        to: Server id of the SQL node from whose log the channel is to read.
        after_epoch: The last epoch that was applied: ``SELECT MAX(epoch) FROM mysql.ndb_apply_status`` on the replica;
            by default, what the replica's log shows.
        sql: Write the epochs of that log as INSERT statements for its mysql.ndb_binlog_index.
        parquet: Write the epochs of that log as Parquet, with the columns of mysql.ndb_binlog_index.
        force: As for `resolve`.

    Returns:
        The document of ``--json``: under ``channels``, where each goes on, and what may be missing.

    Raises:
        ConfigurationError: There is no log of that SQL node, it holds no epoch, or a file cannot be written.
        HistoryError: A binlog has changed since the result was made.
    """
    from conflict.decoding.staging import check_output, refuse_same_output
    from conflict.operating.channel.channels import channels_to
    from conflict.operating.channel.index_files import write_index

    configuration = _configuration_of(list(sources), alone=after_epoch is not None)
    targets = path_of(sql), path_of(parquet)
    refuse_same_output(*targets)
    for target in targets:
        check_output(target, configuration.files, force=force)
    found = channels_to(configuration, to, after_epoch)
    write_index(found.table.to_arrow(), to, *targets)
    return found


@typed(sources=_WINDOW_SOURCES)
def window(
    *sources: Source,
    by: Grid | str = "minute",
    plot: Path | str | None = None,
    force: bool = False,
    progress: StageProgress = no_progress,
) -> Window:
    """
    Return how long changes took to the other cluster over time, and how long they could conflict; as the command.

    Args:
        sources: A result, its folder, a run file, or binlogs. A result alone knows conflicts, and when clusters began
            to diverge.
        by: Step of the table by time.
        plot: Draw how long epochs took: FILE.png or FILE.svg.
        force: As for `resolve`.
        progress: As for `resolve`.

    Raises:
        ConfigurationError: The log of a cluster holds no epoch, or a file cannot be written.
        HistoryError: A binlog has changed since the result was made.
    """
    from conflict.decoding.staging import check_output
    from conflict.explaining.beginning import beginning_of
    from conflict.explaining.explainer import Explainer
    from conflict.operating.window.pictures import write_chart
    from conflict.operating.window.window import window_of
    from conflict.telling.drawing import check_chart_file

    grid, chart = _grid(by), path_of(plot)
    given = list(sources)
    configuration, result = _configuration_of(given, alone=False), _result_of(given)
    check_output(chart, configuration.files, force=force)
    check_chart_file(chart)
    beginning = None if result is None else beginning_of(Explainer.of_result(result, progress))
    found = window_of(configuration, grid, result, beginning, progress)
    if chart is not None:
        write_chart(chart, found.document())
    return found


@typed(run=Typed("RESULT", "A folder that resolve wrote, or a run file (.toml)."))
def audit(run: Result | RunFile | Path | str, *, progress: StageProgress = no_progress) -> Audit:
    """
    Return what is wrong with the values of the columns that conflict functions compare; as the command.

    Args:
        run: A result, its folder, or a run file; its binlogs are read.
        progress: As for `resolve`.

    Raises:
        ConfigurationError: The run file, or a binlog, cannot be read.
        HistoryError: A binlog has changed since the result was made.
    """
    from conflict.config.run_file import RunFile, is_run_file, load_run_file
    from conflict.operating.audit.audit import audit_of
    from conflict.results.result import Result, read_result
    from conflict.runs.run_inputs import run_of, run_of_result

    if not isinstance(run, Result | RunFile):
        place = Path(run)
        run = load_run_file(place.absolute()) if is_run_file(place) else read_result(str(place))
    return audit_of(run_of_result(run.run, run.folder.uri) if isinstance(run, Result) else run_of(run), progress)


@typed(run=Typed("RUN_FILE", "A run file (.toml); its patterns name the files that come, too."))
def watch(
    run: RunFile | Path | str,
    *,
    out: Path | str = "watch",
    metrics: Path | str | None = None,
    until_idle: bool = False,
    progress: StageProgress = no_progress,
) -> Iterator[dict[str, Any]]:
    """
    Follow binlogs that grow, and yield a record of each conflict and lost change once it cannot change any more.

    Args:
        run: A run file; the patterns of its binlogs name the files that come, too.
        out: Folder of the record, ``records.jsonl``, and of the state from which the watch goes on.
        metrics: Keep figures in this file, for Prometheus.
        until_idle: Decide at the end of the files what is left, as `resolve` does, and end.
        progress: Called after each look at the files.

    Yields:
        The records, as docs/records.md has them, each once, also if the watch was killed; those that were in the record
        before are not yielded again.

    Raises:
        ConfigurationError: The run cannot be watched.
        HistoryError: The logs cannot be followed further.
    """
    from conflict.config.run_file import RunFile, load_run_file
    from conflict.operating.watching.watch import followed

    run_file = run if isinstance(run, RunFile) else load_run_file(Path(run).absolute())
    return followed(run_file, Path(out), path_of(metrics), progress, until_idle=until_idle)


@typed(result=Typed("RESULT", "Folder that resolve wrote."), rows_per_transaction=Typed("N", at_least=1))
def repair(
    result: Result | Path | str,
    rules: RepairRules = (),
    *,
    deletes: bool = False,
    reapply: bool = False,
    raise_version: bool = False,
    rows_per_transaction: int = 100,
    out: Path | str | None = None,
    unproved: bool = False,
    force: bool = False,
    progress: StageProgress = no_progress,
) -> Plan:
    """
    Return SQL that makes rows equal that differ, and applies lost changes again; as the command. Nothing is run.

    Args:
        result: A result of two clusters, or its folder; its binlogs are read.
        rules: Which cluster's row stands, by table or pattern; the first rule that is for a row decides:
            ``{"shop.orders": "london", "*": "newest"}``; also ``"greatest(version)"`` or ``"review"``; or as on the
            command line: ``"shop.orders=london"``, or a file with rules, ``"rules.toml"``, also several in a list.
        deletes: Delete rows that the winning cluster does not have; without it they are left to review.
        reapply: Apply lost changes of users again, where they still fit.
        raise_version: For that, give the column that NDB$MAX and its relatives compare a greater value where they need
            one; without it such changes are left to review.
        rows_per_transaction: Most rows that one transaction repairs.
        out: Write the plan into this folder: SQL, review and statements as tables, figures.
        unproved: Write it even if the proof fails.
        force: As for `resolve`.
        progress: As for `resolve`.

    Raises:
        ConfigurationError: A rule is not understood, the plan does not come out, or `out` cannot be written.
        HistoryError: There is no result in the folder, or its binlogs are gone or have changed.
    """
    from conflict.operating.repairing.ended_run import ended_run
    from conflict.operating.repairing.lost import Losses, not_listed
    from conflict.operating.repairing.plan import Plan
    from conflict.operating.repairing.plan_files import check_plan_folder, write_plan
    from conflict.operating.repairing.planning import Wanted, planned
    from conflict.operating.repairing.reading_lost import LOST, count_not_known, read_lost
    from conflict.operating.repairing.reapply import lost_in_history
    from conflict.operating.repairing.winners import rules_of
    from conflict.results.conflicts import ALL
    from conflict.results.result import Result, read_result

    found, target = result if isinstance(result, Result) else read_result(str(result)), path_of(out)
    decided = rules_of(rules or (), found.clusters, found.tables, deletes=deletes)
    check_plan_folder(target, [Path(found.folder.uri)], force=force)
    lost = read_lost(found, ALL) if reapply else LOST.empty_table()
    ended = ended_run(found, lost, progress)
    changes = lost_in_history(ended, lost)
    wanted = Wanted(decided, reapply, changes, deletes, raise_version, rows_per_transaction)
    steps, others = planned(ended, wanted, partial(progress, "proving")), []
    if reapply:
        others = [*not_listed(Losses(found, ALL, lost, count_not_known(found, ALL, lost), ()))]
    plan = Plan(found, wanted, ended, steps, others)
    if target is not None:
        write_plan(plan, target, force=force, unproved=unproved)
    return plan


def _grid(by: Grid | str) -> Grid:
    if by not in tuple(Grid):
        message = f"by {by} is not known{did_you_mean(str(by), Grid)}; give {', '.join(Grid)}"
        raise ConfigurationError(message)
    return Grid(by)


def _configuration_of(sources: list[Source], *, alone: bool) -> Configuration:
    """
    Return the clusters and logs of a result, of a run file, or of bare binlogs.

    Args:
        sources: What was given.
        alone: Whether the logs of one cluster, or of more than two, will do.

    Raises:
        ConfigurationError: Nothing is given, or the binlogs do not tell who replicates from whom.
        HistoryError: A binlog has changed since the result was made.
    """
    from conflict.config.run_file import is_run_file, load_run_file
    from conflict.discovery.draft import bare_clusters
    from conflict.results.result import Result, read_result
    from conflict.runs.run_inputs import configuration_of

    given = [each for source in sources for each in _one_by_one(source)]
    if not given:
        message = "give a result, a run file, or binlogs"
        raise ConfigurationError(message)
    paths = [each for each in given if isinstance(each, Path)]
    whole = [each for each in given if not isinstance(each, Path) or _is_run(each)]
    if not whole:
        return bare_clusters(paths, alone=alone)
    if len(given) > 1:
        message = f"{_shown(whole[0])} stands alone: it says which binlogs there are"
        raise ConfigurationError(message)
    (only,) = whole
    if isinstance(only, Path):
        only = load_run_file(only.absolute()) if is_run_file(only) else read_result(str(only))
    return configuration_of(only.run, only.folder.uri) if isinstance(only, Result) else only.configuration


def _result_of(sources: list[Source]) -> Result | None:
    """Return the result that stands alone among what was given; None if there is none."""
    from conflict.results.result import Result, read_result

    (only, *_) = [each for source in sources for each in _one_by_one(source)]
    if isinstance(only, Result):
        return only
    return read_result(str(only)) if isinstance(only, Path) and (only / "run.json").exists() else None


def _is_run(path: Path) -> bool:
    from conflict.config.run_file import is_run_file

    return is_run_file(path) or (path / "run.json").exists()


def _shown(given: Result | RunFile | Path) -> str:
    from conflict.config.run_file import RunFile

    return str(given.path if isinstance(given, RunFile) else given if isinstance(given, Path) else given.folder.uri)


def _one_by_one(source: Source) -> list[Result | RunFile | Path]:
    from conflict.config.run_file import RunFile
    from conflict.results.result import Result

    if isinstance(source, Result | RunFile):
        return [source]
    return [Path(source)] if isinstance(source, Path | str) else [Path(each) for each in source]
