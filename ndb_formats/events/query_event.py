"""
Query: a statement as text; in an NDB binlog BEGIN, COMMIT and DDL.

    thread id      u32
    seconds        u32  execution time
    database size  u8
    error code     u16
    status size    u16
    status         session variables
    database       name, NUL
    statement      to the end, in the character set of the client

Source: MySQL `libs/mysql/binlog/event/statement_events.h`; MariaDB `log_event.cc`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from ndb_formats.cursor import Cursor
from ndb_formats.errors import TruncatedError
from ndb_formats.schema.session import ServerVersion, Session, SqlMode, Text
from ndb_formats.types.charsets import decode_text, encode_text
from ndb_formats.types.collation_names import collation_of

__all__ = ["SESSION", "QueryEvent", "decode_query", "encode_query", "session_of"]

# Session variables of a connection with the defaults of MySQL 9.x: flags, sql_mode, catalog, character sets (client,
# connection, server), and the default collation of utf8mb4; each after its type.
SESSION = b"".join(
    [
        b"\x00" + bytes(4),
        b"\x01" + (0x45A00020).to_bytes(8, "little"),
        b"\x06\x03std",
        b"\x04" + 3 * (255).to_bytes(2, "little"),
        b"\x12" + (255).to_bytes(2, "little"),
    ]
)


@attrs.frozen
class QueryEvent:
    """
    One statement.

    Attributes:
        database: Database that it ran in.
        statement: Its text.
        thread_id: Connection that ran it.
        seconds: Seconds that it took.
        error: Error number on the source.
        status: Session variables, as encoded in the event.
        server: Version text of the server that wrote it; empty if it is not known.
    """

    database: str
    statement: str
    thread_id: int = 0
    seconds: int = 0
    error: int = 0
    status: bytes = attrs.field(default=b"", repr=False)
    server: str = attrs.field(default="", eq=False)

    @property
    def logged_text(self) -> bytes:
        """The statement as logged."""
        return encode_text(self.statement, _client_charset(self.status))


def decode_query(body: bytes, server: str = "") -> QueryEvent:
    """
    Decode the body of a Query event.

    Args:
        body: The body.
        server: Version text of the server that wrote it.

    Raises:
        TruncatedError: The body ends too early.
    """
    cursor = Cursor(body)
    thread_id, seconds, database_size = cursor.uint(4), cursor.uint(4), cursor.uint(1)
    error = cursor.uint(2)
    status = cursor.take(cursor.uint(2))
    database = cursor.text(database_size)
    cursor.skip(1)
    statement = decode_text(cursor.rest(), _client_charset(status))
    return QueryEvent(database, statement, thread_id, seconds, error, status, server)


def encode_query(event: QueryEvent) -> bytes:
    """Return the body of a Query event; the inverse of `decode_query`."""
    database = event.database.encode("utf-8", "surrogateescape")
    head = event.thread_id.to_bytes(4, "little") + event.seconds.to_bytes(4, "little") + bytes([len(database)])
    variables = event.error.to_bytes(2, "little") + len(event.status).to_bytes(2, "little") + event.status
    return head + variables + database + b"\0" + event.logged_text


_SQL_MODE, _CHARSETS, _DATABASE_COLLATION, _EXPLICIT_TIMESTAMPS, _UTF8MB4 = 1, 4, 8, 16, 18
_INVOKER, _DATABASES, _FLAGS3, _COLLATIONS = 11, 12, 130, 131
# Bytes of the variables that have a fixed size, by type.
_SIZES = {
    0: 4, _SQL_MODE: 8, 3: 4, _CHARSETS: 6, 7: 2, _DATABASE_COLLATION: 2, 9: 8, 10: 4, 13: 3,
    _EXPLICIT_TIMESTAMPS: 1, 17: 8, _UTF8MB4: 2, 19: 1, 20: 1, 128: 3, 129: 8,
}  # fmt: skip
_TEXTS = {2: 1, 5: 0, 6: 0}  # those that are a text after its size, and how many bytes follow it
_MANY_DATABASES = 254  # this number instead of that of the names: they are not listed
_ALTER_ENDS = 0x0C  # flags of MariaDB with which the number of an ALTER follows
_FIRST_OF_MARIADB = 128
_EXPLICIT_FLAG = 1 << 24  # of MariaDB's flags
_FLAGS = 0


def session_of(event: QueryEvent) -> Session:
    """Return the session of a statement, as its event and the version of its server tell it."""
    found = dict(_variables(event.status))
    server = ServerVersion.of(event.server)
    if not event.server and max(found, default=0) >= _FIRST_OF_MARIADB:
        server = attrs.evolve(server, mariadb=True)
    collations = {name: each for name, each in _default_collations(found).items() if each}
    plain = attrs.evolve(Session.of(server), collations=collations)
    texts = [_text(found[kind][-2:]) for kind in (_CHARSETS, _DATABASE_COLLATION) if kind in found]
    known = [text for text in texts if text is not None]
    default = known[0] if known else plain.charset
    return attrs.evolve(
        plain,
        sql_mode=SqlMode(int.from_bytes(found.get(_SQL_MODE, b""), "little") & _KNOWN_MODES),
        charset=known[-1] if known else default,
        server_charset=default,
        explicit_timestamps=_explicit_timestamps(found, server),
        thread=event.thread_id,
    )


_KNOWN_MODES = sum(SqlMode)


def _explicit_timestamps(found: Mapping[int, bytes], server: ServerVersion) -> bool:
    """Return whether a TIMESTAMP is as declared: a variable of MySQL, a flag of MariaDB; before them it was not."""
    if server.mariadb:
        return bool(int.from_bytes(found.get(_FLAGS, b""), "little") & _EXPLICIT_FLAG)
    if _EXPLICIT_TIMESTAMPS in found:
        return bool(found[_EXPLICIT_TIMESTAMPS][0])
    return server.number >= _FIRST_EXPLICIT


_FIRST_EXPLICIT = 80_000


def _default_collations(found: Mapping[int, bytes]) -> dict[str, str]:
    """Return the default collations that the session has set, by character set."""
    numbers = [found[_UTF8MB4]] if _UTF8MB4 in found else []
    pairs = found.get(_COLLATIONS, b"")
    numbers += [pairs[at + 2 : at + 4] for at in range(0, len(pairs), 4)]
    known = (collation_of(int.from_bytes(number, "little")) for number in numbers)
    return {collation.charset: collation.name for collation in known if collation is not None}


def _text(number: bytes) -> Text | None:
    """Return character set and collation of a number; None if it is not known."""
    collation = collation_of(int.from_bytes(number, "little"))
    return None if collation is None else (collation.charset, collation.name)


def _client_charset(status: bytes) -> str:
    """Return the character set of a statement; UTF-8 if its variables do not tell."""
    number = next((value[:2] for kind, value in _variables(status) if kind == _CHARSETS), b"")
    text = _text(number)
    return "utf8mb4" if text is None or text[0] == "binary" else text[0]


def _variables(status: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield type and bytes of the session variables; one that is not known ends them, as in the server."""
    cursor = Cursor(status)
    try:
        while cursor.remaining:
            kind = cursor.uint(1)
            if kind in _SIZES:
                yield kind, cursor.take(_SIZES[kind])
            elif kind in _TEXTS:
                yield kind, cursor.take(cursor.uint(1))
                cursor.skip(_TEXTS[kind])
            elif kind == _INVOKER:
                yield kind, b"@".join([cursor.take(cursor.uint(1)), cursor.take(cursor.uint(1))])
            elif kind == _DATABASES:
                count = cursor.uint(1)
                yield kind, b"\0".join(_until_nul(cursor) for _ in range(0 if count == _MANY_DATABASES else count))
            elif kind == _FLAGS3:
                flags = cursor.uint(1)
                yield kind, cursor.take(8 if flags & _ALTER_ENDS else 0)
            elif kind == _COLLATIONS:
                yield kind, cursor.take(4 * cursor.uint(1))
            else:
                return
    except TruncatedError:
        return  # what stands before is right


def _until_nul(cursor: Cursor) -> bytes:
    found = bytearray()
    while byte := cursor.uint(1):
        found.append(byte)
    return bytes(found)
