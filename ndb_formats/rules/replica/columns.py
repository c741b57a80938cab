"""
Two versions of a table, column by column as the applier pairs them: by place, never by name.

Two columns in the same place are compared in their types, character sets, defaults and generated values. A generated
invisible primary key that only the replica has is left out; so does the server since 8.0.32.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import attrs

from ndb_formats.findings import Finding
from ndb_formats.rules.images import Logging
from ndb_formats.rules.replica.codes import rule
from ndb_formats.rules.replica.conversions import (
    TIMES,
    Conversion,
    TypeConversion,
    conversion,
    holds_bytes,
    is_allowed,
    is_integer,
)
from ndb_formats.rules.replica.expressions import same_expression
from ndb_formats.rules.row_image_rules import RowImageRule, inserted_columns
from ndb_formats.schema.default_values import value_of_insert
from ndb_formats.schema.tables import Column, Table
from ndb_formats.types.values import ABSENT


@attrs.frozen
class ColumnPair:
    """The columns of both tables in one place; places count from 0."""

    place: int
    source: Column
    replica: Column

    @property
    def same_name(self) -> bool:
        """Whether both have the same name; letter case does not count."""
        return self.source.name.lower() == self.replica.name.lower()


@attrs.frozen
class TablePair:
    """
    One table on both sides, and how the source logs it.

    Attributes:
        source: The table on the source.
        replica: The table on the replica, with all its columns.
        logging: The settings of the source.
        ndb: Whether the source's table is an NDB table, which the binlog type rules.
        replica_ndb: Whether the replica's is one.
        conversions: `replica_type_conversions` of the replica.
    """

    source: Table
    replica: Table
    logging: Logging
    ndb: bool
    replica_ndb: bool
    conversions: frozenset[TypeConversion]

    @property
    def name(self) -> str:
        """The name of the table, with its database if one is known."""
        return self.source.full_name if self.source.database else self.source.name

    @property
    def key_is_left_out(self) -> bool:
        """Whether the replica's first column is a generated invisible primary key that the source does not have."""
        return _has_invisible_key(self.replica) and not _has_invisible_key(self.source) and not self.source.primary_key

    @property
    def replica_columns(self) -> tuple[Column, ...]:
        """The columns of the replica that the applier pairs with those of the source."""
        return self.replica.columns[1:] if self.key_is_left_out else self.replica.columns

    @property
    def pairs(self) -> tuple[ColumnPair, ...]:
        """The columns in the same places, as far as both tables have columns."""
        both = zip(self.source.columns, self.replica_columns, strict=False)
        return tuple(ColumnPair(place, source, replica) for place, (source, replica) in enumerate(both))

    @property
    def source_names(self) -> list[str]:
        """The names of the source's columns, in small letters."""
        return [column.name.lower() for column in self.source.columns]

    @property
    def replica_names(self) -> list[str]:
        """The names of the replica's columns, in small letters."""
        return [column.name.lower() for column in self.replica_columns]

    @property
    def partial(self) -> bool:
        """Whether images can lack columns of the table."""
        if self.ndb:
            return self.logging.update_format.updated_only or self.logging.update_format.minimal
        return self.logging.row_image is not RowImageRule.FULL


def _has_invisible_key(table: Table) -> bool:
    """Return whether a table has a generated invisible primary key: an invisible first column `my_row_id`."""
    first = table.columns[0] if table.columns else None
    return (
        first is not None
        and first.name.lower() == "my_row_id"
        and (first.invisible and first.auto_increment)
        and table.primary_key == (first.name,)
    )


_SAME_TYPE = "use the same type on both sides"
# Character sets whose first 128 characters are those of ASCII in one byte.
_NOT_ASCII = frozenset({"ucs2", "utf16", "utf16le", "utf32", "swe7"})
_NO_DEFAULT = ("none",)
_BY_CHARACTERS = frozenset({"char", "varchar"})  # the types whose length is in characters
_LEAST_BYTES = {"ucs2": 2, "utf16": 2, "utf16le": 2, "utf32": 4}  # of a character; 1 in all other character sets
_SAME_BYTES = {("utf8mb3", "utf8mb4")}


