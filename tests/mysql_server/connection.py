"""
A connection to a server, with statements and answers as bytes: the mysql client would convert them.

Source: MySQL manual (Internals), "Client/Server Protocol": text protocol, over a socket, accounts without a password.
"""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Self

import attrs

from ndb_formats.cursor import Cursor

__all__ = ["Connection", "ServerError"]

Row = tuple[bytes | None, ...]

_CAPABILITIES = 0x00000001 | 0x00000200 | 0x00008000 | 0x00080000  # long password, 4.1 protocol and passwords, plugins
_UTF8MB4 = 45
_OK, _ERROR, _END, _NULL = 0x00, 0xFF, 0xFE, 0xFB
_QUERY = b"\x03"


@attrs.frozen
class ServerError(Exception):
    """The server refuses a statement: error number and message."""

    number: int
    message: str


class Connection:
    """A session of its own on a server; it ends with the context."""

    def __init__(self, path: str, user: str = "root") -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)
        self._stream = self._socket.makefile("rb")
        _, self._number = self._packet()
        head = _CAPABILITIES.to_bytes(4, "little") + (1 << 24).to_bytes(4, "little") + bytes([_UTF8MB4]) + bytes(23)
        self._send(head + user.encode() + b"\0\0" + b"mysql_native_password\0")
        answer, self._number = self._packet()
        if answer[0] == _END:  # another kind of account: still without a password
            self._send(b"")
            answer, self._number = self._packet()
        _raise_error(answer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stream.close()
        self._socket.close()

    def run(self, statement: bytes | str) -> list[Row]:
        """
        Run a statement; return its rows.

        Raises:
            ServerError: The server refuses it.
        """
        self._number = -1
        self._send(_QUERY + (statement.encode() if isinstance(statement, str) else statement))
        head, _ = self._packet()
        _raise_error(head)
        if head[0] == _OK:
            return []
        count = head[0]
        for _ in range(count + 1):  # the columns, and what ends them
            self._packet()
        rows = list[Row]()
        while (packet := self._packet()[0])[0] != _END or len(packet) >= 9:
            _raise_error(packet)
            cursor = Cursor(packet)
            rows.append(tuple(_value(cursor) for _ in range(count)))
        return rows

    def _packet(self) -> tuple[bytes, int]:
        head = self._stream.read(4)
        if len(head) < 4:
            message = "the server closed the connection"
            raise ConnectionError(message)
        return self._stream.read(int.from_bytes(head[:3], "little")), head[3]

    def _send(self, content: bytes) -> None:
        self._socket.sendall(len(content).to_bytes(3, "little") + bytes([(self._number + 1) & 0xFF]) + content)


def _raise_error(packet: bytes) -> None:
    if packet[0] == _ERROR:
        raise ServerError(int.from_bytes(packet[1:3], "little"), packet[9:].decode("utf-8", "replace"))


_LONGER = {0xFC: 2, 0xFD: 3, 0xFE: 8}


def _value(cursor: Cursor) -> bytes | None:
    size = cursor.uint(1)
    if size == _NULL:
        return None
    return cursor.take(cursor.uint(_LONGER[size]) if size in _LONGER else size)
