"""
The road of a run: from its binlogs, or their History, to what was decided, by the kernels or by the reference engine.

All that resolves takes it: `resolve`, `compare`, functions by trial, the rows of a repair.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial

import attrs

from conflict.config.arguments import StageProgress, no_progress
from conflict.engine.columnar.beyond_kernels import alters_values, changes_functions, compares_reflected
from conflict.engine.columnar.keys.foreign_keys import has_changing_links
from conflict.engine.columnar.older_rows import changes_older_rows
from conflict.engine.columnar.unlogged_rows import NO_UNLOGGED, UnloggedRows
from conflict.engine.ledger.careful import CareKind
from conflict.engine.ledger.layout import BUCKET_PARTS, ResultOptions
from conflict.engine.ledger.summary import RunSummary
from conflict.errors import HistoryError, NotBuiltError
from conflict.history.grid.catalogue import refusing_contradictions
from conflict.history.grid.folder import Folder
from conflict.history.grid.manifest import AGAIN, Manifest, load_manifest, read_manifest, refuse_damage
from conflict.history.ingestion.extension import refuse_other_statements
from conflict.history.ingestion.plan import load_plan, refuse_differences
from conflict.history.model import History
from conflict.history.reading.readings import ClusterReading
from conflict.history.run import Run
from conflict.history.tasks import Runner
from conflict.results.cause_kinds import CauseKind, LikelyCause, LogFacts
from conflict.results.cutovers import write_repeats
from conflict.results.likely_causes import declared_types, likely_causes
from conflict.results.run_document import RunDocument
from conflict.runs.channel_moves import find_moves
from conflict.runs.end_of_logs import at_end_of_logs, from_the_start
from conflict.runs.history_facts import (
    facts_of_history,
    images_of_history,
    lacks_something,
    marked_otherwise,
    roles_change,
    traced_clusters,
)
from conflict.runs.ingest_job import ingest
from conflict.runs.reference_run import run_in_memory
from conflict.runs.resolving.finding_careful import find_unlogged, followed, follows_from
from conflict.runs.resolving.resolve_job import SettledHistory, run_of_part, settle_history
from conflict.runs.resolving.windows import not_after
from conflict.runs.rows.keyless_rows import changes_older_keyless_rows
from conflict.runs.rows.readings_of_history import TOLD_BY_HISTORY, readings_of_history
from conflict.runs.rows.task_inputs import WHOLE, part_of_log
from conflict.telling.shown_text import listed
from ndb_formats.findings import LogRemark

EVERY_KIND = frozenset(CareKind)


@attrs.frozen(kw_only=True)
class SettleOptions:
    """
    How a run is settled.

    Attributes:
        out: Where parts of the result go, and what tasks leave for one another.
        history: A History of the binlogs, or where one is made of them; None if no kernel is asked.
        is_finished: Whether the History was there before, and is read in place of the binlogs.
        held: What it holds, if it was read or made already.
        with_holes: Whether epochs may be missing from binlogs of which it is made.
        result: What the result holds.
        follow_unlogged: Whether rows are looked for that clusters changed without a log, and left to the reference
            engine.
        as_configured: Whether the functions and roles of the run are tried whatever the binlogs show of others; who
            asks for it has asked `needs_reference`, if that matters.
        by_reference: The reasons for which the reference engine resolves the run if the kernels cannot.
        progress: Called with the name of the stage, tasks done, and their number.
    """

    out: Folder
    history: Folder | None = None
    is_finished: bool = False
    held: Manifest | None = None
    with_holes: bool = False
    result: ResultOptions = attrs.field(factory=ResultOptions)
    follow_unlogged: bool = True
    as_configured: bool = False
    by_reference: Collection[CareKind] = ()
    progress: StageProgress = no_progress


@attrs.frozen(eq=False)
class Settled:
    """
    A run that was settled.

    `resolved.summary.careful` says how many rows the reference engine took from the kernels, and why.

    Attributes:
        resolved: What was decided.
        left: Why the reference engine decided it in place of the kernels; None if these did, or were not asked.
        by_kernels: The History that the kernels decided.
        by_reference: The History that the reference engine decided: epochs at their places, rows judged when they were.
    """

    resolved: RunDocument
    left: CareKind | None = None
    by_kernels: SettledHistory | None = None
    by_reference: History | None = None

    def write(self) -> None:
        """Write the rest of the result; the reference engine has written it."""
        if self.by_kernels is not None:
            self.by_kernels.write()
            write_repeats(self.by_kernels.job.run.out, self.resolved.moves)


def settled(run: Run, runner: Runner, options: SettleOptions) -> Settled | CareKind:
    """
    Resolve a run with the kernels; if they cannot, with the reference engine, where that is wanted.

    Args:
        run: The run.
        runner: Runs the tasks.
        options: How.

    Returns:
        What was decided, and how; or why only the reference engine can, which is not to.

    Raises:
        HistoryError: Binlogs, schedule and configuration contradict each other; or there is no such History, or it
            alone has rows which the reference engine would have to read.
    """
    left, readings = None, None
    if options.history is not None:
        earlier = options.result.after
        with refusing_contradictions(options.history if options.is_finished else None, AGAIN):
            found = _by_kernels(run, runner, options.history, options)
        if isinstance(found, Settled):
            return found
        if earlier is not None:
            raise not_after(f"only the reference engine can, as {found.value.what}")
        clear_result(options.out)
        if found not in options.by_reference:
            return found
        left = found
        if left in TOLD_BY_HISTORY:
            readings = _readings(run, options.history, options)
        else:
            _refuse_kept_alone(run, left)
    resolved, history = run_in_memory(run, options.out, options.progress, options.result, readings)
    if left is not None:
        resolved = attrs.evolve(resolved, engine="reference", engine_reason=left.value.what)
    if options.result.keep_state:
        resolved = without_state(resolved, "the reference engine resolved all of it")
    return Settled(resolved, left, by_reference=history)


def without_state(resolved: RunDocument, why: str) -> RunDocument:
    """Return a result that says why no later run can go on from it."""
    said = LogRemark(f"no state is kept, from which a later run could go on, because {why}")
    return attrs.evolve(resolved, remarks=(*resolved.remarks, said))


def _readings(run: Run, history: Folder, options: SettleOptions) -> dict[str, ClusterReading]:
    """Return what a History has of the binlogs of a run."""
    held = options.held or read_manifest(history)
    run = run.numbered_as(held.tables)
    return readings_of_history(run, run_of_part(run, history, options.out, (WHOLE, {}, held), options.result), held)


def needs_reference(run: Run, taken: Collection[CareKind] = ()) -> CareKind | None:
    """Return why the configuration alone leaves a run to the reference engine; `taken`: reasons that do not count."""
    span = run.span
    reasons = {
        CareKind.NO_PAIR: not run.links.is_pair,
        CareKind.SPAN_OF_TIME: span.first_time is not None or span.stop_time is not None,
        CareKind.GIVEN_ROWS: any(cluster.rows or cluster.rows_of is not None for cluster in run.clusters),
        CareKind.CHANGING_LINKS: has_changing_links(run),
        CareKind.CHANGING_FUNCTION: changes_functions(run.setups.over_time),
        CareKind.REFLECTED_VALUE: compares_reflected(run),
        CareKind.ALTERED_VALUES: alters_values(run),
        CareKind.SINGLE_OPERATIONS: any(each.applies_singly for each in run.clusters),
    }
    return next((reason for reason, holds in reasons.items() if holds and reason not in taken), None)


def _by_kernels(run: Run, runner: Runner, history: Folder, options: SettleOptions) -> Settled | CareKind:
    """Resolve a run with the kernels; or say why only the reference engine can."""
    held = options.held
    if held is None and options.is_finished:
        held = finished_history(history, run)
    why = None if options.as_configured else needs_reference(run)
    if why is not None:
        return why
    if held is None:
        try:
            held = ingest(runner, run, history, progress=options.progress, with_holes=options.with_holes).manifest
        except NotBuiltError:
            return CareKind.CHANGING_KEYLESS
    if not options.as_configured and any(marked_otherwise(run, history, held)):
        return CareKind.OTHER_MARKS
    found = _settled_history(run, runner, history, held, options)
    if isinstance(found, CareKind) or options.as_configured:
        return found
    causes = found.resolved.likely_causes
    if found.resolved.contradicted and any(CauseKind.ROLE in cause.kinds for cause in causes):
        return CareKind.CHANGING_ROLES  # the role may have changed
    return found


def _settled_history(
    run: Run, runner: Runner, history: Folder, held: Manifest, options: SettleOptions
) -> Settled | CareKind:
    """Resolve a History with the kernels, whatever it shows of other functions and roles."""
    run = run.numbered_as(held.tables)
    if not run.compressed.isdisjoint(traced_clusters(history, held)):
        return CareKind.COMPRESSED
    if options.as_configured and roles_change(history, held):
        return CareKind.CHANGING_ROLES
    facts = facts_of_history(history, held) if lacks_something(history, held) else None
    if facts is not None and any(each.hides_epochs for each in facts.values()):
        return CareKind.NAMELESS_EPOCHS
    attempt = partial(_attempt, runner, (history, held), options)
    found = from_the_start(run, attempt, lambda each: isinstance(each, _Attempt) and each.lacks_older_rows)
    return found if isinstance(found, CareKind) else found.settled(run, facts)


@attrs.frozen
class _Attempt:
    """A History that the kernels resolved, its figures, and the rows that clusters changed without a log."""

    history: SettledHistory
    summary: RunSummary
    unlogged: UnloggedRows

    @property
    def lacks_older_rows(self) -> bool:
        """Whether a row can be older than the logs, which are taken to be whole, and something is not explained."""
        whole, manifest = not self.history.part.starts, self.history.manifest
        run = self.history.job.run
        return (
            whole
            and any(self.summary.unexplained.values())
            and (changes_older_rows(run.history, manifest) or changes_older_keyless_rows(run))
        )

    def settled(self, run: Run, facts: Mapping[str, LogFacts] | None) -> Settled:
        """Return it with all that the binlogs object to it; `facts`: what they hold, if that was read."""
        history, summary, manifest = self.history, self.summary, self.history.manifest
        job, unlogged = history.job, self.unlogged
        resolved = RunDocument(
            run,
            summary,
            manifest.changes,
            manifest.errors,
            manifest.left_out,
            summary.schedule.assumed or manifest.assumed,
            manifest.epochs_left_out,
            summary.settled,
            _causes(run, job.run.history, manifest, summary, facts),
            starts={name: start.epoch for name, start in history.part.starts.items()},
            moves=find_moves(job.runner, job.run, history.resolved.found.applies, job.progress),
            unlogged=unlogged.changes,
            unlogged_followed=unlogged.are_followed,
            crashes=unlogged.crashes,
        )
        resolved = at_end_of_logs(resolved, history.last_applied(), history.epoch_sizes())
        why = history.state_not_kept if job.run.options.keep_state else None
        resolved = history.told_in_part(resolved)
        resolved = resolved if why is None else without_state(resolved, why)
        return Settled(resolved, by_kernels=history)


def _attempt(
    runner: Runner,
    read: tuple[Folder, Manifest],
    options: SettleOptions,
    run: Run,
    before: _Attempt | CareKind | None,
) -> _Attempt | CareKind:
    """Resolve a History and what it holds; `before`: what was found if its logs are whole."""
    part, progress = part_of_log(run, *read), options.progress
    unlogged = NO_UNLOGGED
    if isinstance(before, _Attempt):
        clear_result(options.out)
        unlogged = before.unlogged
    elif options.follow_unlogged and options.result.after is None:
        unlogged = find_unlogged(runner, run, read[0], part, progress)
    kept = followed(unlogged, run, part)
    if isinstance(kept, CareKind):
        return kept
    found = settle_history(
        runner, run, read[0], options.out, options.result, progress=progress, part=part, unlogged=kept
    )
    if isinstance(found, CareKind):
        return found
    made = _Attempt(found, found.summary(), kept)
    if options.result.after is not None:
        _refuse_what_does_not_follow(runner, made, progress)
    return made


def _refuse_what_does_not_follow(runner: Runner, made: _Attempt, progress: StageProgress) -> None:
    """
    Make sure that changes after an earlier result fit the rows that it left.

    Raises:
        ConfigurationError: One does not, or data nodes went down.
    """
    history = made.history
    if any(made.summary.unexplained.values()):
        why = "changes found no row"
    elif history.configured.disconnects:
        why = "data nodes of a cluster may have gone down"
    elif not follows_from(runner, history.job.run, progress):
        why = "clusters may have changed rows without a log"
    else:
        return
    raise not_after(why)


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
    causes += tuple(marked_otherwise(run, history, manifest))
    sliced = any(setup.slices > 1 for tables in setups.values() for setup in tables.values())
    if summary.contradicted or sliced or facts is not None:
        facts = facts or facts_of_history(history, manifest)
        causes += likely_causes(
            summary.contradictions, facts, run.setups.last_functions, summary.stops, lossy=run.is_lossy
        )
    return causes


def clear_result(out: Folder) -> None:
    """Remove what the kernels wrote of a result."""
    for kind in (*BUCKET_PARTS, "applied_epochs", "shared"):
        out.delete(kind)


def _refuse_kept_alone(run: Run, why: CareKind) -> None:
    """
    Make sure that the reference engine can read all rows.

    Raises:
        HistoryError: A History alone has a part of them.
    """
    if run.kept_alone:
        files = listed([file for each in run.kept_alone.values() for file in each.files])
        message = (
            f"only the reference engine resolves this run, because {why.value.what}. It reads binlogs, and {files} "
            "are in the History alone; give these files, too"
        )
        raise HistoryError(message)


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
