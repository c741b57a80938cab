"""
The peer of `decode.py`: rows of a binlog file through python-mysql-replication, without a server.

Run by the interpreter of a virtual environment that has it (``pip install mysql-replication``). The library reads
events from a connection: each as a packet, a status byte before the event's own bytes. Here the packets are made from
the file before the clock starts. Each one goes through the library's `BinLogPacketWrapper`, as in its
`BinLogStreamReader.fetchone`, with the arguments that a reader of row events passes (``only_events`` the row events);
then `rows` is asked for, which parses them. So what is timed is the library's decoding, no network and no SQL.

Prints one JSON object: seconds of processor time and on the wall per run, row changes, and a sum over one column that
the caller compares.
"""

from __future__ import annotations

import json
import struct
import sys
import time
from pathlib import Path
from typing import Any

from pymysql.protocol import MysqlPacket
from pymysqlreplication.constants import BINLOG
from pymysqlreplication.event import FormatDescriptionEvent
from pymysqlreplication.packet import BinLogPacketWrapper
from pymysqlreplication.row_event import DeleteRowsEvent, TableMapEvent, UpdateRowsEvent, WriteRowsEvent

EVENTS = frozenset([TableMapEvent, WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent, FormatDescriptionEvent])


class Connection:
    """What the library asks of its control connection."""

    charset = "utf8mb4"

    @staticmethod
    def _get_dbms() -> str:
        return "mysql"


def packets(path: Path) -> list[bytes]:
    """Return every event of a file as the packet that a server would send."""
    data, place, found = path.read_bytes(), 4, []
    while place < len(data):
        (size,) = struct.unpack_from("<I", data, place + 9)
        found.append(b"\0" + data[place : place + size])
        place += size
    return found


def decode(events: list[bytes], column: str | None) -> tuple[int, int]:
    """Decode every event; return row changes and the sum of a column in the last image of each."""
    tables: dict[int, Any] = {}
    connection, rows, total = Connection(), 0, 0
    for data in events:
        wrapper = BinLogPacketWrapper(
            MysqlPacket(data, "utf8mb4"), tables, connection, (9, 7, 4), True, EVENTS,
            None, None, None, None, False, False, False, True, False,
        )  # fmt: skip
        event = wrapper.event
        if wrapper.event_type == BINLOG.TABLE_MAP_EVENT:
            tables[event.table_id] = event.get_table()
        elif isinstance(event, WriteRowsEvent | UpdateRowsEvent | DeleteRowsEvent):
            rows += len(event.rows)
            if column is not None:
                total += sum((row.get("after_values") or row["values"]).get(column, 0) for row in event.rows)
    return rows, total


def main() -> None:
    """Decode ``argv[1]`` ``argv[2]`` times."""
    events = packets(Path(sys.argv[1]))
    rows, total = decode(events, "id")  # outside the time: what the caller checks
    wall, processor = [], []
    for _ in range(int(sys.argv[2])):
        before, used = time.perf_counter(), time.process_time()
        decode(events, None)
        wall.append(time.perf_counter() - before)
        processor.append(time.process_time() - used)
    print(json.dumps({"rows": rows, "total": total, "wall": wall, "processor": processor}))


if __name__ == "__main__":
    main()
