"""
What the results of one report say together: the top of the page, bytes, and why simulated losses are others.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from conflict.reporting.bytes_by_type import BYTES_CHART
from conflict.reporting.cost_answer import cost_findings, cost_headline
from conflict.reporting.parts import Bytes, Headline, Measured, Part, Topic

__all__ = ["joined"]


def joined(parts: Sequence[Part]) -> list[Part]:
    """
    Return parts with the answers that need several of them.

    Bytes are told once, where they are known best, for the function that loses least on recorded changes, or else in
    simulations. Each topic has its headline once; what another part has to say of it becomes a finding of that part.
    """
    source = max((part.bytes.source for part in parts if part.bytes), default=None)
    recorded_first = sorted(parts, key=lambda part: not part.recorded)
    best = next((part.best for part in recorded_first if part.best), ())
    compared = next((part for part in parts if part.recorded and part.best), None)
    told = [_with_bytes(part, best, source, compared) for part in parts]
    first: dict[Topic, Part] = {}
    for part in sorted(told, key=lambda part: not part.recorded):
        for line in part.headlines:
            first.setdefault(line.topic, part)
    return [
        _with_findings(part, [line for line in part.headlines if first[line.topic] is part], compared) for part in told
    ]


def _with_bytes(part: Part, best: Sequence[str], source: Measured | None, compared: Part | None) -> Part:
    """Return a part with the answer about bytes, if it knows them best; else without a chart that another one has."""
    sizes = part.bytes
    if sizes is None:
        return part
    if sizes.source == source:
        sizes = _of_one_log(sizes, compared.bytes if compared else None)
        functions = best or sizes.functions
        lines = (*part.headlines, cost_headline(functions, sizes))
        return attrs.evolve(part, headlines=lines, answer=(*part.answer, *cost_findings(sizes)))
    if sizes.source is Measured.COMPARED and source is Measured.MEASURED:
        return attrs.evolve(part, charts=tuple(chart for chart in part.charts if chart.name != BYTES_CHART))
    return part


def _of_one_log(sizes: Bytes, compared: Bytes | None) -> Bytes:
    """Return measured bytes with what a comparison tells of the log, if it has as many bytes: then it is the same."""
    if sizes.source is not Measured.MEASURED or compared is None or compared.base_bytes != sizes.base_bytes:
        return sizes
    return attrs.evolve(sizes, users=compared.users, left_by=compared.left_by, sent=compared.sent)


def _with_findings(part: Part, lines: Sequence[Headline], compared: Part | None) -> Part:
    """Return a part with these headlines; the sentences of its others come before its findings."""
    others = [text for each in part.headlines if each not in lines for text in each.sentences]
    basis = part.basis if compared is not None and not part.recorded else ()
    return attrs.evolve(part, headlines=tuple(lines), answer=(*others, *part.answer, *basis))
