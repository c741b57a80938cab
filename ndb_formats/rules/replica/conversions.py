"""
Whether an applier converts a column's values into another type: `replica_type_conversions`.

The applier looks at two columns in the same place. Of the same type it compares sizes; of different types it knows
three families: integers, DECIMAL with FLOAT and DOUBLE, and texts with byte strings. Sizes are bytes, so VARCHAR(20) of
utf8mb4 is as long as VARCHAR(80) of latin1. Everything else stops it with error 13146.
Sources: the manual's page replication-features-differing-tables; recordings of MySQL 9.7.4 for 90 types.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum, StrEnum

from ndb_formats.errors import SettingError, did_you_mean
from ndb_formats.schema.declared_type import ndb_length
from ndb_formats.schema.tables import Column
from ndb_formats.types.collation_names import max_bytes


class TypeConversion(StrEnum):
    """The members of `replica_type_conversions`."""

    ALL_LOSSY = "ALL_LOSSY"
    ALL_NON_LOSSY = "ALL_NON_LOSSY"
    ALL_SIGNED = "ALL_SIGNED"
    ALL_UNSIGNED = "ALL_UNSIGNED"


class Conversion(Enum):
    """What the applier has to do to a value."""

    NOTHING = "no conversion"
    NON_LOSSY = "a non-lossy conversion"
    LOSSY = "a lossy conversion"
    IMPOSSIBLE = "no conversion exists"


def parse_type_conversions(text: str) -> frozenset[TypeConversion]:
    """
    Return the members of a value of `replica_type_conversions`, separated by commas; none for an empty text.

    Raises:
        SettingError: A member is not known; the message lists the members.
    """
    names = [word.strip().upper().replace("-", "_") for word in text.split(",") if word.strip()]
    names = [name if name.startswith("ALL_") else f"ALL_{name}" for name in names]
    for name in names:
        if name not in TypeConversion.__members__:
            known = ", ".join(TypeConversion)
            meant = did_you_mean(name, TypeConversion, 0.75)
            message = f"replica_type_conversions {text!r} is not known{meant}; it can hold {known}"
            raise SettingError(message)
    return frozenset(TypeConversion[name] for name in names)


def is_allowed(needed: Conversion, allowed: Collection[TypeConversion]) -> bool:
    """Return whether `replica_type_conversions` allows what is needed."""
    if needed is Conversion.NON_LOSSY:
        return TypeConversion.ALL_NON_LOSSY in allowed
    if needed is Conversion.LOSSY:
        return TypeConversion.ALL_LOSSY in allowed
    return needed is Conversion.NOTHING


_INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint")
_FLOATS = ("float", "double")
_BLOBS = ("tiny", "", "medium", "long")
_PREFIX_BYTES = {f"{size}{kind}": bytes_ for bytes_, size in enumerate(_BLOBS, 1) for kind in ("blob", "text")}
# Types with a fraction of a second.
TIMES = frozenset({"time", "datetime", "timestamp"})
# Types with the same code in a Table_map event.
_KINDS = {
    "char": "string", "binary": "string", "varchar": "varstring", "varbinary": "varstring",
    **dict.fromkeys(_PREFIX_BYTES, "blob"),
}  # fmt: skip
_STRINGS = frozenset({"string", "varstring", "blob"})


def is_integer(column: Column) -> bool:
    """Return whether a column is of an integer type; YEAR and BIT are none."""
    return column.type in _INTEGERS


def conversion(source: Column, replica: Column) -> Conversion:
    """Return what the applier has to do to write values of the source's column into the replica's."""
    kinds = _KINDS.get(source.type, source.type), _KINDS.get(replica.type, replica.type)
    if kinds[0] == kinds[1]:
        return _same_kind(source, replica)
    if is_integer(source) and is_integer(replica):
        return _by_size(_INTEGERS.index(source.type), _INTEGERS.index(replica.type))
    if source.type in _FLOATS and replica.type in _FLOATS:
        return _by_size(_FLOATS.index(source.type), _FLOATS.index(replica.type))
    if {*kinds} <= {*_FLOATS, "decimal"}:
        return Conversion.LOSSY  # between DECIMAL and the others, whatever the sizes
    if {*kinds} <= _STRINGS:
        found = _by_size(_text_length(source, 1), _text_length(replica, max_bytes(replica.charset or "")))
        return Conversion.NON_LOSSY if found is Conversion.NOTHING else found
    return Conversion.IMPOSSIBLE


def _same_kind(source: Column, replica: Column) -> Conversion:
    if source.type in TIMES:
        # Where a conversion is allowed, the applier stops all the same, with error 1610 (recorded).
        return Conversion.NOTHING if _fraction_bytes(source) == _fraction_bytes(replica) else Conversion.IMPOSSIBLE
    if source.type == "vector":
        return Conversion.NOTHING if source.length == replica.length else Conversion.IMPOSSIBLE
    if source.type == "decimal":
        return _by_size((source.length or 0, source.scale or 0), (replica.length or 0, replica.scale or 0))
    if source.type in _PREFIX_BYTES:
        return _by_size(_PREFIX_BYTES[source.type], _PREFIX_BYTES[replica.type])
    return _by_size(ndb_length(source), ndb_length(replica))


def _by_size(source: object, replica: object) -> Conversion:
    if source == replica:
        return Conversion.NOTHING
    return Conversion.NON_LOSSY if source < replica else Conversion.LOSSY  # type: ignore[operator]


def _fraction_bytes(column: Column) -> int:
    return ((column.length or 0) + 1) // 2


def holds_bytes(column: Column) -> int:
    """Return how many bytes the longest value of a text or byte string has; 0 for all other types."""
    if column.type in _PREFIX_BYTES:
        return (1 << 8 * _PREFIX_BYTES[column.type]) - 1
    return ndb_length(column) if column.type in _KINDS else 0


def _text_length(column: Column, character: int) -> int:
    """Return the bytes that the applier takes for the longest value; it counts a replica's TEXT in characters."""
    counted = column.type in _PREFIX_BYTES and _PREFIX_BYTES[column.type] < len(_BLOBS)
    return holds_bytes(column) * (character if counted else 1)
