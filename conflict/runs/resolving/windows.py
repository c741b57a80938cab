"""
Runs that go on from an earlier result: whether they can, from where, what is said of them. Computes docs/windows.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs
import numpy as np

from conflict.errors import ConfigurationError
from conflict.history.grid.folder import Folder
from conflict.history.run import Run
from conflict.history.scheduling.summaries import EpochSizes
from conflict.results.run_document import After, RunDocument
from conflict.runs.resolving.deciding_applies import Schedule
from conflict.runs.rows.task_inputs import TaskInputs
from conflict.runs.rows.window import Window, digest_of_configuration, read_window


def not_for_windows(run: TaskInputs, schedule: Schedule) -> str | None:
    """Return why the epochs of a run cannot be decided in windows, as the end of a sentence; None if they can."""
    return next(_not_for_windows(run, schedule), None)


def _not_for_windows(run: TaskInputs, schedule: Schedule) -> Iterator[str]:
    if run.has_careful_rows:
        yield "the reference engine decides some of its rows"
    if run.part.starts or run.part.bounds is not None:
        yield "it reads a part of the logs, or these start in the middle"
    if run.checks_unique_keys or run.linked.tables.any():
        yield "its tables have further unique keys or foreign keys"
    if any(cluster.steps or cluster.renewed for cluster in run.clusters):
        yield "statements change its tables"
    if any(cluster.later_roles for cluster in run.clusters):
        yield "roles of its clusters change"
    epochs = [own.applied_alone()["foreign_epoch"] for own in schedule.values()]
    if any((each[1:] <= each[:-1]).any() for each in epochs):
        yield "a channel was set back"
    exceptions = [setup.exceptions for cluster in run.clusters for setup in cluster.setups]
    if any(each is not None and each.replicated for each in exceptions):
        yield "an exceptions table is logged, so that the other cluster receives its rows"


def window_after(earlier: Folder, run: Run, common: TaskInputs, schedule: Schedule) -> Window:
    """
    Return what an earlier result knows of a run.

    Raises:
        ConfigurationError: The run cannot be decided in windows.
        HistoryError: It knows nothing, or is of another run.
    """
    why = not_for_windows(common, schedule)
    if why is not None:
        raise not_after(why)
    return read_window(earlier, digest_of_configuration(run))


def not_after(why: str) -> ConfigurationError:
    """Return the error of a run that cannot go on from an earlier result."""
    return ConfigurationError(f"this cannot be resolved after an earlier result, because {why}; resolve all of it")


def told_after(window: Window, earlier: Folder, resolved: RunDocument, sizes: Mapping[str, EpochSizes]) -> RunDocument:
    """
    Return a result that says where it begins, with the row changes that clusters made from there on.

    Args:
        window: What it goes on from.
        earlier: Folder of the earlier result.
        resolved: The result.
        sizes: Per cluster, its own epochs.
    """
    own = window.state.clusters
    after = After(
        earlier.uri,
        {name: each.source_epoch for name, each in own.items()},
        {name: each.counters for name, each in own.items()},
    )
    later = {name: sizes[name].changes[sizes[name].numbers > np.uint64(each.epoch)] for name, each in own.items()}
    return attrs.evolve(resolved, after=after, changes=sum(int(each.sum()) for each in later.values()))
