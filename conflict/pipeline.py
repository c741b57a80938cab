"""
A run from its configuration to its result, on any engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import attrs

from conflict.columnar.foreign_keys.states import has_changing_links
from conflict.columnar.older_rows import changes_older_rows as changes_older_rows_on_disk
from conflict.columnar.setups_over_time import changes_functions, compares_reflected
from conflict.compatibility.check import refuse_by_policy
from conflict.compatibility.deployment import Policy
from conflict.config.configuration import Configuration
from conflict.config.run_file import RunFile
from conflict.errors import ConfigurationError, HistoryError, NotBuiltError
from conflict.grid.folder import Folder
from conflict.grid.lock import only_writer
from conflict.grid.manifest import Manifest, load_manifest, refuse_damage
from conflict.grid.path_names import refuse_same_paths
from conflict.history.effects import recorded_effects, recorded_images
from conflict.history.epochs import BinlogEpoch
from conflict.history.following import follow_definitions
from conflict.history.hints import hints_of_run_file
from conflict.history.log_files import check_log_files
from conflict.history.logged_images import logged_images
from conflict.history.model import History
from conflict.history.reading import (
    ClusterHints,
    ClusterReading,
    cut_readings,
    history_of,
    possible_readings,
    read_cluster,
    usable_epochs,
)
from conflict.history.schedule import Summary
from conflict.history.start import changes_older_rows
from conflict.ingestion.plan import load_plan, refuse_differences
from conflict.jobs.engine_choice import choose_engine
from conflict.jobs.ingest_job import Ingested
from conflict.jobs.ingest_job import ingest as ingest_binlogs
from conflict.jobs.log_facts import facts_of_history, images_of_history, lacks_something, roles_change
from conflict.jobs.log_part import LogPart, part_of_log
from conflict.jobs.resolve_job import LeftToReferenceError, resolve_history
from conflict.jobs.runner import Runner, StageProgress, in_threads
from conflict.reference.moments import Moments, find_moments
from conflict.reference.placement import Placed, place_untraced, restricted, touched_rows
from conflict.reference.replay import resolve as replay
from conflict.results.catalogue import catalogue_result
from conflict.results.contradictions import ContradictedRow, contradicted_rows
from conflict.results.files import (
    Recorded,
    summarize_resolution,
    write_contradictions,
    write_open_places,
    write_open_rows,
    write_resolution,
)
from conflict.results.layout import BUCKET_PARTS
from conflict.results.likely_causes import (
    CauseKind,
    LogFacts,
    changed_roles,
    declared_types,
    facts_of_epochs,
    likely_causes,
)
from conflict.results.model import Resolution
from conflict.results.options import ResultOptions
from conflict.results.readings import is_same_result, reading_path, with_readings
from conflict.results.run_document import Run
from conflict.results.summary import RunSummary, with_open_rows, with_open_schedule
from conflict.results.target import check_target, whole_or_not_at_all
from conflict.rules.counters import zero_counters
from conflict.rules.table_setup import TableSetup
from ndb_formats.schema.exact_keys import refuse_inexact_keys

__all__ = [
    "ENGINES",
    "ResolveOptions",
    "Run",
    "finished_history",
    "ingest",
    "resolve",
    "resolve_settled",
    "run_local",
    "run_reference",
    "run_spark",
    "whole_or_not_at_all",
]

HintsOf = Callable[[Mapping[str, Sequence[Summary]]], ClusterHints]


@attrs.frozen
class ResolveOptions:
    """
    What is wanted of a result, and what is there already.

    Attributes:
        history: A finished History of the run's binlogs, which are not read again; None to make one beside the result.
        final_rows: Whether the rows of the tables at the end are wanted; the reference engine writes them anyway.
        all_outcomes: Whether outcomes are written of every operation, or of those alone that were not applied as they
            stood.
        replace: Whether a result that is in the folder already is replaced.
    """

    history: Folder | None = None
    final_rows: bool = True
    all_outcomes: bool = False
    replace: bool = False


def no_progress(stage: str, done: int, total: int) -> None:
    """Report nothing."""


def run_reference(
    configuration: Configuration,
    out: Folder,
    hints_of: HintsOf | None = None,
    progress: StageProgress = no_progress,
    options: ResolveOptions = ResolveOptions(),
) -> Run:
    """
    Resolve with the reference engine, in this process, and write the result.

    Raises:
        ConfigurationError: A History is given; this engine reads the binlogs itself.
    """
    if options.history is not None:
        message = "the reference engine reads the binlogs itself; leave --history out, or use another engine"
        raise ConfigurationError(message)
    configuration = follow_definitions(configuration)
    refuse_inexact_keys(configuration.data_schema.tables)
    readings: dict[str, ClusterReading] = {}
    for done, cluster in enumerate(configuration.clusters):
        progress("reading binlogs", done, len(configuration.clusters))
        readings[cluster.name] = read_cluster(cluster, configuration)
    hints = hints_of(usable_epochs(configuration, readings)) if hints_of else None
    readings = cut_readings(configuration, readings)
    facts = {
        name: facts_of_epochs(reading.epochs, replicates=bool(configuration.sources(name)))
        for name, reading in readings.items()
    }
    found = _best_readings(configuration, possible_readings(configuration, readings, hints), hints, progress)
    runs = [
        _written(out if number == 1 else out.below(reading_path(number)), each, facts, options)
        for number, each in enumerate(found, start=1)
    ]
    others = [each.resolution for each in found[1:]]
    return attrs.evolve(
        runs[0], summary=with_readings(runs[0].summary, found[0].resolution, others), other_readings=tuple(runs[1:])
    )


@attrs.frozen
class _ResolvedReading:
    """A reading of the binlogs of a run, and what it comes to."""

    configuration: Configuration
    readings: Mapping[str, ClusterReading]
    history: History
    placed: Placed
    resolution: Resolution
    moments: Moments

    @property
    def epochs(self) -> dict[str, list[BinlogEpoch]]:
        """Per cluster, the epochs that count."""
        summaries = usable_epochs(self.configuration, self.readings)
        return {name: reading.epochs[: len(summaries[name])] for name, reading in self.readings.items()}

    def compared(self) -> dict[str, tuple[int, list[ContradictedRow]]]:
        """Return, per cluster, how many rows were compared with its binlog, and those that differ."""
        return {
            name: contradicted_rows((result.effects, result.images), (recorded_effects(own), recorded_images(own)))
            for (name, result), own in zip(self.resolution.clusters.items(), self.epochs.values(), strict=True)
        }


def _best_readings(
    configuration: Configuration,
    readings: Sequence[Mapping[str, ClusterReading]],
    hints: ClusterHints | None,
    progress: StageProgress,
) -> list[_ResolvedReading]:
    """
    Resolve every reading; return those that the binlogs contradict the least, without those of equal results.

    Raises:
        HistoryError: No reading has an order of causes.
    """
    found: list[tuple[int, _ResolvedReading]] = []
    for number, each in enumerate(readings):
        try:
            resolved = _resolve_reading(configuration, each, hints, progress)
        except HistoryError:
            if not found and number == len(readings) - 1:
                raise
            continue
        count = 0 if len(readings) == 1 else sum(len(rows) for _, rows in resolved.compared().values())
        found.append((count, resolved))
    least = min(count for count, _ in found)
    kept: list[_ResolvedReading] = []
    for resolved in (resolved for count, resolved in found if count == least):
        if not any(is_same_result(resolved.resolution, other.resolution) for other in kept):
            kept.append(resolved)
    return kept


def _resolve_reading(
    configuration: Configuration,
    readings: Mapping[str, ClusterReading],
    hints: ClusterHints | None,
    progress: StageProgress,
) -> _ResolvedReading:
    """Resolve a reading; if it starts in the middle after all, as one that does."""
    summaries = usable_epochs(configuration, readings)
    epochs = {name: reading.epochs[: len(summaries[name])] for name, reading in readings.items()}
    recorded, at_start = {name: recorded_effects(own) for name, own in epochs.items()}, configuration.setups_at_start()
    history = history_of(configuration, readings, hints)
    placed = place_in_memory(history, at_start, recorded, skip_missing=configuration.skip_missing)
    history = placed.history(history)
    items = sum(len(cluster.timeline) for cluster in history.clusters)
    history, resolution, moments = resolve_settled(
        history,
        at_start,
        recorded,
        lambda done: progress("resolving", done, items),
        skip_missing=configuration.skip_missing,
    )
    unexplained = any(result.unexplained for result in resolution.clusters.values())
    if configuration.start_is_open and unexplained and any(map(changes_older_rows, epochs.values())):
        middle = attrs.evolve(configuration, span=attrs.evolve(configuration.span, empty=False))
        return _resolve_reading(middle, readings, hints, progress)
    return _ResolvedReading(configuration, readings, history, placed, resolution, moments)


def _written(out: Folder, found: _ResolvedReading, facts: Mapping[str, LogFacts], options: ResolveOptions) -> Run:
    """Write the result of a reading, and return what it came to."""
    configuration, readings, history, epochs = found.configuration, found.readings, found.history, found.epochs
    placed, resolution, moments, setups = found.placed, found.resolution, found.moments, configuration.setups()
    write_resolution(out, history, setups, resolution, all_outcomes=options.all_outcomes)
    tables = {table.full_name: table for table in configuration.schema.tables}
    write_open_places(out, placed.schedule.places, history.layouts, tables)
    write_open_rows(out, moments.open_epochs, history.layouts, tables)
    compared = found.compared()
    for name, (_, rows) in compared.items():
        write_contradictions(out, name, rows, history.layouts, tables)
    summary = with_open_schedule(summarize_resolution(resolution, setups, compared), placed.schedule)
    summary = with_open_rows(summary, moments.open_epochs)
    images = {name: logged_images(own) for name, own in epochs.items()}
    return Run(
        summary=summary,
        changes=sum(len(each.changes) for own in epochs.values() for epoch in own for each in epoch.transactions),
        errors={name: str(reading.error) for name, reading in readings.items() if reading.error is not None},
        left_out={name: reading.left_out for name, reading in readings.items() if reading.left_out},
        assumed=placed.schedule.assumed,
        epochs_left_out={name: len(readings[name].epochs) - len(own) for name, own in epochs.items()},
        settled=tuple(moments.inferences),
        starts={cluster.name: cluster.start.epoch for cluster in history.clusters if cluster.start is not None},
        likely_causes=(
            *declared_types(images, configuration.setups_over_time()),
            *likely_causes(summary.contradictions, facts, setups),
            *changed_roles({name: reading.shown_roles for name, reading in readings.items()}),
        ),
        notes=configuration.notes,
    )


def place_in_memory(
    history: History, setups: Mapping[str, dict[str, TableSetup]], recorded: Recorded, *, skip_missing: bool = False
) -> Placed:
    """Place the untraced epochs of a History in memory; see `conflict.reference.placement`."""
    touched = restricted(history, touched_rows(history, setups, recorded))
    return place_untraced(touched, setups, recorded, skip_missing=skip_missing)


def resolve_settled(
    history: History,
    setups: Mapping[str, dict[str, TableSetup]],
    recorded: Recorded,
    progress: Callable[[int], None] = lambda done: None,
    *,
    skip_missing: bool = False,
) -> tuple[History, Resolution, Moments]:
    """
    Resolve a History with the reference engine; use the effects in the binlogs to settle what their order leaves open.

    Args:
        history: What happened.
        setups: Per cluster, how its server set up each table.
        recorded: Per cluster, what its binlog shows of its applier's work.
        progress: Called with the number of timeline items done so far.
        skip_missing: Leave out operations that lack a value to compare, instead of stopping their applier.

    Returns:
        The History with its rows judged when they were, the result, and what was found of these moments.
    """
    moments = find_moments(history, setups, recorded, skip_missing=skip_missing)
    history = attrs.evolve(history, clusters=moments.clusters(history.clusters))
    return history, replay(history, setups, progress, skip_missing=skip_missing, shown=recorded), moments


def ingest(run_file: RunFile, out: Folder | str, progress: StageProgress = no_progress) -> Ingested:
    """
    Read the binlogs of a run into a History on disk, on Spark; see `conflict.jobs.ingest_job.ingest`.

    Raises:
        ConfigurationError: Spark cannot be started, or `out` is not the same folder for its tasks.
        HistoryError: The folder holds a History of something else.
    """
    folder, hints_of = _folder(out), partial(hints_of_run_file, run_file)
    if not run_file.configuration.is_pair:
        message = (
            "a History on disk is one of two clusters that replicate to each other; resolve these binlogs as they are"
        )
        raise ConfigurationError(message)
    check_log_files(run_file.configuration)
    with only_writer(folder):
        return ingest_binlogs(
            _spark(folder, progress), run_file.configuration, folder, hints_of=hints_of, progress=progress
        )


def resolve(
    run_file: RunFile,
    out: Folder | str,
    *,
    engine: str = "auto",
    policy: Policy = Policy.MANUAL,
    options: ResolveOptions = ResolveOptions(),
    progress: StageProgress = no_progress,
) -> Run:
    """
    Resolve a run, and write its result as a whole or not at all.

    Args:
        run_file: The run; `conflict.load_run_file` reads it.
        out: Where the result goes; nothing may be there.
        engine: One of `ENGINES`: ``spark``, ``local`` or ``reference``; or ``auto`` (see
            `conflict.jobs.engine_choice`).
        policy: Which conflict functions go with which binlog types.
        options: What is wanted of the result.
        progress: Called with the name of the stage, what is done, and what there is to do.

    Raises:
        ConfigurationError: The run cannot be resolved as it is; nothing has been read.
        HistoryError: Binlogs, schedule and configuration contradict each other.
    """
    configuration, target = run_file.configuration, _folder(out)
    engine = choose_engine(configuration).engine if engine == "auto" else engine
    made = [] if options.history is None else [Path(options.history.uri)]
    check_target(target, [*run_file.inputs, *made], replace=options.replace)
    if engine != "reference":
        refuse_python_rules(configuration)
    refuse_by_policy(configuration, policy)
    check_log_files(configuration)
    followed = follow_definitions(configuration)
    if followed.definitions:
        refuse_by_policy(followed, policy)
    configuration = followed
    _refuse_same_paths(target, configuration)
    with only_writer(target), whole_or_not_at_all(target, replace=options.replace) as work:
        run = ENGINES[engine](configuration, work, partial(hints_of_run_file, run_file), progress, options)
        zeros = zero_counters(configuration.functions)
        work.write_json("counters.json", {name: {**zeros, **each} for name, each in run.summary.counters.items()})
        document = run.to_json(configuration, engine, all_outcomes=options.all_outcomes)
        work.write_json("run.json", {**document, **catalogue_result(work)})
    return run


def _refuse_same_paths(target: Folder, configuration: Configuration) -> None:
    if "://" not in target.uri:
        there = next(folder for folder in Path(target.uri).absolute().parents if folder.exists())
        refuse_same_paths(there, (table.full_name for table in configuration.schema.tables))


def _folder(given: Folder | str) -> Folder:
    """Return a folder; a path is made absolute, because Spark's tasks run elsewhere."""
    if isinstance(given, Folder):
        return given
    return Folder(given if "://" in given else str(Path(given).absolute()))


