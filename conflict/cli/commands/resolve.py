"""
`ndb-conflict resolve`: binlogs of two clusters to a result.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

import conflict.api.runs
from conflict.cli.common import UnpackedOption, allow_unpacked, console, progress_bars, say
from conflict.cli.from_functions import Call, command_of
from conflict.cli.refusals import ExitCode, exit_with, messages
from conflict.cli.sources import load_run_of
from conflict.decoding.staging import check_output

if TYPE_CHECKING:
    from conflict.results.run_document import RunDocument


EXAMPLES = 2  # rejected operations that the summary explains


@command_of(conflict.api.runs.resolve)
def resolve(
    call: Call[tuple[RunDocument, str]],
    context: typer.Context,
    out: Annotated[Path, typer.Option(help="Folder for the result.")] = Path("result"),
    unpacked_mib: UnpackedOption = None,
    metrics: Annotated[
        Path | None,
        typer.Option(help="Also write figures to this file, for Prometheus; it replaces one.", show_default=False),
    ] = None,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(metavar="CONDITION", help="Exit with 5 if this holds, such as 'lost > 0'. Can be repeated."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors and conditions that hold, and no more.")] = False,
) -> None:
    """
    Resolve the binlogs of two clusters: find what was applied, what was rejected and why, and the final rows.

    Example: ndb-conflict resolve run.toml --out result

    Example: ndb-conflict resolve london/ paris/ --conflict-fn 'shop.*=NDB$MAX(v)'

    Example: ndb-conflict resolve run.toml --out result --fail-if 'lost > 0'

    To fetch: mysqlbinlog --raw -R --stop-never -h db1 -p -r a/ binlog.000001
    """
    from conflict.cli.views.next_steps import print_next
    from conflict.operating.alerting.conditions import Condition
    from conflict.results.result import read_result

    began, conditions = time.monotonic(), [Condition.parse(each) for each in fail_if or ()]
    check_output(metrics, [each for each in call.sources if isinstance(each, Path)], force=True)
    allow_unpacked(unpacked_mib)
    with _silent() if quiet else nullcontext():
        load_run_of(call)
        resolved, examples = show_resolved(call)
        print_next(messages, out, resolved, examples, context)
    place = str(out)
    if metrics is not None:
        from conflict.operating.alerting.metrics import Timing, metrics_text, write_metrics

        timing = Timing(time.time(), time.monotonic() - began)
        write_metrics(metrics_text(read_result(place), timing), metrics)
    held = [said for each in conditions if (said := each.holds(read_result(place)))]
    for said in held:
        say(said)
    code = code_of(resolved)
    exit_with(ExitCode.CONDITION_HOLDS if held and code in (ExitCode.DONE, ExitCode.WARNED) else code)


@contextmanager
def _silent() -> Iterator[None]:
    """Print nothing in the block."""
    before = [(each, each.quiet) for each in (console, messages)]
    for each, _ in before:
        each.quiet = True
    try:
        yield
    finally:
        for each, quiet in before:
            each.quiet = quiet


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
