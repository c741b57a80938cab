"""Recorded binlogs: every image is what `mysqlbinlog`, the statements and the final rows say."""

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ndb_formats.binlog_reader import read_events
from ndb_formats.constants import EventType
from ndb_formats.events.query_event import decode_query
from ndb_formats.events.row_image import layout_of, put_image
from ndb_formats.events.rows_event import Operation
from ndb_formats.events.table_map import TableMap, decode_table_map
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.row_keys import key_of
from ndb_formats.schema.tables import Schema
from ndb_formats.types.column_types import charset_of
from tests.ndb_formats.recordings import COMPOSITE, EPOCH, METADATA, TYPES, decoded_changes, printed_changes, row_events

APPLY_STATUS = parse_schema(
    "CREATE TABLE mysql.ndb_apply_status (server_id INT UNSIGNED, epoch BIGINT UNSIGNED, log_name VARCHAR(255), "
    "start_pos BIGINT UNSIGNED, end_pos BIGINT UNSIGNED) CHARSET=latin1 COLLATE=latin1_bin"
)
BINLOGS = [TYPES / "binlog.000001", COMPOSITE / "binlog.000001", METADATA / "binlog.000001", EPOCH / "A.binlog.000001"]


def schema_of(case: Path) -> Schema:
    """Return the tables of a recording."""
    if case == EPOCH:
        scenario = json.loads((case / "scenario.json").read_text(encoding="utf-8"))
        sql = ";".join(text for table in scenario["tables"] for text in (table["create"], table["ex"]) if text)
        return parse_schema(sql, database=scenario["database"]) + APPLY_STATUS
    return parse_schema((case / "schema.sql").read_text(encoding="utf-8")) + APPLY_STATUS


@pytest.mark.parametrize(("case", "rows"), [(TYPES, 44), (COMPOSITE, 29)], ids=["types", "composite"])
def test_every_image_is_what_mysqlbinlog_printed(case: Path, rows: int):
    """Operation, columns present, NULLs and values of every row agree with the server's own tool."""
    schema = schema_of(case)
    printed = list(printed_changes(case / "mysqlbinlog.txt", schema))
    assert len(printed) == rows
    assert list(decoded_changes(case / "binlog.000001", schema)) == printed


def test_values_of_every_type_are_those_of_the_statement():
    """The INSERT of one value of every type gives those very values."""
    changes = [
        change for change in decoded_changes(TYPES / "binlog.000001", schema_of(TYPES)) if change[1] == "fmt.types"
    ]
    expected: list[Any] = [
        2, -128, 255, -32768, 65535, -8388608, 16777215, -2147483648, 4294967295, -9223372036854775808,
        18446744073709551615, Decimal("-9999999.999"), Decimal("12345678901234567890.0123456789"), Decimal(99999),
        1.5, -2.25e100, "ab cd", "café", "naïve 😀", "ü" * 120, "grüß", bytes.fromhex("00ff10000000"),
        bytes.fromhex("deadbeef00"), 1, 0b1010101010101, 2**63 + 1, "blue", "a,c,d", "2024-02-29", "-838:59:59",
        "12:34:56.789", "1000-01-01 00:00:00", "2038-01-19 03:14:07.99", "9999-12-31 23:59:59.999999",
        "2038-01-19 03:14:07", "1970-01-01 00:00:01.001", 2155, "x", -1,
    ]  # fmt: skip
    operation, _, before, after = changes[1]
    assert (operation, before) == ("WRITE_ROW", None)
    assert list(after.values()) == expected


def test_an_update_of_type_8_carries_the_key_and_what_changed():
    """UPDATE types SET c1 = 'new', v2 = 'short', de1 = 1.500, dt2 = ... WHERE id = 2."""
    updates = [
        change for change in decoded_changes(TYPES / "binlog.000001", schema_of(TYPES)) if change[0] == "UPDATE_ROW"
    ]
    assert updates[1][2:] == (
        {0: 2},
        {11: Decimal("1.500"), 16: "new", 19: "short", 32: "2020-05-05 05:05:05.05"},
    )