def _spark(out: Folder, progress: StageProgress) -> Runner:
    """Start Spark, and make sure that its tasks see the folder of the result."""
    from conflict.jobs.session import check_shared, spark_session  # noqa: PLC0415  # only the jobs need pyspark
    from conflict.jobs.spark_runner import spark_runner  # noqa: PLC0415  # only the jobs need pyspark

    progress("starting Spark", 0, 1)
    spark = spark_session()
    check_shared(spark, out)
    progress("starting Spark", 1, 1)
    return spark_runner(spark)


def run_spark(
    configuration: Configuration,
    out: Folder,
    hints_of: HintsOf | None = None,
    progress: StageProgress = no_progress,
    options: ResolveOptions = ResolveOptions(),
) -> Run:
    """
    Resolve with the columnar engine on Spark, and write the result.

    A log that starts in the middle may be left to the reference engine.
    """
    refuse_python_rules(configuration)
    return _run_columnar(partial(_spark, out, progress), configuration, out, hints_of, progress, options)


def run_local(
    configuration: Configuration,
    out: Folder,
    hints_of: HintsOf | None = None,
    progress: StageProgress = no_progress,
    options: ResolveOptions = ResolveOptions(),
) -> Run:
    """
    Resolve with the columnar engine in this process, without Spark or Java, and write the result.

    A log that starts in the middle may be left to the reference engine.
    """
    refuse_python_rules(configuration)
    return _run_columnar(lambda: in_threads, configuration, out, hints_of, progress, options)


