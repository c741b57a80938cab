"""
`ndb-conflict simulate`: what becomes of a workload on two clusters, before anyone deploys it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import attrs
import typer

from conflict.cli.common import console, progress_bars
from conflict.cli.outputs import ForceOption, JsonOption, check_output, write_json

__all__ = ["simulate"]


def simulate(
    model_file: Annotated[Path, typer.Argument(help="What to simulate (TOML).", exists=True, dir_okay=False)],
    seeds: Annotated[int, typer.Option(help="How many runs, each with a seed of its own.", min=1)] = 1,
    seed: Annotated[int | None, typer.Option(help="The first seed, in place of the file's.", min=0)] = None,
    json_file: JsonOption = None,
    force: ForceOption = False,
) -> None:
    """
    Simulate two clusters that replicate to each other: conflicts, lost updates, stale rows, the conflict window.

    Example: ndb-conflict simulate model.toml --seeds 20
    """
    from conflict.cli.compiling import compilation_is_said
    from conflict.cli.views.simulation import print_simulation, simulation_json
    from conflict.model.model_file import load_model
    from conflict.model.report import run_seeds

    check_output(json_file, [model_file], force=force)
    model = load_model(model_file)
    if seed is not None:
        model = attrs.evolve(model, seed=seed)
    with compilation_is_said(), progress_bars() as progress:
        runs = run_seeds(model, seeds, progress)
    print_simulation(console, model, runs)
    write_json(json_file, simulation_json(model, runs))
