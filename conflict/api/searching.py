"""
What Python users and commands call to search small scopes: the shortest schedule that ends badly, and the zoo of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from conflict.config.arguments import DeploymentPolicy, StageProgress, Typed, WhatIfEngine, no_progress, typed
from conflict.config.option_values import path_of, words_of
from conflict.errors import ConfigurationError
from conflict.telling.shown_text import listed
from conflict.whatif.diverging.scope import LARGEST, Goal, Values

if TYPE_CHECKING:
    from conflict.history.grid.folder import Folder
    from conflict.history.tasks import Runner
    from conflict.resolvers.user_policies import Given
    from conflict.whatif.diverging.divergence import Divergence
    from conflict.whatif.diverging.search import Found, Mapper
    from conflict.whatif.zoo.zoo import Zoo

Named = TypeVar("Named", bound=Enum)


@typed(
    transactions=Typed(at_least=1),
    rows=Typed(at_least=1, at_most=LARGEST),
    columns=Typed(at_least=1, at_most=LARGEST),
    epochs=Typed(at_least=1),
    outages=Typed(at_least=0),
    limit=Typed(at_least=1),
)
def diverge(
    *,
    function: Given | str | None = None,
    binlog_type: str | int = "7",
    transactions: int = 3,
    rows: int = 1,
    columns: int = 1,
    epochs: int | None = None,
    outages: int = 0,
    values: Values | str = "version",
    find: Goal | str | Sequence[Goal | str] | None = None,
    limit: int | None = None,
    spark: bool = False,
    recording: Path | str | None = None,
    policy: DeploymentPolicy | str = "manual",
    progress: StageProgress = no_progress,
) -> Divergence:
    """
    Search everything that two clusters can do in a small scope for the shortest way to differ; as the command.

    Args:
        function: A conflict_fn, such as NDB$MAX(x), or a resolver (docs/resolvers.md); none without it.
        binlog_type: A binlog_type, by number or name.
        transactions: How many transactions users commit at most.
        rows: How many rows there are at most.
        columns: Data columns; an update sets one of them.
        epochs: In how many epochs of each cluster users commit at most.
        outages: How often an applier restarts from the first epoch.
        values: What updates set the resolve column to: ``version``, ``clock`` or ``unset``.
        find: What to look for: ``difference``, ``lost``, ``stop``, ``returns`` or ``counters``, or several of them; by
            default all.
        limit: After how many states to give up.
        spark: Spread wide levels of the search over Spark.
        recording: New folder for the schedules, as recordings.
        policy: As for `resolve`.
        progress: As for `resolve`.

    Raises:
        ConfigurationError: A bound is out of range, a server refuses the table, or `recording` is there already.
    """
    from conflict.history.grid.whole_files import refuse_unwritable
    from conflict.resolvers.user_policies import asked_function
    from conflict.rules.functions import FUNCTIONS
    from conflict.whatif.diverging.divergence import Divergence
    from conflict.whatif.diverging.recording import write_recordings
    from conflict.whatif.diverging.scope import Scope
    from conflict.whatif.diverging.search import search
    from ndb_formats.rules.update_format import parse_binlog_type

    target = path_of(recording)
    if target is not None and target.exists():
        message = f"{target} exists already; give a new folder"
        raise ConfigurationError(message)
    if target is not None:
        refuse_unwritable(target)
    number = parse_binlog_type(binlog_type)
    asked, functions = (None, FUNCTIONS) if function is None else asked_function(function)
    scope = Scope(asked, number, transactions, rows, columns, epochs, outages, Values(values), functions)
    scope.check(DeploymentPolicy(policy))
    if target is not None and scope.parsed is not None and scope.parsed.spec not in FUNCTIONS:
        message = f"no server runs {scope.parsed.spec.name}, so there is no recording of it; leave out --recording"
        raise ConfigurationError(message)
    mapper = _spark() if spark else None
    found: list[Found] = []
    for goal in dict.fromkeys(map(Goal, words_of(find)) if find else Goal):

        def show(depth: int, done: int, total: int, goal: Goal = goal) -> None:
            progress(f"{goal.value}, step {depth}", done, total)  # called in this turn alone

        found.append(search(scope, goal, mapper, show, limit))
    divergence = Divergence(tuple(found))
    if target is not None and divergence.found:
        write_recordings(found, target)
    return divergence


def _spark() -> Mapper:
    from functools import partial

    from conflict.spark.session import spark_session
    from conflict.spark.spark_runner import spark_runner

    return partial(spark_runner(spark_session()), progress=lambda done, total: None)


@typed(
    function=Typed("FUNCTION"),
    formats=Typed(in_one=True),
    find=Typed(in_one=True),
    values=Typed(in_one=True),
    transactions=Typed(at_least=1),
    rows=Typed(at_least=1, at_most=LARGEST),
    columns=Typed(at_least=1, at_most=LARGEST),
    outages=Typed(at_least=0),
    workers=Typed(at_least=1),
)
def zoo(
    *,
    function: str | Given | Sequence[str | Given] | None = None,
    formats: str | int | Sequence[int] = (),
    find: Goal | str | Sequence[Goal | str] = (),
    values: Values | str | Sequence[Values | str] = ("version", "clock"),
    transactions: int = 3,
    rows: int = 1,
    columns: int = 2,
    outages: int = 0,
    out: Path | str | None = None,
    recordings: Path | str | None = None,
    engine: WhatIfEngine | str = "auto",
    workers: int | None = None,
    progress: StageProgress = no_progress,
) -> Zoo:
    """
    Search for the shortest schedule of every resolver and format that shows each anomaly; as the command ``zoo``.

    Args:
        function: Conflict functions as in conflict_fn, such as ``NDB$MAX(x)``, resolvers (docs/resolvers.md), or
            ``none``; by default, all functions of servers and none.
        formats: The binlog types: ``7,8``; by default all that differ.
        find: The anomalies: ``difference``, ``lost``, ``stop``, ``returns``, ``counters``; by default all.
        values: What updates set the column to that a function compares: ``version``, one more than they find;
            ``clock``, more than all before; ``unset``, nothing.
        transactions: How many transactions users commit at most, on both clusters together.
        rows: How many rows there are at most.
        columns: Data columns; an update sets one of them.
        outages: How often an applier restarts from the first epoch at most.
        out: Folder for the page, the pictures, and a test of each cell; searches that are finished there are not made
            again.
        recordings: New folder for the schedules, as recordings.
        engine: Where searches run: ``local``, ``spark``, or ``auto``, which is spark if the environment asks for it.
        workers: Processes of engine local; one per core by default.
        progress: As for `resolve`.

    Returns:
        A cell per resolver, format and anomaly.

    Raises:
        ConfigurationError: A function, a format, an anomaly or a bound is not known, or a folder cannot be used.
        HistoryError: A file of an earlier search is damaged.
    """
    from conflict.history.grid.folder import Folder
    from conflict.history.grid.whole_files import only_writer
    from conflict.whatif.comparing.pairs import parse_formats
    from conflict.whatif.zoo.hunt import hunt
    from conflict.whatif.zoo.pairs import FORMATS, Bounds, all_functions, pairs_of
    from conflict.whatif.zoo.written import check_folders, write_recordings, write_zoo
    from conflict.whatif.zoo.zoo import zoo_of

    functions = list(function) if isinstance(function, Sequence) and not isinstance(function, str) else [function]
    functions = [each for each in functions if each is not None] or list(all_functions())
    types = parse_formats(",".join(words_of(formats))) if formats else FORMATS
    goals = [_named(Goal, each, "anomaly") for each in dict.fromkeys(words_of(find))] or list(Goal)
    written = [_named(Values, each, "kind of values") for each in dict.fromkeys(words_of(values))]
    bounds = Bounds(transactions, rows, columns, outages)
    pairs = list(pairs_of(dict.fromkeys(functions), types, written, bounds))
    target, cases = path_of(out), path_of(recordings)
    check_folders(target, cases)
    folder = None if target is None else Folder(str(target.resolve()))
    with nullcontext() if folder is None else only_writer(folder):
        caught = hunt(pairs, goals, folder, _runner(engine, workers, folder, progress), progress)
        found = zoo_of(pairs, goals, caught, bounds)
        if target is not None:
            write_zoo(found, target)
    if cases is not None:
        write_recordings(found, cases)
    return found


def _named(kind: type[Named], text: str, what: str) -> Named:
    """Return what a text names."""
    try:
        return kind(text)
    except ValueError as error:
        message = f"{text} is no {what}; give {listed([each.value for each in kind], 'or')}"
        raise ConfigurationError(message) from error


def _runner(engine: WhatIfEngine | str, workers: int | None, folder: Folder | None, progress: StageProgress) -> Runner:
    from conflict.history.tasks import process_runner
    from conflict.runs.engine_choice import spark_asked_for

    if engine not in tuple(WhatIfEngine):
        message = f"engine {engine} does not search; use {listed([*WhatIfEngine], 'or')}"
        raise ConfigurationError(message)
    if engine == "local" or (engine == "auto" and not spark_asked_for()):
        return process_runner(workers)
    if folder is not None:
        from conflict.runs.spark_workers import spark_workers

        return spark_workers(folder, progress)
    from conflict.spark.session import spark_session
    from conflict.spark.spark_runner import spark_runner

    return spark_runner(spark_session())
