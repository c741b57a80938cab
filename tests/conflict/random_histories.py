"""
Random Histories: two clusters, few keys, any operation, any columns, takes in any causal order.

Nothing is made plausible: rows are inserted twice, deleted when absent, images lack columns. Engines
must agree on all of it.
"""

from __future__ import annotations

from random import Random
from typing import Any

from conflict.configuration import ClusterConfiguration, Configuration
from conflict.history import Cluster, History, RowChange, Take, Transaction
from conflict.replication_table import ReplicationRow
from ndb_formats.collation import key_of
from ndb_formats.column_types import WireType
from ndb_formats.constants import ColumnCode
from ndb_formats.create_table import parse_schema
from ndb_formats.events.rows_event import Operation
from ndb_formats.extra_row_info import ConflictFlag
from ndb_formats.row_image import RowImage, RowLayout, layout_of_types

SCHEMA = """
CREATE TABLE judged (
    k INT NOT NULL PRIMARY KEY, x BIGINT UNSIGNED NOT NULL, v INT, s VARCHAR(20) CHARACTER SET latin1
);
CREATE TABLE `judged$EX` (
    NDB$server_id INT UNSIGNED, NDB$source_server_id INT UNSIGNED, NDB$source_epoch BIGINT UNSIGNED,
    NDB$count INT UNSIGNED, k INT NOT NULL, NDB$OP_TYPE INT UNSIGNED, NDB$CFT_CAUSE INT UNSIGNED,
    NDB$ORIG_TRANSID BIGINT UNSIGNED, x$OLD BIGINT UNSIGNED, x$NEW BIGINT UNSIGNED, v INT, s VARCHAR(20),
    PRIMARY KEY (NDB$server_id, NDB$source_server_id, NDB$source_epoch, NDB$count)
);
CREATE TABLE other (k INT NOT NULL PRIMARY KEY, x BIGINT UNSIGNED, v INT);
CREATE TABLE `other$ex` (
    server_id INT UNSIGNED, source_server_id INT UNSIGNED, source_epoch BIGINT UNSIGNED,
    count INT UNSIGNED, k INT NOT NULL, PRIMARY KEY (server_id, source_server_id, source_epoch, count)
);
"""
INT, BIGINT = WireType(ColumnCode.LONG), WireType(ColumnCode.LONGLONG)
TYPES = {
    "db.judged": (INT, BIGINT, INT, WireType(ColumnCode.VARCHAR, 20)),
    "db.other": (INT, BIGINT, INT),
}
# (table, server id, function) rows of mysql.ndb_replication
SETTINGS = [
    [("judged", 0, "NDB$MAX(x)"), ("other", 0, None)],
    [("judged", 1, "NDB$EPOCH()"), ("other", 0, None)],
    [("judged", 1, "NDB$EPOCH(0)"), ("other", 1, "NDB$EPOCH(31)")],
    [("judged", 0, "NDB$EPOCH(2)"), ("other", 0, "NDB$EPOCH(2)")],
    [("judged", 0, "NDB$MAX(x)"), ("other", 2, "NDB$EPOCH()")],
    [("judged", 1, "NDB$MAX(x)"), ("other", 0, "NDB$MAX(x)")],
]
VALUES = (0, 1, 2, 2**63 - 1, 2**63, 2**64 - 1)
FIRST_EPOCHS = (1, (7 << 32) + 61, 2**63 - 3)
LAST_EPOCH = 2**64 - 1
EPOCH_STEPS = (1, 2, 62)


def configuration(setting: int) -> Configuration:
    """Return the run that a History belongs to."""
    rows = tuple(ReplicationRow("db", table, server, 7, function) for table, server, function in SETTINGS[setting])
    clusters = (ClusterConfiguration("A", 1, ()), ClusterConfiguration("B", 2, ()))
    return Configuration(clusters, parse_schema(SCHEMA, database="db"), rows)


