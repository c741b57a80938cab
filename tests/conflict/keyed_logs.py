"""Two small binlogs of one table with any primary key, under NDB$MAX(x) on both clusters, and a run file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import attrs

from ndb_formats.events.rows_event import ExtraRowInfo
from ndb_formats.rules.images import Logging, Row
from ndb_formats.rules.update_format import effective_format
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.tables import Table
from ndb_formats.writing.binlog_writer import APPLY_STATUS_TABLE, BinlogSettings, BinlogWriter, WrittenChange

__all__ = ["TWO_OF_ONE_TEXT", "TWO_TEXTS", "Key", "KeyedLogs", "one_contested", "two_contested"]

Key = tuple[object, ...]
# Values of a row: x and v; None for no row.
Values = tuple[int, int] | None
# A key, and its row before and after.
Change = tuple[Key, Values, Values]
_TEXT = "VARCHAR(40) COLLATE utf8mb4_0900_bin"  # under which blanks at the end count
TWO_TEXTS = f"a {_TEXT}, b {_TEXT}, PRIMARY KEY (a, b)"
# Both are ``a=x, b=1, b=2`` as text.
TWO_OF_ONE_TEXT: tuple[Key, Key] = (("x, b=1", "2"), ("x", "1, b=2"))
_LOGGING = Logging(effective_format(7))
_START, _BETWEEN = 1_800_000_000_000_000, 1_000_000
_RUN = """
schema = "schema.sql"
database = "d"
start = "{start}"

[clusters.A]
server_id = 1
binlogs = ["A.000001"]

[clusters.B]
server_id = 2
binlogs = ["B.000001"]

[[ndb_replication]]
db = "d"
table_name = "t"
server_id = 0
binlog_type = 7
conflict_fn = "NDB$MAX(x)"
"""


@attrs.define
class KeyedLogs:
    """
    The binlogs while they are written; epochs are 101, 102 ... on A and 201, 202 ... on B.

    Attributes:
        key: Definitions of the key columns, and the primary key or unique key.
        start: Whether the logs start with ``empty`` tables or in the ``middle``.
        epochs: Per cluster, the changes of each of its epochs, in order.
    """

    key: str = TWO_TEXTS
    start: str = "empty"
    epochs: dict[str, list[list[WrittenChange]]] = attrs.field(factory=lambda: {"A": [], "B": []})
    _transactions: int = 0

    @property
    def schema(self) -> str:
        """The definition of the table."""
        columns, key = re.split(", (?=PRIMARY KEY|UNIQUE KEY)", self.key)
        return f"CREATE TABLE t ({columns}, x BIGINT UNSIGNED, v INT, {key}) ENGINE=NDB;"

    @property
    def table(self) -> Table:
        """The table."""
        return parse_schema(self.schema, database="d").tables[0]

    def commit(self, cluster: str, *changes: Change) -> None:
        """Let a user change rows, in one transaction and epoch."""
        self.epochs[cluster].append(self._written(self._next(), None, changes))

    def apply(self, cluster: str, epoch: int, *logged: Change) -> None:
        """Let the applier of a cluster take an epoch of the other one, and log changes."""
        source, extra = 2 if cluster == "A" else 1, self._next()
        row: Row = dict(enumerate((source, epoch, "binlog.000001", 0, 0)))
        status = WrittenChange(APPLY_STATUS_TABLE, None, row, extra=extra)
        self.epochs[cluster].append([status, *self._written(extra, source, logged)])

    def _next(self) -> ExtraRowInfo:
        self._transactions += 1
        return ExtraRowInfo(self._transactions)

    def _written(self, extra: ExtraRowInfo, author: int | None, changes: Sequence[Change]) -> list[WrittenChange]:
        return [
            WrittenChange(self.table, self._row(key, before), self._row(key, after), self._set(key), extra, author)
            for key, before, after in changes
        ]

    @staticmethod
    def _set(key: Key) -> tuple[int, int]:
        return len(key), len(key) + 1

    @staticmethod
    def _row(key: Key, values: Values) -> Row | None:
        return None if values is None else dict(enumerate((*key, *values)))  # type: ignore[arg-type]  # any values

    def write(self, folder: Path) -> Path:
        """Write the binlogs and a run file, and return that."""
        for number, (name, epochs) in enumerate(self.epochs.items(), start=1):
            with (folder / f"{name}.000001").open("wb") as out:
                writer = BinlogWriter(out, BinlogSettings(_LOGGING, server_id=number))
                writer.start(_START)
                for place, changes in enumerate(epochs, start=1):
                    writer.write_epoch(100 * number + place, changes, _START + place * _BETWEEN)
                writer.finish()
        (folder / "schema.sql").write_text(self.schema)
        (folder / "run.toml").write_text(_RUN.format(start=self.start))
        return folder / "run.toml"


def one_contested(contested: Key, quiet: Key, key: str = TWO_TEXTS) -> KeyedLogs:
    """Both clusters change a row at once, and A rejects the change of B, which changes another row besides."""
    logs = KeyedLogs(key)
    inserts: list[Change] = [(contested, None, (1, 0)), (quiet, None, (1, 0))]
    mine: Change = (contested, (1, 0), (5, 1))
    logs.commit("A", *inserts)
    logs.apply("B", 101, *inserts)
    logs.commit("A", mine)
    logs.commit("B", (contested, (1, 0), (3, 2)), (quiet, (1, 0), (4, 2)))
    logs.apply("A", 202, (quiet, (1, 0), (4, 2)))
    logs.apply("B", 102, (contested, (3, 2), (5, 1)))
    return logs


def two_contested(first: Key, second: Key, key: str = TWO_TEXTS) -> KeyedLogs:
    """Both clusters give two rows the same x at once, and each rejects the changes of the other one: they differ."""
    logs = KeyedLogs(key)
    inserts: list[Change] = [(each, None, (1, 0)) for each in (first, second)]
    logs.commit("A", *inserts)
    logs.apply("B", 101, *inserts)
    logs.commit("A", *((each, (1, 0), (5, 1)) for each in (first, second)))
    logs.commit("B", *((each, (1, 0), (5, 2)) for each in (first, second)))
    logs.apply("A", 202)
    logs.apply("B", 102)
    return logs
