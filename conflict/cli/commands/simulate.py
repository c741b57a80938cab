"""
`ndb-conflict simulate`: what becomes of a workload on two clusters or more, before anyone deploys it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import attrs
import typer

from conflict.cli.common import console, progress_bars
from conflict.cli.outputs import ForceOption, JsonOption, check_output, refuse_same_output, write_json
from conflict.cli.refusals import ExitCode, exit_with

if TYPE_CHECKING:
    from conflict.whatif.simulating.run import Simulated

__all__ = ["check_folders", "keep_run", "simulate"]


def simulate(
    model_file: Annotated[Path, typer.Argument(help="What to simulate (TOML).", exists=True, dir_okay=False)],
    seeds: Annotated[int, typer.Option(help="How many runs, each with a seed of its own.", min=1)] = 1,
    seed: Annotated[
        int | None, typer.Option(help="The first seed, in place of the file's.", min=0, max=2**31 - 1)
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the result of the first run, as of resolve; its binlogs go to OUT-binlogs, unless "
            "--write-binlogs says where."
        ),
    ] = None,
    write_binlogs: Annotated[
        Path | None,
        typer.Option(help="Folder for the binlogs of all clusters in the first run, with a run file and the schedule."),
    ] = None,
    json_file: JsonOption = None,
    force: ForceOption = False,
) -> None:
    """
    Simulate clusters that replicate to each other: conflicts, lost updates, stale rows, the conflict window.

    Example: ndb-conflict simulate model.toml --seeds 20

    Example: ndb-conflict simulate model.toml --out result --write-binlogs binlogs
    """
    from conflict.reporting.kinds.simulate import simulation_document, tell_simulation
    from conflict.telling.terminal import print_telling
    from conflict.whatif.simulating.model_file import load_model, model_document
    from conflict.whatif.simulating.report import run_seeds

    check_output(json_file, [model_file], force=force)
    binlogs = write_binlogs or (None if out is None else Path(f"{out}-binlogs"))
    refuse_same_output(out, binlogs, json_file)
    check_folders(out, binlogs, model_file, force=force)
    model = load_model(model_file)
    if seed is not None:
        model = attrs.evolve(model, seed=seed)
    with progress_bars() as progress:
        contradicted = False

        def keep(run: Simulated) -> None:
            nonlocal contradicted
            contradicted = keep_run(run, out, binlogs, progress, force=force)

        runs = run_seeds(model, seeds, progress, keep)
    document = {**simulation_document(model, runs), "model": model_document(model_file)}
    print_telling(console, tell_simulation(document))
    _print_kept(model.seed, binlogs, out)
    write_json(json_file, document)
    settled = all(run["quiet_at_the_end"] for run in runs)
    exit_with(ExitCode.CONTRADICTED if contradicted else ExitCode.DONE if settled else ExitCode.WARNED)


def check_folders(out: Path | None, binlogs: Path | None, model_file: Path, *, force: bool) -> None:
    """Make sure, before the work, that both folders can be written."""
    from conflict.history.grid.folder import Folder
    from conflict.results.files import check_target
    from conflict.whatif.simulating.run_folder import check_run_folder

    if binlogs is not None:
        check_run_folder(binlogs, replace=force)
    if out is not None and binlogs is not None:
        check_target(Folder(str(out.absolute())), [model_file, binlogs], replace=force)


def keep_run(
    run: Simulated, out: Path | None, binlogs: Path | None, progress: Callable[[str, int, int], None], *, force: bool
) -> bool:
    """Write the binlogs of a run, and their result; return whether the one contradicts the other."""
    import conflict.pipeline
    from conflict.checking.deployment import DeploymentPolicy
    from conflict.config.run_file import load_run_file
    from conflict.runs.runner import ResolveOptions
    from conflict.whatif.simulating.run_folder import RUN_FILE, run_folder, write_run

    if binlogs is None:
        return False
    with run_folder(binlogs, replace=force) as folder:
        write_run(run, folder, lambda done, total: progress("writing binlogs", done, total))
    if out is None:
        return False
    made = load_run_file(binlogs / RUN_FILE)
    # A simulation is of what the servers do, whatever the manual advises.
    options = ResolveOptions(replace=force)
    done = conflict.pipeline.resolve(
        made, str(out), engine="local", policy=DeploymentPolicy.NEEDS, options=options, progress=progress
    )
    return done.contradicted


def _print_kept(seed: int, binlogs: Path | None, out: Path | None) -> None:
    """Print where binlogs and result of the first run are, if they were asked for."""
    if binlogs is not None:
        text = f"Binlogs of seed {seed} and their run file are in {binlogs}."
        console.print(text, highlight=False, markup=False)
    if out is not None:
        text = f"Its result is in {out}; `ndb-conflict conflicts` and `ndb-conflict explain` take it."
        console.print(text, highlight=False, markup=False)