def _run_columnar(
    runner_of: Callable[[], Runner],
    configuration: Configuration,
    out: Folder,
    hints_of: HintsOf | None,
    progress: StageProgress,
    options: ResolveOptions,
) -> Run:
    configuration = follow_definitions(configuration)
    refuse_inexact_keys(configuration.data_schema.tables)
    by_reference = partial(_by_reference, configuration, out, hints_of, progress, options)
    span = configuration.span
    alone = not configuration.is_pair or has_changing_links(configuration)
    alone = alone or changes_functions(configuration) or compares_reflected(configuration)
    if span.first_time is not None or span.stop_time is not None or _gives_rows(configuration) or alone:
        return by_reference()
    history, runner = options.history, runner_of()
    if history is None:
        history = out.below("history")
        try:
            held = ingest_binlogs(runner, configuration, history, hints_of=hints_of, progress=progress).manifest
        except NotBuiltError:  # a table without a primary key
            history.delete()
            return by_reference()
    else:
        held = finished_history(history, configuration)
    if roles_change(history):
        return by_reference()
    facts = facts_of_history(history, held) if lacks_something(history, held) else None
    if facts is not None and any(each.hides_epochs for each in facts.values()):
        return by_reference()
    kept = ResultOptions(options.final_rows, options.all_outcomes)

    def run(configuration: Configuration) -> tuple[RunSummary, LogPart, Manifest]:
        part = part_of_log(configuration, history, held, hints_of)
        summary = resolve_history(runner, configuration, history, out, kept, progress=progress, part=part)
        return summary, part[0], part[2]

    try:
        summary, part, manifest = run(configuration)
        unexplained = configuration.start_is_open and not part.starts and any(summary.unexplained.values())
        if unexplained and changes_older_rows_on_disk(history, manifest):
            clear_result(out)
            summary, part, manifest = run(attrs.evolve(configuration, span=attrs.evolve(span, empty=False)))
    except (LeftToReferenceError, NotBuiltError):  # NotBuiltError: a foreign key that refuses or changes something
        clear_result(out)
        return by_reference()
    setups = configuration.setups()
    causes = tuple(declared_types(images_of_history(manifest), configuration.setups_over_time()))
    sliced = any(setup.slices > 1 for tables in setups.values() for setup in tables.values())
    if summary.contradicted or sliced or facts is not None:
        facts = facts or facts_of_history(history, manifest)
        causes += likely_causes(summary.contradictions, facts, setups)
    if any(cause.kind is CauseKind.ROLE for cause in causes):  # it may have changed
        clear_result(out)
        return by_reference()
    return Run(
        summary,
        manifest.changes,
        manifest.errors,
        manifest.left_out,
        summary.schedule.assumed or manifest.assumed,
        manifest.epochs_left_out,
        summary.settled,
        causes,
        configuration.notes,
        starts={name: start.epoch for name, start in part.starts.items()},
    )


