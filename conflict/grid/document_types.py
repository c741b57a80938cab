"""
Objects of JSON documents: each value must be of the type that its class declares, all the way down.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import attrs

__all__ = ["MisfitError", "object_of"]

T = TypeVar("T")


class MisfitError(ValueError):
    """A value of a document is not of its type; the message names its place in the document."""


def object_of(kind: type[T], document: object) -> T:
    """
    Return an object of a class of attrs, as `conflict.grid.documents.to_json` wrote it.

    Raises:
        MisfitError: Something is missing, superfluous, or of another type.
    """
    found: T = _value(kind, document, "")
    return found


def _value(kind: Any, value: Any, place: str) -> Any:
    """Return a value that is declared as a number, a truth value, a text, a path, or something made of these."""
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
        return Path(value)
    if isinstance(kind, type) and issubclass(kind, IntEnum) and type(value) is int and value in [*map(int, kind)]:
        return kind(value)
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
