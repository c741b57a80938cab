"""
What Python users and commands call about a run: bare binlogs or a run file to a result, in one call.

Functions import their work when they run: commands read signatures and docstrings for their help.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from conflict.config.arguments import (
    CLUSTER,
    CONFLICT_FN,
    CONFLICT_FN_OF_CHECK,
    DATETIME,
    EPOCH,
    FILE,
    RULE,
    SERVER,
    SOURCES,
    AskedServers,
    ConflictFns,
    DeploymentPolicy,
    OnMissing,
    ResolveEngine,
    StageProgress,
    Typed,
    WhatIfEngine,
    answering,
    no_progress,
    typed,
)
from conflict.config.option_values import Moment, known_name, path_of, seconds_of, words_of
from conflict.config.text_file import places_of
from conflict.errors import ConfigurationError

if TYPE_CHECKING:
    from conflict.checking.report import Report
    from conflict.config.additions import Additions
    from conflict.config.arguments import StageProgress
    from conflict.config.run_file import RunFile
    from conflict.discovery.draft import Draft
    from conflict.resolvers.user_policies import Given
    from conflict.results.result import Result
    from conflict.results.run_document import RunDocument
    from conflict.runs.ingest_job import Ingested
    from conflict.whatif.comparing.comparison import Comparison

    Source = RunFile | Path | str | Iterable[Path | str]


_RUN_FILE = Typed("run_file", "The run file (TOML); its binlogs need not be there.")


def _result_of(found: tuple[RunDocument, str]) -> Result:
    from conflict.results.result import read_result

    return read_result(found[1])


@answering(_result_of)
@typed(
    sources=SOURCES,
    function=RULE,
    start_epoch=EPOCH,
    stop_epoch=EPOCH,
    start_datetime=DATETIME,
    stop_datetime=DATETIME,
    conflict_fn=CONFLICT_FN,
    primary=CLUSTER,
)
def resolve(
    *sources: Source,
    out: Path | str | None = None,
    engine: ResolveEngine | str = "auto",
    function: Given | str | Sequence[Given] | None = None,
    policy: DeploymentPolicy | str = "manual",
    on_missing: OnMissing | str = "stop",
    history: Path | str | None = None,
    keep_history: Path | str | None = None,
    final_rows: bool = True,
    start_epoch: Mapping[str, int] | None = None,
    stop_epoch: Mapping[str, int] | None = None,
    start_datetime: Moment | None = None,
    stop_datetime: Moment | None = None,
    all_outcomes: bool = False,
    epoch_range: int | None = None,
    keep_state: bool = False,
    after: Path | str | None = None,
    inexact_keys: bool = False,
    schema: Path | str | None = None,
    ndb_replication: Path | str | None = None,
    conflict_fn: ConflictFns | None = None,
    primary: str | None = None,
    force: bool = False,
    progress: StageProgress = no_progress,
) -> tuple[RunDocument, str]:
    """
    Resolve the binlogs of a run; as the command ``resolve``. Return a `Result`.

    Args:
        sources: A run file, or one that `load_run_file` has read; or the bare binlogs of both clusters: folders, index
            files, patterns or files.
        out: Folder for the result; a new temporary one if there is none.
        engine: The engine: ``auto``, ``local``, ``spark`` or ``reference``; auto is local, unless Spark is configured
            or this machine lacks the memory.
        function: A resolver of one's own (docs/resolvers.md) that `conflict_fn` names: as a value, as ``MODULE:NAME``,
            or the name of one that comes with the program. Rules in Python are for the reference engine.
        policy: ``manual`` allows functions as the manual does for a binlog type; ``needs`` allows all that get the
            columns they need.
        on_missing: Where an operation lacks the value to compare: ``stop`` the applier as servers do, or ``skip`` it.
        history: Resolve this History, made by `ingest`, and read no binlogs.
        keep_history: Keep what is read of the binlogs as a History in this folder; one that is there is continued.
        final_rows: Write the final rows of the tables, which reads all images of the History.
        start_epoch: By cluster, the first own epoch that is read; the other cluster follows.
        stop_epoch: By cluster, the last own epoch that is read.
        start_datetime: Read the first cluster from then on; UTC without an offset; the other one follows.
        stop_datetime: Read up to this moment, exclusive; UTC without an offset.
        all_outcomes: Write an outcome for every operation, those applied among them.
        epoch_range: Divide outcomes and overwritten changes into ranges of so many global checkpoints of the applier,
            which end every two seconds by default: 43200 is a day.
        keep_state: Write what a later run needs to go on from this result.
        after: Go on from this result, which has such a state: decide, and tell of, only what was applied later.
        inexact_keys: Allow keys under collations whose equality is not known exactly.
        schema: CREATE TABLE statements, for bare binlogs that neither create nor describe their tables.
        ndb_replication: Rows of mysql.ndb_replication, for bare binlogs: .sql, .csv, .tsv, .toml.
        conflict_fn: For bare binlogs, the conflict function by table or pattern: ``{"shop.*": "NDB$MAX(version)"}``; or
            as on the command line: ``"shop.*=NDB$MAX(version)"``, also several in a list or with commas between. By
            default, functions are found by trial.
        primary: For bare binlogs and functions by epoch: the primary cluster.
        force: Replace what is there already.
        progress: Called with the name of a stage, what is done, and what there is to do.

    Raises:
        ConfigurationError: The run cannot be resolved as it is, or `out` cannot be written; nothing was written.
        HistoryError: Binlogs, schedule and configuration contradict each other.
    """
    from conflict.history.grid.stored_folder import folder_of
    from conflict.runs.pipeline import ResolveOptions
    from conflict.runs.pipeline import resolve as resolve_into

    run = run_of(sources, additions_of(schema, ndb_replication, conflict_fn, primary), progress=progress)
    if on_missing not in tuple(OnMissing):
        message = f"on_missing {on_missing} is not known; give {' or '.join(OnMissing)}"
        raise ConfigurationError(message)
    if epoch_range is not None and epoch_range < 1:
        message = f"epoch_range is {epoch_range}; give the number of global checkpoints of a range, at least 1"
        raise ConfigurationError(message)
    span, names = run.configuration.span, run.configuration.links.server_ids
    first, last = (
        {
            known_name("cluster", name, names, "the run", ConfigurationError): epoch
            for name, epoch in (each or {}).items()
        }
        for each in (start_epoch, stop_epoch)
    )
    begins, ends = seconds_of(start_datetime, "start_datetime"), seconds_of(stop_datetime, "stop_datetime")
    span = attrs.evolve(span, first={**span.first, **first}, last=last, first_time=begins, stop_time=ends)
    configuration = attrs.evolve(run.configuration, skip_missing=on_missing == OnMissing.SKIP, span=span)
    run = _changed(attrs.evolve(run, configuration=configuration), function, inexact_keys=inexact_keys)
    target = str(Path(tempfile.mkdtemp(prefix="ndb-conflict-")) / "result" if out is None else out)
    made, kept = (None if path is None else folder_of(path) for path in (history, keep_history))
    options = ResolveOptions(
        history=made,
        keep_history=kept,
        final_rows=final_rows,
        all_outcomes=all_outcomes,
        epoch_range=epoch_range,
        keep_state=keep_state,
        after=None if after is None else folder_of(after),
        replace=force,
    )
    allowed = DeploymentPolicy(policy)
    return resolve_into(run, target, engine=engine, policy=allowed, options=options, progress=progress), target


@typed(
    sources=SOURCES,
    functions=Typed(in_one=True),
    formats=Typed(in_one=True),
    prefer=Typed(in_one=True),
    conflict_fn=CONFLICT_FN,
    primary=CLUSTER,
)
def compare(
    *sources: Source,
    functions: str | Sequence[str] = (),
    formats: str | int | Sequence[int] = (),
    prefer: str | Sequence[str] = ("lost-updates", "divergence", "traffic"),
    engine: WhatIfEngine | str = "auto",
    history: Path | str | None = None,
    out: Path | str | None = None,
    schema: Path | str | None = None,
    ndb_replication: Path | str | None = None,
    conflict_fn: ConflictFns | None = None,
    primary: str | None = None,
    force: bool = False,
    progress: StageProgress = no_progress,
) -> Comparison:
    """
    Try pairs of a conflict function and a format on the binlogs of a run; as the command ``compare``.

    Args:
        sources: As for `resolve`.
        functions: Functions, separated by commas: ``NDB$MAX(x),NDB$EPOCH()@london,LAST_COMMIT``; by default, all that
            the tables and the log allow.
        formats: Binlog types to try besides the one in the log: ``3,9``.
        prefer: The order of the functions: the most important criterion first.
        engine: The engine; auto chooses as resolve does.
        history: Compare on this History, made by `ingest`; it keeps one column per table.
        out: Folder for the comparison as Parquet and JSON.
        schema: As for `resolve`.
        ndb_replication: As for `resolve`.
        conflict_fn: As for `resolve`.
        primary: As for `resolve`.
        force: As for `resolve`.
        progress: As for `resolve`.

    Raises:
        ConfigurationError: The run cannot be compared, or something that is asked for is not known.
        HistoryError: Binlogs, schedule and configuration contradict each other.
    """
    from conflict.history.grid.stored_folder import folder_of
    from conflict.whatif.comparing.comparison import ComparisonWanted, compare_run
    from conflict.whatif.comparing.figures import parse_criteria
    from conflict.whatif.comparing.pairs import parse_formats

    additions = additions_of(schema, ndb_replication, conflict_fn, primary)
    tried, types, order = (",".join(words_of(each)) for each in (functions, formats, prefer))
    wanted = ComparisonWanted(tried, parse_formats(types) if types else (), parse_criteria(order))
    made, target = (None if path is None else folder_of(path) for path in (history, out))
    run = run_of(sources, additions, progress=progress)
    return compare_run(run, wanted, engine=engine, history=made, out=target, replace=force, progress=progress)


@typed(sources=SOURCES, conflict_fn=CONFLICT_FN, primary=CLUSTER)
def ingest(
    *sources: Source,
    out: Path | str,
    engine: WhatIfEngine | str = "auto",
    inexact_keys: bool = False,
    schema: Path | str | None = None,
    ndb_replication: Path | str | None = None,
    conflict_fn: ConflictFns | None = None,
    primary: str | None = None,
    progress: StageProgress = no_progress,
) -> Ingested:
    """
    Read the binlogs of a run into a History on disk; as the command ``ingest``.

    Args:
        sources: As for `resolve`.
        out: Folder for the History; an existing History is continued.
        engine: Who reads them: ``local``, this process, or ``spark``; auto chooses as resolve does.
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
    from conflict.runs.ingesting import ingest as ingest_into

    additions = additions_of(schema, ndb_replication, conflict_fn, primary)
    known_name("engine", str(engine), [*WhatIfEngine], "ingest", ConfigurationError)
    run = _changed(run_of(sources, additions, progress=progress), inexact_keys=inexact_keys)
    return ingest_into(run, str(out), progress, engine=engine)


