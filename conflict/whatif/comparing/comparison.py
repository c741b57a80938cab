"""
A run under many conflict functions and formats, from its configuration to the figures side by side.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import attrs
import pyarrow as pa

from conflict.config.arguments import StageProgress, no_progress
from conflict.config.run_file import RunFile
from conflict.engine.columnar.applier_stops import can_stop_by_rows
from conflict.engine.columnar.beyond_kernels import alters_values
from conflict.engine.columnar.order import ApplierEpochs
from conflict.engine.columnar.setups import ClusterSetup
from conflict.engine.ledger.careful import CareKind
from conflict.engine.ledger.layout import ResultOptions
from conflict.errors import ConfigurationError, NotBuiltError
from conflict.extras import imported
from conflict.history.grid.catalogue import refusing_contradictions
from conflict.history.grid.folder import Folder
from conflict.history.grid.manifest import AGAIN, Manifest
from conflict.history.grid.memory_folder import MemoryFolder
from conflict.history.ingestion.plan import files_document
from conflict.history.model import History
from conflict.history.preparing.log_files import check_log_files
from conflict.history.run import Run, TableNumbers
from conflict.history.tasks import Runner, in_threads
from conflict.results.cause_kinds import CauseKind
from conflict.results.doubts import Doubt, doubts_of
from conflict.results.files import check_target, whole_or_not_at_all
from conflict.results.run_document import RunDocument
from conflict.runs.engine_choice import choose_engine
from conflict.runs.ingest_job import ingest
from conflict.runs.rows.task_inputs import TaskInputs
from conflict.runs.run_inputs import run_of
from conflict.runs.settled import SettleOptions, finished_history, needs_reference, settled
from conflict.runs.settled_by_reference import SETTLED, as_kernels_read
from conflict.runs.spark_workers import spark_workers
from conflict.telling.html import telling_html
from conflict.telling.shown_text import listed
from conflict.telling.terminal import telling_text
from conflict.whatif.comparing.caveats import assumptions, caveat_of
from conflict.whatif.comparing.compare_job import compare_settled, left_out_of, why_not_compared
from conflict.whatif.comparing.default_policies import (
    all_policies,
    default_policies,
    kept_columns,
    own_columns,
    primary_of,
)
from conflict.whatif.comparing.figures import COMPARISON, CRITERIA, ComparedPair, ranked
from conflict.whatif.comparing.pairs import Pair, Policy, parse_policies
from conflict.whatif.comparing.telling import tell_comparison
from conflict.whatif.comparing.trials import binlog_types_of, judged_tables
from ndb_formats.errors import FormatError
from ndb_formats.rules.formats import FORMATS
from ndb_formats.schema.row_keys import refuse_inexact_keys
from ndb_formats.sizes.log_sizes import LogSizer
from ndb_formats.sizes.report import SizeReport, size_report
from ndb_formats.stored import path_of

TAKEN_AS_RECORDED = (
    "Users' transactions and the moments at which epochs were applied are taken as they were recorded, under the "
    "configured functions; users may have done other things under other functions."
)
_NO_STOPS = (
    "Rows from before the logs could stop an applier under other functions, by a unique key or a foreign key, or where "
    "a row is sent back that it cannot take; the figures are those if they do not."
)
_FIGURES_ALONE = ResultOptions(final_rows=False, all_outcomes=False)
RESULT, TABLE = "run.json", "comparison.parquet"


@attrs.frozen
class ComparisonWanted:
    """
    What is compared.

    Attributes:
        functions: Policies, as `conflict.whatif.comparing.pairs.parse_policies` reads them; empty for all.
        formats: Binlog types besides the one in the log.
        prefer: Criteria of the ranking, the most important first.
    """

    functions: str = ""
    formats: tuple[int, ...] = ()
    prefer: tuple[str, ...] = tuple(CRITERIA)


@attrs.frozen(repr=False)
class Comparison:
    """
    Pairs of a conflict function and a format, best first. Printed, it is the table; a notebook shows it as one.

    Attributes:
        rows: The pairs.
        prefer: The criteria of the ranking, the most important first.
        run: The result of the run as it is configured, and what the binlogs object to it.
        cut: Why files could not be measured to their end; the bytes before that are counted.
        without_function: Tables that no function is tried on: the run gives them none.
        files: The binlog files, as `conflict.history.ingestion.plan.files_document` returns them.
        stops_not_known: Whether rows that are not known could stop an applier.
        left_out: Which rows are not compared and why, as sentences without a full stop.
    """

    rows: tuple[ComparedPair, ...]
    prefer: tuple[str, ...]
    run: RunDocument
    cut: tuple[str, ...] = ()
    without_function: tuple[str, ...] = ()
    files: Sequence[Mapping[str, Any]] = ()
    stops_not_known: bool = False
    left_out: tuple[str, ...] = ()

    @property
    def changes(self) -> int:
        """Row changes that users made."""
        return self.run.changes

    @property
    def compared(self) -> int:
        """Those of them that the figures are of: all, but where logs start in the middle, or rows are left out."""
        counts = [sum(row.figures.compared.values()) for row in self.rows if row.figures and not row.figures.stops]
        return min(counts, default=0 if self.run.starts or self.left_out else self.changes)

    @property
    def doubts(self) -> tuple[Doubt, ...]:
        """What makes all figures doubtful: binlogs that contradict the functions of the run, or end early."""
        return (*doubts_of(self.run.checks()), *(Doubt("Counted in part", each, serious=True) for each in self.cut))

    @property
    def notes(self) -> tuple[str, ...]:
        """What was taken for granted."""
        return (*assumptions(self.run), *([_NO_STOPS] if self.stops_not_known else []), TAKEN_AS_RECORDED)

    def to_arrow(self) -> pa.Table:
        """Return the pairs as `conflict.whatif.comparing.figures.COMPARISON`."""
        ranks = [None if row.figures is None else rank for rank, row in enumerate(self.rows, 1)]
        cells = [{"rank": rank, **row.cells()} for rank, row in zip(ranks, self.rows, strict=True)]
        return pa.Table.from_pylist(cells, COMPARISON)

    def to_pandas(self) -> Any:
        """Return the pairs as a DataFrame of pandas."""
        imported("pandas")
        return self.to_arrow().to_pandas()

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as a document."""
        return {
            "prefer": list(self.prefer),
            "changes": self.changes,
            "compared_changes": self.compared,
            "starts_in_the_middle": dict(self.run.starts),
            "left_out": list(self.left_out),
            "doubts": [str(each) for each in self.doubts],
            "checks": self.run.checks(),
            "notes": list(self.notes),
            "tables_without_function": list(self.without_function),
            "files": list(self.files),
            "pairs": [row.to_json() for row in self.rows],
        }

    def __repr__(self) -> str:
        return telling_text(tell_comparison(self.to_json()))

    def _repr_html_(self) -> str:
        return telling_html(tell_comparison(self.to_json()))


