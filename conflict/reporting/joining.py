"""
What the results of one report say together: the top of the page, bytes, and why simulated losses are others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import attrs

from conflict.reporting.cost import cost_column, cost_headline, cost_table
from conflict.telling.bytes_by_type import BYTES_CHART
from conflict.telling.part import Bytes, Headline, Measured, Part, Topic, log_words
from conflict.telling.shown_text import percent
from conflict.telling.value import Telling

_CLOSE = 0.02  # of the rows of a log, as a comparison counts them: rows of its last epochs may be missing


def joined(parts: Sequence[Part]) -> list[Part]:
    """
    Return parts with the answers that need several of them.

    Bytes are told once, where they are known best, for the function that loses least on recorded changes, or else in
    simulations. Each topic has its headline once; what another part has to say of it becomes a finding of that part.
    """
    source = max((part.bytes.source for part in parts if part.bytes), default=None)
    parts = _with_other_logs(parts)
    recorded_first = sorted(parts, key=lambda part: not part.recorded)
    best = next((part for part in recorded_first if part.best), None)
    compared = next((part for part in parts if part.recorded and part.best), None)
    told = [_with_bytes(part, best, source, compared) for part in parts]
    first: dict[Topic, Part] = {}
    for part in sorted(told, key=lambda part: not part.recorded):
        for line in part.headlines:
            first.setdefault(line.topic, part)
    found = [
        _with_findings(part, [line for line in part.headlines if first[line.topic] is part], compared) for part in told
    ]
    return _with_model_check(found)


def _with_other_logs(parts: Sequence[Part]) -> list[Part]:
    """Return parts with a warning where one is of another log than others, or does not say of which."""
    return [
        attrs.evolve(part, telling=_warned(part.telling, _of_other_log(part, parts, parts[:number])))
        for number, part in enumerate(parts)
    ]


def _warned(telling: Telling, warnings: Iterable[str]) -> Telling:
    return attrs.evolve(telling, warnings=(*telling.warnings, *warnings))


def _of_other_log(part: Part, parts: Sequence[Part], before: Sequence[Part]) -> Iterator[str]:
    other = next((each for each in before if not part.shares_log(each)), None)
    if other is not None:
        yield (
            f"{part.source} is of {log_words(part.log)}, and {other.source} of another log, {log_words(other.log)}: "
            "figures of the one do not hold for the other, and nothing here is worked out from both."
        )
    measured = part.bytes is not None and part.bytes.source is Measured.MEASURED
    if measured and not part.log and any(each.log for each in parts):
        yield f"{part.source} does not say which binlog files it is of; measure again with `ndb-conflict sizes`."


def _with_model_check(parts: Sequence[Part]) -> list[Part]:
    """Return parts with how well simulations lose what the recording did, beside the limit that they gave."""
    compared = next((part for part in parts if part.recorded and part.lost_share), None)
    simulated = next((part for part in parts if not part.recorded and part.lost_share), None)
    if compared is None or compared.lost_share is None or simulated is None or simulated.lost_share is None:
        return list(parts)
    name, recorded = compared.lost_share
    if simulated.lost_share[0] != name or not simulated.shares_log(compared):
        return list(parts)
    said = (
        f"Simulated with epochs that take as long as the recorded ones, {name} loses "
        f"{percent(simulated.lost_share[1])}; in the recording it lost {percent(recorded)}."
    )
    if not any(line.topic is Topic.LIMIT for part in parts for line in part.headlines):
        return [part.with_sentences(said) if part is simulated else part for part in parts]
    return [attrs.evolve(part, headlines=tuple(_beside_limit(line, said) for line in part.headlines)) for part in parts]


def _beside_limit(line: Headline, said: str) -> Headline:
    return attrs.evolve(line, sentences=(*line.sentences, said)) if line.topic is Topic.LIMIT else line


def _with_bytes(part: Part, best: Part | None, source: Measured | None, compared: Part | None) -> Part:
    """Return a part with the answer about bytes, if it knows them best; else without a chart that another one has."""
    sizes = part.bytes
    if sizes is None:
        return part
    if sizes.source == source:
        sizes = _of_one_log(sizes, compared.bytes if compared and compared.shares_log(part) else None)
        functions = best.best if best is not None and best.shares_log(part) else sizes.functions
        lines = (*part.headlines, cost_headline(functions, sizes))
        named = (*(sizes.logged.by_appliers if sizes.logged is not None else functions),)
        columns = (*part.by_function, *cost_column(named, sizes))
        tables = (*part.telling.tables, *cost_table(functions, sizes))
        telling = attrs.evolve(part.telling, tables=tables)
        return attrs.evolve(part, telling=telling, headlines=lines, by_function=columns)
    if source is Measured.MEASURED:
        charts = tuple(chart for chart in part.telling.charts if chart.name != BYTES_CHART)
        return attrs.evolve(part, telling=attrs.evolve(part.telling, charts=charts))
    return part


def _of_one_log(sizes: Bytes, compared: Bytes | None) -> Bytes:
    """Return measured bytes with the rows that a comparison counted, if it has as many bytes and rows: the same log."""
    logged = compared.logged if compared is not None and compared.base_bytes == sizes.base_bytes else None
    if sizes.source is not Measured.MEASURED or logged is None:
        return sizes
    rows = logged.users + logged.by_appliers.get(logged.configured, 0)
    return attrs.evolve(sizes, logged=logged) if abs(rows - sizes.rows) <= _CLOSE * sizes.rows else sizes


def _with_findings(part: Part, lines: Sequence[Headline], compared: Part | None) -> Part:
    """Return a part with these headlines; the sentences of its others come before its findings."""
    others = [text for each in part.headlines if each not in lines for text in each.sentences]
    basis = part.basis if compared is not None and not part.recorded else ()
    return attrs.evolve(part.with_sentences(*basis, before=others), headlines=tuple(lines))