@typed(
    run=_RUN_FILE,
    conflict_fn=CONFLICT_FN_OF_CHECK,
    primary=CLUSTER,
    variables=FILE,
    config_ini=FILE,
    server=SERVER,
    function=RULE,
)
def check(
    run: RunFile | Path | str | None = None,
    *,
    schema: Path | str | None = None,
    ndb_replication: Path | str | None = None,
    conflict_fn: ConflictFns | None = None,
    primary: str | None = None,
    variables: Mapping[str, Path | str] | None = None,
    config_ini: Mapping[str, Path | str] | None = None,
    server: str | Sequence[str] | None = None,
    defaults_file: Path | str | None = None,
    policy: DeploymentPolicy | str = "manual",
    function: Given | str | Sequence[Given] | None = None,
    server_version: str | None = None,
    progress: StageProgress = no_progress,
) -> Report:
    """
    Return what a configuration will do and what servers will refuse; as the command ``check``.

    Of binlogs, if they are there, it reads how large epochs are, and when they were logged and applied; no changes.

    Args:
        run: A run file, or one that `load_run_file` has read; its binlogs need not be there. Without one, the rest:
        schema: Without a run file: CREATE TABLE statements.
        ndb_replication: Rows of mysql.ndb_replication: .sql, .csv, .tsv or .toml.
        conflict_fn: In place of rows, the conflict function by table or pattern, as for `resolve`.
        primary: The primary, for functions by epoch.
        variables: By name of a cluster, its my.cnf or what SHOW GLOBAL VARIABLES prints.
        config_ini: By name of a cluster, its config.ini.
        server: In place of files, a running server, ``CLUSTER=mysql://USER@HOST:PORT/``, which is read and not changed;
            servers with the same cluster are its SQL nodes.
        defaults_file: Option file of the mysql client, in place of its own ones: user, password, TLS.
        policy: With ``needs``, leave out what the manual advises against and the server accepts.
        function: As for `resolve`.
        server_version: Find what this release lacks or does in another way, such as 8.0.34; by default, that which the
            servers or their binlogs show.
        progress: As for `resolve`.

    Raises:
        ConfigurationError: Something that is needed is missing, or a file is wrong.
    """
    from conflict.checking.check import check_configuration
    from conflict.checking.read_logs import read_logs
    from conflict.rules.server_variables import parse_release

    release = None if server_version is None else parse_release(server_version)
    additions = additions_of(schema, ndb_replication, conflict_fn, primary)
    loaded = checked_run(
        run, additions, variables, config_ini, AskedServers(words_of(server), defaults_file), progress=progress
    )
    configuration = _changed(loaded, function).configuration
    return check_configuration(configuration, DeploymentPolicy(policy), release, read_logs(configuration, progress))


