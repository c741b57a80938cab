"""
Whether what is unique on the source is unique on the replica.

A replica refuses a row, with error 1062, that is equal to another one in all parts of a unique key, of which none is
NULL. It never does so if a unique key of the source is *implied*: rows that are equal in the replica's key are equal in
the source's, too, and the source has no two such rows. That is so if each part of the source's key is *decided* by a
part of the replica's: the same column, or a longer prefix of it, or the same expression, under a collation that is as
fine, with values that arrive as they are. Further parts of the replica's key do no harm.

Texts can be equal in a longer prefix and differ in a shorter one, where several characters are equal to one (under
utf8mb4_0900_ai_ci 'ss' is equal to the one letter that German has for it).

Source: MySQL manual, "CREATE INDEX Statement" (prefixes, functional key parts, unique indexes), "The binary Collation
Compared to _bin Collations" (trailing blanks); each rule was tried on MySQL 9.7.4.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import IntEnum
from functools import cache

import attrs

from ndb_formats.errors import UnsupportedError
from ndb_formats.rules.replica.columns import ColumnPair, TablePair, keeps_values
from ndb_formats.rules.replica.expressions import same_expression
from ndb_formats.schema.tables import Column, KeyPart, Table
from ndb_formats.types.collations import comparison_of
from ndb_formats.types.values import ABSENT

_NULL = (None, ABSENT)  # the defaults that are NULL
_SENSITIVITIES = ("ai_ci", "as_ci", "as_cs")  # each makes fewer texts equal than the one before
_SENSITIVE = re.compile(f"(?P<language>utf8mb4_.*0900)_(?P<rest>{'|'.join(_SENSITIVITIES)})")
_LIKE_ASCII = frozenset({"latin1", "utf8mb3", "utf8mb4"})


class Equality(IntEnum):
    """What follows for the source from values that are equal on the replica, the best first."""

    EQUAL = 0
    LONGER_PREFIX = 1  # equal, but for texts of which several characters are equal to one
    BLANKS = 2  # equal, but for blanks at the end
    COARSER = 3  # the collation of the replica makes more texts equal
    CHANGED = 4  # different values can arrive as the same one


@attrs.frozen
class UniqueKey:
    """
    A unique key of a table.

    Attributes:
        parts: Its parts.
        columns: For each part its column; None for an expression.
        places: For each part the place of its column in row events; -1 for an expression.
        primary: Whether it is the declared primary key.
    """

    parts: tuple[KeyPart, ...]
    columns: tuple[Column | None, ...]
    places: tuple[int, ...]
    primary: bool = False

    @property
    def names(self) -> str:
        """Its parts as a definition has them, with commas between."""
        return ", ".join(map(str, self.parts))

    @property
    def text(self) -> str:
        """Its kind and its parts."""
        return f"{'primary' if self.primary else 'unique'} key ({self.names})"

    @property
    def finds_rows(self) -> bool:
        """Whether an applier finds rows by it: it has whole columns that are stored and not NULL."""
        return all(
            column is not None and not part.prefix and not column.nullable and column.generated != "virtual"
            for part, column in zip(self.parts, self.columns, strict=True)
        )


def unique_keys(table: Table, left_out: int = 0) -> tuple[UniqueKey, ...]:
    """
    Return the unique keys of a table, the primary key first.

    Args:
        table: The table.
        left_out: How many of its first columns row events do not have.
    """
    keys = []
    for number, parts in enumerate(table.unique_parts):
        columns = tuple(table.find(part.column) for part in parts)
        places = tuple(-1 if column is None else table.columns.index(column) - left_out for column in columns)
        keys.append(UniqueKey(parts, columns, places, primary=number == 0 and bool(table.primary_key)))
    return tuple(keys)


def never_equal(pair: TablePair, key: UniqueKey) -> bool:
    """Return whether applied rows are never equal in a key of the replica: no event has its column, new or NULL."""
    for column, place in zip(key.columns, key.places, strict=True):
        if column is None or 0 <= place < len(pair.source.columns):
            continue
        is_null = column.nullable and column.default in _NULL and not (column.computed_default or column.generated)
        if column.auto_increment or is_null or (column.computed_default and "uuid" in (column.expression or "")):
            return True
    return False


def equality_of(pair: TablePair, key: UniqueKey, sources: Iterable[UniqueKey]) -> dict[int, Equality] | None:
    """
    Return what decides that rows that are equal in a key of the replica are equal on the source.

    Args:
        pair: The table.
        key: The key of the replica.
        sources: The unique keys of the source.

    Returns:
        By place of a column, what follows from equal values, for the key of the source that is best implied; None if
        none is.
    """
    found = [each for source in sources if (each := _implied(pair, source, key)) is not None]
    return min(found, key=lambda each: max(each.values(), default=Equality.EQUAL), default=None)


def _implied(pair: TablePair, source: UniqueKey, replica: UniqueKey) -> dict[int, Equality] | None:
    found: dict[int, Equality] = {}
    for number in range(len(source.parts)):
        decided = [
            each
            for other in range(len(replica.parts))
            if (each := _decided(pair, source, number, replica, other)) is not None
        ]
        if not decided:
            return None
        found[source.places[number]] = min(decided)
    return found


def _decided(pair: TablePair, source: UniqueKey, number: int, replica: UniqueKey, other: int) -> Equality | None:
    """Return what equal values of a part of the replica's key say of a part of the source's; None if nothing."""
    place, parts = source.places[number], (source.parts[number], replica.parts[other])
    if place < 0 or replica.places[other] < 0:
        texts = [_expression(key, each) for key, each in ((source, number), (replica, other))]
        same = None not in texts and same_expression(texts[0], texts[1]) and _same_columns(pair, texts[0] or "")
        return Equality.EQUAL if same else None
    if place != replica.places[other] or place >= len(pair.pairs):
        return None
    each, (own, there) = pair.pairs[place], (part.prefix for part in parts)
    if there and not 0 < own <= there:
        return None
    return equality_of_columns(each, longer=own != there) if _arrives(pair, each) else Equality.CHANGED


def _expression(key: UniqueKey, number: int) -> str | None:
    """Return the expression of a part, or of the generated column that it is."""
    column = key.columns[number]
    return key.parts[number].expression or (None if column is None else column.expression)


def _same_columns(pair: TablePair, expression: str) -> bool:
    """Return whether the columns of an expression, if it names any, are the same on both sides."""
    words = set(re.findall(r"\w+", expression))
    named = [
        [(place, _compared(column)) for place, column in enumerate(columns) if column.name.lower() in words]
        for columns in (pair.source.columns, pair.replica_columns)
    ]
    return named[0] == named[1]


def _compared(column: Column) -> Column:
    """Return a column with what matters to the value of an expression."""
    return attrs.evolve(
        column, name=column.name.lower(), default=None, computed_default=False, on_update=False, invisible=False,
        auto_increment=False, inexact_key=False,
    )  # fmt: skip


def _arrives(table: TablePair, pair: ColumnPair) -> bool:
    """Return whether each value of the source is another one on the replica, and NULL is NULL."""
    source, replica = pair.source, pair.replica
    if replica.generated:
        return source.generated is not None and same_expression(source.expression, replica.expression)
    kept = keeps_values(source, replica, table.conversions)
    return kept and (replica.nullable or not source.nullable)


def equality_of_columns(pair: ColumnPair, *, longer: bool = False) -> Equality:
    """
    Return what equal texts of a column on the replica say of those on the source.

    Args:
        pair: The column.
        longer: Whether the replica compares a longer prefix.
    """
    source, replica = pair.source, pair.replica
    if source.members or replica.collation is None:
        return Equality.EQUAL
    if source.collation is None:
        return Equality.COARSER
    blanks = not source.type == replica.type == "char"  # whose blanks are gone on both sides
    found = _equality_of_texts(source.collation, replica.collation, blanks=blanks)
    if longer and found is Equality.EQUAL and not _by_character(replica.collation):
        return Equality.LONGER_PREFIX
    return found


@cache
def _equality_of_texts(source: str, replica: str, *, blanks: bool) -> Equality:
    if source == replica:
        return Equality.EQUAL
    try:
        one, other = comparison_of(source), comparison_of(replica)
    except UnsupportedError:
        return Equality.COARSER
    characters = _characters(one.charset, other.charset)
    # Without a table, each character is equal to itself alone.
    finer = other.table is None or other.table is one.table or _is_finer_by_name(source, replica)
    if other.table is not None and one.table is not None and not finer:
        finer = other.table.is_as_fine_as(one.table, characters)
    if not characters or not finer:
        return Equality.COARSER
    return Equality.BLANKS if blanks and other.pads and not one.pads else Equality.EQUAL


def _is_finer_by_name(source: str, replica: str) -> bool:
    """Return whether two collations differ in accents and letter case alone, and the replica heeds more of these."""
    found = [_SENSITIVE.fullmatch(name) for name in (source, replica)]
    if found[0] is None or found[1] is None or found[0]["language"] != found[1]["language"]:
        return False
    return _SENSITIVITIES.index(found[0]["rest"]) < _SENSITIVITIES.index(found[1]["rest"])


def _characters(source: str, replica: str) -> int:
    """Return how many characters the source's set has; 0 if their bytes are other characters on the replica."""
    if source == replica:
        return 0x110000
    if source == "ascii" and replica in _LIKE_ASCII:
        return 0x80
    return 0x10000 if (source, replica) == ("utf8mb3", "utf8mb4") else 0


@cache
def _by_character(collation: str) -> bool:
    try:
        table = comparison_of(collation).table
    except UnsupportedError:
        return False
    return table is None or table.by_character
