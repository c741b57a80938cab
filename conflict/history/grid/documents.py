"""
The JSON documents of a History: how objects are written and checked, and the format number that all of them carry.

Each value must be of the type that its class declares, all the way down.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from enum import IntEnum
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import attrs

from conflict.errors import HistoryError
from conflict.history.grid.folder import Folder
from ndb_formats.stored import path_of

T = TypeVar("T")
_DIGITS = re.compile("(?:[0-9a-f]{2})*")


class MisfitError(ValueError):
    """A value of a document is not of its type; the message names its place in the document."""


def object_of(kind: type[T], document: object) -> T:
    """
    Return an object of a class of attrs, as `conflict.history.grid.documents.to_json` wrote it.

    Raises:
        MisfitError: Something is missing, superfluous, or of another type.
    """
    found: T = _value(kind, document, "")
    return found


def _value(kind: Any, value: Any, place: str) -> Any:
    """Return a value that is declared as a number, a truth value, a text, bytes, a path, or something made of these."""
    origin = get_origin(kind)
    if origin is UnionType:
        return None if value is None and NoneType in get_args(kind) else _value(get_args(kind)[0], value, place)
    if origin is dict and isinstance(value, dict):
        return {name: _value(get_args(kind)[1], each, f"{place}.{name}") for name, each in value.items()}
    if origin in (tuple, list) and isinstance(value, list):
        return origin(_value(get_args(kind)[0], each, f"{place}[{number}]") for number, each in enumerate(value))
    if origin is None and attrs.has(kind) and isinstance(value, dict):
        return _typed_object(kind, value, place)
    if kind is Path and isinstance(value, str):
        return path_of(value)
    if isinstance(kind, type) and issubclass(kind, IntEnum) and type(value) is int and value in [*map(int, kind)]:
        return kind(value)
    if kind is bytes and isinstance(value, str) and _DIGITS.fullmatch(value):
        return bytes.fromhex(value)
    if kind in (bool, int, str) and type(value) is kind:
        return value
    message = f"{place.lstrip('.') or 'it'} is {str(value)[:40]!r}"
    raise MisfitError(message)


def _typed_object(kind: type[attrs.AttrsInstance], document: Mapping[str, Any], place: str) -> Any:
    hints = _hints(kind)
    if unknown := document.keys() - hints.keys():
        message = f"{place.lstrip('.') or 'it'} has {min(unknown)[:40]!r}"
        raise MisfitError(message)
    for field in attrs.fields(kind):
        if field.default is attrs.NOTHING and field.name not in document:
            message = f"{place.lstrip('.') or 'it'} lacks {field.name}"
            raise MisfitError(message)
    return kind(**{name: _value(hints[name], value, f"{place}.{name}") for name, value in document.items()})


@cache
def _hints(kind: type[attrs.AttrsInstance]) -> dict[str, Any]:
    return get_type_hints(kind)


FORMAT = 19


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
        return object_of(kind, document)
    except MisfitError as error:
        message = f"{history.uri}: {name} is damaged: {error}; ingest the binlogs again into another folder"
        raise HistoryError(message) from error
