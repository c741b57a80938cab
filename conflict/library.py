"""
What Python users call: bare binlogs or a run file to a result, in one call.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import attrs

from conflict.checking.check import Report, check_configuration
from conflict.checking.deployment import DeploymentPolicy
from conflict.checking.draft import draft_check
from conflict.config.option_values import seconds_of, words_of
from conflict.config.run_file import RunFile, load_run_file
from conflict.discovery.draft import Additions, ConflictFns, additions_of, draft_run
from conflict.errors import ConfigurationError
from conflict.pipeline import folder_of
from conflict.pipeline import ingest as ingest_into
from conflict.pipeline import resolve as resolve_into
from conflict.result import Result, read_result
from conflict.rules.user_policies import load_functions
from conflict.runs.ingest_job import Ingested
from conflict.runs.runner import ResolveOptions, StageProgress, no_progress
from conflict.whatif.comparing.comparison import Comparison, ComparisonWanted, compare_run
from conflict.whatif.comparing.figures import CRITERIA, parse_criteria
from conflict.whatif.comparing.pairs import parse_formats

__all__ = ["Source", "check", "compare", "ingest", "path_of", "resolve", "run_of"]

Source = RunFile | Path | str | Iterable[Path | str]


def resolve(
    *sources: Source,
    out: Path | str | None = None,
    engine: str = "auto",
    function: str | Sequence[str] | None = None,
    policy: str = DeploymentPolicy.MANUAL.value,
    schema: Path | str | None = None,
    ndb_replication: Path | str | None = None,
    conflict_fn: ConflictFns | None = None,
    primary: str | None = None,
    history: Path | str | None = None,
    keep_history: Path | str | None = None,
    final_rows: bool = True,
    start_epoch: Mapping[str, int] | None = None,
    stop_epoch: Mapping[str, int] | None = None,
    start_datetime: datetime | str | None = None,
    stop_datetime: datetime | str | None = None,
    on_missing: str = "stop",
    inexact_keys: bool = False,
    all_outcomes: bool = False,
    force: bool = False,
    progress: StageProgress = no_progress,
) -> Result:
    """
    Resolve the binlogs of a run; as the command ``resolve``.

    Args:
        sources: A run file, or one that `load_run_file` has read; or the bare binlogs of both clusters: folders, index
            files, patterns or files.
        out: Folder for the result; a new temporary one if there is none.
        engine: ``auto``, ``spark``, ``local`` or ``reference``.
        function: Rules in Python, ``MODULE:NAME`` each.
        policy: ``manual`` or ``needs``: which functions go with which binlog types.
        schema: File of CREATE TABLE statements, for bare binlogs.
        ndb_replication: File with the rows of ``mysql.ndb_replication``, for bare binlogs.
        conflict_fn: Conflict function by table or pattern, for bare binlogs: ``{"shop.*": "NDB$MAX(version)"}``; or
            as on the command line: ``"shop.*=NDB$MAX(version)"``, also several in a list or with commas between.
        primary: The primary cluster, for bare binlogs and functions by epoch.
        history: A History of these binlogs that `ingest` made; the binlogs are not read again.
        keep_history: Folder in which the History that is made of the binlogs is kept; an existing one is continued.
        final_rows: Whether the rows of the tables at the end are wanted.
        start_epoch: By cluster, the own epoch that it is read from on; the other one follows.
        stop_epoch: By cluster, the last own epoch that is read.
        start_datetime: Moment from which on the first cluster is read: a datetime, or a text as in ISO 8601; UTC
            without an offset.
        stop_datetime: Moment to stop before.
        on_missing: Where an operation lacks the value to compare: ``stop`` the applier as servers do, or ``skip`` it.
        inexact_keys: Take keys as equal by their bytes where a collation is not known.
        all_outcomes: Write an outcome for every operation, not only for those that were not simply applied.
        force: Replace a result that is in the folder already.
        progress: Called with the name of a stage, what is done, and what there is to do.

    Raises:
        ConfigurationError: The run cannot be resolved as it is, or `out` cannot be written; nothing was written.
        HistoryError: Binlogs, schedule and configuration contradict each other.
    """
    additions = additions_of(schema, ndb_replication, conflict_fn, primary)
    run = run_of(sources, additions)
    span, (first, last) = run.configuration.span, (dict(each or {}) for each in (start_epoch, stop_epoch))
    unknown = sorted({*first, *last} - run.configuration.links.server_ids.keys())
    if unknown or on_missing not in ("stop", "skip"):
        names = ", ".join(run.configuration.links.server_ids)
        message = (
            f"on_missing is stop or skip, and epochs are those of {names}, not of {', '.join(unknown) or 'others'}"
        )
        raise ConfigurationError(message)
    begins, ends = seconds_of(start_datetime, "start_datetime"), seconds_of(stop_datetime, "stop_datetime")
    span = attrs.evolve(span, first={**span.first, **first}, last=last, first_time=begins, stop_time=ends)
    configuration = attrs.evolve(run.configuration, skip_missing=on_missing == "skip", span=span)
    run = _changed(attrs.evolve(run, configuration=configuration), function, inexact_keys=inexact_keys)
    target = Path(tempfile.mkdtemp(prefix="ndb-conflict-")) / "result" if out is None else out
    made, kept = (None if path is None else folder_of(path) for path in (history, keep_history))
    options = ResolveOptions(
        history=made, keep_history=kept, final_rows=final_rows, all_outcomes=all_outcomes, replace=force
    )
    resolve_into(run, str(target), engine=engine, policy=DeploymentPolicy(policy), options=options, progress=progress)
    return read_result(str(target))


def compare(
    *sources: Source,
    functions: str | Sequence[str] = (),
    formats: str | int | Sequence[int] = (),
    prefer: str | Sequence[str] = tuple(CRITERIA),
    engine: str = "auto",
    schema: Path | str | None = None,
    ndb_replication: Path | str | None = None,
    conflict_fn: ConflictFns | None = None,
    primary: str | None = None,
    history: Path | str | None = None,
    out: Path | str | None = None,
    force: bool = False,
    progress: StageProgress = no_progress,
) -> Comparison:
    """
    Try pairs of a conflict function and a format on the binlogs of a run; as the command ``compare``.

    Args:
        sources: As for `resolve`.
        functions: Such as ``NDB$EPOCH()@london`` or ``LAST_COMMIT`` (see docs/compare.md); none for all that the tables
            and the log allow. These lists can also be texts with commas, as on the command line.
        formats: Binlog types to try besides the one in the log.
        prefer: ``lost-updates``, ``divergence``, ``traffic``, the most important first.
        engine: ``auto``, ``spark`` or ``local``.
        schema: As for `resolve`.
        ndb_replication: As for `resolve`.
        conflict_fn: As for `resolve`.
        primary: As for `resolve`.
        history: As for `resolve`.
        out: Folder for the comparison as Parquet and JSON; None for none.
        force: Replace a comparison that is in the folder already.
        progress: As for `resolve`.

    Raises:
        ConfigurationError: The run cannot be compared, or something that is asked for is not known.
        HistoryError: Binlogs, schedule and configuration contradict each other.
    """
    additions = additions_of(schema, ndb_replication, conflict_fn, primary)
    tried, types, order = (",".join(words_of(each)) for each in (functions, formats, prefer))
    wanted = ComparisonWanted(tried, parse_formats(types) if types else (), parse_criteria(order))
    made, target = (None if path is None else folder_of(path) for path in (history, out))
    run = run_of(sources, additions)
    return compare_run(run, wanted, engine=engine, history=made, out=target, replace=force, progress=progress)


def ingest(
    *sources: Source,
    out: Path | str,
    inexact_keys: bool = False,
    schema: Path | str | None = None,
    ndb_replication: Path | str | None = None,
    conflict_fn: ConflictFns | None = None,
    primary: str | None = None,
    progress: StageProgress = no_progress,
) -> Ingested:
    """
    Read the binlogs of a run into a History on disk, on Spark; as the command ``ingest``.

    Args:
        sources: As for `resolve`.
        out: Folder for the History; one that is there is continued.
        inexact_keys: As for `resolve`.
        schema: As for `resolve`.
        ndb_replication: As for `resolve`.
        conflict_fn: As for `resolve`.
        primary: As for `resolve`.
        progress: As for `resolve`.

    Raises:
        ConfigurationError: Spark cannot be started, or `out` is not the same folder for its tasks.
        HistoryError: The folder holds a History of something else.
    """
    additions = additions_of(schema, ndb_replication, conflict_fn, primary)
    return ingest_into(_changed(run_of(sources, additions), inexact_keys=inexact_keys), str(out), progress)


def check(
    run: RunFile | Path | str | None = None,
    *,
    policy: str = DeploymentPolicy.MANUAL.value,
    schema: Path | str | None = None,
    ndb_replication: Path | str | None = None,
    conflict_fn: ConflictFns | None = None,
    primary: str | None = None,
    variables: Mapping[str, Path | str] | None = None,
    config_ini: Mapping[str, Path | str] | None = None,
    function: str | Sequence[str] | None = None,
) -> Report:
    """
    Return what a configuration will do and what servers will refuse, without binlogs; as the command ``check``.

    Args:
        run: A run file, or one that `load_run_file` has read; its binlogs need not be there. Without one, the rest:
        policy: ``manual``, or ``needs`` to leave out what the manual advises against.
        schema: File of CREATE TABLE statements.
        ndb_replication: File with the rows of ``mysql.ndb_replication``.
        conflict_fn: Conflict function by table or pattern, as for `resolve`.
        primary: The primary cluster.
        variables: By cluster, its my.cnf or what SHOW GLOBAL VARIABLES prints.
        config_ini: By cluster, its config.ini.
        function: Rules in Python, ``MODULE:NAME`` each.

    Raises:
        ConfigurationError: Something that is needed is missing, or a file is wrong.
    """
    additions = additions_of(schema, ndb_replication, conflict_fn, primary)
    files = [{name: Path(file) for name, file in (given or {}).items()} for given in (variables, config_ini)]
    if run is None:
        loaded = draft_check(additions, *files)
    elif additions != Additions() or any(files):
        message = "a run file has entries for the other arguments; give it alone"
        raise ConfigurationError(message)
    else:
        loaded = run if isinstance(run, RunFile) else load_run_file(run, binlogs=False)
    return check_configuration(_changed(loaded, function).configuration, DeploymentPolicy(policy))


def _changed(run: RunFile, function: str | Sequence[str] | None = None, *, inexact_keys: bool = False) -> RunFile:
    """Return a run with rules in Python, and with keys that are taken as equal by their bytes."""
    configuration = run.configuration
    functions = load_functions(words_of(function), configuration.functions)
    configuration = attrs.evolve(configuration, functions=functions)
    return attrs.evolve(run, configuration=configuration.with_inexact_keys() if inexact_keys else configuration)


def run_of(sources: tuple[Source, ...], additions: Additions) -> RunFile:
    """
    Return the run of a run file, or of bare binlogs and what is said besides.

    Raises:
        ConfigurationError: Nothing is given, or something beside a run file.
    """
    given = [each for source in sources for each in _each(source)]
    if not given:
        message = "give a run file, or the binlogs of both clusters"
        raise ConfigurationError(message)
    runs = [source for source in given if isinstance(source, RunFile)]
    paths = [source for source in given if not isinstance(source, RunFile)]
    if not runs and len(paths) == 1 and paths[0].suffix == ".toml":
        runs = [load_run_file(paths.pop())]
    if not runs:
        return draft_run(paths, additions, Path("run.toml")).run
    if len(runs) > 1 or paths or additions != Additions():
        message = "a run file has entries for the arguments of bare binlogs; give it alone"
        raise ConfigurationError(message)
    return runs[0]


def _each(source: Source) -> list[RunFile | Path]:
    """Return what a source represents: a list of paths is as good as the paths one by one."""
    if isinstance(source, RunFile):
        return [source]
    return [Path(source)] if isinstance(source, Path | str) else [Path(each) for each in source]


def path_of(given: Path | str | None) -> Path | None:
    """Return a path that may be a text, or None."""
    return None if given is None else Path(given)