def checked_run(
    run: RunFile | Path | str | None,
    additions: Additions,
    variables: Mapping[str, Path | str] | None = None,
    config_ini: Mapping[str, Path | str] | None = None,
    servers: AskedServers | None = None,
    say: Callable[[str], None] = lambda sentence: None,
    progress: StageProgress = no_progress,
) -> RunFile:
    """
    Return the run that is checked: that of a run file, of running servers, or one of what is given in their place.

    Args:
        run: The run file, if one is given.
        additions: What is given in its place: definitions, rows, functions.
        variables: By cluster, files with variables.
        config_ini: By cluster, files of management nodes.
        servers: The running servers.
        say: Called with sentences about these.
        progress: As for `resolve`.

    Raises:
        ConfigurationError: Something is given beside a run file or servers, or a file or a server is wrong.
    """
    from conflict.checking.draft import draft_check
    from conflict.config.additions import Additions
    from conflict.config.run_file import RunFile, load_run_file

    files = [{name: Path(file) for name, file in (given or {}).items()} for given in (variables, config_ini)]
    if servers is not None and servers.given:
        if run is not None or files[0] or additions != Additions():
            message = (
                "--server asks for all that is checked; leave out the run file, --schema, --ndb-replication, "
                "--conflict-fn, --primary and --variables; init --server writes files, to be changed and checked"
            )
            raise ConfigurationError(message)
        return _run_of_servers(servers, files[1], say, progress)
    if run is None:
        return draft_check(additions, *files)
    loaded = run if isinstance(run, RunFile) else load_run_file(Path(run).absolute(), binlogs=False)
    if additions != Additions() or any(files):
        message = f"{loaded.path} is a run file; put the other arguments into it"
        raise ConfigurationError(message)
    return loaded


