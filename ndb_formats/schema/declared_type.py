"""
The type in a column's definition, in the one form that the server makes of its many spellings; NDB's type for it.

Source: MySQL manual, "Data Types"; MariaDB, "Data Types" and "SQL_MODE=ORACLE"; for NDB `NdbDictionary::Column::Type`
of the NDB API, and the mapping of SQL types to it in the server.
"""

from __future__ import annotations

import re
from typing import Any

import attrs

from ndb_formats.errors import SchemaError
from ndb_formats.schema.default_values import literal_text
from ndb_formats.schema.lexer import WordKind, Words
from ndb_formats.schema.session import Session, SqlMode, Text
from ndb_formats.schema.tables import TEXT_TYPES, Column
from ndb_formats.types.charsets import encode_text, is_charset
from ndb_formats.types.collation_names import max_bytes

# Synonyms of MySQL's types to the spelling that information_schema uses.
_SYNONYMS = {
    "integer": "int", "int1": "tinyint", "int2": "smallint", "int3": "mediumint", "middleint": "mediumint",
    "int4": "int", "int8": "bigint", "bool": "tinyint", "boolean": "tinyint", "serial": "bigint",
    "dec": "decimal", "numeric": "decimal", "fixed": "decimal", "float4": "float", "float8": "double",
    "character": "char", "nchar": "char", "nvarchar": "varchar", "varcharacter": "varchar",
    "geomcollection": "geometry", "point": "geometry", "linestring": "geometry", "polygon": "geometry",
    "multipoint": "geometry", "multilinestring": "geometry", "multipolygon": "geometry",
    "geometrycollection": "geometry",
}  # fmt: skip
_OF_ORACLE = {
    "varchar2": "varchar", "number": "decimal", "raw": "varbinary", "clob": "longtext", "blob": "longblob",
    "date": "datetime",
}  # fmt: skip
# MariaDB's types that a log has as bytes, and how many.
_AS_BYTES = {"inet4": 4, "inet6": 16, "uuid": 16}
_DEFAULT_LENGTHS = {"decimal": 10, "bit": 1, "char": 1, "binary": 1, "vector": 2048}
# Display widths are no part of the type; information_schema leaves them out too.
_WIDTHLESS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "year"})
_MOMENTS = frozenset({"time", "datetime", "timestamp"})
_LONGEST_FLOAT = 24  # bits of precision
_SIZES = (("tiny", 0xFF), ("", 0xFFFF), ("medium", 0xFFFFFF), ("long", 0xFFFFFFFF))
_LONGEST_VARCHAR = 0xFFFF
_VARYING = frozenset({"VARYING", "VARCHAR", "VARCHARACTER"})
_DIGITS = re.compile(r"\d+")


def charset_name(word: str) -> str:
    """Return the name of a character set as servers of today spell it."""
    return {"utf8": "utf8mb3"}.get(word.lower(), word.lower())


def collation_name(word: str) -> str:
    """Return the name of a collation as servers of today spell it."""
    name = word.lower()
    return "utf8mb3_" + name.removeprefix("utf8_") if name.startswith("utf8_") else name


