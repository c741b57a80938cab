"""
What the results of one report say together: one answer about bytes, and why recorded and simulated figures differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from conflict.reporting.bytes_by_type import BYTES_CHART
from conflict.reporting.cost_answer import cost_answer
from conflict.reporting.parts import Bytes, Measured, Part

__all__ = ["joined"]


def joined(parts: Sequence[Part]) -> list[Part]:
    """
    Return parts with the answers that need several of them.

    Bytes are told once, where they are known best, for the function that loses least on recorded changes, or else in
    simulations.
    """
    source = max((part.bytes.source for part in parts if part.bytes), default=None)
    order = sorted(parts, key=lambda part: not part.recorded)
    best = next((part.best for part in order if part.best), ())
    recorded = next((part for part in parts if part.recorded and part.basis), None)
    return [_with_more(part, best, source, recorded) for part in parts]


def _with_more(part: Part, best: Sequence[str], source: Measured | None, recorded: Part | None) -> Part:
    costs: Iterator[str] = iter(())
    charts = part.charts
    if part.bytes is not None and part.bytes.source == source:
        costs = cost_answer(best or part.bytes.functions, part.bytes, least=bool(best))
    elif _same_log(part.bytes, source):
        charts = [chart for chart in charts if chart.name != BYTES_CHART]
    basis = [_difference(part, recorded)] if recorded is not None and part.basis and not part.recorded else []
    return attrs.evolve(part, answer=(*part.answer, *basis, *costs), charts=tuple(charts))


def _same_log(sizes: Bytes | None, source: Measured | None) -> bool:
    """Whether bytes are those of recorded binlogs, which another part tells in more formats."""
    return sizes is not None and sizes.source is Measured.COMPARED and source is Measured.MEASURED


def _difference(part: Part, recorded: Part) -> str:
    return f"Why these losses are not those of “{recorded.title}”: these {part.basis}; those {recorded.basis}."
