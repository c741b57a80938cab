"""
What `conflict.sweep` returns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import attrs
import pyarrow as pa

from conflict.errors import ConfigurationError
from conflict.extras import data_frame
from conflict.telling.shown import Drawn
from conflict.telling.value import Telling
from conflict.whatif.estimates import estimate
from conflict.whatif.simulating.measured import Run
from conflict.whatif.simulating.simulation import estimate_columns, long_form
from conflict.whatif.sweeping.border import Border
from conflict.whatif.sweeping.differences import difference, values_of
from conflict.whatif.sweeping.result import SweepResult
from conflict.whatif.sweeping.telling import tell_sweep
from ndb_formats.errors import did_you_mean

if TYPE_CHECKING:
    import pandas as pd


@attrs.frozen(kw_only=True, repr=False, eq=False)
class Sweep(Drawn):
    """
    A grid of models that was simulated. Printed, it is the tables of the command.

    Attributes:
        runs: The runs of the grid: each with its `point` of the grid, its `seed`, and its figures as attributes.
        borders: Where a condition begins or ceases to hold, if that was looked for.
        needed: How many runs it took, those of the search among them.
        new: How many of these were simulated now, and not found in the folder.
    """

    runs: tuple[Run, ...]
    borders: tuple[Border, ...]
    needed: int
    new: int
    _result: SweepResult

    @property
    def axes(self) -> Mapping[str, Sequence[Any]]:
        """By axis, the values that were tried."""
        return self._result.axes

    @property
    def model(self) -> Mapping[str, Any]:
        """The entries of the model."""
        model: Mapping[str, Any] = self._result.document["model"]
        return model

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of the runs at each point."""
        return tuple(self._result.document["seeds"])

    @property
    def settled(self) -> bool:
        """Whether every run ended with everything applied; else more may be lost than what is counted."""
        return not any(run.unsettled_changes for run in self.runs)

    @property
    def results(self) -> pa.Table:
        """A row per run with a column per figure, as ``results.parquet`` (docs/sweep.md)."""
        return self._result.results

    def telling(self) -> Telling:
        """Return what is told of it."""
        return tell_sweep(self._result)

    def to_pandas(self) -> pd.DataFrame:
        """Return every figure of every run, one a row: axes, run (a seed), cluster (None: all), figure, value, unit."""
        return long_form(self.runs)

    def estimates(self, figure: str = "lost_share") -> pd.DataFrame:
        """
        Return a figure over the seeds of each point, one a row: the axes, and the columns of `Estimate`.

        Args:
            figure: A column of `results`, as ``lost_share`` or ``A_window_ms_mean``.

        Raises:
            ConfigurationError: There is no such figure.
        """
        self._check(figure)
        names = list(self.axes)
        values = values_of(self.results, self.axes, names, figure)
        return data_frame(
            {**dict(zip(names, point, strict=True)), **estimate_columns(estimate([*by_seed.values()]))}
            for point, at in values.items()
            for by_seed in at.values()
        )

    def differences(self, figure: str = "lost_share", axis: str = "function") -> pd.DataFrame:
        """
        Return by how much a figure differs between two values of an axis, paired by seed, at each point of the others.

        Args:
            figure: As for `estimates`.
            axis: The axis.

        Returns:
            One a row: the other axes, ``first`` and ``second``, the columns of `Estimate` of first less second, and
            ``told_apart``: whether the interval of the mean leaves out 0.

        Raises:
            ConfigurationError: There is no such figure or axis.
        """
        self._check(figure)
        if axis not in self.axes:
            message = f"there is no axis {axis}{did_you_mean(axis, self.axes)}; axes are {', '.join(self.axes)}"
            raise ConfigurationError(message)
        return data_frame(self._differences(figure, axis))

    def _differences(self, figure: str, axis: str) -> Iterator[dict[str, Any]]:
        others = [name for name in self.axes if name != axis]
        for point, values in values_of(self.results, self.axes, others, figure).items():
            for first, second in combinations(values, 2):
                found = difference({(): values[first]}, {(): values[second]})
                if found is not None:
                    which = {"first": first[0][1], "second": second[0][1]}
                    told = {**estimate_columns(found), "told_apart": found.differs_from_0}
                    yield {**dict(zip(others, point, strict=True)), **which, **told}

    def _check(self, figure: str) -> None:
        if figure not in self.results.column_names or pa.types.is_string(self.results.schema.field(figure).type):
            near = did_you_mean(figure, self.results.column_names)
            message = f"there is no figure {figure}{near}; they are columns of `results`, such as lost_share"
            raise ConfigurationError(message)
