"""
Random Histories: two clusters, few keys, any operation, any columns, takes in any causal order.

Nothing is made plausible: rows are inserted twice, deleted when absent, images lack columns, epochs are taken
twice. Engines must agree on all of it.
"""

from __future__ import annotations

from random import Random
from typing import Any

import attrs

from conflict.config.configuration import ClusterConfiguration, Configuration, LoggingServer
from conflict.history.model import Cluster, History
from conflict.history.run import Run
from conflict.history.timeline import EpochApply, RowChange, Transaction
from conflict.rules.replication_filter import ReplicationFilter
from conflict.rules.replication_table import ReplicationRow, Role
from ndb_formats.constants import ColumnCode
from ndb_formats.events.row_image import RowImage, RowLayout, layout_of_types
from ndb_formats.events.rows_event import ConflictFlag, Operation
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.row_keys import key_of
from ndb_formats.types.column_types import WireType

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
CREATE TABLE notes (k INT NOT NULL PRIMARY KEY, t TEXT CHARACTER SET latin1);
CREATE TABLE single (k INT NOT NULL PRIMARY KEY, x BIGINT UNSIGNED NOT NULL, v INT, UNIQUE KEY (v));
CREATE TABLE other (k INT NOT NULL PRIMARY KEY, x BIGINT UNSIGNED, v INT);
CREATE TABLE `other$ex` (
    server_id INT UNSIGNED, source_server_id INT UNSIGNED, source_epoch BIGINT UNSIGNED,
    count INT UNSIGNED, k INT NOT NULL, PRIMARY KEY (server_id, source_server_id, source_epoch, count)
);
"""
INT, BIGINT = WireType(ColumnCode.LONG), WireType(ColumnCode.LONGLONG)
TYPES = {
    "db.judged": (INT, BIGINT, INT, WireType(ColumnCode.VARCHAR, 20)),
    "db.notes": (INT, WireType(ColumnCode.BLOB, 2)),
    "db.single": (INT, BIGINT, INT),
    "db.other": (INT, BIGINT, INT),
}
# (table, server id, function) rows of mysql.ndb_replication; a table without a row has no function.
SETTINGS: list[list[tuple[str, int, str | None]]] = [
    [("judged", 0, "NDB$MAX(x)"), ("other", 0, None)],
    [("judged", 1, "NDB$EPOCH()"), ("other", 0, None)],
    [("judged", 1, "NDB$EPOCH(0)"), ("other", 1, "NDB$EPOCH(31)")],
    [("judged", 0, "NDB$EPOCH(2)"), ("other", 0, "NDB$EPOCH(2)")],
    [("judged", 0, "NDB$MAX(x)"), ("other", 2, "NDB$EPOCH()")],
    [("judged", 1, "NDB$MAX(x)"), ("other", 0, "NDB$MAX(x)")],
    [("judged", 0, "NDB$OLD(x)"), ("other", 0, "NDB$MAX_DELETE_WIN(x)")],
    [("judged", 0, "NDB$MAX_INS(x)"), ("other", 1, "NDB$MAX_DEL_WIN_INS(x)")],
    [("judged", 2, "NDB$MAX_DEL_WIN_INS(x)"), ("other", 0, "NDB$MAX_INS(x)")],
    [("judged", 1, "NDB$EPOCH_TRANS()")],
    [("judged", 1, "NDB$EPOCH_TRANS(0)"), ("other", 1, "NDB$EPOCH()")],
    [("judged", 0, "NDB$EPOCH_TRANS()"), ("other", 1, "NDB$EPOCH_TRANS()")],
    [("judged", 2, "NDB$EPOCH_TRANS()"), ("other", 0, "NDB$MAX_DELETE_WIN(x)")],
    [("judged", 1, "NDB$EPOCH_TRANS()"), ("other", 0, "NDB$MAX_INS(x)")],
    [("judged", 0, "NDB$EPOCH2()")],
    [("judged", 0, "NDB$EPOCH2(0)"), ("other", 1, "NDB$EPOCH2(31)")],
    [("judged", 0, "NDB$EPOCH2()"), ("other", 0, "NDB$OLD(x)")],
    [("judged", 0, "NDB$EPOCH2_TRANS()")],
    [("judged", 0, "NDB$EPOCH2_TRANS(1)"), ("other", 0, "NDB$EPOCH2()")],
    [("judged", 0, "NDB$EPOCH2()"), ("other", 0, "NDB$EPOCH2_TRANS()")],
    [("judged", 1, "NDB$EPOCH2_TRANS()"), ("other", 0, "NDB$EPOCH_TRANS()")],
    [("judged", 0, "NDB$EPOCH2_TRANS()"), ("other", 0, "NDB$MAX_DEL_WIN_INS(x)")],
    [("judged", 0, "NDB$EPOCH2_TRANS()"), ("notes", 1, "NDB$EPOCH()")],
    [("judged", 0, "NDB$EPOCH2()"), ("single", 0, "NDB$EPOCH2()"), ("other", 0, "NDB$MAX(x)")],
    [("judged", 0, "NDB$EPOCH_TRANS()"), ("single", 0, "NDB$MAX_INS(x)")],
    # Other functions on the two clusters.
    [("judged", 1, "NDB$EPOCH2()"), ("judged", 2, "NDB$OLD(x)")],
    [("judged", 1, "NDB$EPOCH2()"), ("judged", 2, "NDB$MAX(x)"), ("other", 0, "NDB$OLD(x)")],
    [("judged", 1, "NDB$EPOCH()"), ("judged", 2, "NDB$MAX(x)"), ("other", 2, "NDB$EPOCH()")],
    [("judged", 1, "NDB$EPOCH_TRANS()"), ("judged", 2, "NDB$OLD(x)"), ("other", 1, "NDB$MAX_INS(x)")],
    [("judged", 1, "NDB$MAX_DELETE_WIN(x)"), ("judged", 2, "NDB$EPOCH(0)"), ("other", 2, "NDB$EPOCH_TRANS()")],
    [("judged", 1, "NDB$EPOCH()"), ("judged", 2, "NDB$EPOCH_TRANS()")],
    [("judged", 1, "NDB$EPOCH2()"), ("judged", 2, "NDB$MAX_DEL_WIN_INS(x)"), ("other", 2, "NDB$OLD(x)")],
    [("judged", 1, "NDB$MAX(x)"), ("judged", 2, "NDB$EPOCH2_TRANS()"), ("other", 1, "NDB$MAX_INS(x)")],
    [("judged", 1, "NDB$MAX(x)"), ("judged", 2, "NDB$OLD(x)"), ("other", 2, "NDB$MAX_DELETE_WIN(x)")],
]
# Roles of A and B; they matter for NDB$EPOCH2 and NDB$EPOCH2_TRANS alone.
USUAL_ROLES = (Role.PRIMARY, Role.SECONDARY)
ROLES = [
    USUAL_ROLES,
    (Role.SECONDARY, Role.PRIMARY),
    (Role.PRIMARY, Role.PRIMARY),
    (Role.SECONDARY, Role.SECONDARY),
    (Role.PRIMARY, Role.PASS),
    (Role.PASS, Role.SECONDARY),
    (Role.PRIMARY, Role.NONE),
]
# Tables whose changes A and B drop.
Dropped = tuple[tuple[str, ...], tuple[str, ...]]
NO_FILTERS: Dropped = ((), ())
FILTERS: list[Dropped] = [
    ((), ("db.judged",)),
    (("db.judged",), ()),
    (("db.other", "db.notes"), ("db.single",)),
    (("db.judged", "db.other"), ("db.judged", "db.notes")),
]
BINLOG_TYPES = (7, 6, 8, 9, 1)
VALUES = (0, 1, 2, 2**63 - 1, 2**63, 2**64 - 1)
FIRST_EPOCHS = (1, (7 << 32) + 61, 2**63 - 3)
LAST_EPOCH = 2**64 - 1
EPOCH_STEPS = (1, 2, 62)


def configuration(
    setting: int,
    roles: tuple[Role, Role] = USUAL_ROLES,
    binlog_type: int = 7,
    *,
    skip_missing: bool = False,
    dropped: Dropped = NO_FILTERS,
) -> Run:
    """Return the run that a History belongs to; `dropped`: what filters of A and B drop."""
    rows = tuple(
        ReplicationRow("db", table, server, binlog_type, function) for table, server, function in SETTINGS[setting]
    )
    first, second = roles
    clusters = (
        ClusterConfiguration("A", (LoggingServer(1),), first, filter=ReplicationFilter(ignore_table=dropped[0])),
        ClusterConfiguration("B", (LoggingServer(2),), second, filter=ReplicationFilter(ignore_table=dropped[1])),
    )
    return Run(Configuration(clusters, parse_schema(SCHEMA, database="db"), rows, skip_missing=skip_missing))


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
        self.applied = dict.fromkeys("AB", 0)
        self.transactions = 0
        self.identified = self.chance.random() < 0.85
        self.set_back = self.chance.random() < 0.2
        self.keys = self.chance.choice([2, 4, 20])
        # Where the clusters mostly change rows of their own, much is applied and reflected.
        self.apart = self.chance.random() < 0.4
        self.own_rows: dict[str, set[tuple[str, int]]] = {"A": set(), "B": set()}
        # Two tables stop appliers easily: one has blobs, one a unique key.
        self.names = ["db.judged", "db.other"]
        self.names += [name for name in ("db.notes", "db.single") if self.chance.random() < 0.15]

    def step(self) -> None:
        side = self.chance.choice("AB")
        kind = self.chance.random()
        if kind < 0.45:
            self.log(side)
            self.timeline[side].append(self.transaction(side))
            self.group[side] += 1
        elif kind < 0.7:
            self.epoch[side] += self.chance.choice(EPOCH_STEPS)
            self.group[side] = 0
        else:
            self.apply(side)

    def transaction(self, side: str) -> Transaction:
        self.transactions += 1
        number = self.transactions << 32 if self.identified and self.chance.random() < 0.995 else None
        changes = tuple(self.change(side, number) for _ in range(self.chance.randint(1, 4)))
        return Transaction(self.epoch[side], self.group[side], changes)

    def log(self, side: str) -> None:
        if not self.logged[side] or self.logged[side][-1] != self.epoch[side]:
            self.logged[side].append(self.epoch[side])

    def apply(self, side: str) -> None:
        source = "B" if side == "A" else "A"
        finished = [epoch for epoch in self.logged[source] if epoch < self.epoch[source]]
        if self.set_back and self.chance.random() < 0.1:
            self.applied[side] = self.chance.randint(0, self.applied[side])
        if self.applied[side] >= len(finished):
            return
        foreign = finished[self.applied[side]]
        self.applied[side] += 1
        if self.chance.random() < 0.1:
            return  # never taken
        traced = self.chance.random() < 0.8
        group = self.group[side] if traced else self.group[side] - 1
        restarted = self.chance.random() < 0.1
        self.timeline[side].append(EpochApply(self.epoch[side], group, source, foreign, traced, restarted))
        if traced:
            self.log(side)
            self.group[side] += 1

    def change(self, side: str, transaction: int | None) -> RowChange:
        name = self.chance.choice(self.names)
        table, layout = self.tables[name], self.layouts[name]
        operation = self.chance.choice(list(Operation))
        number = self.chance.randint(1, self.keys)
        if self.apart and self.chance.random() < 0.9:
            number += self.keys * (1 + (side == "B"))
            operation = self.fitting(self.own_rows[side], (name, number), operation)
        row = self.row(layout, number)
        every = tuple(range(len(table.columns)))
        some = tuple(sorted({0, *(place for place in every if self.complete or self.chance.random() < 0.9)}))
        before = None if operation is Operation.WRITE_ROW else self.image(layout, some, row)
        after_columns = (
            every
            if operation is Operation.WRITE_ROW
            else tuple(place for place in some if place or self.chance.random() < 0.3)
        )
        if operation is Operation.UPDATE_ROW and self.chance.random() < 0.05:
            after_columns = ()
        after = None
        if operation is not Operation.DELETE_ROW:
            after = self.image(layout, after_columns, self.row(layout, number))
        flags = ConflictFlag(0)
        if operation is Operation.UPDATE_ROW and self.chance.random() < 0.05:
            flags = ConflictFlag.READ
        key = key_of([table.columns[0]], [row[0]])
        return RowChange(name, key, operation, before, after, transaction, flags)

    @staticmethod
    def fitting(rows: set[tuple[str, int]], row: tuple[str, int], operation: Operation) -> Operation:
        """Return an operation that fits whether the row is there, as far as one side knows."""
        if row not in rows:
            rows.add(row)
            return Operation.WRITE_ROW
        if operation is Operation.DELETE_ROW:
            rows.remove(row)
            return operation
        return Operation.UPDATE_ROW

    def row(self, layout: RowLayout, number: int) -> dict[int, bytes | None]:
        texts = [None, "", "ä"]
        values: list[Any] = [
            number,
            self.chance.choice(VALUES),
            self.chance.choice([None, -5, 7]),
            self.chance.choice(texts),
        ]
        if layout.table == "db.single":
            values[2] = self.chance.choice([None, self.chance.randint(1, 50)])
        elif layout.table == "db.notes":
            values[1] = self.chance.choice(texts)
        elif layout.table == "db.other" and self.chance.random() < 0.2:
            values[1] = None
        return {
            place: None if values[place] is None else codec.encode(values[place])
            for place, codec in enumerate(layout.codecs)
        }

    @staticmethod
    def image(layout: RowLayout, columns: tuple[int, ...], row: dict[int, bytes | None]) -> RowImage:
        return RowImage(layout, columns, tuple(row[place] for place in columns))


def make_history(
    seed: int,
    steps: int,
    *,
    complete: bool,
    roles: tuple[Role, Role] = USUAL_ROLES,
    dropped: Dropped = NO_FILTERS,
) -> History:
    """
    Return a History; `complete` images never lack a column that a function needs, `dropped` is as in `configuration`.
    """
    maker = _Maker(seed, steps, complete=complete)
    for _ in range(steps):
        maker.step()
    clusters = tuple(
        Cluster(side, server_id, tuple(maker.timeline[side]), role, filtered={other: frozenset(tables)})
        for server_id, (side, other, role, tables) in enumerate(zip("AB", "BA", roles, dropped, strict=True), start=1)
    )
    return History(clusters, maker.layouts)


def with_changing_roles(history: History, seed: int) -> History:
    """Return a History whose clusters take other roles at epoch applies, any role after any other."""
    chance, clusters = Random(seed), list[Cluster]()
    for cluster in history.clusters:
        items, role = list[Any](), None
        for item in cluster.timeline:
            if isinstance(item, EpochApply) and chance.random() < 0.2:
                role = chance.choice([Role.PRIMARY, Role.PRIMARY, Role.SECONDARY, Role.SECONDARY, Role.PASS, Role.NONE])
            items.append(attrs.evolve(item, role=role) if isinstance(item, EpochApply) else item)
        clusters.append(attrs.evolve(cluster, timeline=tuple(items)))
    return attrs.evolve(history, clusters=tuple(clusters))