def _run_of_servers(
    servers: AskedServers, config_ini: Mapping[str, Path], say: Callable[[str], None], progress: StageProgress
) -> RunFile:
    from conflict.config.servers.saved import read_servers

    found = read_servers(servers.given, path_of(servers.defaults_file), progress, twice=True)
    for sentence in found.sentences:
        say(sentence)
    return found.run(config_ini)


def _changed(
    run: RunFile, function: Given | str | Sequence[Given] | None = None, *, inexact_keys: bool = False
) -> RunFile:
    """Return a run with resolvers of one's own, and with keys that are taken as equal by their bytes."""
    from conflict.resolvers.user_policies import load_functions, reference_of

    configuration = run.configuration
    given: list[Given]
    if function is None or isinstance(function, str):
        given = [*words_of(function)]
    else:
        given = [*function] if isinstance(function, Sequence) else [function]
    functions = load_functions(given, configuration.functions)
    configuration = attrs.evolve(configuration, functions=functions)
    configuration = configuration.with_inexact_keys() if inexact_keys else configuration
    return attrs.evolve(run, configuration=configuration, resolvers=tuple(map(reference_of, given)))


def additions_of(
    schema: Path | str | None, ndb_replication: Path | str | None, conflict_fn: ConflictFns | None, primary: str | None
) -> Additions:
    """Return what a user adds to bare binlogs; imported when it is needed."""
    from conflict.config import additions

    return additions.additions_of(schema, ndb_replication, conflict_fn, primary)


