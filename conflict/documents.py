"""
Documents as objects: a class of attrs declares the entries of a table, and its types what they must be.

A value must be of its type exactly: true is no number, and a text is no list of letters. `Must` says what it must be
besides. An error names the path of its entry, as ``clusters.A.server_id``; members of a list are counted from 1, as in
``rule#2.wins``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import attrs

from conflict.errors import ConfigurationError
from ndb_formats.errors import FormatError, did_you_mean
from ndb_formats.stored import path_of

_LONGEST = 60  # of a value in a message


@attrs.frozen
class Must:
    """
    What a value must be besides its type; an annotation of the type.

    Attributes:
        words: In words, after "it must be"; empty for those of the type.
        accepts: Whether a value is that.
        names: The texts that it can be; none if other values are possible.
        given: Its type in the document, where `convert` makes another one of it; None for the annotated type.
        convert: Returns what is kept of it.
    """

    words: str = ""
    accepts: Callable[[Any], object] = lambda _value: True
    names: Sequence[str] = ()
    given: Any = None
    convert: Callable[[Any], Any] = lambda value: value


def whole(low: int, high: int) -> Must:
    """Return what a whole number in a range must be."""
    return Must(f"a whole number from {low} to {high}", lambda value: low <= value <= high)


def one_of(names: Collection[str], convert: Callable[[Any], Any] = str) -> Must:
    """Return what one of some texts must be."""
    return Must(f"one of {', '.join(names)}", lambda value: value in names, tuple(names), str, convert)


GIVEN = Must(accepts=lambda value: value is not None)  # of JSON, where null is not what is absent
Text = Annotated[str, Must("a text", lambda value: "\0" not in value)]
Name = Annotated[str, Must("a text that is not empty", lambda value: value != "" and "\0" not in value)]
ServerId = Annotated[int, whole(0, 2**32 - 1)]
Epoch = Annotated[int, whole(0, 2**64 - 1)]


def read(kind: Any, value: Any, path: str = "") -> Any:
    """
    Return a value of a type from what a document holds.

    Args:
        kind: A class of attrs, each of whose attributes is an entry, which is needed if it has no default; or any other
            type that such an attribute has.
        value: The document, or a part of it.
        path: The path of the part within the document.

    Raises:
        ConfigurationError: An entry is missing, unknown, or not what it must be.
    """
    if type(value) is kind:
        return value
    if not _fits(kind, value):
        raise misfit(path, value, _words(kind), _names(kind))
    origin, members = get_origin(kind) or kind, get_args(kind)
    if origin is Annotated:
        return _read_checked(kind, value, path)
    if _is_union(kind):
        return None if value is None else read(next(each for each in members if _fits(each, value)), value, path)
    if origin is dict:
        return {name: read(members[1], each, f"{path}.{name}") for name, each in value.items()}
    if origin in (tuple, list):
        return origin(read(members[0], each, f"{path}#{number}") for number, each in enumerate(value, start=1))
    if attrs.has(origin):
        return _read_table(origin, value, path)
    return _CONVERT.get(origin, origin)(value) if origin in _CONVERT or _is_enum(origin) else value


def _read_checked(kind: Any, value: Any, path: str) -> Any:
    must: Must = kind.__metadata__[0]
    found = read(must.given or kind.__origin__, value, path)
    if not must.accepts(found):
        raise misfit(path, value, _words(kind), must.names)
    with _at(path):
        return must.convert(found)


def _read_table(kind: type[attrs.AttrsInstance], table: Mapping[str, Any], path: str) -> Any:
    types = _types(kind)
    if unknown := table.keys() - types.keys():
        raise unknown_entries(path, unknown, types)
    for field in attrs.fields(kind):
        if field.default is attrs.NOTHING and field.name not in table:
            raise missing(f"{path}.{field.name}", types[field.name])
    found = {name: read(types[name], value, f"{path}.{name}") for name, value in table.items()}
    with _at(path):
        return kind(**found)


@cache
def _types(kind: type[attrs.AttrsInstance]) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


@contextmanager
def _at(path: str) -> Iterator[None]:
    """Put a path before what the block finds wrong with its values."""
    try:
        yield
    except (ConfigurationError, FormatError) as error:
        raise ConfigurationError(f"{_place(path)}: {error}") from error


def misfit(path: str, value: object, words: str, names: Collection[Any] = ()) -> ConfigurationError:
    """
    Return the error for a value that is not what it must be.

    Args:
        path: The path of the entry.
        value: The value.
        words: What it must be.
        names: The values that it can be; empty if others are possible.
    """
    meant = did_you_mean(str(value), map(str, names)) if names else ""
    return ConfigurationError(f"{_place(path)} is {_shown(value)}; it must be {words}{meant}")


def missing(path: str, kind: Any) -> ConfigurationError:
    """Return the error for an entry of a type that is needed."""
    return ConfigurationError(f"{_place(path)} is missing; it must be {_words(kind)}")


def unknown_entries(path: str, unknown: Collection[object], known: Collection[str]) -> ConfigurationError:
    """Return the error for entries that the table at a path does not have."""
    first, *_ = names = sorted(map(str, unknown))
    there = f"known are {', '.join(sorted(known))}"
    return ConfigurationError(
        f"{_place(path)} has unknown entries {', '.join(names)}{did_you_mean(first, known)}; {there}"
    )


def _place(path: str) -> str:
    return path.removeprefix(".") or "it"


def _shown(value: object) -> str:
    """Return a value for a message, cut if it is long."""
    try:
        text = repr(value)
    except ValueError:  # Python does not print such long numbers
        return "a number that is too long"
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


# By type: what its values are in a document, and in words.
_SHAPES: Mapping[Any, tuple[Any, str]] = {
    int: (int, "a whole number"),
    float: (int | float, "a number"),
    bool: (bool, "true or false"),
    str: (str, "a text"),
    Path: (str, "a path"),
    bytes: (str, "hexadecimal digits"),
    tuple: (list, "a list"),
    list: (list, "a list"),
    dict: (dict, "a table"),
    Any: (object, "anything"),
    NoneType: (NoneType, "null"),
}
_CONVERT: Mapping[Any, Callable[[str], Any]] = {Path: path_of, bytes: bytes.fromhex}
_DIGITS = re.compile("(?:[0-9a-f]{2})*")


def _shape(kind: Any) -> tuple[Any, str]:
    return _SHAPES.get(get_origin(kind) or kind, _SHAPES[dict])


def _is_union(kind: Any) -> bool:
    return get_origin(kind) in (UnionType, Union)


def _is_enum(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Enum)


def _fits(kind: Any, value: Any) -> bool:
    """Return whether a value has the shape of a type; its parts are not looked at."""
    if get_origin(kind) is Annotated:
        return _fits(kind.__metadata__[0].given or kind.__origin__, value)
    if _is_union(kind):
        return any(_fits(each, value) for each in get_args(kind))
    if names := _names(kind):
        return isinstance(value, type(names[0])) and not isinstance(value, bool) and value in names
    shape, _ = _shape(kind)
    if isinstance(value, bool):
        return shape in (bool, object)
    return isinstance(value, shape) and (kind is not bytes or _DIGITS.fullmatch(value) is not None)


def _words(kind: Any) -> str:
    """Return what a value of a type must be."""
    if get_origin(kind) is Annotated:
        return str(kind.__metadata__[0].words) or _words(kind.__origin__)
    if _is_union(kind):
        return ", or ".join(_words(each) for each in get_args(kind) if each is not NoneType)
    names = _names(kind)
    return f"one of {', '.join(map(str, names))}" if names else _shape(kind)[1]


@cache
def _names(kind: Any) -> Sequence[Any]:
    """Return the values of a type that has only a few."""
    if get_origin(kind) is Annotated:
        return kind.__metadata__[0].names or _names(kind.__origin__)
    if get_origin(kind) is Literal:
        return get_args(kind)
    if _is_union(kind):
        return [name for each in get_args(kind) for name in _names(each)]
    return [each.value for each in kind] if _is_enum(kind) else ()