def column_findings(table: TablePair, pair: ColumnPair, allowed: Collection[TypeConversion]) -> Iterator[Finding]:
    """
    Yield what is wrong with two columns in the same place.

    Columns with different names are compared by type alone: what else differs follows from their places.

    Args:
        table: The table.
        pair: The columns.
        allowed: `replica_type_conversions` of the replica.
    """
    yield from _types(table, pair, allowed)
    if pair.same_name:
        yield from _text(table, pair)
        yield from _values(table, pair)
        yield from _generated(table, pair)


def _found(table: TablePair, pair: ColumnPair, number: int, reason: str, fix: str) -> Finding:
    return Finding(rule(number), table.name, pair.source.name, reason, fix)


def _types(table: TablePair, pair: ColumnPair, allowed: Collection[TypeConversion]) -> Iterator[Finding]:
    source, replica = pair.source, pair.replica
    needed = conversion(source, replica)
    types = f"{_type_text(source)} to {_type_text(replica)}"
    names = "" if pair.same_name else f" ({source.name} on the source, {replica.name} on the replica)"
    stop = f"the applier stops with error 13146: column {pair.place + 1}{names} cannot be converted from {types}"
    if needed is Conversion.IMPOSSIBLE:
        if source.type == replica.type and source.type in TIMES:
            stop = stop.replace("error 13146", "error 13146 or 1610, or misreads the rows")
        yield _found(table, pair, 21, f"{stop}, whatever replica_type_conversions is", _SAME_TYPE)
        return
    member = TypeConversion.ALL_LOSSY if needed is Conversion.LOSSY else TypeConversion.ALL_NON_LOSSY
    if not is_allowed(needed, allowed):
        loss = "; values that do not fit are then cut" if needed is Conversion.LOSSY else ""
        fix = f"{_SAME_TYPE}, or set replica_type_conversions={member} on the replica{loss}"
        yield _found(table, pair, 20, f"{stop}; this is {needed.value}", fix)
        return
    if needed is Conversion.LOSSY:
        yield _found(table, pair, 23, f"{types}: values that do not fit are cut", _SAME_TYPE)
    elif needed is Conversion.NON_LOSSY:
        yield _found(table, pair, 22, f"{types} is {needed.value}", "nothing to do")
        if (source.type, replica.type) == ("float", "double"):
            yield _found(
                table, pair, 29, f"{types}: the number is the same, but 1.1 shows as 1.100000023841858", _SAME_TYPE
            )
    if needed is not Conversion.LOSSY and (change := _unseen_change(source, replica)):
        yield _found(table, pair, 26, f"{types}: {change}", _SAME_TYPE)
    if not _takes_kind(source, replica):
        reason = f"the applier stops with error 1416: {replica.geometry} does not take every {source.geometry}"
        yield _found(table, pair, 56, reason, _SAME_TYPE)
    yield from _signs(table, pair, needed, allowed)
    yield from _members(table, pair)


def keeps_values(source: Column, replica: Column, allowed: Collection[TypeConversion]) -> bool:
    """Return whether different values of a column are different on the replica; those that never arrive are."""
    needed = conversion(source, replica)
    if not is_allowed(needed, allowed):
        return True
    return needed is not Conversion.LOSSY and _unseen_change(source, replica) is None


def _unseen_change(source: Column, replica: Column) -> str | None:
    """Return what happens to some values although the applier sees no loss; None if nothing does."""
    if source.type == replica.type == "decimal":
        scales, lengths = (source.scale or 0, replica.scale or 0), (source.length or 0, replica.length or 0)
        if scales[0] > scales[1]:
            return "digits after the point are lost"
        return "numbers that are too large are cut" if lengths[0] - scales[0] > lengths[1] - scales[1] else None
    if source.type == replica.type and source.type in TIMES:
        return "digits of the fraction are lost" if (source.length or 0) > (replica.length or 0) else None
    if replica.type == "binary" and (source.type, source.length) != ("binary", replica.length):
        return "values are filled up with zero bytes"
    if replica.type == "char" and source.type != "char":
        return "spaces at the end are lost"
    if holds_bytes(source) > holds_bytes(replica):
        return "texts that are too long in bytes are cut"
    copied = replica.type == "varchar" and conversion(source, replica) is Conversion.NOTHING  # whatever its length
    if replica.type in _BY_CHARACTERS and not copied and _characters(source) > (replica.length or 0):
        return "texts of too many characters are cut"
    return None


