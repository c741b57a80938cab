"""
The axes of a grid, and what each does to the document of a model. docs/sweep.md lists them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from conflict.errors import ConfigurationError

__all__ = ["AXES", "document_at"]

Document = dict[str, Any]


def document_at(base: Mapping[str, Any], point: Mapping[str, Any]) -> Document:
    """
    Return the document of a model at a point of a grid.

    Args:
        base: The document of the model; see `conflict.model.model_file.parse_model`. It stays as it is.
        point: A value for each axis: one of `AXES`, or an entry of the document, as ``workload.insertproportion``.

    Raises:
        ConfigurationError: An entry is inside something that is no table.
    """
    document: Document = copy.deepcopy(dict(base))
    for name, value in point.items():
        if name in AXES:
            AXES[name](document, value)
        else:
            _set(document, name, value)
    return document


def _set(document: Document, name: str, value: Any) -> None:
    """Set an entry, whose tables have dots between them."""
    *tables, entry = name.split(".")
    _table(document, *tables)[entry] = value


def _table(document: Document, *names: str) -> Document:
    """Return a table within a document, which is made if it is not there."""
    found = document
    for name in names:
        found = found.setdefault(name, {})
        if not isinstance(found, dict):
            message = (
                f"[grid] {'.'.join(names)}: {name} is no table of the model; give an entry such as workload.retries"
            )
            raise ConfigurationError(message)
    return found


def _clusters(document: Document) -> list[Document]:
    """Return the tables of both clusters."""
    clusters = _table(document, "clusters")
    return [_table(clusters, name) for name in list(clusters) or ["A", "B"]]


def _of_all_tables(name: str) -> Callable[[Document, Any], None]:
    """Return what sets an entry for all tables of a model, also for those that have one of their own."""

    def lay(document: Document, value: Any) -> None:
        document[name] = value
        for table in document.get("tables", []):
            table.pop(name, None)

    return lay


def _latency(document: Document, value: Any) -> None:
    for cluster in _clusters(document):
        link = _table(cluster, "link")
        link["latency_ms"] = value
        if link.pop("trace_ms", None) is not None:
            link.pop("latency", None)


def _clock_skew(document: Document, value: Any) -> None:
    _clusters(document)[-1]["clock_skew_ms"] = value


def _rate(document: Document, value: Any) -> None:
    for cluster in _clusters(document):
        cluster.get("workload", {}).pop("transactions_per_second", None)
    _table(document, "workload")["transactions_per_second"] = value


def _outage(document: Document, value: Any) -> None:
    middle = document.get("seconds", 60) / 2
    for cluster in _clusters(document):
        _table(cluster, "link")["outages"] = [[middle, middle + value]] if value else []


def _skew(document: Document, value: Any) -> None:
    for cluster in _clusters(document):
        for name in ("requestdistribution", "zipfianconstant"):
            cluster.get("workload", {}).pop(name, None)
    work = _table(document, "workload")
    work["requestdistribution"] = "zipfian" if value else "uniform"
    work.pop("zipfianconstant", None)
    if value:
        work["zipfianconstant"] = value


AXES: dict[str, Callable[[Document, Any], None]] = {
    "function": _of_all_tables("function"),
    "binlog_type": _of_all_tables("binlog_type"),
    "latency_ms": _latency,
    "clock_skew_ms": _clock_skew,
    "zipfianconstant": _skew,
    "transactions_per_second": _rate,
    "outage_seconds": _outage,
}