@attrs.define
class DeclaredType:
    """
    A type as declared.

    Attributes:
        type: Base type in MySQL's canonical spelling.
        length: Declared length, precision or digits of a fraction.
        scale: Declared digits after the point.
        unsigned: Declared UNSIGNED or ZEROFILL.
        members: Members of an ENUM or SET; bytes for hexadecimal ones.
        charset: Declared character set.
        collation: Declared collation.
        by_code: Declared BINARY: compared by the code of each character.
        geometry: Declared kind of a geometry.
        serial: Declared SERIAL.
        compressed: Declared COMPRESSED (MariaDB).
    """

    type: str
    length: int | None = None
    scale: int | None = None
    unsigned: bool = False
    members: tuple[str | bytes, ...] = ()
    charset: str | None = None
    collation: str | None = None
    by_code: bool = False
    geometry: str = ""
    serial: bool = False
    compressed: bool = False

    def set_charset(self, word: str) -> None:
        """Declare a character set."""
        self.charset = charset_name(word)

    def set_collation(self, word: str) -> None:
        """Declare a collation."""
        self.collation = collation_name(word)

    def facts(self, text: Text, session: Session, converted: Text | None = None) -> dict[str, Any]:
        """
        Return the fields of a `Column` that its type decides.

        Args:
            text: Character set and collation of text that declares none.
            session: The session that defines it.
            converted: Character set and collation that the statement gives all text; None if it does not.
        """
        charset, collation = self._text(text, session)
        if converted is not None and charset not in (None, "binary"):
            charset, collation = converted
        kind, length = self.type, self.length
        if kind in ("text", "blob") and length == 0 and session.server.mariadb:
            length = None  # where MySQL makes the smallest one
        if kind in ("text", "blob") and length is not None:
            kind, length = _large(kind, length * max_bytes(charset or "")), None
        elif kind in ("varchar", "varbinary") and (length or 0) * max_bytes(charset or "") > _LONGEST_VARCHAR:
            # Only outside the strict modes, which refuse it.
            base = "text" if kind == "varchar" else "blob"
            kind, length = _large(base, (length or 0) * max_bytes(charset or "")), None
        if charset == "binary":
            kind, charset, collation = _binary_twin(kind), None, None
        return {
            "type": kind,
            "length": length,
            "scale": self.scale,
            "unsigned": self.unsigned,
            "charset": charset,
            "collation": collation,
            "members": tuple(_member(each, charset) for each in self.members),
            "geometry": self.geometry,
        }

    def _text(self, text: Text, session: Session) -> tuple[str | None, str | None]:
        if self.type not in TEXT_TYPES and self.type not in ("enum", "set"):
            return None, None
        charset, collation = session.text_of(self.charset, self.collation, text)
        if self.by_code and self.collation is None and charset != "binary":
            collation = f"{charset}_bin"
        return charset, collation


def _large(base: str, size: int) -> str:
    """Return the smallest TEXT or BLOB that holds `size` bytes."""
    return next(f"{prefix}{base}" for prefix, most in _SIZES if size <= most or prefix == "long")


def _binary_twin(base: str) -> str:
    """Return the binary type that a text type becomes under CHARACTER SET binary."""
    twins = {"char": "binary", "varchar": "varbinary"}
    return twins.get(base, base.replace("text", "blob"))


def _member(member: str | bytes, charset: str | None) -> str:
    """Return a member of an ENUM or SET; blanks at its end are not part of it, unless it is of bytes."""
    if isinstance(member, bytes):
        member = literal_text(member, charset or "latin1")
    return member if charset is None else _in_charset(member, charset).rstrip(" ")


def _in_charset(text: str, charset: str) -> str:
    """Return text as the server converts it to a character set: a question mark for a character that is not in it."""
    if not is_charset(charset) or _fits(text, charset):
        return text
    return "".join(each if _fits(each, charset) else "?" for each in text)


def _fits(text: str, charset: str) -> bool:
    try:
        encode_text(text, charset)
    except UnicodeEncodeError:
        return False
    return True


