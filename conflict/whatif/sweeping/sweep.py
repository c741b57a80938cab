"""
A sweep from its file to its folder.

    runs/<name>.json    each finished run, see `conflict.whatif.sweeping.sweep`
    results.parquet     a row per run of the grid: axes, seed, figures, and the whole model as JSON
    borders.parquet     a row per border that was looked for
    run.json            what was asked; it is there when all others are

One run of a sweep, in a file of its own.

The name of the file follows from all that determines the run. So a sweep that was stopped goes on where it was, one
with more points simulates only what is new, and the search for a border finds the points of the grid.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import attrs
import pyarrow as pa

from conflict.config.arguments import StageProgress
from conflict.engine.ledger.layout import catalogue_result
from conflict.errors import ConfigurationError, HistoryError
from conflict.history.grid.attempts import ATTEMPTS
from conflict.history.grid.folder import Folder
from conflict.history.tasks import Runner
from conflict.results.files import RESULT
from conflict.results.run_document import versions
from conflict.whatif.simulating.measured import run_of
from conflict.whatif.simulating.model_file import parse_model
from conflict.whatif.simulating.report import figures_of
from conflict.whatif.simulating.run import simulate
from conflict.whatif.sweeping.border import Border, Condition, find_borders, nearest
from conflict.whatif.sweeping.result import BORDERS, RESULTS, SweepResult
from conflict.whatif.sweeping.summary import flat_figures
from conflict.whatif.sweeping.sweep_file import Design, Point, document_at
from conflict.whatif.sweeping.swept import Sweep

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
    def is_repeatable(self) -> bool:
        """Whether its model says all that determines it: what a rule of one's own does follows from no name."""
        return not parse_model(self.model).own_rules

    @property
    def path(self) -> str:
        """The path of its file in the folder."""
        whole = json.dumps([_FORMAT, version("ndb-conflict"), self.model, self.seed], sort_keys=True)
        return f"{RUNS}/{hashlib.sha256(whole.encode()).hexdigest()[:32]}.json"

    def figures(self) -> dict[str, Any]:
        """
        Return the figures of a run that is finished; see `conflict.whatif.simulating.report.figures_of`.

        Raises:
            HistoryError: Its file is damaged.
        """
        try:
            figures: dict[str, Any] = self.folder.read_json(self.path)["figures"]
        except (HistoryError, KeyError, TypeError) as error:
            message = f"{self.folder.uri}/{self.path} is damaged; delete this file, and run the sweep again"
            raise HistoryError(message) from error
        return figures


def _finish(run: SweepRun) -> None:
    """Simulate a run and write its file."""
    figures = figures_of(simulate(parse_model(run.model), run.seed))
    run.folder.write_json(run.path, {"model": run.model, "seed": run.seed, "figures": figures})


KIND = "sweep"


@attrs.frozen
class Search:
    """
    A border to look for.

    Attributes:
        condition: What holds on one side of it.
        over: The axis that it lies on.
        within: See `conflict.whatif.sweeping.border.find_borders`.
    """

    condition: Condition
    over: str
    within: float | None = None

    def distance(self, sweep: Design) -> float:
        """Return the distance to a border that is small enough."""
        return nearest(sweep.axes[self.over]) if self.within is None else self.within


def check_folder(folder: Folder) -> None:
    """
    Make sure that a folder is a sweep's or can become one.

    Raises:
        ConfigurationError: Something else is in it.
    """
    if not folder.exists() or folder.exists(RUNS):
        return
    message = f"{folder.uri} exists already and is no folder of a sweep; give another one"
    raise ConfigurationError(message)


