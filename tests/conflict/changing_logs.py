"""
Random binlogs of two clusters whose definitions change: as `random_histories`, but with statements in the log.

Nothing is made plausible but the definitions: the rows of an epoch have the columns that the table then has, and the
other cluster takes a statement in its turn. The appliers leave traces, and no consequences. A statement that empties or
copies a table may leave a trace of its own, which looks like that of an epoch that was applied before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import attrs

from conflict.config.configuration import ClusterConfiguration, Configuration, LoggingServer, Span
from conflict.rules.replication_table import ReplicationRow, Role
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.tables import Schema
from tests.conflict.raw_events import (
    BEGIN,
    COMMIT,
    DELETE,
    LONG,
    LONGLONG,
    QUERY,
    STATUS_MAP,
    TABLE_MAP,
    UPDATE,
    WRITE,
    Raw,
    extra,
    status,
)
from tests.ndb_formats.building import (
    FORMAT_DESCRIPTION,
    MAGIC,
    description_body,
    event_bytes,
    query_body,
    rows_body,
    table_map_body,
)

SCHEMA = """
CREATE TABLE judged (k INT NOT NULL PRIMARY KEY, x BIGINT UNSIGNED NOT NULL, v INT);
CREATE TABLE `judged$EX` (
    NDB$server_id INT UNSIGNED, NDB$source_server_id INT UNSIGNED, NDB$source_epoch BIGINT UNSIGNED,
    NDB$count INT UNSIGNED, k INT NOT NULL, NDB$OP_TYPE INT UNSIGNED, NDB$CFT_CAUSE INT UNSIGNED,
    NDB$ORIG_TRANSID BIGINT UNSIGNED, x$OLD BIGINT UNSIGNED, x$NEW BIGINT UNSIGNED, v INT,
    PRIMARY KEY (NDB$server_id, NDB$source_server_id, NDB$source_epoch, NDB$count)
);
CREATE TABLE other (k INT NOT NULL PRIMARY KEY, x BIGINT UNSIGNED NOT NULL, v INT);
"""
SERVER_IDS = {"A": 1, "B": 2}
KEY, VALUE, MORE = "k INT NOT NULL PRIMARY KEY", "x BIGINT UNSIGNED NOT NULL", "v INT"
Columns = tuple[str, ...]  # definitions
Tables = dict[str, Columns]
FIRST: Columns = (KEY, VALUE, MORE)
VALUES = (0, 1, 2, 2**63 - 1, 2**63, 2**64 - 1)
# What a statement does; "add" is done in place, "copy" adds a column by copying the table, and the server alone knows
# the values of one that is "computed"; "engine" takes it out of NDB until another statement brings it back.
KINDS = ("add", "add", "copy", "computed", "drop column", "rename", "truncate", "drop", "engine")
_ADDED = {"add": "", "copy": ", ALGORITHM=COPY", "computed": " DEFAULT (1 + 1)"}
# Where statements are run: all on A, those of each table on one cluster, or on both, which then empty tables alone.
PLACES = ("A", "each", "both")
# (table, server id, function)
SETTINGS = [
    [("judged", 0, "NDB$MAX(x)")],
    [("judged", 0, "NDB$OLD(x)"), ("other", 0, "NDB$MAX_DEL_WIN_INS(x)")],
    [("judged", 1, "NDB$EPOCH()"), ("other", 2, "NDB$MAX(x)")],
    [("judged", 1, "NDB$EPOCH_TRANS()")],
    [("judged", 0, "NDB$EPOCH2()"), ("other", 0, "NDB$MAX_INS(x)")],
    [("judged", 0, "NDB$EPOCH2_TRANS()")],
    [("judged", 1, "NDB$EPOCH()"), ("judged", 2, "NDB$MAX(x)"), ("%new", 0, "NDB$MAX(x)")],
]


@attrs.frozen
class Sent:
    """
    A statement that the other cluster has to take.

    Attributes:
        text: The statement.
        gone: The table that is not there any more under its name; None if there is none.
        there: The tables that it makes or changes.
        end: Position after it in the log.
    """

    text: str
    gone: str | None
    there: Tables
    end: int

    @property
    def leaves_trace(self) -> bool:
        return self.text.startswith("TRUNCATE") or self.copies

    @property
    def copies(self) -> bool:
        return self.text.endswith(("COPY", "ENGINE=NDB"))


@attrs.define
class Side:
    """
    A cluster that writes its binlog.

    Attributes:
        name: Its name.
        tables: The columns of each table that it has.
        epoch: Its current epoch.
        groups: What is in that epoch: the events of each group.
        log: The whole binlog.
        sent: What the other cluster has to take, in order: epochs and statements.
        taken: How many of these the other one took.
        defined: Per statement in the log, how many events come before it, and the tables after it.
    """

    name: str
    tables: dict[str, Columns] = attrs.field(factory=lambda: {"judged": FIRST, "other": FIRST})
    epoch: int = 1
    groups: list[list[Raw]] = attrs.field(factory=list)
    log: list[Raw] = attrs.field(factory=list)
    sent: list[int | Sent] = attrs.field(factory=list)
    taken: int = 0
    defined: list[tuple[int, dict[str, Columns]]] = attrs.field(factory=list)

    @property
    def server_id(self) -> int:
        return SERVER_IDS[self.name]

    def close(self, step: int) -> None:
        """Log the epoch, if anything is in it, and begin another one."""
        if self.groups:
            self.log += [BEGIN, (TABLE_MAP, self.server_id, STATUS_MAP), *self._maps()]
            self.log += [(WRITE, self.server_id, status(self.server_id, self.epoch)[2])]
            self.log += [event for group in self.groups for event in group]
            self.log.append(COMMIT)
            self.sent.append(self.epoch)
            self.groups = []
        self.epoch += step

    def define(self, statement: str, tables: dict[str, Columns], server_id: int) -> None:
        """Log a statement."""
        self.close(1)
        self.defined.append((len(self.log), dict(tables)))
        self.log.append((QUERY, server_id, query_body(b"d", statement.encode())))
        self.tables = tables

    def write(self, path: Path, first: int = 0, stop: int | None = None) -> Path:
        """Write a binlog of some of the events."""
        path.write_bytes(self._bytes(self.log[first:stop]))
        return path

    @property
    def end(self) -> int:
        """Position after the last event."""
        return len(self._bytes(self.log))

    def _bytes(self, events: Sequence[Raw]) -> bytes:
        content = MAGIC + event_bytes(FORMAT_DESCRIPTION, description_body(), server_id=self.server_id)
        for code, author, body in events:
            content += event_bytes(code, body, position=len(content), server_id=author)
        return content

    def _maps(self) -> Iterator[Raw]:
        for name, columns in self.tables.items():
            types = b"".join(LONGLONG if "BIGINT" in each else LONG for each in columns)
            nullable = [place for place, each in enumerate(columns) if "NOT NULL" not in each]
            body = table_map_body(types, table_id=table_id(name), database=b"d", table=name.encode(), nullable=nullable)
            yield TABLE_MAP, self.server_id, body


def table_id(name: str) -> int:
    return 100 + sum(name.encode())


@attrs.define
class Maker:
    """
    Writes the binlogs of two clusters step by step.

    Attributes:
        chance: Where everything random comes from.
        sides: The clusters.
        statements: How many statements may still be run at random.
        columns: How many columns were added.
        transactions: How many there were.
        narrowed: Tables that have lost a column.
        where: One of `PLACES`.
        away: The tables that are of another engine.
    """

    chance: Random
    sides: dict[str, Side] = attrs.field(factory=lambda: {name: Side(name) for name in "AB"})
    statements: int = 0
    columns: int = 0
    transactions: int = 0
    # No column is added in the place of a dropped one: changes on the way would go by places, which the kernels do not.
    narrowed: set[str] = attrs.field(factory=set)
    where: str = "A"
    away: Tables = attrs.field(factory=dict)

    def step(self) -> None:
        side = self.sides[self.chance.choice("AB")]
        kind = self.chance.random()
        if kind < 0.45 and side.tables:
            self.transactions += 1
            changes = [self.change(side) for _ in range(self.chance.randint(1, 3))]
            side.groups.append([(code, side.server_id, body) for code, body in changes])
        elif kind < 0.65:
            side.close(self.chance.choice((1, 2, 62)))
        elif kind < 0.93:
            self.take(side, self.sides["B" if side.name == "A" else "A"])
        elif self.statements:
            self.statements -= 1
            self.define(self.sides["A"] if self.where == "A" else side)

    def take(self, side: Side, other: Side) -> None:
        """Let the applier of a side take what comes next from the other."""
        if other.taken >= len(other.sent):
            return
        item = other.sent[other.taken]
        other.taken += 1
        if isinstance(item, int):
            self.transactions += 1
            body = status(other.server_id, item, self.transactions, b"log")[2]
            side.groups.append([(WRITE, side.server_id, body)])
        else:
            tables = {name: each for name, each in side.tables.items() if name != item.gone} | item.there
            side.define(item.text, tables, other.server_id)
            if item.leaves_trace and self.chance.random() < 0.5:
                side.groups.append(self._trace(side, other, item))

    def _trace(self, side: Side, other: Side, statement: Sent) -> list[Raw]:
        """Return the group of a statement that an applier carried out: rows that it copied, and its last epoch."""
        self.transactions += 1
        applied = [each for each in other.sent[: other.taken] if isinstance(each, int)]
        log = f"{other.name}.000001".encode()
        code, _, body = status(other.server_id, max(applied, default=0), self.transactions, log, statement.end)
        copied = [(WRITE, other.server_id, self._row(*each, WRITE)) for each in statement.there.items()]
        return [*(copied if statement.copies else ()), (code, side.server_id, body)]

    def take_all(self) -> None:
        """Let both appliers take everything that changes rows, so that every place is given."""
        for _ in range(3):
            for side, other in (("A", "B"), ("B", "A")):
                self.sides[other].close(1)
                while self.sides[other].taken < len(self.sides[other].sent):
                    self.take(self.sides[side], self.sides[other])
                    self.sides[side].close(1)

    def define(self, side: Side) -> None:
        """Run a statement on a side."""
        before, tables = side.tables, dict(side.tables)
        statement = self._statement(tables, [each for each in ("judged", "other") if self._may_define(side, each)])
        side.define(statement, tables, side.server_id)
        gone = next((name for name in before if name not in tables), None)
        there = {name: columns for name, columns in tables.items() if before.get(name) != columns}
        side.sent.append(Sent(statement, gone, there, side.end))

    def _may_define(self, side: Side, table: str) -> bool:
        return self.where != "each" or (table == "judged") == (side.name == "A")

    def _statement(self, tables: Tables, owned: Sequence[str]) -> str:
        """Return a statement on one of some tables, and carry it out."""
        mine = sorted(each for each in (*tables, *self.away) if each.removesuffix("_new") in owned)
        name = self.chance.choice(mine or owned[:1])
        if self.where == "both":
            return f"TRUNCATE TABLE {name}"
        if name in self.away:
            tables[name] = self.away.pop(name)
            return f"ALTER TABLE {name} ENGINE=NDB"
        if name not in tables:
            tables[name] = FIRST
            return f"CREATE TABLE {name} ({', '.join(FIRST)})"
        kind = self.chance.choice(KINDS)
        if kind in _ADDED and name not in self.narrowed:
            self.columns += 1
            column = f"c{self.columns} INT"
            tables[name] += (column,)
            return f"ALTER TABLE {name} ADD COLUMN {column}{_ADDED[kind]}"
        if kind == "drop column" and len(tables[name]) > len(FIRST):
            column = tables[name][-1]
            tables[name] = tables[name][:-1]
            self.narrowed.add(name)
            return f"ALTER TABLE {name} DROP COLUMN {column.split()[0]}"
        if kind == "rename":
            new = name.removesuffix("_new") if name.endswith("_new") else f"{name}_new"
            if new not in tables and new not in self.away:
                tables[new] = tables.pop(name)
                return f"RENAME TABLE {name} TO {new}"
        if kind == "engine" and len(tables) > 1:
            self.away[name] = tables.pop(name)
            return f"ALTER TABLE {name} ENGINE=InnoDB"
        if kind == "drop" and len(tables) > 1:
            del tables[name]
            return f"DROP TABLE {name}"
        return f"TRUNCATE TABLE {name}"

    def change(self, side: Side) -> tuple[int, bytes]:
        """Return the code and body of the event of a row change."""
        name = self.chance.choice(sorted(side.tables))
        code = self.chance.choice((WRITE, UPDATE, UPDATE, DELETE))
        return code, self._row(name, side.tables[name], code)

    def _row(self, name: str, columns: Columns, code: int) -> bytes:
        """Return the body of an event of one row."""
        number = self.chance.randint(1, 5)
        images = [self._image(columns, number) for _ in range(2 if code == UPDATE else 1)]
        return rows_body(
            b"".join(images),
            len(columns),
            [range(len(columns))] * len(images),
            table_id=table_id(name),
            extra=extra(self.transactions),
        )

    def _image(self, columns: Columns, number: int) -> bytes:
        chosen = (self.chance.choice(VALUES if "BIGINT" in column else (None, 7)) for column in columns[1:])
        return image_of(columns, [number, *chosen])


def image_of(columns: Columns, values: Sequence[int | None]) -> bytes:
    """Return the bytes of a row image with all columns."""
    nulls, payloads = 0, b""
    for place, (column, value) in enumerate(zip(columns, values, strict=True)):
        if value is None:
            nulls |= 1 << place
        else:
            payloads += value.to_bytes(8 if "BIGINT" in column else 4, "little")
    return nulls.to_bytes((len(columns) + 7) // 8, "little") + payloads


def write_logs(
    folder: Path,
    seed: int,
    steps: int,
    setting: int,
    *,
    statements: int = 4,
    roles: tuple[Role, Role],
    where: str = "A",
) -> Configuration:
    """Write the binlogs of two clusters, and return their run; `where`: one of `PLACES`."""
    clusters = []
    for side, role in zip(_sides(seed, steps, statements, where), roles, strict=True):
        path = side.write(folder / f"{side.name}.000001")
        clusters.append(ClusterConfiguration(side.name, (LoggingServer(side.server_id, (path,)),), role))
    rows = tuple(ReplicationRow("d", table, server, 7, function) for table, server, function in SETTINGS[setting])
    return Configuration(tuple(clusters), parse_schema(SCHEMA, database="d"), rows, span=Span(empty=True))


def _sides(seed: int, steps: int, statements: int, where: str = "A") -> list[Side]:
    maker = Maker(Random(seed), statements=statements, where=where)
    for _ in range(steps):
        maker.step()
    maker.take_all()
    for side in maker.sides.values():
        side.close(1)
    return list(maker.sides.values())


@attrs.frozen
class CutLog:
    """
    A random binlog, whole and cut where definitions change.

    Attributes:
        whole: The binlog.
        schema: The definitions at its start.
        parts: What is between the statements, as binlogs, each with the definitions that are in force in it.
    """

    whole: Path
    schema: Schema
    parts: Sequence[tuple[Path, Schema]]


def write_cut_logs(folder: Path, seed: int, steps: int, statements: int) -> Iterator[CutLog]:
    """Write binlogs of two clusters whole, and again in parts; the generator keeps the definitions by itself."""
    start = {"judged": FIRST, "other": FIRST}
    for side in _sides(seed, steps, statements):
        places = [place for place, _ in side.defined]
        bounds = zip([0, *(place + 1 for place in places)], [*places, len(side.log)], strict=True)
        tables = [start, *(after for _, after in side.defined)]
        parts = [
            (side.write(folder / f"{side.name}-{number}", *part), _schema(of))
            for number, (part, of) in enumerate(zip(bounds, tables, strict=True))
        ]
        yield CutLog(side.write(folder / side.name), _schema(start), parts)


def _schema(tables: dict[str, Columns]) -> Schema:
    text = "; ".join(f"CREATE TABLE {name} ({', '.join(columns)})" for name, columns in tables.items())
    return parse_schema(text, database="d")