def compare_run(
    run_file: RunFile,
    wanted: ComparisonWanted = ComparisonWanted(),  # frozen
    *,
    engine: str = "auto",
    history: Folder | None = None,
    out: Folder | None = None,
    replace: bool = False,
    progress: StageProgress = no_progress,
) -> Comparison:
    """
    Try pairs of a conflict function and a format on the binlogs of a run.

    Args:
        run_file: The run.
        wanted: What is compared.
        engine: ``local``, ``spark`` or ``auto``.
        history: A finished History of the run's binlogs, which are not read again; None to read them.
        out: Folder for the comparison as Parquet and JSON; None for none.
        replace: Whether a comparison that is there already is replaced.
        progress: Called with the name of the stage, what is done, and what there is to do.

    Raises:
        ConfigurationError: The run cannot be compared, or something that is asked for is not known.
        HistoryError: Binlogs, schedule and configuration contradict each other.
    """
    configuration = run_file.configuration
    if not configuration.links.is_pair:
        raise ConfigurationError(_left_out(CareKind.NO_PAIR.value.what))
    check_log_files(configuration)
    compiled = tuple(spec for spec in configuration.functions if spec.own is None)  # the kernels compare these
    chosen = choose_engine(attrs.evolve(configuration, functions=compiled)).engine if engine == "auto" else engine
    if chosen not in {"local", "spark"}:
        message = f"engine {engine} does not compare; use local or spark"
        raise ConfigurationError(message)
    if out is not None:
        check_target(out, [*run_file.inputs, *([] if history is None else [path_of(history.uri)])], replace=replace)
    run = run_of(run_file, history)
    taken = [CareKind.SINGLE_OPERATIONS]  # as operations in batches
    if not alters_values(run, compared_alone=True):
        taken.append(CareKind.ALTERED_VALUES)  # what is compared depends on no value that a statement converts
    why = needs_reference(run, taken)
    if why is not None:
        raise ConfigurationError(_left_out(why.value.what))
    refuse_inexact_keys(run.data_schema.tables)
    with _work_folder(out, replace=replace) as work:
        runner = in_threads if chosen == "local" else spark_workers(work, progress, None, history)
        with refusing_contradictions(history, AGAIN):
            comparison = _compared(runner, run, wanted, history, work, progress)
        if out is not None:
            work.write_table(TABLE, comparison.to_arrow())
            work.write_json(RESULT, comparison.to_json())
    return comparison


