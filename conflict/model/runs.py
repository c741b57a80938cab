"""
Simulations of any number of clusters: two in the compiled loop, more with the reference engine.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from conflict.model.configuration import Model
from conflict.model.network.figures import network_figures
from conflict.model.network.run import Network, simulate_network
from conflict.model.network.run_folder import write_network
from conflict.model.report import Figures, figures_of
from conflict.model.run import Simulated, simulate
from conflict.model.run_folder import write_run

__all__ = ["AnyRun", "all_figures", "run_model", "run_seeds", "write_any"]

AnyRun = Simulated | Network


def run_model(model: Model, seed: int, progress: Callable[[int, int], None] = lambda done, total: None) -> AnyRun:
    """Run a simulation; see `conflict.model.run.simulate`."""
    return simulate(model, seed, progress) if model.is_pair else simulate_network(model, seed, progress)


def all_figures(run: AnyRun) -> Figures:
    """Return all figures of a run."""
    return figures_of(run) if isinstance(run, Simulated) else network_figures(run)


def write_any(run: AnyRun, folder: Path, progress: Callable[[int, int], None] = lambda done, total: None) -> None:
    """Write the binlogs of a run, and a run file for them; see `conflict.model.run_folder.write_run`."""
    if isinstance(run, Simulated):
        write_run(run, folder, progress)
    else:
        write_network(run, folder, progress)


def run_seeds(
    model: Model,
    seeds: int,
    progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
    keep: Callable[[AnyRun], None] = lambda run: None,
) -> list[dict[str, Any]]:
    """
    Simulate with several seeds, from the model's on; return the figures of each.

    Args:
        model: What to simulate.
        seeds: How many.
        progress: Called with the name of the stage, what is done, and what there is to do.
        keep: Called with the first run.
    """
    found = []
    for number in range(seeds):

        def show(done: int, total: int, before: int = number) -> None:
            progress("simulating", before * total + done, seeds * total)

        run = run_model(model, model.seed + number, show)
        if not number:
            keep(run)
        found.append(all_figures(run))
    return found