class _Maker:
    """Makes one History, step by step, from a seeded source of chance."""

    def __init__(self, seed: int, steps: int, *, complete: bool) -> None:
        self.chance = Random(seed)
        self.complete = complete
        schema = configuration(0).data_schema
        self.tables = {table.full_name: table for table in schema.tables}
        self.layouts = {name: layout_of_types(self.tables[name], types) for name, types in TYPES.items()}
        highest = LAST_EPOCH - max(EPOCH_STEPS) * steps
        self.epoch = {side: self.chance.choice([*FIRST_EPOCHS, highest]) for side in "AB"}
        self.group = dict.fromkeys("AB", 0)
        self.timeline: dict[str, list[Any]] = {"A": [], "B": []}
        self.logged: dict[str, list[int]] = {"A": [], "B": []}
        self.taken = dict.fromkeys("AB", 0)

    def step(self) -> None:
        side = self.chance.choice("AB")
        kind = self.chance.random()
        if kind < 0.45:
            self.log(side)
            changes = tuple(self.change() for _ in range(self.chance.randint(1, 4)))
            self.timeline[side].append(Transaction(self.epoch[side], self.group[side], changes))
            self.group[side] += 1
        elif kind < 0.7:
            self.epoch[side] += self.chance.choice(EPOCH_STEPS)
            self.group[side] = 0
        else:
            self.take(side)

    def log(self, side: str) -> None:
        if not self.logged[side] or self.logged[side][-1] != self.epoch[side]:
            self.logged[side].append(self.epoch[side])

    def take(self, side: str) -> None:
        source = "B" if side == "A" else "A"
        finished = [epoch for epoch in self.logged[source] if epoch < self.epoch[source]]
        if self.taken[side] >= len(finished):
            return
        foreign = finished[self.taken[side]]
        self.taken[side] += 1
        if self.chance.random() < 0.1:
            return  # never taken
        traced = self.chance.random() < 0.8
        group = self.group[side] if traced else self.group[side] - 1
        self.timeline[side].append(Take(self.epoch[side], group, source, foreign, traced))
        if traced:
            self.log(side)
            self.group[side] += 1

    def change(self) -> RowChange:
        name = self.chance.choice(list(self.tables))
        table, layout = self.tables[name], self.layouts[name]
        operation = self.chance.choice(list(Operation))
        row = self.row(layout)
        every = tuple(range(len(table.columns)))
        some = tuple(sorted({0, *(place for place in every if self.complete or self.chance.random() < 0.9)}))
        before = None if operation is Operation.WRITE_ROW else self.image(layout, some, row)
        after_columns = (
            every
            if operation is Operation.WRITE_ROW
            else tuple(place for place in some if place or self.chance.random() < 0.3)
        )
        after = None
        if operation is not Operation.DELETE_ROW:
            after = self.image(layout, after_columns, {**self.row(layout), 0: row[0]})
        flags = ConflictFlag(0)
        if operation is Operation.UPDATE_ROW and self.chance.random() < 0.05:
            flags = ConflictFlag.READ
        key = key_of([table.columns[0]], [row[0]])
        return RowChange(name, key, operation, before, after, self.chance.getrandbits(64), flags)

    def row(self, layout: RowLayout) -> dict[int, bytes | None]:
        values: list[Any] = [
            self.chance.randint(1, 4),
            self.chance.choice(VALUES),
            self.chance.choice([None, -5, 7]),
            self.chance.choice([None, "", "ä"]),
        ]
        if layout.table == "db.other" and self.chance.random() < 0.2:
            values[1] = None
        return {
            place: None if values[place] is None else codec.encode(values[place])
            for place, codec in enumerate(layout.codecs)
        }

    @staticmethod
    def image(layout: RowLayout, columns: tuple[int, ...], row: dict[int, bytes | None]) -> RowImage:
        return RowImage(layout, columns, tuple(row[place] for place in columns))


def make_history(seed: int, steps: int, *, complete: bool) -> History:
    """Return a History; `complete` images never lack a column that a function needs."""
    maker = _Maker(seed, steps, complete=complete)
    for _ in range(steps):
        maker.step()
    clusters = tuple(
        Cluster(side, server_id, tuple(maker.timeline[side])) for server_id, side in enumerate("AB", start=1)
    )
    return History(clusters, maker.layouts)
