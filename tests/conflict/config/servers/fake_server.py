"""
A server on loopback that speaks as much of the MySQL protocol as a client needs that asks and is answered.

It lets everyone in, without TLS, and answers each statement with the rows of a dictionary; one that is not there is
not known to it. Statements that set something of the session are noted and answered with OK.
"""

import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import attrs

Row = Mapping[str, str | bytes | None]
# Rows, or what gives them; number and text of an error; None ends the connection.
Answer = Sequence[Row] | Callable[[], Sequence[Row]] | tuple[int, str] | None
SILENCE: Answer = (0, "no answer for a while")
_SALT = b"12345678abcdefghijkl"
_CAPABILITIES = 0x0000_0001 | 0x0000_0200 | 0x0000_2000 | 0x0000_8000 | 0x0008_0000  # PLUGIN_AUTH and what it needs
_EOF, _OK = b"\xfe\0\0\2\0", b"\0\0\0\2\0\0\0"


@attrs.define
class FakeServer:
    """
    A server.

    Attributes:
        answers: By statement, its answer.
        version: Its version.
        welcome: What it sends first in place of a greeting; None for a greeting.
        login: Number and text of the error that answers a login; None to let everyone in.
        asked: The statements that arrived.
    """

    answers: Mapping[str, Answer] = attrs.field(factory=dict)
    version: str = "9.7.4-cluster"
    welcome: bytes | None = None
    login: tuple[int, str] | None = None
    asked: list[str] = attrs.field(factory=list)

    @contextmanager
    def listening(self) -> Iterator[int]:
        """Listen for a while; yield the port."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
            yield listener.getsockname()[1]

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:  # it listens no more
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, client.makefile("rwb") as stream:
            if self.welcome is not None:
                stream.write(self.welcome)
                stream.flush()
                return
            _send(stream, 0, self._greeting())
            stream.flush()
            _receive(stream)
            _send(stream, 2, _OK if self.login is None else _error(*self.login))
            stream.flush()
            while self.login is None and (command := _receive(stream)) and command[:1] == b"\3":
                statement = command[1:].decode()
                self.asked.append(statement)
                if not self._answer(stream, statement):
                    return
                stream.flush()

    def _greeting(self) -> bytes:
        low, high = _CAPABILITIES & 0xFFFF, _CAPABILITIES >> 16
        rest = struct.pack("<HBHHB10x", low, 255, 2, high, len(_SALT) + 1)
        head = b"\x0a" + self.version.encode() + b"\0" + struct.pack("<I", 1) + _SALT[:8] + b"\0"
        return head + rest + _SALT[8:] + b"\0mysql_native_password\0"

    def _answer(self, stream: object, statement: str) -> bool:
        """Answer a statement; return whether the connection goes on."""
        if statement.startswith("SET "):
            _send(stream, 1, _OK)
            return True
        answer = self.answers.get(statement, (1064, f"You have an error in your SQL syntax near '{statement}'"))
        if callable(answer):
            answer = answer()
        if answer is None:
            return False
        if answer is SILENCE:
            threading.Event().wait(1)
            return False
        if isinstance(answer, tuple):
            _send(stream, 1, _error(*answer))
            return True
        names = [*answer[0]] if answer else ["empty"]
        packets = [bytes([len(names)]), *(_column(name, answer) for name in names), _EOF]
        packets += [b"".join(map(_cell, row.values())) for row in answer] + [_EOF]
        for number, packet in enumerate(packets, 1):
            _send(stream, number, packet)
        return True


def _send(stream: object, number: int, packet: bytes) -> None:
    stream.write(struct.pack("<I", len(packet))[:3] + bytes([number % 256]) + packet)


def _receive(stream: object) -> bytes:
    head = stream.read(4)
    return stream.read(int.from_bytes(head[:3], "little")) if len(head) == 4 else b""


def _error(number: int, text: str) -> bytes:
    return b"\xff" + struct.pack("<H", number) + b"#42000" + text.encode()


def _column(name: str, rows: Sequence[Row]) -> bytes:
    is_binary = any(isinstance(row[name], bytes) for row in rows)
    texts = b"".join(_text(each) for each in (b"def", b"", b"", b"", name.encode(), name.encode()))
    return texts + struct.pack("<BHIBHB2x", 12, 63 if is_binary else 255, 1024, 253, 0, 0)


def _cell(value: str | bytes | None) -> bytes:
    return b"\xfb" if value is None else _text(value.encode() if isinstance(value, str) else value)


def _text(value: bytes) -> bytes:
    head = bytes([len(value)]) if len(value) < 251 else b"\xfc" + struct.pack("<H", len(value))
    return head + value
