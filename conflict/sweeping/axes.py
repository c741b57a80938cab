"""
The axes of a grid, and what each does to the document of a model. docs/sweep.md lists them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from conflict.errors import ConfigurationError
from conflict.model.words import is_number

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
    # Entries first: an outage is in the middle of the seconds that the point gives.
    for name, value in sorted(point.items(), key=lambda axis: axis[0] in AXES):
        if name in AXES:
            AXES[name](document, value)
        else:
            _set(document, name, value)
    return document


def _set(document: Document, name: str, value: Any) -> None:
    """Set an entry, whose tables have dots between them."""
    *tables, entry = name.split(".")
    if tables[:1] == ["clusters"]:
        _clusters(document)  # both, in their order: the first one is the primary
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


def _forget(cluster: Document, *names: str) -> None:
    """Remove what a cluster has of its own in its workload, so that the workload of all counts."""
    if "workload" in cluster:
        work = _table(cluster, "workload")
        for name in names:
            work.pop(name, None)


def _tables(document: Document) -> list[Document]:
    """Return the tables of a model that are described one by one."""
    tables = document.get("tables")
    return [table for table in tables if isinstance(table, dict)] if isinstance(tables, list) else []


def _binlog_type(document: Document, value: Any) -> None:
    document["binlog_type"] = value
    for table in _tables(document):
        table.pop("binlog_type", None)


def _function(document: Document, value: Any) -> None:
    """Give a function to the tables that have one, as `compare` does; to all of them if none has."""
    tables, common = _tables(document), document.get("function")
    without = [table for table in tables if not table.get("function", common)]
    document["function"] = value
    for table in tables:
        table.pop("function", None)
    for table in without if len(without) < len(tables) else []:
        table["function"] = {}


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
        _forget(cluster, "transactions_per_second")
    _table(document, "workload")["transactions_per_second"] = value


def _outage(document: Document, value: Any) -> None:
    seconds = document.get("seconds", 60)
    if not is_number(seconds) or not is_number(value):
        message = f"[grid] outage_seconds is {value!r} in a model of {seconds!r} seconds; give numbers, from 0 on"
        raise ConfigurationError(message)
    for cluster in _clusters(document):
        _table(cluster, "link")["outages"] = [[seconds / 2, seconds / 2 + value]] if value else []


def _skew(document: Document, value: Any) -> None:
    for cluster in _clusters(document):
        _forget(cluster, "requestdistribution", "zipfianconstant")
    work = _table(document, "workload")
    work["requestdistribution"] = "zipfian" if value else "uniform"
    work.pop("zipfianconstant", None)
    if value:
        work["zipfianconstant"] = value


AXES: dict[str, Callable[[Document, Any], None]] = {
    "function": _function,
    "binlog_type": _binlog_type,
    "latency_ms": _latency,
    "clock_skew_ms": _clock_skew,
    "zipfianconstant": _skew,
    "transactions_per_second": _rate,
    "outage_seconds": _outage,
}
