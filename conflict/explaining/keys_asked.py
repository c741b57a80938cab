"""
Rows that are asked for by their keys: as text, as JSON, or as values by column.

Text such as ``a=1, b=two`` can be several keys where a value holds what looks like the start of another column. It is
understood if only one of them has values that its columns can have; JSON says the same of any key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise, product

from conflict.config.option_values import document_of_key
from conflict.engine.ledger.table_keys import TableKey
from conflict.errors import ConfigurationError, HistoryError
from ndb_formats.schema.given_values import MOMENTS, given_value, no_value
from ndb_formats.schema.row_keys import value_text
from ndb_formats.types.values import Value

GivenKey = str | int | Mapping[str, object]
_MOST_WAYS = 1000


def identity_asked(table: str, key: TableKey, given: GivenKey) -> bytes:
    """
    Return the identity of the row that is asked for.

    Args:
        table: Name of its table, for messages.
        key: The key of the table.
        given: The key as text, its columns in any order, of one column also its value alone; as a JSON object of the
            values by column; or the same as a mapping. Texts in any spelling, bytes in hexadecimal digits, moments as
            text.

    Raises:
        ConfigurationError: It does not name the columns of the key, or it can be several keys.
        HistoryError: A value is none of its column, so there is no such row.
    """
    found, faults = dict[bytes, None](), list[str]()
    for values in _ways(key.names, given):
        try:
            found[_identity(key, [given_value(column, values[column.name]) for column in key.columns])] = None
        except ValueError as error:
            row = ", ".join(f"{name}={value_text(values[name])}" for name in key.names)
            faults.append(f"nothing happened to the row {row} of {table}: {error}")
    if len(found) > 1:
        ways = " or ".join(f"--key '{_as_json(key, identity)}'" for identity in islice(found, 2))
        message = f"the key {given} of table {table} can be {len(found)} keys; give it as JSON: {ways}"
        raise ConfigurationError(message)
    if faults and not found:
        raise HistoryError(faults[0])
    if not found:
        example = ", ".join(f"{name}=..." for name in key.names)
        message = f"the key {given} is not understood; of table {table} it is {example}"
        raise ConfigurationError(message)
    return next(iter(found))


def key_as_given(table: str, key: TableKey, identity: bytes) -> str:
    """Return what names a row for `identity_asked`: its text, or JSON if that can be several keys."""
    text = key.text(identity)
    try:
        if identity_asked(table, key, text) == identity:
            return text
    except (ConfigurationError, HistoryError):
        pass
    return _as_json(key, identity)


def _identity(key: TableKey, values: Sequence[Value]) -> bytes:
    """
    Return the identity of the row with some values.

    Raises:
        ValueError: A value is none of its column.
    """
    identity = key.identity(values)
    for column, value, known in zip(key.columns, values, key.values(identity), strict=True):
        # Parts of a moment are not looked at when it is encoded; a fraction may be left out.
        if column.type in MOMENTS and not str(known).startswith(str(value)):
            raise no_value(column, value)
    return identity


def _as_json(key: TableKey, identity: bytes) -> str:
    values = zip(key.names, key.values(identity), strict=True)
    return json.dumps({name: _plain(value) for name, value in values}, ensure_ascii=False)


def _plain(value: Value) -> object:
    return value if value is None or isinstance(value, int | float | str) else value_text(value)


def _ways(names: Sequence[str], given: GivenKey) -> Iterator[Mapping[str, object]]:
    """Yield the values by column that a key can have as it is given."""
    if isinstance(given, Mapping):
        if set(given) == set(names):
            yield given
        return
    text = str(given)
    document = document_of_key(text, names)
    if document is not None and len(document) == len(names):
        yield document
        return
    if len(names) == 1:
        yield {names[0]: text.removeprefix(f"{names[0]}=")}
        return
    yield from islice(_divided(text, names), _MOST_WAYS)


def _divided(text: str, names: Sequence[str]) -> Iterator[dict[str, object]]:
    """Yield the values by column for each way in which a text names every column once."""
    starts = {name: list(re.finditer(rf"(?:\A|,\s*){re.escape(name)}=", text)) for name in names}
    for chosen in product(*starts.values()):
        parts = sorted(zip(chosen, names, strict=True), key=lambda part: part[0].start())
        bounds = [found.start() for found, _ in parts]
        if bounds[0] == 0 and all(first.end() <= second.start() for (first, _), (second, _) in pairwise(parts)):
            ends = [*bounds[1:], len(text)]
            yield {name: text[found.end() : end] for (found, name), end in zip(parts, ends, strict=True)}
