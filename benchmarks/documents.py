"""
The figures of documents of results: what they are, how far their runs lie apart, and whether they can be published.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from benchmarks.timing import spread

NOISE = 0.10
_PROCESSOR, _WALL = "processor_seconds", "wall_seconds"


@attrs.frozen
class Figure:
    """
    The runs of one work.

    Attributes:
        name: Where it stands in the document.
        processor: Seconds of processor time, run by run.
        wall: Seconds on the wall, run by run.
    """

    name: str
    processor: tuple[float, ...]
    wall: tuple[float, ...]

    @property
    def seconds(self) -> float:
        """Median of the processor time."""
        return statistics.median(self.processor)

    @property
    def noise(self) -> float:
        """How far the runs lie apart; see `spread`."""
        return spread(self.processor)


def figures(document: Mapping[str, Any] | Sequence[Any], name: str = "") -> Iterator[Figure]:
    """Yield every figure of a document, at any depth; those in a list are named by their number in it, from 1."""
    if isinstance(document, Mapping):
        runs = document.get(_PROCESSOR)
        if isinstance(runs, list) and runs:
            yield Figure(name, tuple(runs), tuple(document.get(_WALL, ())))
    numbered = ((str(number), each) for number, each in enumerate(document, 1))
    for key, value in document.items() if isinstance(document, Mapping) else numbered:
        if isinstance(value, dict | list):
            yield from figures(value, f"{name}, {key}" if name else key)


def unfit(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield why a document cannot be published: others used the machine, or runs of one work lie too far apart."""
    machine = document["environment"]
    busy, cores = machine.get("busy_cores_at_start"), machine["cores"]
    if busy is None:
        yield "it does not say how busy the machine was"
    elif busy > cores / 2:
        yield f"others kept {busy} of {cores} cores busy when it began"
    for each in figures(document.get("results", {})):
        if each.noise > NOISE:
            yield f"{each.name}: its runs lie {each.noise:.0%} apart, more than {NOISE:.0%}"
