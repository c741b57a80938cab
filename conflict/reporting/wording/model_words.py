"""
What was simulated, in words, from the document of a model; docs/model.md describes its entries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

from conflict.shown_text import counted, listed
from conflict.whatif.simulating.model_file import with_preset

__all__ = [
    "against_recording",
    "beyond_limit",
    "is_learnt",
    "is_replayed",
    "model_functions",
    "model_types",
    "model_words",
    "without_function",
]

Document = Mapping[str, Any]
_BINLOG_TYPE = 7  # if the model names none
_SECOND = 1000.0  # in milliseconds, in which travel is given beside moments in seconds
_IN_A_BATCH = 5  # epochs on average, from which on they are told to be applied in batches


def model_words(document: Document) -> dict[str, str]:
    """Return names and what they are: functions, binlog types, links, work; without what the model does not say."""
    model = with_preset(document)
    words = {
        "conflict function": ", ".join(model_functions(document)) or "none",
        "binlog type": ", ".join(model_types(document)),
        "latency of links": "; ".join(_latencies(model)),
        "rate": _rate(model),
        "simulated": ", ".join(_work(model, document.get("preset"))),
    }
    return {name: text for name, text in words.items() if text}


def model_types(document: Document) -> list[str]:
    """Return the binlog types that the tables of a model have."""
    return _values({"binlog_type": _BINLOG_TYPE, **with_preset(document)}, "binlog_type")


def model_functions(document: Document) -> list[str]:
    """Return the conflict functions of the tables of a model, with the cluster if one alone has it."""
    return _values(with_preset(document), "function")


def without_function(document: Document) -> list[str]:
    """Return the tables of a model that have no conflict function while others have one."""
    model = with_preset(document)
    tables = {each.get("name", ""): each.get("function", model.get("function")) for each in model.get("tables", ())}
    return [name for name, function in tables.items() if not function] if any(tables.values()) else []


def against_recording(document: Document, latencies: Sequence[float] = ()) -> Iterator[str]:
    """
    Yield how simulations differ from the binlogs that their model was learnt from.

    Args:
        document: The model.
        latencies: Those that were simulated in place of the model's, in milliseconds.
    """
    traces = _traces(document)
    if not traces:
        yield "The simulated epochs do not take as long as those of the recording, but as long as the model says."
        return
    yield from _recorded_travel(document)
    medians = [median(each) for each in traces.values()]
    if not latencies:
        yield "The simulated epochs take as long."
    elif max(latencies) < min(medians):
        yield "The simulated latencies are shorter."
    elif min(latencies) > max(medians):
        yield "The simulated latencies are longer."


def _recorded_travel(document: Document) -> Iterator[str]:
    """Yield how long epochs took in the binlogs that a model was learnt from, if it was."""
    traces = _traces(document)
    if traces:
        took = " and ".join(
            f"{median(each):,.0f} ms from {name} (longest {each[-1]:,.0f})" for name, each in traces.items()
        )
        yield f"In the recording, the median epoch took {took} until it was applied."


def beyond_limit(document: Document, limit: float) -> Iterator[str]:
    """
    Yield how many epochs took longer than a latency in the binlogs that a model was learnt from, if it was.

    Epochs that wait while an applier is stopped or behind are applied one right after the other: in batches.

    Args:
        document: The model.
        limit: The latency, in milliseconds.
    """
    links = {name: site.get("link", {}) for name, site in with_preset(document).get("clusters", {}).items()}
    traces = {name: link["trace_ms"] for name, link in links.items() if link.get("trace_ms")}
    late = {
        name: [(_SECOND * at + took, took) for at, took in trace if took >= limit] for name, trace in traces.items()
    }
    if not traces:
        return
    soon = {name: [took for _, took in trace if took < limit] for name, trace in traces.items()}
    in_time = [f"{len(soon[name]):,} of {len(trace):,} epochs from {name}" for name, trace in traces.items()]
    medians = [f"{median(each):,.0f} ms from {name}" for name, each in soon.items() if each]
    of_these = f"; of these the median took {listed(medians)}" if medians else ""
    yield f"In the recording {listed(in_time)} took less than {limit:,.10g} ms until they were applied{of_these}."
    others = sum(map(len, late.values()))
    if others:
        longest = max(took for each in late.values() for _, took in each)
        batches = sum(_batches([at for at, _ in each], limit) for each in late.values())
        together = ""
        if batches * _IN_A_BATCH <= others:
            number = counted(batches, "batch", "batches")
            together = f", and were applied in {number}: appliers had been stopped, or were behind"
        yield f"The others took up to {longest:,.0f} ms{together}."


def _batches(moments: Sequence[float], apart: float) -> int:
    """Return into how many batches moments fall that are so far apart."""
    ordered = sorted(moments)
    return sum(now - before >= apart for before, now in pairwise(ordered)) + bool(ordered)


def is_learnt(document: Document) -> bool:
    """Whether a model was learnt from binlogs, with how long their epochs took."""
    return bool(_traces(document))


def is_replayed(document: Document) -> bool:
    """Whether simulated epochs take as long as those of the binlogs that a model was learnt from."""
    return bool(_traces(document)) and len(_traces(document)) == len(with_preset(document).get("clusters", {}))


def _traces(document: Document) -> dict[str, list[float]]:
    """Return, by cluster, how long its recorded epochs took, in milliseconds, ascending."""
    links = {name: site.get("link", {}) for name, site in with_preset(document).get("clusters", {}).items()}
    return {name: _sorted_trace(link) for name, link in links.items() if link.get("trace_ms")}


def _sorted_trace(link: Document) -> list[float]:
    return sorted(took for _, took in link["trace_ms"])


def _values(model: Document, name: str) -> list[str]:
    """Return what the tables have as an entry of their own, or as that of all tables."""
    common = model.get(name)
    found = [table.get(name, common) for table in model.get("tables", ())] or [common]
    return list(dict.fromkeys(_text(each) for each in found if each))


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        texts = dict.fromkeys(map(str, value.values()))
        return ", ".join(f"{each} on {name}" for name, each in value.items()) if len(texts) > 1 else next(iter(texts))
    return str(value)


def _latencies(model: Document) -> Iterator[str]:
    for name, site in model.get("clusters", {}).items():
        link = site.get("link", {})
        if link.get("trace_ms"):
            yield f"{median(_sorted_trace(link)):,.0f} ms from {name} in the median, as in the binlogs"
        elif "latency_ms" in link:
            shape = link.get("latency", "constant")
            yield f"from {name} {link['latency_ms']:g} ms{'' if shape == 'constant' else f', {shape}'}"


def _rate(model: Document) -> str:
    """Return the rate of both clusters; nothing if the model has one for each of them, or over time."""
    rate = model.get("workload", {}).get("transactions_per_second")
    return f"{rate:g} transactions per second on each cluster" if isinstance(rate, int | float) else ""


def _work(model: Document, preset: str | None) -> Iterator[str]:
    if preset is not None:
        yield f"preset {preset}"
    if "seconds" in model:
        yield f"{round(model['seconds'], 1):,.10g} s"
    rows = [table.get("recordcount", model.get("recordcount")) for table in model.get("tables", [{}])]
    if rows and None not in rows:
        yield f"{sum(rows):,} rows at first"
