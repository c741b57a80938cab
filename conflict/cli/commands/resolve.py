"""
`ndb-conflict resolve`: binlogs of two clusters to a result.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

import conflict.api.runs
from conflict.cli.common import UnpackedOption, allow_unpacked, console, progress_bars
from conflict.cli.from_functions import Call, command_of
from conflict.cli.refusals import ExitCode, exit_with, messages
from conflict.cli.sources import load_run_of

if TYPE_CHECKING:
    from conflict.results.run_document import RunDocument


EXAMPLES = 2  # rejected operations that the summary explains


@command_of(conflict.api.runs.resolve)
def resolve(
    call: Call[tuple[RunDocument, str]],
    context: typer.Context,
    out: Annotated[Path, typer.Option(help="Folder for the result.")] = Path("result"),
    unpacked_mib: UnpackedOption = None,
) -> None:
    """
    Resolve the binlogs of two clusters: find what was applied, what was rejected and why, and the final rows.

    Example: ndb-conflict resolve run.toml --out result

    Example: ndb-conflict resolve london/ paris/ --conflict-fn 'shop.*=NDB$MAX(v)'

    To fetch: mysqlbinlog --raw -R --stop-never -h db1 -p -r a/ binlog.000001
    """
    from conflict.cli.views.next_steps import print_next

    allow_unpacked(unpacked_mib)
    load_run_of(call)
    shown = show_resolved(call)
    print_next(messages, out, *shown, context)
    exit_with(code_of(shown[0]))


def show_resolved(
    call: Callable[..., tuple[RunDocument, str]],
) -> tuple[RunDocument, list[dict[str, Any]]]:
    """
    Resolve a run and print its summary; return the result, and the rejected operations that were printed.

    Args:
        call: What resolves it, but for its progress.
    """
    from conflict.results.files import rejected_examples
    from conflict.results.result import read_result
    from conflict.results.telling import tell_examples
    from conflict.telling.terminal import print_telling

    gc.freeze()  # what imports made stays, and need not be looked at again and again
    with progress_bars(time_left=True) as progress:
        resolved, out = call(progress=progress)
    if resolved.engine:
        messages.print(
            f"The {resolved.engine} engine resolved this: {resolved.engine_reason}.", highlight=False, markup=False
        )
    result = read_result(out)
    examples = rejected_examples(result.folder, result.clusters, EXAMPLES)
    telling = tell_examples(result.run, examples)
    print_telling(console, telling)
    if telling.alarms and telling.tables:
        console.print(f"[red]{escape(telling.alarms[0].partition(':')[0])}:[/red] see the first lines.")
    console.print(f"Results are in [bold]{escape(out)}[/bold].", soft_wrap=True)
    return resolved, examples


def code_of(resolved: RunDocument) -> ExitCode:
    """Return how a command ends with a result."""
    if resolved.errors or resolved.unrelated:
        return ExitCode.CUT_SHORT
    if resolved.contradicted:
        return ExitCode.CONTRADICTED
    if resolved.run.is_lossy:
        return ExitCode.CUT_SHORT
    skipped = resolved.summary.schedule.skipped or resolved.passed_over
    warned = skipped or resolved.remarks or resolved.unlogged or resolved.functions_open
    return ExitCode.WARNED if warned else ExitCode.DONE
