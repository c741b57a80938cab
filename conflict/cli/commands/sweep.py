"""
`ndb-conflict sweep`: a grid of simulations, and where a condition ceases to hold.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from conflict.cli.common import console, progress_bars
from conflict.cli.refusals import ExitCode, exit_with
from conflict.errors import ConfigurationError

if TYPE_CHECKING:
    from conflict.config.arguments import StageProgress
    from conflict.history.grid.folder import Folder
    from conflict.runs.runner import Runner

__all__ = ["sweep"]


class SweepEngine(StrEnum):
    """Where simulations run: in processes of this machine, or as tasks of Spark."""

    AUTO = "auto"
    LOCAL = "local"
    SPARK = "spark"


def sweep(
    sweep_file: Annotated[Path, typer.Argument(help="The grid (TOML).", exists=True, dir_okay=False)],
    out: Annotated[Path, typer.Option(help="Folder of the sweep; its finished runs are not simulated again.")],
    model: Annotated[
        Path | None, typer.Option(help="The model, in place of that of the file.", exists=True, dir_okay=False)
    ] = None,
    find: Annotated[
        str | None, typer.Option(metavar="CONDITION", help="Find the border of this condition: 'lost_updates == 0'.")
    ] = None,
    over: Annotated[str | None, typer.Option(metavar="AXIS", help="Axis of the search, such as latency_ms.")] = None,
    within: Annotated[float | None, typer.Option(help="Distance to the border that is near enough.", min=0)] = None,
    engine: Annotated[
        SweepEngine, typer.Option(help="The engine; auto is spark if the environment asks for it.")
    ] = SweepEngine.AUTO,
    workers: Annotated[
        int | None, typer.Option(help="Processes of engine local; one per core by default.", min=1)
    ] = None,
) -> None:
    """
    Simulate a grid of models: functions, formats, latency, rates, outages, seeds. A stopped sweep continues.

    Example: ndb-conflict sweep sweep.toml --out build/sweep
    """
    from conflict.history.grid.folder import Folder
    from conflict.history.grid.whole_files import only_writer
    from conflict.reporting.kinds.sweep import tell_sweep
    from conflict.reporting.kinds.sweep_result import read_sweep
    from conflict.shown_text import counted
    from conflict.telling.terminal import print_telling
    from conflict.whatif.sweeping.border import check_axis, parse_condition
    from conflict.whatif.sweeping.sweep import Search, check_folder, run_sweep
    from conflict.whatif.sweeping.sweep_file import load_sweep

    if (find is None) != (over is None):
        message = "--find and --over go together: a condition, and the axis along which its border is looked for"
        raise ConfigurationError(message)
    if within is not None and find is None:
        message = "--within is the distance to a border; give --find and --over too"
        raise ConfigurationError(message)
    loaded = load_sweep(sweep_file, model)
    search = None
    if find is not None and over is not None:
        check_axis(loaded, over, within)
        search = Search(parse_condition(find), over, within)
    folder = Folder(str(out.resolve()))  # its lock is beside the folder itself, not beside a link to it
    check_folder(folder)
    with only_writer(folder), progress_bars(time_left=True) as progress:
        swept = run_sweep(loaded, folder, _runner(engine, workers, folder, progress), search, progress)
    print_telling(console, tell_sweep(read_sweep(folder)))
    there = swept.runs - swept.new
    console.print(f"{counted(swept.runs, 'run')}; {there:,} from an earlier sweep, {swept.new:,} new.", highlight=False)
    console.print(f"Results are in {out}.", highlight=False, markup=False, soft_wrap=True)
    exit_with(ExitCode.WARNED if any(swept.results["unsettled_changes"].to_pylist()) else ExitCode.DONE)


def _runner(engine: SweepEngine, workers: int | None, folder: Folder, progress: StageProgress) -> Runner:
    from conflict.pipeline import spark_workers
    from conflict.runs.engine_choice import spark_asked_for
    from conflict.runs.runner import process_runner

    if engine is SweepEngine.SPARK or (engine is SweepEngine.AUTO and spark_asked_for()):
        return spark_workers(folder, progress)
    return process_runner(workers)
