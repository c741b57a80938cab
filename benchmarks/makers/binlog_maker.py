"""
Big binlogs quickly: a few thousand transactions are encoded once, with seeded values, and repeated with fresh headers.

Every transaction is what a server writes for one statement: Query BEGIN, Table_map with full metadata, one rows event,
Xid. The first event is copied from a recording, so that a server's own tools accept the file.
"""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs

from ndb_formats.binlog_reader import read_events
from ndb_formats.constants import BINLOG_MAGIC, ColumnCode, EventType
from ndb_formats.events.gtid_event import GtidEvent, encode_gtid
from ndb_formats.events.header import EventHeader, encode_header
from ndb_formats.events.query_event import QueryEvent, encode_query
from ndb_formats.events.rows_event import Operation, RowsEvent, encode_rows_event
from ndb_formats.events.table_map import TableMap, encode_table_map
from ndb_formats.events.table_metadata import DefaultCharset, TableMetadata, encode_table_metadata
from ndb_formats.types.column_types import WireType, codec_of

__all__ = ["MIXED_TYPES", "MIXES", "Mix", "write_binlog"]

RECORDING = Path(__file__).parents[2] / "tests/recordings/ndb_formats/types_type8/binlog.000001"
TRANSACTIONS = 2000
TEXT = "The quick brown fox jumps over the lazy dog; and so on, and so on. "
WORDS = ["Zürich", "naïve", "Łódź", "東京", "plain", "café", "ascii only", "über", "Αθήνα", "x"]
UTF8MB4, LATIN1 = 255, 8


@attrs.frozen
class Column:
    """One column: its name, type, and a maker of values."""

    name: str
    wire: WireType
    value: Callable[[random.Random], Any]
    unsigned: bool = False
    charset: str | None = None


