"""
A run from its configuration to its result, on any engine; and which engine, where the user leaves it open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TypeVar

import attrs

from conflict.checking.check import refuse_by_policy
from conflict.config.arguments import DeploymentPolicy, StageProgress, no_progress
from conflict.config.configuration import Configuration
from conflict.config.run_file import RunFile
from conflict.engine.ledger.careful import CareKind
from conflict.engine.ledger.layout import ResultOptions, catalogue_result
from conflict.errors import ConfigurationError, MissingEpochsError
from conflict.history.grid.folder import Folder
from conflict.history.grid.memory_folder import MemoryFolder
from conflict.history.grid.path_names import refuse_same_paths
from conflict.history.grid.stored_folder import folder_of
from conflict.history.grid.whole_files import only_writer
from conflict.history.ingestion.logged_epochs import scan_epochs
from conflict.history.ingestion.plan import refuse_other_folders
from conflict.history.preparing.log_files import check_log_files, missing_files
from conflict.history.run import Run
from conflict.history.tasks import in_threads
from conflict.results.files import check_target, refuse_nesting, whole_or_not_at_all
from conflict.results.run_document import RunDocument
from conflict.rules.counters import zero_counters
from conflict.rules.table_setup import TableSetup
from conflict.runs.engine_choice import EngineChoice, choose_engine
from conflict.runs.ingest_job import outlines_by_tasks
from conflict.runs.run_inputs import inputs_document, run_of
from conflict.runs.settled import EVERY_KIND, Settled, SettleOptions, needs_reference, settled
from conflict.runs.spark_workers import spark_workers
from ndb_formats.columnar.file_outline import FileOutline, outlines_of
from ndb_formats.findings import LogRemark
from ndb_formats.schema.row_keys import refuse_inexact_keys
from ndb_formats.stored import is_address, path_of


@attrs.frozen(kw_only=True)
class ResolveOptions(ResultOptions):
    """
    What is wanted of a result, and what is there already. The reference engine writes the final rows in any case.

    Attributes:
        history: A finished History of the run's binlogs, which are not read again; None to read them.
        keep_history: Where the History that is made of the binlogs is kept; None if nobody wants it.
        replace: Whether a result that is in the folder already is replaced.
    """

    history: Folder | None = None
    keep_history: Folder | None = None
    replace: bool = False


DEFAULTS = ResolveOptions()


Found = TypeVar("Found")


def resolve(
    run_file: RunFile,
    out: Folder | str,
    *,
    engine: str = "auto",
    policy: DeploymentPolicy = DeploymentPolicy.MANUAL,
    options: ResolveOptions = DEFAULTS,
    progress: StageProgress = no_progress,
) -> RunDocument:
    """
    Resolve a run, and write its result as a whole or not at all.

    Args:
        run_file: The run; `conflict.load_run_file` reads it.
        out: Where the result goes; nothing may be there.
        engine: One of `ENGINES`: ``spark``, ``local`` or ``reference``; or ``auto`` (see
            `conflict.runs.pipeline`).
        policy: Which conflict functions go with which binlog types.
        options: What is wanted of the result.
        progress: Called with the name of the stage, what is done, and what there is to do.

    Raises:
        ConfigurationError: The run cannot be resolved as it is; nothing has been read.
        HistoryError: Binlogs, schedule and configuration contradict each other.
    """
    configuration, target = run_file.configuration, folder_of(out)
    _refuse_window(options)
    if run_file.open_functions is not None:
        policy = DeploymentPolicy.NEEDS  # what was found was in force, whatever the manual says of it
    choice = choose_engine(configuration) if engine == "auto" else EngineChoice(engine, "")
    engine = choice.engine
    read = [path_of(each.uri) for each in (options.history, options.after) if each is not None]
    check_target(target, [*run_file.inputs, *read], replace=options.replace)
    kept = options.keep_history
    if kept is not None:
        refuse_other_folders(kept)
        refuse_nesting(kept, target)
    declared = Run(configuration)
    if engine != "reference":
        refuse_python_rules(declared.setups.at_end)
    refuse_by_policy(declared, policy, created=True)
    check_log_files(configuration, may_lack_files=_can_have_holes(configuration, options))
    by_spark = engine == "spark" and needs_reference(declared) is None
    make = partial(_outlines_on_spark, progress) if by_spark else outlines_of
    run = run_after_missing_files(run_of(run_file, options.history or kept, make))
    refuse_by_policy(run, policy)
    _refuse_same_paths(target, run)
    with ExitStack() as held:
        if kept is not None:
            held.enter_context(only_writer(kept))
        work = held.enter_context(whole_or_not_at_all(target, replace=options.replace))
        attempt = partial(ENGINES[engine], out=work, progress=progress, options=options)
        resolved = from_holes(run, attempt, can_have_holes=_can_have_holes(configuration, options))
        if run_file.open_functions:
            resolved = attrs.evolve(resolved, notes=(*resolved.notes, run_file.open_functions), functions_open=True)
        if choice.reason and not resolved.engine:
            resolved = attrs.evolve(resolved, engine=choice.engine, engine_reason=choice.reason)
        zeros = zero_counters(run.configuration.functions)
        work.write_json("counters.json", {name: {**zeros, **each} for name, each in resolved.summary.counters.items()})
        final_rows = options.final_rows or (resolved.engine or engine) == "reference"  # which always writes them
        document = resolved.to_json(engine, all_outcomes=options.all_outcomes, final_rows=final_rows)
        document["inputs"] = inputs_document(run_file, run.kept_alone, options.history or kept)
        work.write_json("run.json", {**document, **catalogue_result(work)})
    return resolved


def _can_have_holes(configuration: Configuration, options: ResolveOptions) -> bool:
    """Whether epochs may be missing from a log: a History holds whole logs, and networks start with empty tables."""
    kept = options.history is not None or options.keep_history is not None
    return configuration.links.is_pair and not kept


def run_after_missing_files(run: Run) -> Run:
    """Return the run from after the last missing file whose epochs no other log has in full."""
    for missing in missing_files(run.configuration):
        cluster = next(each for each in run.clusters if each.name == missing.cluster)
        before, after = (scan_epochs(missing.server_id, files).number for files in (missing.before, missing.rest))
        if not len(before) or not len(after):
            continue
        others = (scan_epochs(each.server_id, each.files) for each in cluster.servers if each.files)
        if any(not other.broken(int(before[-1]), int(after[0])) for other in others):
            continue
        first, last = run.span.first.get(cluster.name, 0), run.span.last.get(cluster.name)
        if first < after[0] and (last is None or last >= after[0]):
            run = _from(run, cluster.name, int(after[0]), missing.what)
    return run


def from_holes(run: Run, attempt: Callable[[Run], Found], *, can_have_holes: bool) -> Found:
    """
    Return what an attempt at a run finds; where epochs are missing that the other cluster applied, at what comes after.

    Computes docs/result.md, "Holes".
    """
    while True:
        try:
            return attempt(run)
        except MissingEpochsError as error:
            if not can_have_holes:
                raise
            run = _from(
                run,
                error.cluster,
                error.after,
                f"no log holds all that cluster {error.cluster} changed between its epochs {error.before} and "
                f"{error.after}, of which {error.applier} applied epoch {error.epoch}",
                f"; --stop-epoch {error.cluster}={error.before} resolves what is before",
            )


def _from(run: Run, cluster: str, epoch: int, what: str, before: str = "") -> Run:
    """Return a run that reads a cluster from an epoch on, because changes before it are in no log."""
    said = LogRemark(f"{what}: the logs are resolved from epoch {epoch} of {cluster} on{before}", lost=True)
    span = attrs.evolve(run.span, first={**run.span.first, cluster: epoch})
    return attrs.evolve(run, span=span, remarks=(*run.remarks, said))


def _outlines_on_spark(progress: StageProgress, files: Sequence[Path]) -> list[FileOutline]:
    from conflict.spark.session import spark_session  # noqa: PLC0415  # only the jobs need pyspark
    from conflict.spark.spark_runner import spark_runner  # noqa: PLC0415  # only the jobs need pyspark

    progress("starting Spark", 0, 1)
    runner = spark_runner(spark_session())
    progress("starting Spark", 1, 1)
    return outlines_by_tasks(runner, progress, files)


def _refuse_same_paths(target: Folder, run: Run) -> None:
    if not is_address(target.uri):
        there = next(folder for folder in Path(target.uri).absolute().parents if folder.exists())
        refuse_same_paths(there, (table.full_name for table in run.schema.tables))


def refuse_python_rules(by_cluster: Mapping[str, Mapping[str, TableSetup]]) -> None:
    """
    Make sure that no table has a conflict function that is written in Python.

    Raises:
        ConfigurationError: One has.
    """
    for setups in by_cluster.values():
        for name, setup in setups.items():
            if setup.function is not None and setup.function.spec.own is not None:
                rule = setup.function.spec.name
                message = (
                    f"table {name}: {rule} is a rule in Python, which only --engine reference runs; to run it on every "
                    "engine, write it as a row [[conflict_function]] of the run file"
                )
                raise ConfigurationError(message)


def run_by(
    engine: str, run: Run, out: Folder, progress: StageProgress = no_progress, options: ResolveOptions = DEFAULTS
) -> RunDocument:
    """
    Resolve with one engine, and write the result.

    Args:
        engine: ``reference``; or the columnar engine: ``spark``, or ``local`` in this process, without Spark or Java.
            There a History that nobody wants to keep stays in memory as far as it fits (see
            `conflict.history.grid.memory_folder`). What the kernels cannot resolve the reference engine resolves.
        run: The run.
        out: Where the result goes.
        progress: Called with the name of the stage, what is done, and what there is to do.
        options: What is wanted of the result.

    Raises:
        ConfigurationError: The reference engine is given a History, or is to keep one: it reads the binlogs itself.
    """
    wanted = SettleOptions(out=out, result=options, progress=progress)
    if engine == "reference":
        _refuse_history(options)
        return _written(settled(run, in_threads, wanted))
    refuse_python_rules(run.setups.at_end)
    refuse_inexact_keys(run.data_schema.tables)
    scratch = out.below("history")
    if engine == "local":
        scratch = MemoryFolder.at(scratch.place()[1])
    by_spark = engine == "spark" and needs_reference(run) is None
    wanted = attrs.evolve(
        wanted,
        history=options.history or options.keep_history or scratch,
        is_finished=options.history is not None,
        with_holes=run.span.cuts and options.keep_history is None,
        by_reference=EVERY_KIND,
    )
    runner = spark_workers(out, progress, options.keep_history, options.history) if by_spark else in_threads
    try:
        return _written(settled(run, runner, wanted))
    finally:
        scratch.delete()


def _refuse_history(options: ResolveOptions) -> None:
    if options.history is not None:
        message = "the reference engine reads the binlogs itself; leave --history out, or use another engine"
        raise ConfigurationError(message)
    if options.keep_history is not None:
        message = "the reference engine makes no History; leave --keep-history out, or use another engine"
        raise ConfigurationError(message)


def _refuse_window(options: ResolveOptions) -> None:
    """Make sure that there is a History that stays, where a run goes on from another one or is to be gone on from."""
    asked = "--after" if options.after is not None else "--keep-state"
    lasting = options.history is not None or options.keep_history is not None
    if (options.after is not None or options.keep_state) and not lasting:
        message = f"{asked} needs a History that stays: give --history or --keep-history"
        raise ConfigurationError(message)


def _written(found: Settled | CareKind) -> RunDocument:
    """Write what one of the engines decided, and return it."""
    assert isinstance(found, Settled)  # the reference engine resolves every run
    found.write()
    return found.resolved


ENGINES: dict[str, Callable[..., RunDocument]] = {
    name: partial(run_by, name) for name in ("reference", "local", "spark")
}
