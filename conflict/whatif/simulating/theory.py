"""
How many conflicts two clusters should have, from rates and windows alone; docs/model.md derives it.

Users are Poisson processes, every row is wanted alike, and rows are only updated. Per row, cluster s makes u(s) changes
a second; W(s) is how long a change of s takes to the other cluster, R(s) how long until s knows that it arrived.

* NDB$MAX with clocks: a change of the other cluster s' is in conflict if the row was changed here while it was under
  way: 1 - exp(-u(s) W(s')).
* Functions by epoch that judge rows: it is in conflict if the row is in its window R here. Every change here and every
  refresh begins the window anew, as does every change of the other cluster that meets it. So it is open for
  (exp(a R) - 1) / a at a time, with a = u(s) + u(s'), and closed for 1 / u(s). R is longer by half an epoch of s':
  changes arrive an epoch at a time, and those in the one that brings the news are judged as if it had not come.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import attrs

from conflict.rules.deployed import Deployed
from conflict.rules.functions import Cell, ConflictFunction
from conflict.whatif.simulating.configuration import Model, Site
from conflict.whatif.simulating.kernels.world import Stamp, Wish
from conflict.whatif.simulating.key_choice import Uniform
from conflict.whatif.simulating.workload import Listed, Mix, Pairs, Workload

SECOND, MILLISECOND = 1_000_000, 1e-3


@attrs.frozen
class Predicted:
    """
    What the closed form says of one applier and table.

    Attributes:
        applier: The applier's cluster.
        table: The table.
        simulated: Conflicts in the simulation; of several runs, the median.
        expected: Conflicts by the closed form, with the rates and windows that were simulated.
    """

    applier: str
    table: str
    simulated: float
    expected: float

    @property
    def ratio(self) -> float:
        """What was simulated, as a share of what is expected."""
        return self.simulated / self.expected if self.expected else math.nan


def predictions(model: Model, found: Mapping[str, Any]) -> list[Predicted]:
    """
    Return the closed form for every applier and table that has one.

    Args:
        model: What was simulated.
        found: Its figures, as intervals.

    Returns:
        The closed forms; none of more than two clusters, none if nothing changed, and none if epochs were never
        applied: then the windows are not known.
    """
    if not model.is_pair or any(site["epochs"]["never_applied"].high for site in found["clusters"].values()):
        return []
    setups, predicted = model.setups, list[Predicted]()
    for site, other in (model.sites, reversed(model.sites)):
        mine, theirs = found["clusters"][site.name], found["clusters"][other.name]
        for number, (table, setup) in enumerate(zip(model.tables, setups[site.name].values(), strict=True)):
            function = setup.function
            changed = all(each["changes_by_table"][table.name].median for each in (mine, theirs))
            if function is None or not changed or not _is_plain(number, site, other):
                continue
            seconds = model.duration / SECOND
            here, there = (each["changes_by_table"][table.name].median / seconds for each in (mine, theirs))
            rates = here / table.records, there / table.records
            way, back = theirs["window_ms"]["mean"].median, mine["window_ms"]["back"].median
            windows = way * MILLISECOND, back * MILLISECOND + other.epoch / 2 / SECOND
            share = _share(function, table.stamp, site, other, rates, windows)
            if share is not None:
                simulated = mine["applier"]["conflicts_by_table"][table.name].median
                predicted.append(Predicted(site.name, table.name, simulated, share * there * seconds))
    return predicted


def _share(
    function: ConflictFunction,
    stamp: Stamp,
    site: Site,
    other: Site,
    rates: tuple[float, float],
    windows: tuple[float, float],
) -> float | None:
    """
    Return the share of the changes of the other cluster that are in conflict; None if there is no closed form.

    Args:
        function: Conflict function of the table here.
        stamp: What changes set its resolve column to.
        site: The cluster.
        other: The other one.
        rates: Changes per row and second, here and there.
        windows: How long a change takes from there to here, and how long until one from here is known to have arrived.
    """
    (here, there), (way, back) = rates, windows
    update = function.spec.update
    if update is Cell.GREATER and stamp is Stamp.CLOCK:
        return 1 - math.exp(-here * max(way + (site.skew - other.skew) / SECOND, 0))
    if update is not Cell.BY_EPOCH or function.spec.transactional or not Deployed(function, site.role).judges:
        return None
    if not here or not back:
        return 0.0
    # Open for expm1(z) / both, closed for 1 / here; long windows are longer than a float holds, so by their inverse.
    both = here + there
    z = both * back
    return 1 / (1 + both / here * math.exp(-z) / -math.expm1(-z))


def _is_plain(table: int, *sites: Site) -> bool:
    """Whether the rows of a table are only read and updated, each alike, at a steady rate."""
    works = [site.workload for site in sites]
    return all(
        isinstance(work.keys.get(table, Uniform()), Uniform)
        and not work.affinity
        and len(set(work.rates)) == 1
        and not work.operations
        and _kinds(work, table) <= {Wish.READ, Wish.UPDATE}
        for work in works
    )


def _kinds(work: Workload, table: int) -> set[Wish]:
    """Return the wishes that a workload has for a table."""
    shapes = work.shapes
    if isinstance(shapes, Mix):
        return {wish for wish, weight in shapes.proportions.items() if weight}
    if isinstance(shapes, Pairs):
        return {wish for wish, number in shapes.pairs if number == table}
    assert isinstance(shapes, Listed)
    return {wish for shape in shapes.shapes for wish, number in shape if number == table}
