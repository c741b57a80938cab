"""
`ndb-conflict repair`: SQL that makes rows equal that differ, and applies lost changes again.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import conflict.api.operations
from conflict.cli.common import console, progress_bars
from conflict.cli.from_functions import Call, command_of
from conflict.cli.outputs import JsonOption, write_json
from conflict.decoding.staging import check_output, refuse_same_output

if TYPE_CHECKING:
    from conflict.operating.repairing.plan import Plan


_FIRST = 10
_RULES = typer.Option(
    "--rule",
    metavar="TABLE=WINNER",
    help="Which row stands: 'shop.*=london', 'shop.orders=newest', 'shop.stock=greatest(version)', '*=review'; or a "
    "file of rules, rules.toml. The first that is for a row decides. Can be repeated.",
)


@command_of(conflict.api.operations.repair)
def repair(
    call: Call[Plan],
    result: Path,
    out: Path | None,
    force: bool,
    rules: Annotated[list[str] | None, _RULES] = None,  # noqa: ARG001  # the call has them
    top: Annotated[int, typer.Option(min=1, help="How many rows and changes to review to show.")] = _FIRST,
    json_file: JsonOption = None,
) -> None:
    """
    Plan how rows become equal and lost changes are applied again: SQL per cluster, proved. Runs nothing.

    Example: ndb-conflict repair build/result --rule '*=newest' --out build/repair
    """
    from conflict.operating.repairing.plan import tell_plan
    from conflict.telling.terminal import print_telling

    refuse_same_output(json_file, out)
    check_output(json_file, [result], force=force)
    with progress_bars() as progress:
        plan = call(progress=progress)
    print_telling(console, tell_plan(plan, top, "" if out is None else str(out)))
    write_json(json_file, plan.document())