def _characters(column: Column) -> int:
    """Return how many characters the longest value has."""
    if column.type in _BY_CHARACTERS:
        return column.length or 0
    return holds_bytes(column) // _LEAST_BYTES.get(column.charset or "", 1)


def _takes_kind(source: Column, replica: Column) -> bool:
    """Return whether a column takes every kind of geometry that another one holds."""
    kinds = [column.geometry.replace("geometrycollection", "geomcollection") for column in (source, replica)]
    if kinds[1] == "geomcollection" and kinds[0].startswith("multi"):
        return True
    return kinds[1] in (kinds[0], "geometry", "")


def _signs(
    table: TablePair, pair: ColumnPair, needed: Conversion, allowed: Collection[TypeConversion]
) -> Iterator[Finding]:
    source, replica = pair.source, pair.replica
    if not is_integer(source):
        if needed is not Conversion.NOTHING and replica.unsigned and not source.unsigned:
            reason = f"negative values of {_type_text(source)} do not fit into {_type_text(replica)}"
            yield _found(table, pair, 25, reason, "declare both columns signed")
        return
    if needed is Conversion.NOTHING:
        if source.unsigned != replica.unsigned:
            reason = f"{_type_text(source)} and {_type_text(replica)} take the same bytes for different numbers"
            yield _found(table, pair, 24, reason, _SAME_TYPE)
        return
    read_unsigned = TypeConversion.ALL_UNSIGNED in allowed and TypeConversion.ALL_SIGNED not in allowed
    if read_unsigned != source.unsigned:
        sign, wanted = ("unsigned", "ALL_SIGNED") if read_unsigned else ("signed", "ALL_UNSIGNED")
        reason = f"a converted {_type_text(source)} counts as {sign}, and other values come out"
        yield _found(table, pair, 25, reason, f"{_SAME_TYPE}, or add {wanted} to replica_type_conversions")
    elif replica.unsigned and not source.unsigned:
        reason = f"negative values of {_type_text(source)} do not fit into {_type_text(replica)}"
        yield _found(table, pair, 25, reason, _SAME_TYPE)


def _members(table: TablePair, pair: ColumnPair) -> Iterator[Finding]:
    source, replica = pair.source.members, pair.replica.members
    if pair.source.type != pair.replica.type or source == replica:
        return
    if replica[: len(source)] == source:
        reason = f"the replica also has {', '.join(map(repr, replica[len(source) :]))}"
        yield _found(table, pair, 28, reason, "nothing to do")
        return
    reason = f"the source has {', '.join(map(repr, source))} and the replica {', '.join(map(repr, replica))}"
    yield _found(table, pair, 27, f"{reason}; values are logged by number", "list the same members in the same order")


def _text(table: TablePair, pair: ColumnPair) -> Iterator[Finding]:
    source, replica = pair.source.charset, pair.replica.charset
    if pair.source.members or conversion(pair.source, pair.replica) is Conversion.IMPOSSIBLE:
        return  # members are logged as numbers
    if (source is None) != (replica is None):
        reason = f"{_type_text(pair.source)} to {_type_text(pair.replica)}: the bytes are taken as they are"
        yield _found(table, pair, 34, reason, _SAME_TYPE)
    elif source is not None and replica is not None and source != replica:
        sets = f"{source} on the source, {replica} on the replica"
        if (source, replica) in _SAME_BYTES or (source == "ascii" and replica not in _NOT_ASCII):
            reason = f"{sets}: every character of {source} has the same bytes in {replica}"
            yield _found(table, pair, 31, reason, "nothing to do")
        else:
            reason = f"{sets}: the applier takes the bytes as they are, so other characters come out"
            yield _found(table, pair, 30, reason, "use the same character set on both sides")
    elif pair.source.collation != pair.replica.collation and not _in_key(table.replica, pair.replica):
        reason = f"{pair.source.collation} on the source, {pair.replica.collation} on the replica"
        yield _found(table, pair, 33, reason, "nothing to do; comparisons and sorting differ")


def _in_key(table: Table, column: Column) -> bool:
    return any(part.column == column.name for key in table.unique_parts for part in key)