@contextmanager
def _work_folder(out: Folder | None, *, replace: bool) -> Iterator[Folder]:
    """Give a folder for the work; what is wanted of it is in place of `out` at the end."""
    with ExitStack() as held:
        if out is None:
            yield Folder(held.enter_context(tempfile.TemporaryDirectory(prefix="ndb-conflict-")))
        else:
            yield held.enter_context(whole_or_not_at_all(out, replace=replace))


def _left_out(why: str) -> str:
    return f"only the reference engine resolves this run, and it does not compare: {why}"


def _refuse_rows_without_key(run: Run, held: Manifest) -> None:
    """
    Make sure that all rows of a History have keys, by which they are decided.

    Raises:
        ConfigurationError: Tables without a primary key have rows.
    """
    if held.has_rows_without_key:
        names = [table.full_name for table in run.data_schema.tables if not table.primary_key]
        tables = listed([name for name in names if name in held.types])
        message = (
            f"the binlogs change rows of {tables} without a primary key, and compare decides rows by their keys; "
            "resolve takes such a run, and compare does if the schema leaves these tables out"
        )
        raise ConfigurationError(message)


def _compared(
    runner: Runner,
    run: Run,
    wanted: ComparisonWanted,
    given: Folder | None,
    work: Folder,
    progress: StageProgress,
) -> Comparison:
    names, primary = list(run.links.server_ids), primary_of(run)
    read = None if given is None else finished_history(given, run)
    columns = own_columns(run, kept_columns(run) if read is None else read.resolve_columns)
    asked = (
        parse_policies(wanted.functions, run.configuration.functions, names, primary, columns)
        if wanted.functions
        else ()
    )
    scratch = work.below("work")
    if given is not None and read is not None:
        history, held = given, read
        run = attrs.evolve(run, kept_columns=held.resolve_columns)
    else:
        run = attrs.evolve(run, kept_columns=kept_columns(run, asked))
        history = work.below("history")
        history = MemoryFolder.at(history.uri) if runner is in_threads else history
        try:
            held = ingest(runner, run, history, progress=progress).manifest
        except NotBuiltError as error:
            raise ConfigurationError(_left_out(str(error))) from None
    policies = all_policies(run, asked or default_policies(run, columns))
    recorded = binlog_types_of(run.setups.first)
    pairs = [
        Pair(policy, number)
        for policy in policies
        for number in (None, *(each for each in wanted.formats if str(each) != recorded))
    ]
    try:
        _refuse_rows_without_key(run, held)
        resolved, common, applied, decided = _settled(
            runner, run, (history, held), scratch, progress, by_kernels=not _calls_python(run, policies)
        )
        if why := why_not_compared(run, resolved, common):
            raise ConfigurationError(_left_out(why))
        left_out = left_out_of(run, resolved, common)
        found = compare_settled(runner, common, applied, pairs, progress, decided)
    finally:
        scratch.delete()
        if given is None:
            history.delete()
    if any(cause.kind is CauseKind.TRANSACTION_IDS for cause in resolved.likely_causes):
        found = [each if isinstance(each, str) else each.without_transactions() for each in found]
    # Of files that are not given any more, the sizes are in no History.
    sizes, cut = (None, ()) if run.kept_alone else _sizes(run, progress)
    rows = [
        ComparedPair(
            pair.policy.name,
            recorded if pair.binlog_type is None else str(pair.binlog_type),
            None if isinstance(each, str) else each,
            each if isinstance(each, str) else None,
            None if sizes is None else _bytes(sizes, pair.binlog_type),
            used=pair.policy.configured and pair.binlog_type is None,
            caveat=caveat_of(pair, run.setups.first),
        )
        for pair, each in zip(pairs, found, strict=True)
    ]
    without = _without_function(common.numbers, common.clusters)
    ordered, cut = tuple(ranked(rows, wanted.prefer)), () if resolved.errors else cut
    files = files_document(run.configuration.files)
    stops = bool(resolved.starts) and can_stop_by_rows(common.clusters)
    return Comparison(ordered, wanted.prefer, resolved, cut, without, files, stops, left_out)


