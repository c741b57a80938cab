"""
Names and numbers of the protocol, spelled as in the server's source.

Source: `mysql/binlog/event/binlog_event.h` and `field_types.h` of MySQL 9.x.
"""

from __future__ import annotations

from enum import IntEnum

APPLY_STATUS = "mysql.ndb_apply_status"
BINLOG_MAGIC = b"\xfebin"
ENCRYPTED_MAGIC = b"\xfdbin"
EVENT_HEADER_SIZE = 19
LOG_EVENT_BINLOG_IN_USE_F = 0x1  # flag of a header
CHECKSUM_ALG_OFF = 0
DEFAULT_CHARSET = "utf8mb4"  # of a server
DEFAULT_EVENT_SIZE = 8192  # of binlog_row_event_max_size
CHECKSUM_ALG_CRC32 = 1


class EventType(IntEnum):
    """Type code of a binlog event."""

    UNKNOWN_EVENT = 0
    START_EVENT_V3 = 1
    QUERY_EVENT = 2
    STOP_EVENT = 3
    ROTATE_EVENT = 4
    INTVAR_EVENT = 5
    LOAD_EVENT = 6
    SLAVE_EVENT = 7
    CREATE_FILE_EVENT = 8
    APPEND_BLOCK_EVENT = 9
    EXEC_LOAD_EVENT = 10
    DELETE_FILE_EVENT = 11
    NEW_LOAD_EVENT = 12
    RAND_EVENT = 13
    USER_VAR_EVENT = 14
    FORMAT_DESCRIPTION_EVENT = 15
    XID_EVENT = 16
    BEGIN_LOAD_QUERY_EVENT = 17
    EXECUTE_LOAD_QUERY_EVENT = 18
    TABLE_MAP_EVENT = 19
    PRE_GA_WRITE_ROWS_EVENT = 20
    PRE_GA_UPDATE_ROWS_EVENT = 21
    PRE_GA_DELETE_ROWS_EVENT = 22
    WRITE_ROWS_EVENT_V1 = 23
    UPDATE_ROWS_EVENT_V1 = 24
    DELETE_ROWS_EVENT_V1 = 25
    INCIDENT_EVENT = 26
    HEARTBEAT_LOG_EVENT = 27
    IGNORABLE_LOG_EVENT = 28
    ROWS_QUERY_LOG_EVENT = 29
    WRITE_ROWS_EVENT = 30
    UPDATE_ROWS_EVENT = 31
    DELETE_ROWS_EVENT = 32
    GTID_LOG_EVENT = 33
    ANONYMOUS_GTID_LOG_EVENT = 34
    PREVIOUS_GTIDS_LOG_EVENT = 35
    TRANSACTION_CONTEXT_EVENT = 36
    VIEW_CHANGE_EVENT = 37
    XA_PREPARE_LOG_EVENT = 38
    PARTIAL_UPDATE_ROWS_EVENT = 39
    TRANSACTION_PAYLOAD_EVENT = 40
    HEARTBEAT_LOG_EVENT_V2 = 41
    GTID_TAGGED_LOG_EVENT = 42
    # MariaDB (sql/log_event.h).
    MARIADB_ANNOTATE_ROWS_EVENT = 160
    MARIADB_BINLOG_CHECKPOINT_EVENT = 161
    MARIADB_GTID_EVENT = 162
    MARIADB_GTID_LIST_EVENT = 163
    MARIADB_START_ENCRYPTION_EVENT = 164
    MARIADB_QUERY_COMPRESSED_EVENT = 165
    MARIADB_WRITE_ROWS_COMPRESSED_EVENT_V1 = 166
    MARIADB_UPDATE_ROWS_COMPRESSED_EVENT_V1 = 167
    MARIADB_DELETE_ROWS_COMPRESSED_EVENT_V1 = 168
    MARIADB_WRITE_ROWS_COMPRESSED_EVENT = 169
    MARIADB_UPDATE_ROWS_COMPRESSED_EVENT = 170
    MARIADB_DELETE_ROWS_COMPRESSED_EVENT = 171

    @classmethod
    def name_of(cls, code: int) -> str:
        """Return the name of a type code, or text with its number if it is not known."""
        return cls(code).name if code in cls._value2member_map_ else f"event type {code}"


TRANSACTION_STARTS = (
    EventType.GTID_LOG_EVENT,
    EventType.ANONYMOUS_GTID_LOG_EVENT,
    EventType.GTID_TAGGED_LOG_EVENT,
    EventType.MARIADB_GTID_EVENT,
)


class ColumnCode(IntEnum):
    """Type code of a column in a Table_map event."""

    DECIMAL = 0
    TINY = 1
    SHORT = 2
    LONG = 3
    FLOAT = 4
    DOUBLE = 5
    NULL = 6
    TIMESTAMP = 7
    LONGLONG = 8
    INT24 = 9
    DATE = 10
    TIME = 11
    DATETIME = 12
    YEAR = 13
    NEWDATE = 14
    VARCHAR = 15
    BIT = 16
    TIMESTAMP2 = 17
    DATETIME2 = 18
    TIME2 = 19
    BLOB_COMPRESSED = 140  # of MariaDB
    VARCHAR_COMPRESSED = 141  # of MariaDB
    VECTOR = 242
    JSON = 245
    NEWDECIMAL = 246
    ENUM = 247
    SET = 248
    TINY_BLOB = 249
    MEDIUM_BLOB = 250
    LONG_BLOB = 251
    BLOB = 252
    VAR_STRING = 253
    STRING = 254
    GEOMETRY = 255