def _values(table: TablePair, pair: ColumnPair) -> Iterator[Finding]:
    source, replica = pair.source, pair.replica
    if source.nullable and not replica.nullable and not replica.generated:
        reason = "the source allows NULL, the replica does not; it stores the implicit default instead"
        yield _found(table, pair, 50, reason, f"let {replica.name} be NULL on the replica")
    elif replica.nullable and not source.nullable and not replica.generated:
        yield _found(table, pair, 51, "the replica allows NULL, which never arrives", "nothing to do")
    if source.auto_increment != replica.auto_increment:
        side = "source" if source.auto_increment else "replica"
        yield _found(table, pair, 54, f"AUTO_INCREMENT on the {side} alone", "nothing to do; inserts on it differ")
    if source.invisible != replica.invisible:
        side = "source" if source.invisible else "replica"
        yield _found(table, pair, 55, f"invisible on the {side} alone", "nothing to do; SELECT * differs")
    if _defaults_differ(source, replica):
        defaults = f"{_default_text(source)} on the source, {_default_text(replica)} on the replica"
        if _can_be_left_out(table, pair.place):
            reason = f"{defaults}; inserts that leave the column out do not log it, and the replica uses its own"
            yield _found(table, pair, 52, reason, "use the same default on both sides, or log full images")
        else:
            yield _found(table, pair, 53, defaults, "nothing to do; inserts on the replica differ")


def _defaults_differ(source: Column, replica: Column) -> bool:
    """Return whether an insert that leaves a column out gives another value; what other findings say is left out."""
    if any(column.generated or column.auto_increment for column in (source, replica)):
        return False
    if source.computed_default and replica.computed_default:
        return not same_expression(source.expression, replica.expression)
    found, other = _default(source), _default(replica)
    # A column without a default cannot be left out, and a NOT NULL column of the replica alone is a finding itself.
    return found not in (other, _NO_DEFAULT) and (found, other) != (("constant", None), _NO_DEFAULT)


def _can_be_left_out(table: TablePair, place: int) -> bool:
    """Return whether the image of an insert can lack a column: by binlog_row_image alone, as NDB logs all of them."""
    if table.ndb or table.logging.row_image is RowImageRule.FULL or place in inserted_columns(table.source, ()):
        return False
    blob = table.source.columns[place].type.endswith(("blob", "text"))
    return blob or table.logging.row_image is RowImageRule.MINIMAL


def _default(column: Column) -> tuple[object, ...]:
    """Return what identifies a default; one that no insert can use counts as none."""
    if column.computed_default:
        return ("expression", column.expression)
    try:
        value = value_of_insert(column)
    except (ArithmeticError, ValueError):
        return ("constant", column.default)
    return _NO_DEFAULT if value is ABSENT else ("constant", value)


def _default_text(column: Column) -> str:
    _, *value = _default(column)
    if not value:
        return "no default"
    return "default NULL" if value == [None] else f"default {value[0]!r}"


def _generated(table: TablePair, pair: ColumnPair) -> Iterator[Finding]:
    source, replica = pair.source, pair.replica
    if not source.generated and not replica.generated:
        return
    if not source.generated:
        reason = "the replica computes the column and ignores the value that arrives"
        yield _found(table, pair, 60, reason, "generate the column on both sides, or on none")
    elif not replica.generated:
        if table.ndb and source.generated == "virtual":
            reason = "the source does not log the virtual column, and the replica stores its default"
            yield _found(table, pair, 62, reason, "generate the column on the replica, too")
        else:
            yield _found(table, pair, 63, "the replica stores the value that arrives", "nothing to do")
    elif not same_expression(source.expression, replica.expression):
        reason = f"({source.expression}) on the source, ({replica.expression}) on the replica"
        yield _found(table, pair, 61, reason, "use the same expression on both sides")
    elif source.generated != replica.generated:
        yield _found(table, pair, 64, f"{source.generated} on the source, {replica.generated} on the replica",
                     "nothing to do")  # fmt: skip


def _type_text(column: Column) -> str:
    """Return a type as the applier's message names it: with the character set of a text."""
    charset = "" if column.charset is None or column.members else f" {column.charset}"
    return f"{column.sql_type}{charset}"
