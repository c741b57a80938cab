"""
What `conflict.simulate` returns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from conflict.extras import data_frame
from conflict.telling.shown import Drawn
from conflict.telling.value import Telling
from conflict.whatif.estimates import Estimate
from conflict.whatif.simulating.configuration import Model
from conflict.whatif.simulating.measured import Run, RunFigures, attributes_of, run_of, unit_of
from conflict.whatif.simulating.report import Figures, intervals_of
from conflict.whatif.simulating.telling import simulation_document, tell_simulation
from conflict.whatif.simulating.totals import totals_of

if TYPE_CHECKING:
    import pandas as pd


@attrs.frozen(kw_only=True, repr=False, eq=False)
class Simulation(Drawn, RunFigures[Estimate]):
    """
    A model that was simulated: its figures over all runs, and each run. Printed, it is the tables of the command.

    Every figure is an `Estimate`: `simulation.lost_share.median`,
    `simulation.clusters["A"].applier.conflicts.mean_interval`. In `runs`, the same figures are numbers.

    Attributes:
        model: The entries of the model.
        runs: The runs, one per seed.
        contradicted: Whether the binlogs of the first run contradict its result, if that was written.
    """

    model: Mapping[str, Any]
    runs: tuple[Run, ...]
    contradicted: bool = False
    _document: Mapping[str, Any]

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of the runs."""
        return tuple(run.seed for run in self.runs)

    @property
    def settled(self) -> bool:
        """Whether every run ended with everything applied; else more may be lost than what is counted."""
        return all(run.quiet_at_the_end for run in self.runs)

    def document(self) -> dict[str, Any]:
        """Return the document of ``--json``."""
        return dict(self._document)

    def telling(self) -> Telling:
        """Return what is told of it."""
        return tell_simulation(self._document)

    def to_pandas(self) -> pd.DataFrame:
        """Return every figure of every run, one a row: run (its seed), cluster (None: all), figure, value, unit."""
        return long_form(self.runs)

    def estimates(self) -> pd.DataFrame:
        """Return every figure over all runs, one a row: cluster (None: all), figure, unit, and those of `Estimate`."""
        return data_frame(
            {"cluster": cluster, "figure": name, "unit": unit_of(name), **estimate_columns(each)}
            for cluster, name, each in self.figures()
        )


def simulation_of(
    model: Model, entries: Mapping[str, Any], runs: Sequence[Figures], *, contradicted: bool = False
) -> Simulation:
    """
    Return a simulation.

    Args:
        model: What was simulated.
        entries: The same as a document.
        runs: The figures of each run, from the seed of the model on.
        contradicted: See `Simulation`.
    """
    seeds = range(model.seed, model.seed + len(runs))
    document = {**simulation_document(model, runs), "model": dict(entries)}
    together = intervals_of([{**totals_of(run), **run} for run in runs])
    each = tuple(run_of(run, seed) for run, seed in zip(runs, seeds, strict=True))
    figures = attributes_of(together)
    return Simulation(**figures, model=entries, runs=each, contradicted=contradicted, document=document)


def long_form(runs: Sequence[Run]) -> pd.DataFrame:
    """Return every figure of some runs, one a row; axes of a sweep come first."""
    return data_frame(
        {**run.point, "run": run.seed, "cluster": cluster, "figure": name, "value": float(value), "unit": unit_of(name)}
        for run in runs
        for cluster, name, value in run.figures()
    )


def estimate_columns(found: Estimate) -> dict[str, float | None]:
    """Return an estimate as columns."""
    columns: dict[str, float | None] = {
        "runs": found.runs,
        "median": found.median,
        "mean": found.mean,
        "low": found.low,
        "high": found.high,
    }
    for of, interval in (("median", found.median_interval), ("mean", found.mean_interval)):
        columns |= {f"{of}_from": interval and interval[0], f"{of}_to": interval and interval[1]}
    return columns
