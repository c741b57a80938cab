"""
What a statement depends on besides its text: the server that carries it out, and the variables of its session.

Source: MySQL manual, "Server SQL Modes" and "Comments"; MariaDB, "SQL Mode" and "Comment Syntax".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntFlag

import attrs

from ndb_formats.types.charsets import charset_of_collation, default_collation

Text = tuple[str, str]  # character set and collation
_NUMBERS = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")
_FIRST_0900 = 80_000  # the first version whose utf8mb4 is sorted by utf8mb4_0900_ai_ci
_FIRST_INLINE_REFERENCES = 90_000
# Comments that MariaDB takes for those of later MySQL versions, which it does not know.
_OF_MYSQL_ONLY = range(50_700, 100_000)


class SqlMode(IntFlag):
    """The bits of sql_mode that change what a definition means, or what ALTER makes of values, as a log has them."""

    REAL_AS_FLOAT = 1 << 0
    ANSI_QUOTES = 1 << 2
    ORACLE = 1 << 9
    NO_BACKSLASH_ESCAPES = 1 << 20
    STRICT_TRANS_TABLES = 1 << 21
    STRICT_ALL_TABLES = 1 << 22
    PAD_CHAR_TO_FULL_LENGTH = 1 << 31
    TIME_TRUNCATE_FRACTIONAL = 1 << 32

    @classmethod
    def named(cls, names: str) -> SqlMode:
        """Return the bits of a list as in ``SET sql_mode``; ANSI and TRADITIONAL hold two of them, other modes none."""
        modes = {name.strip().upper() for name in names.split(",")}
        modes |= {"REAL_AS_FLOAT", "ANSI_QUOTES"} if "ANSI" in modes else set()
        modes |= {"STRICT_TRANS_TABLES", "STRICT_ALL_TABLES"} if "TRADITIONAL" in modes else set()
        return cls(sum(bit for bit in cls if bit.name in modes))

    @property
    def strict(self) -> bool:
        """Whether a value that does not fit refuses a statement on tables with transactions, as NDB's are."""
        return bool(self & (SqlMode.STRICT_TRANS_TABLES | SqlMode.STRICT_ALL_TABLES))


NO_MODE = SqlMode(0)


@attrs.frozen
class ServerVersion:
    """
    A server's version, as far as it changes what statements mean.

    Attributes:
        number: As in conditional comments: 80034 for 8.0.34.
        mariadb: Whether it is MariaDB.
    """

    number: int = 90_700
    mariadb: bool = False

    @classmethod
    def of(cls, text: str) -> ServerVersion:
        """Return the version in a text such as ``8.0.34-ndb-8.0.34``; the default one if it has no number."""
        found = _NUMBERS.search(text.removeprefix("5.5.5-"))  # MariaDB 10 once hid behind that
        if found is None:
            return cls()
        major, minor, patch = (int(part or 0) for part in found.groups())
        return cls(major * 10_000 + minor * 100 + patch, "mariadb" in text.lower())

    def runs_comment(self, version: int, *, for_mariadb: bool) -> bool:
        """
        Return whether the server carries out the content of a conditional comment.

        Args:
            version: The version that it names; 0 if it names none.
            for_mariadb: Whether it starts with ``/*M!``.
        """
        if for_mariadb:
            return self.mariadb and version <= self.number
        return version <= self.number and not (self.mariadb and version in _OF_MYSQL_ONLY)


@attrs.frozen
class Session:
    """
    What a statement depends on besides its text.

    Attributes:
        server: The server.
        sql_mode: Its sql_mode.
        charset: Character set and collation of tables that declare none, in the default database.
        server_charset: Those of databases that declare none.
        collations: Default collations that the session has set, by character set.
        explicit_timestamps: Whether a TIMESTAMP is as declared (explicit_defaults_for_timestamp).
        thread: Number of the connection, whose temporary tables no other one sees.
    """

    server: ServerVersion = ServerVersion()
    sql_mode: SqlMode = NO_MODE
    charset: Text = ("utf8mb4", "utf8mb4_0900_ai_ci")
    server_charset: Text = ("utf8mb4", "utf8mb4_0900_ai_ci")
    collations: Mapping[str, str] = attrs.field(factory=dict)
    explicit_timestamps: bool = True
    thread: int = 0

    @classmethod
    def of(cls, server: ServerVersion, charset: str = "utf8mb4") -> Session:
        """Return a session of a server whose version and default character set alone are known."""
        plain = cls(server)
        text = charset, plain.default_collation(charset)
        return attrs.evolve(plain, charset=text, server_charset=text)

    @property
    def oracle(self) -> bool:
        """Whether MariaDB takes the types of Oracle."""
        return self.server.mariadb and SqlMode.ORACLE in self.sql_mode

    @property
    def inline_references(self) -> bool:
        """Whether REFERENCES in the definition of a column is a foreign key."""
        return not self.server.mariadb and self.server.number >= _FIRST_INLINE_REFERENCES

    def default_collation(self, charset: str) -> str:
        """Return the collation of text whose character set alone is declared."""
        if charset in self.collations:
            return self.collations[charset]
        if charset == "utf8mb4" and (self.server.mariadb or self.server.number < _FIRST_0900):
            return "utf8mb4_general_ci"
        return default_collation(charset)

    def text_of(self, charset: str | None, collation: str | None, default: Text) -> Text:
        """
        Return character set and collation of text.

        Args:
            charset: The declared character set; None without one.
            collation: The declared collation; None without one. MariaDB's short names do not name a character set.
            default: Those of text that declares neither.
        """
        if collation is not None and collation.startswith("uca1400_"):
            collation = f"{charset or default[0]}_{collation}"
        if collation is not None:
            return charset_of_collation(collation), collation
        return default if charset is None else (charset, self.default_collation(charset))