def _gives_rows(configuration: Configuration) -> bool:
    """Whether files give the rows that tables held before."""
    return any(cluster.rows or cluster.rows_of is not None for cluster in configuration.clusters)


def clear_result(out: Folder) -> None:
    """Remove what the columnar engine wrote of a result."""
    for part in (*BUCKET_PARTS, "applied_epochs", "shared"):
        out.delete(part)


def _by_reference(
    configuration: Configuration,
    out: Folder,
    hints_of: HintsOf | None,
    progress: StageProgress,
    options: ResolveOptions,
) -> Run:
    """Resolve by the reference engine what the columnar engine cannot do yet; see README.md, "not yet"."""
    run = run_reference(configuration, out, hints_of, progress, attrs.evolve(options, history=None))
    return attrs.evolve(run, engine="reference")


def refuse_python_rules(configuration: Configuration) -> None:
    """
    Make sure that no table of a run has a conflict function that is written in Python.

    Raises:
        ConfigurationError: One has.
    """
    for setups in configuration.setups().values():
        for name, setup in setups.items():
            if setup.function is not None and setup.function.spec.python is not None:
                rule = setup.function.spec.name
                message = (
                    f"table {name}: {rule} is a rule in Python, which only --engine reference runs; to run it on every "
                    "engine, write it as a row [[conflict_function]] of the run file"
                )
                raise ConfigurationError(message)


def finished_history(history: Folder, configuration: Configuration) -> Manifest:
    """
    Return what a History holds that is to be resolved.

    Raises:
        HistoryError: There is none, it is not finished, it is damaged, or it was made for another run.
    """
    manifest, plan = load_manifest(history), load_plan(history)
    if plan is not None and (manifest is None or plan.batch >= manifest.batches):
        message = f"the ingest into {history.uri} was cut off; run ndb-conflict ingest again, which goes on with it"
        raise HistoryError(message)
    if manifest is None:
        message = f"there is no History in {history.uri}; make one with ndb-conflict ingest"
        raise HistoryError(message)
    refuse_differences(manifest, configuration, history, writing=False)
    refuse_damage(history, manifest, growing=plan is not None)
    return manifest


ENGINES: dict[str, Callable[..., Run]] = {"reference": run_reference, "local": run_local, "spark": run_spark}
