"""
What was simulated, in words, from the document of a model; docs/model.md describes its entries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any

from conflict.telling.value import Table
from conflict.whatif.simulating.model_file import with_preset

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


def without_function(document: Document) -> list[str]:
    """Return the tables of a model that have no conflict function while others have one."""
    model = with_preset(document)
    tables = {each.get("name", ""): each.get("function", model.get("function")) for each in model.get("tables", ())}
    return [name for name, function in tables.items() if not function] if any(tables.values()) else []


def against_recording(document: Document) -> Iterator[str]:
    """Yield how long simulated epochs take beside those of the binlogs that a model was learnt from."""
    traces = _traces(document)
    if not traces:
        yield "The simulated epochs do not take as long as those of the recording, but as long as the model says."
        return
    took = " and ".join(
        f"{median(each):,.0f} ms from {name} (longest {each[-1]:,.0f})" for name, each in traces.items()
    )
    yield f"In the recording, the median epoch took {took} until it was applied. The simulated epochs take as long."


def recorded_epochs(document: Document, limit: float | None) -> Iterator[Table]:
    """
    Yield how long epochs took in the binlogs that a model was learnt from, if it was.

    Args:
        document: The model.
        limit: A latency in milliseconds, to count the epochs that took less; None for none.
    """
    rows: list[list[object]] = []
    for name, took in _traces(document).items():
        less = [] if limit is None else [sum(each < limit for each in took)]
        rows.append([f"from {name}", len(took), median(took), took[-1], *less])
    if rows:
        headings = ["", "epochs", "median, ms", "longest, ms", f"less than {limit:,.10g} ms" if limit else ""]
        yield Table("How long epochs of the recording took until they were applied", headings[: len(rows[0])], rows)


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


def learnt_from_the_middle(model: Document) -> Iterator[str]:
    """Yield what a model lacks that was learnt from logs that start in the middle."""
    if model.get("starts_in_the_middle"):
        yield (
            "The logs from which the model was learnt start in the middle: of the rows from before it has those alone "
            "that users changed."
        )


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
