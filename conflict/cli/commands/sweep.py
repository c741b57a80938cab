"""
`ndb-conflict sweep`: a grid of simulations, and where a condition ceases to hold.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import conflict.api.models
from conflict.cli.common import console, progress_bars
from conflict.cli.from_functions import Call, command_of
from conflict.cli.refusals import ExitCode, exit_with

if TYPE_CHECKING:
    from conflict.whatif.sweeping.swept import Sweep


@command_of(conflict.api.models.sweep)
def sweep(
    call: Call[Sweep],
    grid: Annotated[Path, typer.Argument(metavar="SWEEP_FILE", help="The grid (TOML).", exists=True, dir_okay=False)],
    out: Annotated[Path, typer.Option(help="Folder of the sweep; its finished runs are not simulated again.")],
    model: Annotated[
        Path | None, typer.Option(help="The model, in place of that of the file.", exists=True, dir_okay=False)
    ] = None,
) -> None:
    """
    Simulate a grid of models: functions, formats, latency, rates, outages, seeds. A stopped sweep continues.

    Example: ndb-conflict sweep sweep.toml --out build/sweep
    """
    from conflict.telling.shown_text import counted
    from conflict.telling.terminal import print_telling

    call.options |= {"grid": grid, "out": out, "model": model}
    with progress_bars(time_left=True) as progress:
        swept = call(progress=progress)
    print_telling(console, swept.telling())
    there = swept.needed - swept.new
    runs = counted(swept.needed, "run")
    console.print(f"{runs}; {there:,} from an earlier sweep, {swept.new:,} new.", highlight=False)
    console.print(f"Results are in {out}.", highlight=False, markup=False, soft_wrap=True)
    exit_with(ExitCode.DONE if swept.settled else ExitCode.WARNED)