@pytest.mark.parametrize(
    ("case", "binlog", "expected"),
    [
        (COMPOSITE, "binlog.000001", "rows.json"),
        (TYPES, "binlog.000001", None),
        (EPOCH, "A.binlog.000001", "expected.json"),
    ],
    ids=["composite", "types", "epoch"],
)
def test_applying_all_changes_gives_the_recorded_rows(case: Path, binlog: str, expected: str | None):
    """The rows that a recording ended with are those that its changes leave behind."""
    schema = schema_of(case)
    tables: dict[str, dict[bytes, dict[int, Any]]] = {}
    for _, table_map, event in row_events(case / binlog):
        table = schema.find(table_map.database, table_map.table)
        columns = [table.columns[place] for place in table.key_ordinals]
        rows = tables.setdefault(table.full_name, {})
        for before, after in event.rows(layout_of(table_map, table)):
            image = after if before is None else before
            key = key_of(columns, [image.raw(place) for place in table.key_ordinals])
            old = rows.pop(key, {})
            if event.operation is not Operation.DELETE_ROW:
                rows[key] = old | after.values()
    if expected is None:  # everything was deleted in the end
        assert tables["fmt.types"] == {}
        return
    document = json.loads((case / expected).read_text(encoding="utf-8"))
    if case == EPOCH:
        document = document["A"]["tables"]  # a server does not log what it writes into exceptions tables
    compared = 0
    for table in schema.tables:
        if table.name not in document:
            continue
        recorded = document[table.name]["rows"]
        rows = [
            [_plain(row[place]) for place in range(len(table.columns))]
            for row in tables.get(table.full_name, {}).values()
        ]
        assert sorted(rows, key=repr) == sorted(recorded, key=repr)
        compared += len(recorded)
    assert compared == {"composite_type7": 2, "epoch_type8": 6}[case.name]


def _plain(value: Any) -> Any:
    """Return a value as the recording's JSON has it."""
    return str(value) if isinstance(value, Decimal) else value


@pytest.mark.parametrize("case", [TYPES, COMPOSITE], ids=["types", "composite"])
def test_transaction_ids_are_those_that_mysqlbinlog_printed(case: Path):
    """The extra row info of every rows event of the user's tables is the printed one."""
    text = (case / "mysqlbinlog.txt").read_bytes()
    printed = [
        int.from_bytes(bytes.fromhex(data.decode())[2:10], "little")
        for data in re.findall(rb"### Extra row ndb info: data_format: 0, len: 10, data: 0x0100([0-9A-F]{16})", text)
        for data in [b"0100" + data]
    ]
    decoded = [
        event.extra.transaction_id for _, _, event in row_events(case / "binlog.000001") if event.extra is not None
    ]
    assert decoded == printed
    assert len(decoded) > 10


@pytest.mark.parametrize("path", BINLOGS, ids=lambda path: path.parent.name)
def test_images_encode_back_to_the_recorded_bytes(path: Path):
    """Images and values put back together are the bytes that the server wrote."""
    schema = schema_of(path.parent)
    count = 0
    for _, table_map, event in row_events(path):
        layout = layout_of(table_map, schema.find(table_map.database, table_map.table))
        images = [image for row in event.rows(layout) for image in row if image is not None]
        assert b"".join(put_image(image) for image in images) == event.body
        for image in images:
            for place, payload in zip(image.present, image.payloads, strict=True):
                if payload is not None:
                    assert layout.codecs[place].encode(image.value(place)) == payload
                    count += 1
    assert count > 50


def test_positions_are_those_of_mysqlbinlog():
    """Every event starts where the server's tool says, and is of the type it says."""
    text = (TYPES / "mysqlbinlog.txt").read_bytes()
    printed = [int(position) for position in re.findall(rb"^# at (\d+)$", text, re.MULTILINE)]
    events = list(read_events(TYPES / "binlog.000001"))
    assert [event.position for event in events] == printed
    assert events[-1].end == (TYPES / "binlog.000001").stat().st_size


