"""
`ndb-conflict sweep`: a grid of simulations, and where a condition ceases to hold.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import conflict.api.models
from conflict.cli.common import console, progress_bars
from conflict.cli.from_functions import Call, command_of
from conflict.cli.refusals import ExitCode, exit_with

if TYPE_CHECKING:
    from conflict.whatif.sweeping.sweep import Swept


@command_of(conflict.api.models.sweep)
def sweep(call: Call[Swept], out: Path) -> None:
    """
    Simulate a grid of models: functions, formats, latency, rates, outages, seeds. A stopped sweep continues.

    Example: ndb-conflict sweep sweep.toml --out build/sweep
    """
    from conflict.history.grid.folder import Folder
    from conflict.telling.shown_text import counted
    from conflict.telling.terminal import print_telling
    from conflict.whatif.sweeping.result import read_sweep
    from conflict.whatif.sweeping.telling import tell_sweep

    with progress_bars(time_left=True) as progress:
        swept = call(progress=progress)
    print_telling(console, tell_sweep(read_sweep(Folder(str(out.resolve())))))
    there = swept.runs - swept.new
    console.print(f"{counted(swept.runs, 'run')}; {there:,} from an earlier sweep, {swept.new:,} new.", highlight=False)
    console.print(f"Results are in {out}.", highlight=False, markup=False, soft_wrap=True)
    exit_with(ExitCode.WARNED if any(swept.results["unsettled_changes"].to_pylist()) else ExitCode.DONE)
