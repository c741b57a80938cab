"""
By how much the rows of a sweep's table differ, paired by seed: what runs of a seed have in common cancels out.

Runs with the same seed have users and journeys of epochs in common at all points of a grid, so a seed is one draw,
however many points there are: a figure is averaged over the points of a seed before seeds are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from conflict.whatif.estimates import Estimate, paired

Key = tuple[Any, ...]  # values of the axes that the rows of a table represent
Point = tuple[tuple[str, Any], ...]  # the other axes and their values
Values = dict[Point, dict[int, float]]  # of a figure, by point and by seed


def values_of(results: pa.Table, axes: Iterable[str], named: Sequence[str], figure: str) -> dict[Key, Values]:
    """
    Return a figure by row of a table, by point of the other axes, and by seed.

    Args:
        results: The rows of a sweep.
        axes: The names of its axes.
        named: The axes that the rows of the table represent.
        figure: A column of `results`; a run that does not have it is left out.
    """
    others = [name for name in axes if name not in named]
    found: dict[Key, Values] = {}
    for run in results.select([*dict.fromkeys((*axes, "seed", figure))]).to_pylist():
        if run[figure] is not None:
            at = found.setdefault(tuple(run[name] for name in named), {})
            at.setdefault(tuple((name, run[name]) for name in others), {})[run["seed"]] = run[figure]
    return found


def difference(first: Values, second: Values) -> Estimate | None:
    """
    Return by how much a figure is greater in one row than in another, over the points and seeds that both have.

    Args:
        first: The figure of a row, by point and by seed.
        second: That of the other row.
    """
    common = [(point, seed) for point, seeds in first.items() for seed in seeds if seed in second.get(point, {})]
    return paired(_averages(first, common), _averages(second, common))


def _averages(values: Values, common: Sequence[tuple[Point, int]]) -> dict[int, float]:
    """Return a figure by seed: its average over points."""
    by_seed: dict[int, list[float]] = {}
    for point, seed in common:
        by_seed.setdefault(seed, []).append(values[point][seed])
    return {seed: sum(each) / len(each) for seed, each in by_seed.items()}
