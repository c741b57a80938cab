"""
What was simulated, in words, from the document of a model; docs/model.md describes its entries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from conflict.model.model_file import with_preset

__all__ = ["model_types", "model_words"]

Document = Mapping[str, Any]
_BINLOG_TYPE = 7  # if the model names none


def model_words(document: Document) -> dict[str, str]:
    """Return names and what they are: functions, binlog types, links, work; without what the model does not say."""
    model = with_preset(document)
    words = {
        "conflict function": ", ".join(_values(model, "function")) or "none",
        "binlog type": ", ".join(model_types(document)),
        "latency of links": "; ".join(_latencies(model)),
        "rate": _rate(model),
        "work": ", ".join(_work(model, document.get("preset"))),
    }
    return {name: text for name, text in words.items() if text}


def model_types(document: Document) -> list[str]:
    """Return the binlog types that the tables of a model have."""
    return _values({"binlog_type": _BINLOG_TYPE, **with_preset(document)}, "binlog_type")


def _values(model: Document, name: str) -> list[str]:
    """Return what the tables have as an entry of their own, or as that of all tables."""
    common = model.get(name)
    found = [table.get(name, common) for table in model.get("tables", ())] or [common]
    return list(dict.fromkeys(_text(each) for each in found if each is not None))


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{each} on {name}" for name, each in value.items())
    return str(value)


def _latencies(model: Document) -> Iterator[str]:
    for name, site in model.get("clusters", {}).items():
        link = site.get("link", {})
        if "trace_ms" in link:
            yield f"from {name} as in the binlogs"
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
        yield f"{model['seconds']:g} s"
    if "recordcount" in model:
        yield f"{model['recordcount']:,} rows at first"
