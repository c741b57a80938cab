"""
What Python users and commands call to search small scopes: the shortest schedule after which two clusters differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from conflict.config.arguments import DeploymentPolicy, StageProgress, Typed, no_progress, typed
from conflict.config.option_values import path_of, words_of
from conflict.errors import ConfigurationError
from conflict.whatif.diverging.scope import LARGEST, Goal, Values

if TYPE_CHECKING:
    from conflict.resolvers.user_policies import Given
    from conflict.whatif.diverging.divergence import Divergence
    from conflict.whatif.diverging.search import Found, Mapper


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
        find: What to look for: ``difference``, ``lost`` or ``stop``, or several in a list. All by default.
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
