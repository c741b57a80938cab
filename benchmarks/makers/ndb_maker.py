"""
Big binlogs as an NDB server writes them: a few hundred epochs are encoded once and repeated with fresh epoch numbers.

Every epoch is a transaction with GTID, BEGIN, Table_maps, the server's own row of `ndb_apply_status`, rows events of
several user transactions, now and then an epoch that the applier took, and COMMIT.
"""

from __future__ import annotations

import random
import struct
import zlib
from pathlib import Path

from ndb_formats.binlog_reader import read_events
from ndb_formats.constants import BINLOG_MAGIC, EventType
from ndb_formats.events.header import EventHeader, encode_header

__all__ = ["OTHER_SERVER", "SCHEMA", "SERVER", "write_ndb_binlog"]

RECORDING = Path(__file__).parents[2] / "tests/recordings/ndb_formats/types_type8/binlog.000001"
SERVER, OTHER_SERVER = 1, 2
SCHEMA = """
CREATE TABLE accounts (
  id BIGINT UNSIGNED NOT NULL PRIMARY KEY, version BIGINT UNSIGNED NOT NULL, amount INT, kind TINYINT, note VARCHAR(60)
) DEFAULT CHARSET=utf8mb4;
CREATE TABLE people (name VARCHAR(40) NOT NULL PRIMARY KEY, version INT UNSIGNED NOT NULL, visits INT)
  DEFAULT CHARSET=latin1;
"""
_STATUS, _ACCOUNTS, _PEOPLE = 1, 2, 3
_EPOCHS = 400
_NAME_COUNT = 5000


def _map(number: int, database: bytes, table: bytes, types: bytes, metadata: bytes) -> bytes:
    names = b"".join(bytes([len(name)]) + name + b"\0" for name in (database, table))
    nulls = bytes((len(types) + 7) // 8)
    head = number.to_bytes(6, "little") + b"\x01\0" + names
    return head + bytes([len(types)]) + types + bytes([len(metadata)]) + metadata + nulls


_MAPS = [
    _map(_STATUS, b"mysql", b"ndb_apply_status", b"\x03\x08\x0f\x08\x08", b"\xff\0"),
    _map(_ACCOUNTS, b"bench", b"accounts", b"\x08\x08\x03\x01\x0f", b"\xf0\0"),
    _map(_PEOPLE, b"bench", b"people", b"\x0f\x03\x03", b"\x28\0"),
]


def _rows(table: int, columns: int, images: bytes, transaction: int | None, flags: int, *, update: bool) -> bytes:
    payload = b""
    if transaction is not None:
        payload = struct.pack("<HQ", 3 if flags else 1, transaction) + (struct.pack("<H", flags) if flags else b"")
    extra = bytes([0, len(payload) + 2, 0]) + payload if payload else b""
    head = table.to_bytes(6, "little") + b"\x01\0" + struct.pack("<H", len(extra) + 2) + extra
    bitmap = bytes([(1 << columns) - 1])
    return head + bytes([columns]) + bitmap * (2 if update else 1) + images


def _status(server: int, epoch: int, transaction: int | None) -> bytes:
    image = b"\0" + struct.pack("<IQ", server, epoch) + b"\0" + bytes(16)
    return _rows(_STATUS, 5, image, transaction, 0, update=False)


def _account(generator: random.Random, key: int) -> bytes:
    note = b"The quick brown fox jumps over the lazy dog"[: generator.randint(5, 40)]
    row = struct.pack("<QQiB", key, generator.getrandbits(40), generator.randint(0, 10**6), generator.randint(0, 9))
    return b"\0" + row + bytes([len(note)]) + note


def _person(generator: random.Random, number: int) -> bytes:
    name = f"Person Number {number}".encode()
    return b"\0" + bytes([len(name)]) + name + struct.pack("<II", generator.getrandbits(20), number)


def _epoch(generator: random.Random, number: int, rows: int) -> tuple[list[tuple[int, int, bytes]], int]:
    """Return events as type, server and body, and how many row changes they hold."""
    events = [(int(EventType.TABLE_MAP_EVENT), SERVER, body) for body in _MAPS]
    count = 0
    write, update = int(EventType.WRITE_ROWS_EVENT), int(EventType.UPDATE_ROWS_EVENT)
    for transaction in range(generator.randint(5, 15)):
        applied = number % 4 == 0 and transaction == 0
        identity = (OTHER_SERVER if applied else SERVER) << 32 | (number * 100 + transaction)
        author = OTHER_SERVER if applied else SERVER
        for _ in range(generator.randint(1, 3)):
            keys = [generator.randrange(10**6) for _ in range(generator.randint(1, rows))]
            images = b"".join(_account(generator, key) * 2 for key in keys)
            events.append((update, author, _rows(_ACCOUNTS, 5, images, identity, 0, update=True)))
            count += len(keys)
        names = [generator.randrange(_NAME_COUNT) for _ in range(generator.randint(1, rows))]
        images = b"".join(_person(generator, name) for name in names)
        events.append((write, author, _rows(_PEOPLE, 3, images, identity, 0, update=False)))
        count += len(names)
        if applied:
            events.append((write, SERVER, _status(OTHER_SERVER, number + 1, identity)))
    return events, count


def write_ndb_binlog(path: Path, size: int, *, rows: int = 4, seed: int = 1) -> int:
    """
    Write a binlog of about so many bytes.

    Args:
        path: Where.
        size: Bytes.
        rows: Most rows of a rows event.
        seed: Of the values.

    Returns:
        How many row changes it holds, those of the applier among them.
    """
    generator = random.Random(seed)  # noqa: S311 - values, not secrets
    epochs = [_epoch(generator, number, rows) for number in range(_EPOCHS)]
    description = next(iter(read_events(RECORDING)))
    found = number = 0
    with path.open("wb") as file:

        def put(kind: int, server: int, body: bytes) -> None:
            length = 19 + len(body) + 4
            data = encode_header(EventHeader(1_700_000_000, kind, server, length, 0, 0)) + body
            file.write(data + struct.pack("<I", zlib.crc32(data)))

        file.write(BINLOG_MAGIC)
        put(int(EventType.FORMAT_DESCRIPTION_EVENT), SERVER, description.body[:-4])
        while file.tell() < size:
            events, count = epochs[number % _EPOCHS]
            put(int(EventType.ANONYMOUS_GTID_LOG_EVENT), SERVER, bytes(42))
            query = struct.pack("<IIBHH", 5, 0, 0, 0, 0) + b"\0"
            put(int(EventType.QUERY_EVENT), SERVER, query + b"BEGIN")
            for place, (kind, server, body) in enumerate(events):
                put(kind, server, body)
                if place == len(_MAPS) - 1:
                    put(int(EventType.WRITE_ROWS_EVENT), SERVER, _status(SERVER, (number + 1) << 32, None))
            put(int(EventType.QUERY_EVENT), SERVER, query + b"COMMIT")
            number += 1
            found += count
    return found
