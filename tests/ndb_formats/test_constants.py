"""Protocol names: the numbers that the format's documentation gives them."""

from ndb_formats.constants import BINLOG_MAGIC, EVENT_HEADER_SIZE, ColumnCode, EventType


def test_event_type_codes():
    """The codes of the events that this package reads are the protocol's."""
    codes = {
        2: "QUERY_EVENT",
        15: "FORMAT_DESCRIPTION_EVENT",
        16: "XID_EVENT",
        19: "TABLE_MAP_EVENT",
        23: "WRITE_ROWS_EVENT_V1",
        24: "UPDATE_ROWS_EVENT_V1",
        25: "DELETE_ROWS_EVENT_V1",
        30: "WRITE_ROWS_EVENT",
        31: "UPDATE_ROWS_EVENT",
        32: "DELETE_ROWS_EVENT",
        40: "TRANSACTION_PAYLOAD_EVENT",
    }
    assert {code: EventType.name_of(code) for code in codes} == codes


def test_an_unknown_event_type_has_a_name_too():
    """A type code of a later version is named by its number."""
    assert EventType.name_of(199) == "event type 199"


def test_file_and_header_constants():
    """A binlog starts with fe 62 69 6e, an event with 19 bytes of header."""
    assert (bytes.fromhex("fe62696e"), 19) == (BINLOG_MAGIC, EVENT_HEADER_SIZE)


def test_column_codes_above_the_gap():
    """The codes of types that travel with metadata are the protocol's."""
    assert (ColumnCode.NEWDECIMAL, ColumnCode.ENUM, ColumnCode.SET, ColumnCode.BLOB, ColumnCode.STRING) == (
        246, 247, 248, 252, 254,
    )  # fmt: skip
