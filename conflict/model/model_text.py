"""
The text of a file that describes a simulation, from its document.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["model_text"]

_TABLE_ENTRIES = ("tables", "clusters", "workload")
_BLOCKS = ("workload", "link", "applier")
WIDTH = 110


def model_text(document: Mapping[str, Any]) -> str:
    """Return the text of a document that `conflict.model.learning.learn` made."""
    return "\n".join(_lines(document)) + "\n"


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    yield from _entries({name: value for name, value in document.items() if name not in _TABLE_ENTRIES})
    for table in document["tables"]:
        yield "\n[[tables]]"
        yield from _entries(table)
    for name, cluster in document["clusters"].items():
        yield f"\n[clusters.{_key(name)}]"
        yield from _entries({entry: value for entry, value in cluster.items() if entry not in _BLOCKS})
        for block in _BLOCKS:
            yield f"\n[clusters.{_key(name)}.{block}]"
            yield from _entries(cluster[block])


def _entries(entries: Mapping[str, Any]) -> Iterator[str]:
    for name, value in entries.items():
        line = f"{_key(name)} = {_value(value)}"
        if len(line) <= WIDTH or not isinstance(value, list):
            yield line
        else:
            yield f"{_key(name)} = ["
            yield from _folded(value)
            yield "]"


def _folded(values: list[Any]) -> Iterator[str]:
    """Yield the elements of a list, as many on a line as fit."""
    line = "   "
    for text in map(_value, values):
        if len(line) + len(text) > WIDTH:
            yield line
            line = "   "
        line += f" {text},"
    yield line


def _key(name: str) -> str:
    return name if name.isascii() and name.replace("_", "").replace("-", "").isalnum() else json.dumps(name)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(name)} = {_value(each)}" for name, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, float):
        return repr(float(value))
    return json.dumps(value)