def _settled(
    runner: Runner,
    run: Run,
    read: tuple[Folder, Manifest],
    scratch: Folder,
    progress: StageProgress,
    *,
    by_kernels: bool,
) -> tuple[RunDocument, TaskInputs, Sequence[ApplierEpochs], History | None]:
    """
    Resolve the run as it is configured, which settles when each epoch was applied.

    Args:
        runner: Runs the tasks.
        run: The run.
        read: The History of its binlogs, and what it holds.
        scratch: Where tasks leave what they have for one another.
        progress: As of `compare_run`.
        by_kernels: Whether the kernels do it as far as they can.

    Returns:
        What was decided, what tasks have in common, the epochs that each applier applies; and the History that the
        reference engine decided, if it did.

    Raises:
        ConfigurationError: The kernels cannot resolve the run, and the reference engine finds another schedule.
    """
    history, held = read
    options = SettleOptions(
        out=scratch,
        history=history if by_kernels else None,
        held=held,
        result=_FIGURES_ALONE,
        as_configured=True,
        by_reference=SETTLED,
        progress=progress,
    )
    found = settled(run, runner, options)
    if isinstance(found, CareKind):
        raise ConfigurationError(_left_out(found.value.what))
    if found.by_kernels is None:
        return found.resolved, *as_kernels_read(found, read, options), found.by_reference
    found.by_kernels.job.clear()
    return found.resolved, found.by_kernels.job.run, found.by_kernels.applied, None


def _calls_python(run: Run, policies: Sequence[Policy]) -> bool:
    """
    Whether a rule in Python is among what is compared: then the reference engine settles the run, too.

    Raises:
        ConfigurationError: It cannot, because a History alone has a part of the rows.
    """
    setups = (setup for tables in run.setups.first.values() for setup in tables.values())
    used = any(setup.function is not None and setup.function.spec.own is not None for setup in setups)
    called = used or any(policy.in_python for policy in policies)
    if called and run.kept_alone:
        message = "a rule in Python is called by the reference engine, which reads binlogs; give those that are purged"
        raise ConfigurationError(message)
    return called


def _without_function(numbers: TableNumbers, clusters: Sequence[ClusterSetup]) -> tuple[str, ...]:
    """Return the tables that no function is tried on."""
    judged = judged_tables(clusters)
    return tuple(table.full_name for number, table in enumerate(numbers.tables) if number not in judged)


def _sizes(run: Run, progress: StageProgress) -> tuple[SizeReport, tuple[str, ...]]:
    """Return the sizes of the rows events of both clusters in every format, and why files were measured in part."""
    sizer, cut = LogSizer(), list[str]()
    files = [piece.file for cluster in run.clusters for piece in run.log_of(cluster)]
    for cluster in run.clusters:
        sizer.begin(run.schema_at_start(cluster))
        for file in dict.fromkeys(piece.file for piece in run.log_of(cluster)):
            progress("measuring", files.index(file), len(files))
            try:
                sizer.add(file)
            except FormatError as error:  # what comes before it is counted
                cut.append(str(error))
    progress("measuring", len(files), len(files))
    return size_report(sizer, [file.stat().st_size for file in files]), tuple(cut)


def _bytes(sizes: SizeReport, binlog_type: int | None) -> tuple[int, int]:
    if binlog_type is None:
        return sizes.changes.logged.bytes, sizes.changes.logged.bytes
    formats: Mapping[str, int] = {each.name: place for place, each in enumerate(FORMATS)}
    bounds = sizes.changes.formats[formats[str(binlog_type)]]
    return bounds.least.bytes, bounds.most.bytes
