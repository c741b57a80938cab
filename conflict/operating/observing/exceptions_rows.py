"""
Rows of exceptions tables that servers show beside those that a result derived, and what explains a difference.

Rows belong together by all their values; else by all but the number that the applier gives them; else by the first four
columns, which are the primary key.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal, InvalidOperation

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from conflict.errors import ConfigurationError
from conflict.operating.observing.counters import why_more
from conflict.operating.observing.observed import exceptions_tables
from conflict.results.result import Result
from conflict.rules.exceptions_table import BITS_IN_EXCEPTIONS

_KEY = 4  # columns: server, source, epoch, number
_OUTCOME = "NDB$outcome"
Values = tuple[object, ...]
_OPEN = "the binlogs leave open how changes of this epoch were judged"
_NUMBER = "an applier that was restarted in between uses up more numbers, and the binlogs do not show that"


@attrs.frozen
class RowDifference:
    """
    A row of an exceptions table that differs, or that one side alone has.

    Attributes:
        cluster: The cluster.
        table: The exceptions table.
        key: Its first four columns, as text; of a row with another number, those of the server.
        observed: What the server has in the columns that differ, as text; None if it lacks the row.
        derived: What the result has in them; None if it lacks the row.
        why: What explains it; empty if nothing does.
        renumbered: Whether the rows differ in the number alone that the applier gave them.
    """

    cluster: str
    table: str
    key: str
    observed: Mapping[str, str | None] | None
    derived: Mapping[str, str | None] | None
    why: str = ""
    renumbered: bool = False


@attrs.frozen
class _Side:
    """An exceptions table, as both sides have it: its columns, and what explains differences."""

    result: Result
    cluster: str
    table: str
    names: Sequence[str]
    open_epochs: frozenset[int]
    bits: frozenset[str] = frozenset()

    def difference(self, observed: Values | None, derived: Values | None, of: Sequence[int], why: str) -> RowDifference:
        key = ", ".join(str(value) for value in (observed or derived or ())[:_KEY])
        theirs, mine = (
            None if row is None else {self.names[place]: shown_value(row[place]) for place in of}
            for row in (observed, derived)
        )
        return RowDifference(self.cluster, self.table, key, theirs, mine, why)

    def why(self, row: Values) -> str:
        return _OPEN if row[2] in self.open_epochs else ""


def compared_rows(
    result: Result, cluster: str, table: str, observed: Sequence[Mapping[str, object]]
) -> tuple[int, list[RowDifference]]:
    """
    Return how many rows a result has of an exceptions table, and how those that a server shows differ.

    Args:
        result: The result.
        cluster: The cluster.
        table: The exceptions table, ``database.table$EX``.
        observed: The server's rows: values by column, names in small letters.

    Raises:
        ConfigurationError: A column of the primary key is missing.
    """
    run_table = exceptions_tables(result, cluster)[table]
    found = result.exceptions(run_table, cluster)
    fields = [field for field in found.schema if field.name != _OUTCOME]
    given = {name for row in observed[:1] for name in row}
    missing = [field.name for field in fields[:_KEY] if given and field.name.lower() not in given]
    if missing:
        message = f"rows of {table} have no column {missing[0]}, which is in its primary key; print all columns"
        raise ConfigurationError(message)
    fields = [field for field in fields if not given or field.name.lower() in given]
    theirs = [tuple(comparable(row.get(each.name.lower()), each.type) for each in fields) for row in observed]
    columns = [found[each.name].to_pylist() for each in fields]
    mine = [
        tuple(comparable(value, each.type) for each, value in zip(fields, row, strict=True))
        for row in zip(*columns, strict=True)
    ]
    setup = result.run["configuration"]["functions"][cluster][run_table]
    side = _Side(
        result,
        cluster,
        table,
        [each.name for each in fields],
        _open_epochs(result, cluster, run_table),
        frozenset(setup.get("bits_in_exceptions", ())),
    )
    return len(mine), [*_differences(side, theirs, mine)]


def _differences(side: _Side, observed: Sequence[Values], derived: Sequence[Values]) -> Iterator[RowDifference]:
    places = range(len(side.names))
    _, left, right = _paired(observed, derived, lambda row: row)
    renumbered, left, right = _paired(left, right, lambda row: row[: _KEY - 1] + row[_KEY:])
    changed, left, right = _paired(left, right, lambda row: row[:_KEY])
    for one, other in changed:
        differing = [place for place in places if one[place] != other[place]]
        in_bits = {side.names[place] for place in differing} <= side.bits
        yield side.difference(one, other, differing, BITS_IN_EXCEPTIONS if in_bits else side.why(one))
    for row in left:
        yield side.difference(row, None, places, side.why(row) or _why_alone(side, row))
    for row in right:
        yield side.difference(None, row, places, side.why(row))
    for one, other in renumbered:
        follows = "it follows from the rows that one side alone has" if left or right else ""
        found = side.difference(one, other, [_KEY - 1], follows or _why_number(side, one))
        yield attrs.evolve(found, renumbered=True)


def _paired(
    left: Sequence[Values], right: Sequence[Values], key: Callable[[Values], Values]
) -> tuple[list[tuple[Values, Values]], list[Values], list[Values]]:
    """Return pairs of rows with the same key, and what is left of both."""
    waiting = defaultdict[Values, list[Values]](list)
    for row in reversed(right):
        waiting[key(row)].append(row)
    pairs, alone = list[tuple[Values, Values]](), list[Values]()
    for row in left:
        others = waiting[key(row)]
        if others:
            pairs.append((row, others.pop()))
        else:
            alone.append(row)
    return pairs, alone, [row for others in waiting.values() for row in reversed(others)]


def _why_number(side: _Side, row: Values) -> str:
    """Return what explains that a row has another number; nothing if nothing does."""
    run = side.result.run
    if run["ndb_count_more"].get(side.cluster, {}).get(side.table):
        return _NUMBER
    if run["starts_in_the_middle"]:
        return "the logs start in the middle: the server numbered rows before"
    return side.why(row) or (_OPEN if run["undecided"].get(side.cluster) else "")


def _why_alone(side: _Side, row: Values) -> str:
    """Return why the result can lack a row that a server has; nothing if nothing explains it."""
    epochs = side.result.applied_epochs(side.cluster)["source_epoch"]
    epoch = row[2]
    if isinstance(epoch, int) and len(epochs):
        if epoch > pc.max(epochs).as_py():
            return "the logs end before that epoch was applied"
        if epoch < pc.min(epochs).as_py():
            return "the logs start after that epoch was applied"
    return why_more(side.result, side.cluster)


def _open_epochs(result: Result, cluster: str, table: str) -> frozenset[int]:
    """Return the epochs of the source with changes of a table whose decisions the binlogs leave open."""
    opened: pa.Table = result.undecided(cluster)
    epochs = opened.filter(pc.equal(opened["table"], table))["source_epoch"].to_pylist()
    settled = [each["foreign_epoch"] for each in result.run["cannot_tell"] if each["cluster"] == cluster]
    return frozenset[int]((*epochs, *map(int, settled)))


def comparable(value: object, kind: pa.DataType) -> object:
    """
    Return a value in a form that is the same for equal values, and can be a key.

    FLOAT is printed with six digits and DOUBLE with up to seventeen; blanks at the ends of texts, and zero bytes at the
    ends of binary values, do not survive all ways of printing. NULL and the text NULL look the same.

    Args:
        value: A value of a result; or a text or bytes, as a server gives them. A text that is no value of the type
            stays as it is.
        kind: The type of its column in the result.
    """
    if value is None or value == "NULL":
        return None
    with suppress(ValueError, InvalidOperation):
        if pa.types.is_integer(kind):
            return _integer(value)
        if pa.types.is_decimal(kind):
            return Decimal(str(value))
        if pa.types.is_floating(kind):
            return float(f"{float(str(value)):.{6 if pa.types.is_float32(kind) else 15}g}")
    if pa.types.is_binary(kind):
        return (value if isinstance(value, bytes) else str(value).encode()).rstrip(b"\0")
    return (value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)).strip(" ")


def _integer(value: object) -> int:
    if isinstance(value, bytes):
        return int.from_bytes(value, "big")
    if isinstance(value, int):
        return value
    text = str(value)
    try:
        return int(text)
    except ValueError:  # a BIT, as the characters that it is made of
        return int.from_bytes(text.encode("latin-1"), "big")


def shown_value(value: object) -> str | None:
    """Return a value as people read it; None is NULL."""
    if value is None:
        return None
    return f"0x{value.hex()}" if isinstance(value, bytes) else str(value)
