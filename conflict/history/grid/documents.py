"""
The JSON documents of a History: how objects are written and read, and the format number that all of them carry.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import attrs

from conflict.documents import read
from conflict.errors import ConfigurationError, HistoryError
from conflict.history.grid.folder import Folder

T = TypeVar("T")
FORMAT = 18


def to_json(value: attrs.AttrsInstance) -> dict[str, Any]:
    """Return an object as a JSON document, paths as text and bytes as hexadecimal digits."""
    return attrs.asdict(value, value_serializer=_plain)


def _plain(_instance: object, _field: object, value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else str(value) if isinstance(value, Path) else value


def write_document(history: Folder, name: str, value: attrs.AttrsInstance) -> None:
    """Write `history.json` or `ingest.json`."""
    document = to_json(value)
    history.write_json(name, {"format": FORMAT, "digest": _digest(document), **document})


def _digest(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def read_document(history: Folder, name: str, kind: type[T]) -> T | None:
    """
    Read `history.json` or `ingest.json` as an object of a class; None if it does not exist.

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
    return _object(history, name, kind, document)


def read_object(history: Folder, name: str, kind: type[T]) -> T:
    """
    Read a document without a format number as an object of a class.

    Raises:
        HistoryError: It is damaged.
    """
    return _object(history, name, kind, history.read_json(name))


def _object(history: Folder, name: str, kind: type[T], document: object) -> T:
    try:
        found: T = read(kind, document)
    except ConfigurationError as error:
        message = f"{history.uri}: {name} is damaged: {error}; ingest the binlogs again into another folder"
        raise HistoryError(message) from error
    return found
