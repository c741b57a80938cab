"""
Binlogs that nobody wrote: changes to a sound one that know what its bytes mean.

Every change is drawn from one `random.Random`, so a seed is a file. Lengths and checksums are mended after a change, so
that the readers come further than the first check; now and then they are not.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import attrs

from tests.fuzz.raw_log import PAYLOAD, RawEvent, RawLog, read_payload, unzipped, zipped
from tests.ndb_formats.building import packed

__all__ = ["mutated_log"]

TABLE_MAP = 19
ROWS = (23, 24, 25, 30, 31, 32, 39)
ZIPPED = range(165, 172)
UPDATES = (24, 31, 39)
_CODES = (*range(44), *range(160, 172))
_TYPES = (*range(21), *range(242, 256))
_NUMBERS = (0, 1, 2, 3, 7, 8, 9, 15, 16, 63, 64, 65, 127, 128, 250, 251, 252, 253, 254, 255, 256, 0x7FFF, 0x8000)
_LARGE = (0xFFFF, 0x10000, 0xFFFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)


def mutated_log(log: RawLog, chance: random.Random) -> bytes:
    """Return the bytes of a log with one to four changes; `log` stays as it is."""
    events = [attrs.evolve(event) for event in log.events]
    changed = attrs.evolve(log, events=events)
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 4))):
        chance.choice(_CHANGES)(events, chance)
    data = changed.put()
    if chance.random() < 0.05:
        data = data[: chance.randrange(len(data))]
    if chance.random() < 0.02:
        data += chance.randbytes(chance.randrange(40))
    return data


def some_number(chance: random.Random) -> int:
    """Return a number at which something may break."""
    return chance.choice(_NUMBERS if chance.random() < 0.7 else _LARGE)


def changed_bytes(data: bytes, chance: random.Random) -> bytes:
    """Return bytes with a change that knows nothing of them."""
    place = chance.randrange(len(data) + 1)
    kind = chance.randrange(7)
    if kind == 0:
        return data[:place] + bytes([chance.randrange(256)]) + data[place + 1 :]
    if kind == 1:
        width = chance.choice((1, 2, 3, 4, 8))
        number = (some_number(chance) & (1 << 8 * width) - 1).to_bytes(width, chance.choice(("little", "big")))
        return data[:place] + number + data[place + width :]
    if kind == 2:
        return data[:place] + data[place + chance.choice((1, 1, 2, 8)) :]
    if kind == 3:
        return data[:place] + chance.randbytes(chance.choice((1, 1, 2, 8))) + data[place:]
    if kind == 4:
        return data[:place]
    if kind == 5 and place < len(data):
        return data[:place] + bytes([data[place] ^ 1 << chance.randrange(8)]) + data[place + 1 :]
    other = chance.randrange(len(data) + 1)
    return data[:place] + data[other : other + chance.randrange(1, 32)] + data[place:]


# Each takes the events and changes them.
Change = Callable[[list[RawEvent], random.Random], None]


def _one(events: Sequence[RawEvent], chance: random.Random, codes: Sequence[int] | range = ()) -> RawEvent:
    """Return an event of one of these types, or any if there is none; the first is seldom meant."""
    found = [event for event in events if event.code in codes] or events[1:] or events
    return chance.choice(found)


def any_body(events: list[RawEvent], chance: random.Random) -> None:
    """Change bytes of any event, the first one now and then."""
    event = chance.choice(events) if chance.random() < 0.1 else _one(events, chance)
    event.body = changed_bytes(event.body, chance)


def any_header(events: list[RawEvent], chance: random.Random) -> None:
    """Change the type, the size, the flags, the time or the checksum of an event."""
    event = _one(events, chance)
    kind = chance.randrange(6)
    if kind == 0:
        event.code = chance.choice(_CODES)
    elif kind == 1:
        event.size = chance.choice((some_number(chance), 19 + len(event.body), 18, 19, 22, 23)) & 0xFFFFFFFF
    elif kind == 2:
        event.flags = chance.randrange(1 << 16)
    elif kind == 3:
        event.time = some_number(chance) & 0xFFFFFFFF
    elif kind == 4:
        event.server = some_number(chance) & 0xFFFFFFFF
    elif chance.random() < 0.2:
        event.crc = chance.randrange(1 << 32)


def order(events: list[RawEvent], chance: random.Random) -> None:
    """Leave out, repeat, or exchange events."""
    if len(events) < 3:
        return
    first, second = (chance.randrange(1, len(events)) for _ in range(2))
    kind = chance.randrange(3)
    if kind == 0:
        del events[first]
    elif kind == 1:
        events.insert(second, attrs.evolve(events[first]))
    else:
        events[first], events[second] = events[second], events[first]


def table_map(events: list[RawEvent], chance: random.Random) -> None:
    """Change a part of a Table_map event, by what it is."""
    event = _one(events, chance, (TABLE_MAP,))
    parts = _map_parts(event.body)
    if parts is None:
        event.body = changed_bytes(event.body, chance)
        return
    head, database, table, types, metadata, nullable, optional = parts
    kind = chance.randrange(12)
    if kind == 0:
        database, table = chance.choice((b"mysql", database)), chance.choice((b"ndb_apply_status", table, b""))
    elif kind in (1, 2, 3) and types:
        place = chance.randrange(len(types))
        types = types[:place] + bytes([chance.choice(_TYPES)]) + types[place + 1 :]
    elif kind == 4:
        count = chance.choice((0, 1, 2, 64, 65, 250, 251, 4096, 5000))
        types = (types * (count // max(len(types), 1) + 1))[:count]
        metadata = (metadata * (count // max(len(types), 1) + 1))[: 2 * count]
        nullable = bytes((count + 7) // 8)
    elif kind in (5, 6):
        metadata = changed_bytes(metadata, chance)
    elif kind == 7:
        nullable = changed_bytes(nullable, chance)
    elif kind == 8:
        field = changed_bytes(chance.randbytes(chance.randrange(9)), chance)
        optional += bytes([chance.randrange(14)]) + packed(len(field)) + field
    elif kind == 9:
        head = changed_bytes(head[:6], chance)[:6].ljust(6, b"\0") + head[6:]
    else:
        optional = _changed_metadata(optional, chance)
    event.body = b"".join(
        [head, _name(database), _name(table), packed(len(types)), types, packed(len(metadata)), metadata, nullable]
    )
    event.body += optional


def _name(name: bytes) -> bytes:
    return bytes([len(name) & 255]) + name + b"\0"


def _map_parts(body: bytes) -> tuple[bytes, bytes, bytes, bytes, bytes, bytes, bytes] | None:
    """Return head, database, table, types, metadata, bitmap and optional metadata of a Table_map event."""
    try:
        at = 8
        names = []
        for _ in range(2):
            names.append(body[at + 1 : at + 1 + body[at]])
            at += body[at] + 2
        count, at = _number(body, at)
        types = body[at : at + count]
        length, at = _number(body, at + count)
        metadata = body[at : at + length]
        at += length
        stop = at + (count + 7) // 8
        return body[:8], names[0], names[1], types, metadata, body[at:stop], body[stop:]
    except IndexError:
        return None


def _number(body: bytes, at: int) -> tuple[int, int]:
    width = {252: 2, 253: 3, 254: 8}.get(body[at], 0)
    return (int.from_bytes(body[at + 1 : at + 1 + width], "little"), at + 1 + width) if width else (body[at], at + 1)


def _changed_metadata(optional: bytes, chance: random.Random) -> bytes:
    """Change one field of the optional metadata, its length mended."""
    fields, at = [], 0
    try:
        while at < len(optional):
            length, start = _number(optional, at + 1)
            fields.append((optional[at], optional[start : start + length]))
            at = start + length
    except IndexError:
        return changed_bytes(optional, chance)
    if not fields:
        return bytes([chance.randrange(14), 1, chance.randrange(256)])
    place = chance.randrange(len(fields))
    kind, value = fields[place]
    change = chance.randrange(4)
    if change == 0:
        fields[place] = chance.randrange(14), value
    elif change == 1:
        fields.append((kind, value))
    else:
        fields[place] = kind, changed_bytes(value, chance)
    return b"".join(bytes([kind]) + packed(len(value)) + value for kind, value in fields)


def rows(events: list[RawEvent], chance: random.Random) -> None:
    """Change a part of a rows event, by what it is."""
    event = _one(events, chance, ROWS)
    body = event.body
    try:
        at = 8
        extra = b""
        if event.code >= 30:
            size = int.from_bytes(body[8:10], "little")
            extra, at = body[10 : 8 + size], 8 + size
        count, at = _number(body, at)
    except IndexError:
        event.body = changed_bytes(body, chance)
        return
    maps = 2 if event.code in UPDATES else 1
    width = (count + 7) // 8
    bitmaps = [body[at + number * width : at + (number + 1) * width] for number in range(maps)]
    images = body[at + maps * width :]
    head = body[:8]
    kind = chance.randrange(10)
    if kind == 0:
        head = changed_bytes(head, chance)[:8].ljust(8, b"\0")
    elif kind == 1:
        extra = changed_bytes(extra, chance) if extra else bytes([chance.randrange(3), chance.randrange(14), 0, 3, 0])
    elif kind == 2:
        count = chance.choice((0, count + 1, max(count - 1, 0), some_number(chance)))
        if chance.random() < 0.7 and count < 5000:
            bitmaps = [bitmap.ljust((count + 7) // 8, b"\xff")[: (count + 7) // 8] for bitmap in bitmaps]
    elif kind in (3, 4):
        bitmaps[chance.randrange(maps)] = chance.randbytes(min(width, 1024))
    elif kind == 5:
        event.code = chance.choice(ROWS)
    elif kind == 6:
        images = images * chance.choice((2, 3))
    else:
        images = changed_bytes(images, chance)
    block = (len(extra) + 2 & 0xFFFF).to_bytes(2, "little") + extra if event.code >= 30 else b""
    event.body = head + block + packed(count) + b"".join(bitmaps) + images


def compressed(events: list[RawEvent], chance: random.Random) -> None:
    """Change what is inside a compressed transaction or a compressed event, or what it tells of itself."""
    event = _one(events, chance, (PAYLOAD, *ZIPPED))
    payload = read_payload(event.body) if event.code == PAYLOAD else None
    if payload is not None and payload.events:
        kind = chance.randrange(8)
        if kind == 0:
            payload.compression = chance.choice((0, 1, 254, 255))
        elif kind == 1:
            payload.uncompressed = some_number(chance)
        elif kind == 2:
            payload.size = some_number(chance)
        elif kind == 3:
            payload.more = packed(chance.randrange(9)) + packed(1) + b"\1"
        elif kind == 4:
            payload.events.append(RawEvent(PAYLOAD, event.body))
        else:
            chance.choice(_INSIDE)(payload.events, chance)
        event.body = payload.put()
        return
    parts = unzipped(event.body) if event.code in ZIPPED else None
    if parts is not None:
        size = some_number(chance) if chance.random() < 0.1 else None
        event.body = zipped(parts[0], changed_bytes(parts[1], chance), size)
        return
    event.body = changed_bytes(event.body, chance)


def packed_together(events: list[RawEvent], chance: random.Random) -> None:
    """Put events that stand alone into a compressed transaction."""
    if len(events) < 3:
        return
    start = chance.randrange(1, len(events))
    stop = min(start + chance.randrange(1, 6), len(events))
    inside = events[start:stop]
    chance.choice(_INSIDE)(inside, chance)
    body = b"".join(event.put(0, checksum=False) for event in inside)
    fields = b"".join(
        packed(kind) + packed(len(value)) + value
        for kind, value in ((2, packed(255)), (3, packed(len(body))), (1, packed(len(body))))
    )
    events[start:stop] = [RawEvent(PAYLOAD, fields + packed(0) + body, events[start].time)]


def description(events: list[RawEvent], chance: random.Random) -> None:
    """Change the Format_description event, or put a second one into the file."""
    if chance.random() < 0.5:
        copy = attrs.evolve(events[0])
        copy.body = changed_bytes(copy.body, chance) if chance.random() < 0.5 else copy.body
        events.insert(chance.randrange(1, len(events) + 1), copy)
    else:
        events[0].body = changed_bytes(events[0].body, chance)


_INSIDE: tuple[Change, ...] = (any_body, any_header, order, table_map, rows)
_CHANGES: tuple[Change, ...] = (
    *(any_body, any_header, order, packed_together, description, compressed),
    *(table_map, rows) * 3,
    compressed,
)
