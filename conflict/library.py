"""
What Python users call: bare binlogs or a run file to a result, in one call.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from conflict.checking.check import check_configuration
from conflict.checking.draft import draft_check
from conflict.checking.report import Report
from conflict.comparing.figures import CRITERIA, parse_criteria
from conflict.comparing.pairs import parse_formats
from conflict.comparison import Comparison, Wanted, compare_run
from conflict.compatibility.deployment import Policy
from conflict.config.run_file import RunFile, load_run_file
from conflict.discovery.draft import Additions, draft_run
from conflict.errors import ConfigurationError
from conflict.jobs.ingest_job import Ingested
from conflict.jobs.runner import StageProgress
from conflict.pipeline import folder_of
from conflict.pipeline import ingest as ingest_into
from conflict.pipeline import resolve as resolve_into
from conflict.result import Result, read_result
from conflict.runs.options import ResolveOptions, no_progress

__all__ = ["check", "compare", "ingest", "resolve"]

Source = RunFile | Path | str


def resolve(
    *sources: Source,
    out: Path | str | None = None,
    engine: str = "auto",
    policy: str = Policy.MANUAL.value,
    schema: Path | str | None = None,
    ndb_replication: Path | str | None = None,
    conflict_fn: Mapping[str, str] | None = None,
    primary: str | None = None,
    history: Path | str | None = None,
    keep_history: Path | str | None = None,
    final_rows: bool = True,
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
        policy: ``manual`` or ``needs``: which functions go with which binlog types.
        schema: File of CREATE TABLE statements, for bare binlogs.
        ndb_replication: File with the rows of ``mysql.ndb_replication``, for bare binlogs.
        conflict_fn: Conflict function by table or pattern, for bare binlogs: ``{"shop.*": "NDB$MAX(version)"}``.
        primary: The primary cluster, for bare binlogs and functions by epoch.
        history: A History of these binlogs that `ingest` made; the binlogs are not read again.
        keep_history: Folder in which the History that is made of the binlogs is kept; an existing one is continued.
        final_rows: Whether the rows of the tables at the end are wanted.
        all_outcomes: Write an outcome for every operation, not only for those that were not simply applied.
        force: Replace a result that is in the folder already.
        progress: Called with the name of a stage, what is done, and what there is to do.

    Raises:
        ConfigurationError: The run cannot be resolved as it is, or `out` cannot be written; nothing was written.
        HistoryError: Binlogs, schedule and configuration contradict each other.
    """
    additions = Additions(_path(schema), _path(ndb_replication), dict(conflict_fn or {}), primary)
    run = _run_of(sources, additions)
    target = Path(tempfile.mkdtemp(prefix="ndb-conflict-")) / "result" if out is None else out
    made, kept = (None if path is None else folder_of(path) for path in (history, keep_history))
    options = ResolveOptions(
        history=made, keep_history=kept, final_rows=final_rows, all_outcomes=all_outcomes, replace=force
    )
    resolve_into(run, str(target), engine=engine, policy=Policy(policy), options=options, progress=progress)
    return read_result(str(target))


def compare(
    *sources: Source,
    functions: Sequence[str] = (),
    formats: Sequence[int] = (),
    prefer: Sequence[str] = tuple(CRITERIA),
    engine: str = "auto",
    schema: Path | str | None = None,
    ndb_replication: Path | str | None = None,
    conflict_fn: Mapping[str, str] | None = None,
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
            and the log allow.
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
    additions = Additions(_path(schema), _path(ndb_replication), dict(conflict_fn or {}), primary)
    given = parse_formats(",".join(map(str, formats))) if formats else ()
    wanted = Wanted(",".join(functions), given, parse_criteria(",".join(prefer)))
    made, target = (None if path is None else folder_of(path) for path in (history, out))
    run = _run_of(sources, additions)
    return compare_run(run, wanted, engine=engine, history=made, out=target, replace=force, progress=progress)


def ingest(*sources: Source, out: Path | str, progress: StageProgress = no_progress) -> Ingested:
    """
    Read the binlogs of a run into a History on disk, on Spark; as the command ``ingest``.

    Args:
        sources: As for `resolve`.
        out: Folder for the History; one that is there is continued.
        progress: As for `resolve`.

    Raises:
        ConfigurationError: Spark cannot be started, or `out` is not the same folder for its tasks.
        HistoryError: The folder holds a History of something else.
    """
    return ingest_into(_run_of(sources, Additions()), str(out), progress)


def check(
    run: Source | None = None,
    *,
    policy: str = Policy.MANUAL.value,
    schema: Path | str | None = None,
    ndb_replication: Path | str | None = None,
    conflict_fn: Mapping[str, str] | None = None,
    primary: str | None = None,
    variables: Mapping[str, Path | str] | None = None,
    config_ini: Mapping[str, Path | str] | None = None,
) -> Report:
    """
    Return what a configuration will do and what servers will refuse, without binlogs; as the command ``check``.

    Args:
        run: A run file, or one that `load_run_file` has read; its binlogs need not be there. Without one, the rest:
        policy: ``manual``, or ``needs`` to leave out what the manual advises against.
        schema: File of CREATE TABLE statements.
        ndb_replication: File with the rows of ``mysql.ndb_replication``.
        conflict_fn: Conflict function by table or pattern: ``{"shop.*": "NDB$MAX(version)"}``.
        primary: The primary cluster.
        variables: By cluster, its my.cnf or what SHOW GLOBAL VARIABLES prints.
        config_ini: By cluster, its config.ini.

    Raises:
        ConfigurationError: Something that is needed is missing, or a file is wrong.
    """
    additions = Additions(_path(schema), _path(ndb_replication), dict(conflict_fn or {}), primary)
    files = [{name: Path(file) for name, file in (given or {}).items()} for given in (variables, config_ini)]
    if run is None:
        loaded = draft_check(additions, *files)
    elif additions != Additions() or any(files):
        message = "a run file has entries for the other arguments; give it alone"
        raise ConfigurationError(message)
    else:
        loaded = run if isinstance(run, RunFile) else load_run_file(run, binlogs=False)
    return check_configuration(loaded.configuration, Policy(policy))


def _run_of(sources: tuple[Source, ...], additions: Additions) -> RunFile:
    if not sources:
        message = "give a run file, or the binlogs of both clusters"
        raise ConfigurationError(message)
    runs = [source for source in sources if isinstance(source, RunFile)]
    paths = [Path(source) for source in sources if not isinstance(source, RunFile)]
    if not runs and len(paths) == 1 and paths[0].suffix == ".toml":
        runs = [load_run_file(paths.pop())]
    if not runs:
        return draft_run(paths, additions, Path("run.toml")).run
    if len(runs) > 1 or paths or additions != Additions():
        message = "a run file has entries for the arguments of bare binlogs; give it alone"
        raise ConfigurationError(message)
    return runs[0]


def _path(given: Path | str | None) -> Path | None:
    return None if given is None else Path(given)