@attrs.frozen
class Mix:
    """
    What a benchmark's table looks like.

    Attributes:
        name: Name of the mix, and of its table.
        title: In words.
        columns: Its columns.
        rows: Rows of an event, as a range.
        gtids: Whether every transaction starts with an Anonymous_gtid event.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[int, int]
    gtids: bool = False


def _integer(name: str, code: ColumnCode, bits: int, *, unsigned: bool = False) -> Column:
    low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return Column(name, WireType(code), lambda random: random.randint(low, high), unsigned)


def _moment(random: random.Random, digits: int) -> str:
    date = f"{random.randint(1990, 2037)}-{random.randint(1, 12):02d}-{random.randint(1, 28):02d}"
    return f"{date} {_clock(random)}" + (f".{random.randrange(10**digits):0{digits}d}" if digits else "")


def _clock(random: random.Random) -> str:
    return f"{random.randint(0, 23):02d}:{random.randint(0, 59):02d}:{random.randint(0, 59):02d}"


def _text(random: random.Random, low: int, high: int) -> str:
    start = random.randrange(len(TEXT))
    return (TEXT * (high // len(TEXT) + 2))[start : start + random.randint(low, high)]


def _document(random: random.Random) -> Any:
    """Return a JSON document of an object in an object, with numbers, texts and a list."""
    return {
        "sku": f"A-{random.randrange(10**6)}",
        "price": random.randrange(10**5) / 100,
        "tags": random.sample(WORDS, random.randint(0, 3)),
        "stock": {"count": random.randrange(1000), "reserved": random.random() < 0.5, "bin": None},
    }


INTEGERS = (
    _integer("id", ColumnCode.LONGLONG, 64, unsigned=True),
    _integer("owner", ColumnCode.LONG, 32, unsigned=True),
    _integer("amount", ColumnCode.LONG, 32),
    _integer("kind", ColumnCode.TINY, 8),
    _integer("hits", ColumnCode.INT24, 24),
    Column("code", WireType(ColumnCode.STRING, 8), lambda random: _text(random, 3, 8), charset="latin1"),
    Column("name", WireType(ColumnCode.VARCHAR, 80), lambda random: _text(random, 4, 20), charset="utf8mb4"),
)
TYPED = (
    _integer("id", ColumnCode.LONGLONG, 63),
    Column(
        "price", WireType(ColumnCode.NEWDECIMAL, 12, 2), lambda random: Decimal(random.randrange(10**11)).scaleb(-2)
    ),
    Column("day", WireType(ColumnCode.DATE), lambda random: _moment(random, 0)[:10]),
    Column("made", WireType(ColumnCode.DATETIME2, 6), lambda random: _moment(random, 6)),
    Column("seen", WireType(ColumnCode.TIMESTAMP2, 3), lambda random: _moment(random, 3)),
    Column("span", WireType(ColumnCode.TIME2), _clock),
    Column("rate", WireType(ColumnCode.DOUBLE, 8), lambda random: random.random() * 1e6),
    Column("city", WireType(ColumnCode.VARCHAR, 160), lambda random: random.choice(WORDS), charset="utf8mb4"),
    Column("note", WireType(ColumnCode.BLOB, 2), lambda random: _text(random, 20, 120), charset="utf8mb4"),
)
MIXED = (
    _integer("id", ColumnCode.LONGLONG, 63),
    _integer("owner", ColumnCode.LONG, 32, unsigned=True),
    _integer("kind", ColumnCode.TINY, 8),
    Column(
        "price", WireType(ColumnCode.NEWDECIMAL, 12, 2), lambda random: Decimal(random.randrange(10**11)).scaleb(-2)
    ),
    Column("day", WireType(ColumnCode.DATE), lambda random: _moment(random, 0)[:10]),
    Column("made", WireType(ColumnCode.DATETIME2, 6), lambda random: _moment(random, 6)),
    Column("seen", WireType(ColumnCode.TIMESTAMP2, 3), lambda random: _moment(random, 3)),
    Column("rate", WireType(ColumnCode.DOUBLE, 8), lambda random: random.random() * 1e6),
    Column("name", WireType(ColumnCode.VARCHAR, 160), lambda random: random.choice(WORDS), charset="utf8mb4"),
    Column("note", WireType(ColumnCode.BLOB, 2), lambda random: _text(random, 20, 120), charset="utf8mb4"),
    Column("facts", WireType(ColumnCode.JSON, 4), _document),
)
MIXES = (
    Mix("integers", "integers and short strings, many rows per event", INTEGERS, (50, 150)),
    Mix("single", "integers and short strings, one row per event", INTEGERS, (1, 1)),
    Mix("typed", "decimals, temporals, text, many rows per event", TYPED, (20, 60)),
)
MIXED_TYPES = Mix("mixed", "integers, decimals, temporals, text, JSON", MIXED, (10, 40), gtids=True)


def write_binlog(path: Path, mix: Mix, size: int, *, seed: int = 1) -> int:
    """
    Write a binlog of about so many bytes.

    Args:
        path: Where.
        mix: Of what.
        size: Bytes.
        seed: Of the values.

    Returns:
        How many row changes it holds.
    """
    generator = random.Random(seed)  # noqa: S311 - values, not secrets
    transactions = [_transaction(mix, generator, number) for number in range(TRANSACTIONS)]
    description = next(iter(read_events(RECORDING)))
    rows = 0
    with path.open("wb") as file:
        head = attrs.evolve(description.header, flags=0)
        plain = encode_header(head) + description.body[:-4]
        file.write(BINLOG_MAGIC + plain + zlib.crc32(plain).to_bytes(4, "little"))
        position = file.tell()
        number = 0
        while position < size:
            bodies, count = transactions[number % TRANSACTIONS]
            for kind, body in bodies:
                length = 19 + len(body) + 4
                position += length
                header = EventHeader(1_700_000_000 + number // 100, kind, 1, length, position & 0xFFFFFFFF, 0)
                data = encode_header(header) + body
                file.write(data + struct.pack("<I", zlib.crc32(data)))
            number += 1
            rows += count
    return rows


def _table_map(mix: Mix) -> TableMap:
    texts = [column.charset for column in mix.columns if column.charset is not None]
    others = tuple((place, LATIN1) for place, charset in enumerate(texts) if charset == "latin1")
    numbers = [column for column in mix.columns if column.wire.code not in _NOT_NUMERIC]
    signs = [column.unsigned for column in numbers]
    metadata = TableMetadata(
        signedness=tuple(signs + [False] * (-len(signs) % 8)),
        default_charset=DefaultCharset(UTF8MB4, others),
        column_name=tuple(column.name for column in mix.columns),
        simple_primary_key=(0,),
    )
    wires = tuple(column.wire for column in mix.columns)
    return TableMap(
        90,
        "bench",
        mix.name,
        wires,
        (False,) + (True,) * (len(wires) - 1),
        flags=1,
        metadata=encode_table_metadata(metadata),
    )


_NOT_NUMERIC = frozenset(
    {ColumnCode.STRING, ColumnCode.VARCHAR, ColumnCode.BLOB, ColumnCode.JSON, ColumnCode.DATE, ColumnCode.DATETIME2}
    | {ColumnCode.TIMESTAMP2, ColumnCode.TIME2}
)


def _transaction(mix: Mix, generator: random.Random, number: int) -> tuple[list[tuple[int, bytes]], int]:
    """Return the events of a transaction, as type and body, and its row changes; every third is an update."""
    count = generator.randint(*mix.rows)
    update = number % 3 == 2
    places = tuple(range(len(mix.columns)))
    images = b"".join(_images(mix, generator, 2 * count if update else count))
    rows = RowsEvent(
        90,
        Operation.UPDATE_ROW if update else Operation.WRITE_ROW,
        None,
        len(places),
        places if update else None,
        places,
        images,
        EventType.UPDATE_ROWS_EVENT if update else EventType.WRITE_ROWS_EVENT,
        flags=1,
    )
    events = [
        *([(EventType.ANONYMOUS_GTID_LOG_EVENT, encode_gtid(GtidEvent()))] if mix.gtids else []),
        (EventType.QUERY_EVENT, encode_query(QueryEvent("bench", "BEGIN"))),
        (EventType.TABLE_MAP_EVENT, encode_table_map(_table_map(mix))),
        (rows.type, encode_rows_event(rows)),
        (EventType.XID_EVENT, number.to_bytes(8, "little")),
    ]
    return [(int(kind), body) for kind, body in events], count


def _images(mix: Mix, generator: random.Random, count: int) -> Iterator[bytes]:
    codecs = [codec_of(column.wire, unsigned=column.unsigned, charset=column.charset) for column in mix.columns]
    for _ in range(count):
        nulls, values = 0, b""
        for place, (column, codec) in enumerate(zip(mix.columns, codecs, strict=True)):
            if place and generator.random() < 0.05:
                nulls |= 1 << place
            else:
                values += codec.put(codec.encode(column.value(generator)))
        yield nulls.to_bytes((len(codecs) + 7) // 8, "little") + values