def converted_type(kind: str, length: int | None, before: str, after: str) -> tuple[str, int | None]:
    """
    Return type and length of a text column after CONVERT TO CHARACTER SET, which keeps room for as many characters.

    Args:
        kind: Its type.
        length: Its length in characters; None for TEXT.
        before: Its character set.
        after: The new one.
    """
    if after == "binary":
        return _binary_twin(kind), length
    width = max_bytes(after)
    if kind == "varchar" and (length or 0) * width > _LONGEST_VARCHAR:
        return _large("text", (length or 0) * width), None
    sizes = {f"{prefix}text": most for prefix, most in _SIZES}
    if kind in sizes and kind != "longtext":
        return _large("text", sizes[kind] // max_bytes(before) * width), None
    return kind, length


def take_type(words: Words, session: Session) -> DeclaredType:
    """
    Read a type, without the attributes after it.

    Raises:
        SchemaError: It cannot be read.
    """
    if words.accept("LONG"):
        return _long(words)
    national = words.accept("NATIONAL")
    declared = words.step().lower()
    varying = declared in ("char", "character", "nchar") and (words.accept_any(_VARYING))
    words.accept("PRECISION")
    found = DeclaredType("varchar" if varying else _SYNONYMS.get(declared, declared), serial=declared == "serial")
    if declared == "real":
        found.type = "float" if SqlMode.REAL_AS_FLOAT in session.sql_mode else "double"
    if session.server.mariadb:
        _as_mariadb(found, declared, session, sized=words.kind is WordKind.L_PAREN)
    found.unsigned = found.serial
    found.geometry = declared if found.type == "geometry" else ""
    if national or declared in ("nchar", "nvarchar"):
        found.charset = "utf8mb3"
    arguments = words.group() if words.kind is WordKind.L_PAREN else None
    if found.type in ("enum", "set"):
        found.members = tuple(map(_taken_member, () if arguments is None else arguments.items()))
    else:
        _set_arguments(found, [] if arguments is None else list(arguments.items()))
    if declared == "number" and session.oracle and arguments is None:
        found.type, found.length, found.scale = "double", None, None
    return found


def _as_mariadb(found: DeclaredType, declared: str, session: Session, *, sized: bool) -> None:
    """Change a type to what MariaDB makes of it."""
    if session.oracle and declared in _OF_ORACLE and not (declared == "blob" and sized):
        found.type = _OF_ORACLE[declared]
    if declared == "json":
        found.type, found.charset, found.collation = "longtext", "utf8mb4", "utf8mb4_bin"
    if declared in _AS_BYTES:
        found.type, found.length = "binary", _AS_BYTES[declared]


def _long(words: Words) -> DeclaredType:
    """Read what follows LONG: it and LONG VARCHAR are old names of MEDIUMTEXT, LONG VARBINARY of MEDIUMBLOB."""
    if words.accept("VARBINARY"):
        return DeclaredType("mediumblob")
    if not (words.accept("VARCHAR") or words.accept("VARCHARACTER")):
        words.accept("CHAR", "VARYING") or words.accept("CHARACTER", "VARYING")
    return DeclaredType("mediumtext")


def _taken_member(part: Words) -> str | bytes:
    if part.kind is WordKind.INTRODUCER:
        part.step()
    kind, word = part.kind, part.step()
    return literal_bytes(kind, word) if kind in (WordKind.HEX_STRING, WordKind.BIT_STRING) else word


def literal_bytes(kind: WordKind | None, digits: str) -> bytes:
    """Return the bytes of a hexadecimal or bit literal."""
    if kind is WordKind.BIT_STRING:
        return int(digits or "0", 2).to_bytes(max(1, -(-len(digits) // 8)), "big")
    return bytes.fromhex(digits if len(digits) % 2 == 0 else "0" + digits)


def _set_arguments(found: DeclaredType, arguments: list[Words]) -> None:
    numbers = []
    for argument in arguments:
        word = argument.step()
        digits = _DIGITS.match(word) if argument.words[0][1] is WordKind.NUMBER else None
        if digits is None:
            message = f"{found.type}({word[:40]}) is not a type"
            raise SchemaError(message)
        numbers.append(int(digits[0]))  # DECIMAL(19.5) has 19 digits
    base = found.type
    if base in _WIDTHLESS:
        return
    if base == "float" and len(numbers) == 1:  # FLOAT(p) only chooses between FLOAT and DOUBLE
        found.type = "float" if numbers[0] <= _LONGEST_FLOAT else "double"
        return
    if numbers and not (base in _MOMENTS and numbers[0] == 0):
        found.length = numbers[0]
    found.length = _DEFAULT_LENGTHS.get(base) if found.length is None else found.length
    if base == "decimal":
        found.length = found.length or _DEFAULT_LENGTHS[base]
    found.scale = numbers[1] if len(numbers) > 1 else 0 if base == "decimal" else None


CHAR = 14
_VARCHAR, _VARBINARY, _LONGVARCHAR, _LONGVARBINARY = 15, 17, 23, 24
# Numbers of the signed and of the unsigned type.
_NDB_TYPES = {
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
    number = _NDB_TYPES.get(column.type, (0, 0))[column.unsigned]
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
