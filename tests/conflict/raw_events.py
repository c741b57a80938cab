"""Events of an NDB server's binlog, made by hand: type code, server id, body."""

import struct
from collections.abc import Sequence

from ndb_formats.schema.create_table import parse_schema
from tests.ndb_formats.building import event_bytes, packed, query_body, rows_body, table_map_body

QUERY, XID, TABLE_MAP = 2, 16, 19
WRITE, UPDATE, DELETE = 30, 31, 32
PAYLOAD = 40
LONG, LONGLONG, VARCHAR = b"\x03", b"\x08", b"\x0f"
REFLECTED, REFRESH, READ = 1, 2, 4
STATUS_ID, T_ID, HIDDEN_ID = 1, 7, 8
OWN, OTHER = 3, 9

SCHEMA = parse_schema(
    "CREATE TABLE t (k INT PRIMARY KEY, x BIGINT UNSIGNED, v INT); CREATE TABLE hidden (a INT, b INT)", database="d"
)
STATUS_MAP = table_map_body(
    LONG + LONGLONG + VARCHAR + LONGLONG + LONGLONG,
    (15).to_bytes(2, "little"),
    table_id=STATUS_ID,
    database=b"mysql",
    table=b"ndb_apply_status",
)
T_MAP = table_map_body(LONG + LONGLONG + LONG, table_id=T_ID, database=b"d")
HIDDEN_MAP = table_map_body(LONG + LONG, table_id=HIDDEN_ID, database=b"d", table=b"hidden")

Raw = tuple[int, int, bytes]  # type code, server id, body
BEGIN: Raw = (QUERY, OWN, query_body(b"", b"BEGIN"))
COMMIT: Raw = (QUERY, OWN, query_body(b"", b"COMMIT"))
MAPS: list[Raw] = [(TABLE_MAP, OWN, STATUS_MAP), (TABLE_MAP, OWN, T_MAP)]


def extra(transaction: int | None, flags: int = 0) -> bytes:
    """Return the block of extra row info: type, length, format, what follows, then that."""
    if transaction is None and not flags:
        return b""
    known = 2 * bool(flags) + (transaction is not None)
    payload = struct.pack("<H", known) + (b"" if transaction is None else struct.pack("<Q", transaction))
    payload += struct.pack("<H", flags) if flags else b""
    return bytes([0, len(payload) + 2, 0]) + payload


def status(server_id: int, epoch: int, transaction: int | None = None, log_name: bytes = b"", end: int = 0) -> Raw:
    """Return the write of a row of ndb_apply_status."""
    row = b"\0" + struct.pack("<IQ", server_id, epoch) + bytes([len(log_name)]) + log_name + struct.pack("<QQ", 0, end)
    body = rows_body(row, 5, [range(5)], table_id=STATUS_ID, extra=extra(transaction))
    return WRITE, OWN, body


def insert(
    k: int, x: int = 0, *, transaction: int | None = 1, flags: int = 0, author: int = OWN, table_id: int = T_ID
) -> Raw:
    """Return an insert of one row whose v is NULL."""
    images = b"\x04" + struct.pack("<IQ", k, x)
    return WRITE, author, rows_body(images, 3, [[0, 1, 2]], table_id=table_id, extra=extra(transaction, flags))


def update(k: int, x: int, *, transaction: int | None = 1, flags: int = 0, author: int = OWN) -> Raw:
    """Return a minimal update of x: the key before, x after."""
    images = b"\0" + struct.pack("<I", k) + b"\0" + struct.pack("<Q", x)
    return UPDATE, author, rows_body(images, 3, [[0], [1]], extra=extra(transaction, flags))


def delete(k: int, *, transaction: int | None = 1, flags: int = 0, author: int = OWN) -> Raw:
    """Return a delete that holds the key alone."""
    return DELETE, author, rows_body(b"\0" + struct.pack("<I", k), 3, [[0]], extra=extra(transaction, flags))


def payload(raws: Sequence[Raw], compression: int = 255) -> Raw:
    """Return a Transaction_payload: size, compression (255 is none) and size before that; then events from server 3."""
    data = b"".join(event_bytes(code, body, checksum=False) for code, _, body in raws)
    fields = [(1, packed(len(data))), (2, packed(compression)), (3, packed(len(data)))]
    head = b"".join(packed(kind) + packed(len(value)) + value for kind, value in fields)
    return PAYLOAD, OWN, head + packed(0) + data
