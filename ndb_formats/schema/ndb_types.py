"""
The types in which NDB stores columns, by the numbers in its messages.

Source: `NdbDictionary::Column::Type` of the NDB API, and the mapping of SQL types to it in the server.
"""

from __future__ import annotations

from ndb_formats.schema.tables import Column
from ndb_formats.types.collation_names import max_bytes

__all__ = ["CHAR", "NDB_TYPES", "ndb_length", "ndb_type"]

CHAR = 14
_VARCHAR, _VARBINARY, _LONGVARCHAR, _LONGVARBINARY = 15, 17, 23, 24
# Numbers of the signed and of the unsigned type.
NDB_TYPES = {
    "tinyint": (1, 2), "smallint": (3, 4), "mediumint": (5, 6), "int": (7, 8), "bigint": (9, 10),
    "float": (11, 11), "double": (12, 12), "decimal": (29, 30),
    "char": (CHAR, CHAR), "varchar": (_VARCHAR, _VARCHAR), "binary": (16, 16), "varbinary": (_VARBINARY, _VARBINARY),
    # Both are stored as the bytes of a number.
    "enum": (CHAR, CHAR), "set": (CHAR, CHAR),
    "date": (19, 19), "year": (26, 26), "time": (31, 31), "datetime": (32, 32), "timestamp": (33, 33), "bit": (22, 22),
    **dict.fromkeys(("tinyblob", "blob", "mediumblob", "longblob", "json", "geometry", "vector"), (20, 20)),
    **dict.fromkeys(("tinytext", "text", "mediumtext", "longtext"), (21, 21)),
}  # fmt: skip
_BYTE_LENGTH = 255


def ndb_type(column: Column) -> int:
    """Return the number of the NDB type that a column is stored in; 0 if it is not known."""
    number = NDB_TYPES.get(column.type, (0, 0))[column.unsigned]
    if number in (_VARCHAR, _VARBINARY) and ndb_length(column) > _BYTE_LENGTH:
        return _LONGVARCHAR if number == _VARCHAR else _LONGVARBINARY
    return number


def ndb_length(column: Column) -> int:
    """Return the length of a column in NDB: bytes of a text, byte string, ENUM or SET, bits of a BIT, else 1."""
    if column.type == "enum":
        return 1 if len(column.members) <= _BYTE_LENGTH else 2
    if column.type == "set":
        needed = -(-len(column.members) // 8)
        return needed if needed <= 4 else 8
    if column.type in ("char", "varchar"):
        return (column.length or 0) * max_bytes(column.charset or "")
    return column.length or 0 if column.type in ("binary", "varbinary", "bit") else 1