def run_sweep(sweep: Design, folder: Folder, runner: Runner, search: Search | None, progress: StageProgress) -> Sweep:
    """
    Simulate what is missing of a sweep, and write its results.

    Args:
        sweep: The grid.
        folder: Where finished runs are, and the results go.
        runner: Runs the simulations.
        search: A border to look for; None for none.
        progress: Called with the name of the stage, what is done, and what there is to do.
    """
    folder.delete(ATTEMPTS)  # of a sweep that was killed
    work = _Work(sweep, folder, runner, progress)
    points = list(sweep.points())
    if search is not None:  # a figure that is not there is said after one point, not after all
        search.condition.check(_rows(work.finished(points[:1], "simulating")[0]))
    finished = [each for at in work.finished(points, "simulating") for each in at]
    borders: tuple[Border, ...] = ()
    if search is not None:

        def judge(points: Sequence[Point]) -> list[int]:
            found = work.finished(points, "finding the border")
            return [sum(map(search.condition.holds, _rows(at))) for at in found]

        borders = tuple(find_borders(sweep, search.over, judge, search.within))
    results, found_borders = _table(_rows(finished)), _borders_table(borders, search)
    folder.delete(RESULT)  # until the new one is whole
    folder.delete(BORDERS)
    folder.write_table(RESULTS, results)
    if found_borders is not None:
        folder.write_table(BORDERS, found_borders)
    document = _document(sweep, search)
    folder.write_json(RESULT, {**document, **catalogue_result(folder)})
    rows = () if found_borders is None else found_borders.to_pylist()
    return Sweep(
        result=SweepResult(document, results, rows),
        runs=tuple(run_of(each.figures, each.run.seed, each.point) for each in finished),
        borders=borders,
        needed=len(work.seen),
        new=work.new,
    )


@attrs.frozen
class _Finished:
    """A run at a point, with its figures."""

    point: Point
    run: SweepRun
    figures: Mapping[str, Any]


def _rows(finished: Iterable[_Finished]) -> list[dict[str, Any]]:
    """Return the rows of finished runs."""
    return [
        {**_cells(each.point), "seed": each.run.seed, **flat_figures(each.figures), "model": json.dumps(each.run.model)}
        for each in finished
    ]


@attrs.define
class _Work:
    """Simulates points, each once; counts the runs that were needed and those that were not there."""

    sweep: Design
    folder: Folder
    runner: Runner
    progress: StageProgress
    seen: set[str] = attrs.field(factory=set)
    new: int = 0

    def finished(self, points: Sequence[Point], stage: str) -> list[list[_Finished]]:
        """Return the runs at each point, which are simulated if they are missing."""
        sweep, first = self.sweep, self.sweep.first_seed
        runs = [
            [SweepRun(self.folder, document_at(sweep.model, point), first + seed) for seed in range(sweep.seeds)]
            for point in points
        ]
        every = {run.path: run for at in runs for run in at}
        there = self.folder.sizes(every)
        # A file is empty if the machine went down before its content was on the disk.
        missing = [
            run
            for path, run in every.items()
            if not there.get(path) or (path not in self.seen and not run.is_repeatable)
        ]
        done = len(every) - len(missing)
        self.progress(stage, done, len(every))
        self.runner(_finish, missing, lambda more, _: self.progress(stage, done + more, len(every)))
        self.seen |= every.keys()
        self.new += len(missing)
        return [[_Finished(point, run, run.figures()) for run in at] for point, at in zip(points, runs, strict=True)]


def _cells(point: Point) -> dict[str, Any]:
    """Return a point as columns; tables and lists become JSON."""
    return {name: json.dumps(value) if isinstance(value, dict | list) else value for name, value in point.items()}


def _table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return rows as a table; values of an axis that are of several types become text."""
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: _column([row.get(name) for row in rows]) for name in names})


def _column(values: Iterable[Any]) -> pa.Array:
    found = list(values)
    if any(isinstance(each, str) for each in found):
        return pa.array([None if each is None else str(each) for each in found])
    if any(isinstance(each, float) for each in found):
        return pa.array(found, pa.float64())
    if any(isinstance(each, bool) for each in found):
        return pa.array(found, pa.bool_())
    return (
        pa.array(found, pa.int64()) if any(each is not None for each in found) else pa.nulls(len(found), pa.float64())
    )


def _borders_table(borders: Sequence[Border], search: Search | None) -> pa.Table | None:
    """Return borders as a table; None if none were looked for."""
    if search is None:
        return None
    return _table(
        [
            {
                "condition": str(search.condition),
                "over": search.over,
                **_cells(border.point),
                "holds": border.holds,
                "fails": border.fails,
                "only": int(border.only),
            }
            for border in borders
        ]
    )


def _document(sweep: Design, search: Search | None) -> dict[str, Any]:
    return {
        "kind": KIND,
        "axes": {name: list(values) for name, values in sweep.axes.items()},
        "seeds": list(range(sweep.first_seed, sweep.first_seed + sweep.seeds)),
        "model": sweep.model,
        "find": None if search is None else str(search.condition),
        "over": None if search is None else search.over,
        "within": None if search is None else search.distance(sweep),
        "versions": versions(),
    }