def test_statements_are_at_their_recorded_positions():
    """Reading the stretch of one statement gives its BEGIN, its rows and its COMMIT."""
    statements = json.loads((COMPOSITE / "statements.json").read_text(encoding="utf-8"))
    second = statements[1]
    assert second["statements"][0]["sql"] == "UPDATE composite SET v = 11 WHERE w = 1 AND b = 'aa'"
    events = list(read_events(COMPOSITE / "binlog.000001", start=second["start"], stop=second["end"]))
    assert (events[0].position, events[-1].end) == (second["start"], second["end"])
    assert [event.type.name for event in events] == [
        "ANONYMOUS_GTID_LOG_EVENT", "QUERY_EVENT", "TABLE_MAP_EVENT", "TABLE_MAP_EVENT",
        "WRITE_ROWS_EVENT", "UPDATE_ROWS_EVENT", "QUERY_EVENT",
    ]  # fmt: skip
    queries = [decode_query(event.body).statement for event in events if event.type is EventType.QUERY_EVENT]
    assert queries == ["BEGIN", "COMMIT"]


def test_a_rows_event_ends_its_statement_once_per_epoch():
    """NDB sets the end-of-statement flag on the last rows event of each epoch."""
    path = TYPES / "binlog.000001"
    queries = [decode_query(event.body) for event in read_events(path) if event.type is EventType.QUERY_EVENT]
    flags = [rows.statement_end for _, _, rows in row_events(path)]
    assert [query.statement for query in queries] == ["BEGIN", "COMMIT"] * 17
    assert flags.count(True) == 17


def test_table_metadata_is_what_mysqlbinlog_printed():
    """Names, UNSIGNED and character sets of every table agree with the server's own tool."""
    text = (METADATA / "mysqlbinlog.txt").read_text(encoding="utf-8", errors="surrogateescape")
    printed = [
        [
            (name, " UNSIGNED" in rest, _printed_charset(rest))
            for name, rest in re.findall(r"`(\w+)` ([^`]*?)(?=,\n|\)\n|$)", block, re.DOTALL)
        ]
        for block in re.findall(r"^# Columns\((.*?)\)\n(?=# [A-Z]|# at)", text, re.DOTALL | re.MULTILINE)
    ]
    decoded = [
        _metadata(decode_table_map(event.body))
        for event in read_events(METADATA / "binlog.000001")
        if event.type is EventType.TABLE_MAP_EVENT
    ]
    assert decoded == printed
    assert len(decoded) > 15


def _printed_charset(definition: str) -> str | None:
    """Return the character set of a text column; what the event says of ENUM and SET is not read."""
    match = re.search(r"CHARSET (\w+)", definition)
    return match[1] if match and not definition.startswith(("ENUM", "SET")) else None


def _metadata(table_map: TableMap) -> list[tuple[str, bool, str | None]]:
    count = len(table_map.types)
    return [
        (
            table_map.names[place],
            (table_map.unsigned or (False,) * count)[place] and table_map.types[place].code.name != "YEAR",
            None if (number := (table_map.collations or (None,) * count)[place]) is None else charset_of(number),
        )
        for place in range(count)
    ]


def test_integers_and_text_need_no_schema():
    """Without a definition the event's own metadata gives signs and character sets."""
    changes = [change for change in decoded_changes(TYPES / "binlog.000001", Schema()) if change[1] == "fmt.types"]
    after = changes[1][3]
    assert [after[place] for place in (1, 2, 9, 10)] == [-128, 255, -(2**63), 2**64 - 1]
    assert [after[place] for place in (16, 17, 18)] == ["ab cd", "café", "naïve 😀"]
    assert [after[place] for place in (26, 27)] == [3, 13]
