"""
One run of a sweep, in a file of its own.

The name of the file follows from all that determines the run. So a sweep that was stopped goes on where it was, one
with more points simulates only what is new, and the search for a border finds the points of the grid.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import attrs

from conflict.errors import HistoryError
from conflict.history.grid.folder import Folder
from conflict.model.model_file import parse_model
from conflict.model.report import figures_of
from conflict.model.run import simulate

__all__ = ["RUNS", "SweepRun", "finish"]

RUNS = "runs"
_FORMAT = 2  # raised when the figures of a run change


@attrs.frozen
class SweepRun:
    """
    One run.

    Attributes:
        folder: Of the sweep.
        model: The document of what is simulated.
        seed: Its seed.
    """

    folder: Folder
    model: Mapping[str, Any]
    seed: int

    @property
    def path(self) -> str:
        """The path of its file in the folder."""
        whole = json.dumps([_FORMAT, version("ndb-conflict"), self.model, self.seed], sort_keys=True)
        return f"{RUNS}/{hashlib.sha256(whole.encode()).hexdigest()[:32]}.json"

    def figures(self) -> dict[str, Any]:
        """
        Return the figures of a run that is finished; see `conflict.model.report.figures_of`.

        Raises:
            HistoryError: Its file is damaged.
        """
        try:
            figures: dict[str, Any] = self.folder.read_json(self.path)["figures"]
        except (HistoryError, KeyError, TypeError) as error:
            message = f"{self.folder.uri}/{self.path} is damaged; delete this file, and run the sweep again"
            raise HistoryError(message) from error
        return figures


def finish(run: SweepRun) -> None:
    """Simulate a run and write its file."""
    figures = figures_of(simulate(parse_model(run.model), run.seed))
    run.folder.write_json(run.path, {"model": run.model, "seed": run.seed, "figures": figures})