def run_of(
    sources: Iterable[Source],
    additions: Additions,
    found: Callable[[Draft], None] = lambda draft: None,
    progress: StageProgress = no_progress,
) -> RunFile:
    """
    Return the run of a run file, or of bare binlogs and what is said besides.

    Args:
        sources: What is given.
        additions: What is said besides.
        found: Called with what is found, if they are bare.
        progress: Called with the name of a stage, what is done, and what there is to do.

    Raises:
        ConfigurationError: Nothing is given, or something beside a run file.
    """
    from conflict.config.additions import Additions
    from conflict.config.run_file import RunFile, is_run_file, load_run_file

    given = [each for source in sources for each in ([source] if isinstance(source, RunFile) else places_of(source))]
    if not given:
        message = "give a run file, or the binlogs of both clusters"
        raise ConfigurationError(message)
    runs = [source for source in given if isinstance(source, RunFile)]
    paths = [source for source in given if not isinstance(source, RunFile)]
    bare = additions != Additions() and [each for each in paths if each.suffix != ".toml"]
    if len(paths) == 1 and is_run_file(paths[0]) and not (runs or bare):
        runs = [load_run_file(paths.pop().absolute())]  # tasks of Spark run elsewhere
    if not runs:
        draft = draft_of(paths, additions, Path("run.toml"), progress)
        found(draft)
        return draft.run
    if len(runs) > 1 or paths or additions != Additions():
        message = f"{runs[0].path} is a run file; put the other arguments into it"
        raise ConfigurationError(message)
    return runs[0]


def draft_of(binlogs: Sequence[Path], additions: Additions, path: Path, progress: StageProgress = no_progress) -> Draft:
    """
    Draft a run file; if nothing is said of conflict functions, those that the binlogs show are found by trial.

    Args:
        binlogs: Folders, index files, patterns or files with the binlogs of two clusters.
        additions: What is said besides.
        path: Where the run file is to stand. Nothing is written.
        progress: Called with the name of a stage, what is done, and what there is to do.

    Raises:
        ConfigurationError: The binlogs are not those of two clusters, or what is added does not fit them.
    """
    from conflict.discovery.draft import draft_run
    from conflict.whatif.in_force.found import find_functions

    return draft_run(binlogs, additions, path, lambda configuration: find_functions(configuration, progress))
