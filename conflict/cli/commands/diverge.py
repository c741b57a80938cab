"""
`ndb-conflict diverge`: the shortest schedule after which two clusters differ, or none in a small scope.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

import conflict.api.runs
from conflict.cli.common import console, progress_bars
from conflict.cli.from_functions import options_of
from conflict.cli.outputs import JsonOption, write_json
from conflict.cli.refusals import ExitCode, exit_with
from conflict.config.arguments import DeploymentPolicy
from conflict.decoding.staging import check_output, refuse_same_output
from conflict.errors import ConfigurationError
from conflict.whatif.diverging.scope import Goal, Values

if TYPE_CHECKING:
    from conflict.whatif.diverging.search import Found, Mapper


@options_of(conflict.api.runs.resolve)
def diverge(
    *,
    function: Annotated[str | None, typer.Option(help="A conflict_fn, such as NDB$MAX(x); none without it.")] = None,
    binlog_type: Annotated[str, typer.Option(help="A binlog_type, by number or name.")] = "7",
    transactions: Annotated[int, typer.Option(help="How many transactions users commit at most.", min=1)] = 3,
    rows: Annotated[int, typer.Option(help="How many rows there are at most.", min=1, max=3)] = 1,
    columns: Annotated[int, typer.Option(help="Data columns; an update sets one of them.", min=1, max=3)] = 1,
    epochs: Annotated[
        int | None, typer.Option(help="In how many epochs of each cluster users commit at most.", min=1)
    ] = None,
    outages: Annotated[int, typer.Option(help="How often an applier restarts from the first epoch.", min=0)] = 0,
    values: Annotated[Values, typer.Option(help="What updates set the resolve column to.")] = Values.VERSION,
    find: Annotated[list[Goal] | None, typer.Option(help="What to look for; can be repeated. All by default.")] = None,
    limit: Annotated[int | None, typer.Option(help="After how many states to give up.", min=1)] = None,
    spark: Annotated[bool, typer.Option("--spark", help="Spread wide levels of the search over Spark.")] = False,
    recording: Annotated[Path | None, typer.Option(help="New folder for the schedules, as recordings.")] = None,
    json_file: JsonOption = None,
    policy: DeploymentPolicy,
    force: bool,
) -> None:
    """
    Search everything that two clusters can do in a small scope for the shortest way to differ.

    Example: ndb-conflict diverge --function 'NDB$EPOCH()' --find difference
    """
    from conflict.history.grid.whole_files import refuse_unwritable
    from conflict.telling.terminal import print_telling
    from conflict.whatif.diverging.recording import write_recordings
    from conflict.whatif.diverging.scope import Scope
    from conflict.whatif.diverging.search import search
    from conflict.whatif.diverging.telling import found_json, tell_searches
    from ndb_formats.rules.update_format import parse_binlog_type

    check_output(json_file, [], force=force)
    refuse_same_output(recording, json_file)
    if recording is not None and recording.exists():
        message = f"{recording} exists already; give a new folder"
        raise ConfigurationError(message)
    if recording is not None:
        refuse_unwritable(recording)
    number = parse_binlog_type(binlog_type)
    scope = Scope(function, number, transactions, rows, columns, epochs, outages, values)
    scope.check(policy)
    mapper = _spark() if spark else None
    found: list[Found] = []
    documents: list[dict[str, Any]] = []
    for goal in dict.fromkeys(find or Goal):
        with progress_bars() as progress:

            def show(depth: int, done: int, total: int, goal: Goal = goal) -> None:
                progress(f"{goal.value}, step {depth}", done, total)  # called in this turn alone

            found.append(search(scope, goal, mapper, show, limit))
        documents.append(found_json(found[-1]))
        print_telling(console, tell_searches(documents[-1:]))
    write_json(json_file, {"searches": documents})
    if recording is not None and any(each.steps is not None for each in found):
        write_recordings(found, recording)
    elif recording is not None:
        console.print(f"No schedule was found, so there is no recording in {escape(str(recording))}.", soft_wrap=True)
    exit_with(_code(found))


def _spark() -> Mapper:
    from functools import partial

    from conflict.spark.session import spark_session
    from conflict.spark.spark_runner import spark_runner

    return partial(spark_runner(spark_session()), progress=lambda done, total: None)


def _code(found: list[Found]) -> ExitCode:
    if any(each.steps is not None for each in found):
        return ExitCode.CONTRADICTED
    return ExitCode.DONE if all(each.complete for each in found) else ExitCode.WARNED
