"""
What was simulated, in words, from the document of a model; docs/model.md describes its entries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from conflict.model.model_file import with_preset

__all__ = ["model_functions", "model_types", "model_words", "rows_at_first", "travel_times", "without_function"]

Document = Mapping[str, Any]
_BINLOG_TYPE = 7  # if the model names none


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


def rows_at_first(document: Document) -> int:
    """Return how many rows the tables of a model have at first; 0 if the model does not say it of all."""
    model = with_preset(document)
    counts = [table.get("recordcount", model.get("recordcount")) for table in model.get("tables", [{}])]
    return 0 if None in counts else sum(counts)


def without_function(document: Document) -> list[str]:
    """Return the tables of a model that have no conflict function while others have one."""
    model = with_preset(document)
    tables = {each.get("name", ""): each.get("function", model.get("function")) for each in model.get("tables", ())}
    return [name for name, function in tables.items() if not function] if any(tables.values()) else []


def travel_times(document: Document) -> list[str]:
    """Return how long epochs took from each cluster in the binlogs that a model was learnt from, in the median."""
    links = {name: site.get("link", {}) for name, site in with_preset(document).get("clusters", {}).items()}
    return [_median_travel(name, link) for name, link in links.items() if link.get("trace_ms")]


def _median_travel(name: str, link: Document) -> str:
    trace = sorted(took for _, took in link["trace_ms"])
    return f"{trace[len(trace) // 2]:,.0f} ms from {name}"


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
            yield f"{_median_travel(name, link)} in the median, as in the binlogs"
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
    rows = rows_at_first(model)
    if rows:
        yield f"{rows:,} rows at first"
