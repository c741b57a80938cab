"""
A run with the columnar engine: binlogs to a History, and the History to a result.

What the kernels cannot resolve is left to the reference engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from conflict.config.arguments import StageProgress
from conflict.engine.columnar.foreign_keys import has_changing_links
from conflict.engine.columnar.older_rows import changes_older_rows
from conflict.engine.columnar.setups import alters_values, changes_functions, compares_reflected
from conflict.engine.columnar.unlogged_rows import NO_UNLOGGED
from conflict.engine.ledger.careful import CareKind, LeftToReferenceError
from conflict.engine.ledger.layout import BUCKET_PARTS, ResultOptions
from conflict.engine.ledger.summary import RunSummary
from conflict.errors import ConfigurationError, HistoryError, NotBuiltError
from conflict.history.grid.catalogue import refusing_contradictions
from conflict.history.grid.folder import Folder
from conflict.history.grid.manifest import AGAIN, Manifest, load_manifest, refuse_damage
from conflict.history.ingestion.extension import refuse_other_statements
from conflict.history.ingestion.plan import load_plan, refuse_differences
from conflict.history.run import Run
from conflict.history.tasks import Runner
from conflict.results.cause_kinds import CauseKind, LikelyCause, LogFacts
from conflict.results.cutovers import write_repeats
from conflict.results.likely_causes import declared_types, likely_causes, with_renames
from conflict.results.run_document import ResolvedRun, changes_under_way
from conflict.results.tables_not_there import tables_not_there
from conflict.rules.table_setup import TableSetup
from conflict.runs.channel_moves import find_moves
from conflict.runs.finding_unlogged import find_unlogged, followed
from conflict.runs.history_facts import (
    facts_of_history,
    images_of_history,
    lacks_something,
    marked_otherwise,
    roles_change,
    traced_clusters,
)
from conflict.runs.ingest_job import ingest
from conflict.runs.options import ResolveOptions
from conflict.runs.reference_run import run_reference
from conflict.runs.resolve_job import SettledHistory, settle_history
from conflict.runs.resolve_run import part_of_log
from conflict.runs.touched_rows import changes_older_keyless_rows
from conflict.telling.shown_text import listed
from ndb_formats.schema.row_keys import refuse_inexact_keys


def run_columnar(
    workplace: Callable[[], tuple[Runner, Folder]],
    run: Run,
    out: Folder,
    progress: StageProgress,
    options: ResolveOptions,
) -> ResolvedRun:
    """
    Resolve with the columnar engine, and write the result.

    Args:
        workplace: Returns what runs the tasks, and where a History goes that nobody wants to keep.
        run: The run.
        out: Where the result goes.
        progress: Called with the name of the stage, tasks done, and their number.
        options: What is wanted.
    """
    refuse_inexact_keys(run.data_schema.tables)
    why = needs_reference(run)
    if any(each.applies_singly for each in run.clusters):  # `compare` takes them for operations in batches
        why = why or CareKind.SINGLE_OPERATIONS
    if why is None:
        runner, scratch = workplace()
        try:
            with refusing_contradictions(options.history, AGAIN):
                history, held = _history(runner, run, scratch, progress, options)
                if any(marked_otherwise(run, held)):
                    raise LeftToReferenceError(CareKind.OTHER_MARKS)
                resolved, settled = settle_run(
                    runner, run, (history, held), out, progress, options, follow_unlogged=True
                )
                if resolved.contradicted and any(CauseKind.ROLE in cause.kinds for cause in resolved.likely_causes):
                    raise LeftToReferenceError(CareKind.CHANGING_ROLES)  # the role may have changed
                settled.write()
                write_repeats(out, resolved.moves)
                return resolved
        except LeftToReferenceError as error:
            clear_result(out)
            why = error.kind
        except NotBuiltError:
            clear_result(out)
            why = CareKind.CHANGING_KEYLESS
        finally:
            scratch.delete()
    return _by_reference(run, out, progress, options, why)


def needs_reference(run: Run) -> CareKind | None:
    """Return why the configuration alone tells that only the reference engine resolves the run; None if it does not."""
    span = run.span
    reasons = {
        CareKind.NO_PAIR: not run.links.is_pair,
        CareKind.SPAN_OF_TIME: span.first_time is not None or span.stop_time is not None,
        CareKind.GIVEN_ROWS: _gives_rows(run),
        CareKind.CHANGING_LINKS: has_changing_links(run),
        CareKind.CHANGING_FUNCTION: changes_functions(run.setups.over_time),
        CareKind.REFLECTED_VALUE: compares_reflected(run),
        CareKind.ALTERED_VALUES: alters_values(run),
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def _history(
    runner: Runner,
    run: Run,
    scratch: Folder,
    progress: StageProgress,
    options: ResolveOptions,
) -> tuple[Folder, Manifest]:
    """Return the History of the run, which is made unless there is one, and what it holds."""
    if options.history is not None:
        return options.history, finished_history(options.history, run)
    history = options.keep_history or scratch
    with_holes = run.span.cuts and options.keep_history is None
    return history, ingest(runner, run, history, progress=progress, with_holes=with_holes).manifest


def settle_run(
    runner: Runner,
    run: Run,
    read: tuple[Folder, Manifest],
    out: Folder,
    progress: StageProgress,
    kept: ResultOptions,
    *,
    follow_unlogged: bool = False,
) -> tuple[ResolvedRun, SettledHistory]:
    """
    Resolve a History and what it holds; a log that turns out to start in the middle is resolved as one that does.

    `follow_unlogged`: look for rows that clusters changed without a log, and leave them to the reference engine.

    Returns:
        The result of the run, with all that the binlogs object to it; and what `SettledHistory.write` makes a result
        of.

    Raises:
        LeftToReferenceError: Only the reference engine can resolve it.
    """
    history, held = read
    run = run.numbered_as(held.tables)
    if not run.compressed.isdisjoint(traced_clusters(history)):
        raise LeftToReferenceError(CareKind.COMPRESSED)
    if roles_change(history):
        raise LeftToReferenceError(CareKind.CHANGING_ROLES)
    facts = facts_of_history(history, held) if lacks_something(history, held) else None
    if facts is not None and any(each.hides_epochs for each in facts.values()):
        raise LeftToReferenceError(CareKind.NAMELESS_EPOCHS)
    part = part_of_log(run, history, held)
    unlogged = find_unlogged(runner, run, history, part, progress) if follow_unlogged else NO_UNLOGGED
    unlogged = followed(unlogged, run, part)
    settled = settle_history(runner, run, history, out, kept, progress=progress, part=part, unlogged=unlogged)
    summary = settled.summary()
    unexplained = run.start_is_open and not settled.part.starts and any(summary.unexplained.values())
    if unexplained and (changes_older_rows(history, settled.manifest) or changes_older_keyless_rows(settled.job.run)):
        clear_result(out)
        from_the_middle = attrs.evolve(run, span=attrs.evolve(run.span, empty=False))
        part = part_of_log(from_the_middle, history, held)
        unlogged = followed(unlogged, from_the_middle, part)
        settled = settle_history(
            runner, from_the_middle, history, out, kept, progress=progress, part=part, unlogged=unlogged
        )
        summary = settled.summary()
    manifest = settled.manifest
    causes = _causes(run, history, manifest, summary, facts)
    starts = {name: start.epoch for name, start in settled.part.starts.items()}
    applied, sizes = settled.last_applied(), settled.epoch_sizes()
    resolved = ResolvedRun(
        run,
        summary,
        manifest.changes,
        manifest.errors,
        manifest.left_out,
        summary.schedule.assumed or manifest.assumed,
        manifest.epochs_left_out,
        summary.settled,
        causes,
        run.notes,
        (*run.remarks, *tables_not_there(run, applied, sizes)),
        starts=starts,
        under_way=changes_under_way(run.links, applied, sizes),
        moves=find_moves(runner, settled.job.run, settled.resolved.found.applies, progress),
        unlogged=unlogged.changes,
        unlogged_followed=unlogged.are_followed,
        crashes=unlogged.crashes,
    )
    return resolved, settled


def _causes(
    run: Run,
    history: Folder,
    manifest: Manifest,
    summary: RunSummary,
    facts: Mapping[str, LogFacts] | None,
) -> tuple[LikelyCause, ...]:
    """Return what would explain that the binlogs contradict the result; `facts` are read if they are None."""
    setups = run.setups.at_end
    causes = tuple(declared_types(images_of_history(manifest), run.setups.over_time))
    causes += tuple(marked_otherwise(run, manifest))
    sliced = any(setup.slices > 1 for tables in setups.values() for setup in tables.values())
    if summary.contradicted or sliced or facts is not None:
        facts = facts or facts_of_history(history, manifest)
        causes += likely_causes(
            summary.contradictions, facts, run.setups.last_functions, summary.stops, lossy=run.is_lossy
        )
    return with_renames(causes, run.renames)


def _gives_rows(run: Run) -> bool:
    """Whether files give the rows that tables held before."""
    return any(cluster.rows or cluster.rows_of is not None for cluster in run.clusters)


def clear_result(out: Folder) -> None:
    """Remove what the columnar engine wrote of a result."""
    for kind in (*BUCKET_PARTS, "applied_epochs", "shared"):
        out.delete(kind)


def _by_reference(
    run: Run,
    out: Folder,
    progress: StageProgress,
    options: ResolveOptions,
    why: CareKind,
) -> ResolvedRun:
    """
    Resolve by the reference engine what the kernels cannot resolve.

    Raises:
        HistoryError: There is no such History, or it alone has a part of the rows.
    """
    if options.history is not None:
        finished_history(options.history, run)
    if run.kept_alone:
        files = listed([file for each in run.kept_alone.values() for file in each.files])
        message = (
            f"only the reference engine resolves this run, because {why.value.what}. It reads binlogs, and {files} "
            "are in the History alone; give these files, too"
        )
        raise HistoryError(message)
    asked = attrs.evolve(options, history=None, keep_history=None)
    resolved = run_reference(run, out, progress, asked)
    return attrs.evolve(resolved, engine="reference", engine_reason=why.value.what)


def refuse_python_rules(by_cluster: Mapping[str, Mapping[str, TableSetup]]) -> None:
    """
    Make sure that no table has a conflict function that is written in Python.

    Raises:
        ConfigurationError: One has.
    """
    for setups in by_cluster.values():
        for name, setup in setups.items():
            if setup.function is not None and setup.function.spec.python is not None:
                rule = setup.function.spec.name
                message = (
                    f"table {name}: {rule} is a rule in Python, which only --engine reference runs; to run it on every "
                    "engine, write it as a row [[conflict_function]] of the run file"
                )
                raise ConfigurationError(message)


def finished_history(history: Folder, run: Run) -> Manifest:
    """
    Return what a History holds that is to be resolved.

    Raises:
        HistoryError: There is none, it is not finished, it is damaged, or it was made for another run.
    """
    manifest, plan = load_manifest(history), load_plan(history)
    if plan is not None and (manifest is None or plan.batch >= manifest.next_batch):
        message = f"the ingest into {history.uri} was cut off; run ndb-conflict ingest again, which goes on with it"
        raise HistoryError(message)
    if manifest is None:
        message = f"there is no History in {history.uri}; make one with ndb-conflict ingest"
        raise HistoryError(message)
    refuse_differences(manifest, run, history, writing=False)
    refuse_damage(history, manifest, growing=plan is not None)
    refuse_other_statements(run, manifest)
    return manifest
