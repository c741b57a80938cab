"""
The JSON documents of a History: how objects are written, and the one format number that all documents carry.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from conflict.errors import HistoryError
from conflict.grid.folder import Folder
from ndb_formats.constants import ColumnCode
from ndb_formats.types.column_types import WireType

__all__ = ["FORMAT", "read_document", "to_json", "types_from_json", "write_document"]

FORMAT = 10


def to_json(value: attrs.AttrsInstance) -> dict[str, Any]:
    """Return an object as a JSON document, paths as text."""
    return attrs.asdict(
        value, value_serializer=lambda instance, field, inner: str(inner) if isinstance(inner, Path) else inner
    )


def types_from_json(document: Mapping[str, Any]) -> dict[str, tuple[WireType, ...]]:
    """Read the wire types of the columns of each table."""
    return {
        name: tuple(WireType(ColumnCode(wire["code"]), wire["length"], wire["scale"]) for wire in wires)
        for name, wires in document.items()
    }


def write_document(history: Folder, name: str, value: attrs.AttrsInstance) -> None:
    """Write `history.json` or `ingest.json`."""
    document = to_json(value)
    history.write_json(name, {"format": FORMAT, "digest": _digest(document), **document})


def _digest(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def read_document(history: Folder, name: str) -> dict[str, Any] | None:
    """
    Read `history.json` or `ingest.json`; None if it does not exist.

    Raises:
        HistoryError: It has another format, or is damaged.
    """
    if not history.exists(name):
        return None
    document = history.read_json(name)
    found = document.pop("format", "unknown") if isinstance(document, dict) else "unknown"
    if found != FORMAT:
        message = (
            f"{history.uri}: the format of this History is {found}, and this version of ndb-conflict reads format "
            f"{FORMAT}; ingest the binlogs again into another folder"
        )
        raise HistoryError(message)
    if document.pop("digest", None) != _digest(document):
        message = (
            f"{history.uri}: {name} has changed since it was written; ingest the binlogs again into another folder"
        )
        raise HistoryError(message)
    return dict(document)
