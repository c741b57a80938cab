"""
Small Histories in a one-line language.

    A:i1=5@1  B:<1@11  A:<11@2  B:u1=5>9@12

Each word is one thing that a cluster did, in the order in which it happened there: the cluster, a
colon, what it did, `@` and the own epoch in which that committed. Clusters are A (server id 1) and B (server id 2);
where C or D are named too, they stand in a ring, and each applies the epochs of the one before it.

    i1=5        inserted row 1 with x = 5;  i1=5/6 with v = 6 too;  i1=N with x NULL;  i1 with neither
    u1=5>9      updated row 1: x is 5 in the before image and 9 in the after image
    u1=9        the same, but the before image holds the key alone;  u1 has no x in either
    u1=5>-      the after image is empty
    d1=9        deleted row 1: x is 9 in the before image;  d1 has the key alone
    r1=5>5      read row 1 under an exclusive lock, which is logged as an update
    i1=5,d2     two changes in one transaction
    in1=5       row 1 of table n; without a letter it is table t
    <7          applied epoch 7 of the other cluster;  <7? did so and left no trace;  <!7 after a start of the applier
    <C7         applied epoch 7 of cluster C
    <7^1:3.1    applied it, but judged row 1 of table t after group 1 of the own epoch 3;  <7^1:3.1,2:4.0 two rows

The tables are alike (k the key, x compared, v): t, m and q have the conflict function; v must be given in m and is
unique in q. n, z and c have none; z has a TEXT column besides, and c is there for foreign keys. h has no primary key:
its images have all columns, and one that is not given is NULL.

An epoch is a number, or `high.low` for its two words. Words of a cluster with the same epoch are groups 0, 1, 2 of it.
Every transaction has an id: its cluster's server id times 100, plus its number from 1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

import attrs

from conflict.engine.inference.replay import resolve
from conflict.engine.ledger.resolution import Resolution
from conflict.engine.reference.applier import Applier
from conflict.engine.reference.cluster import ReplayedCluster
from conflict.history.model import Cluster, History
from conflict.history.run import TableNumbers
from conflict.history.timeline import EpochApply, RowChange, RowMoment, Transaction
from conflict.rules.replication_table import ReplicationRow, Role
from conflict.rules.table_setup import TableSetup, set_up
from ndb_formats.constants import ColumnCode
from ndb_formats.events.row_image import RowImage, RowLayout, layout_of_types
from ndb_formats.events.rows_event import ConflictFlag, Operation
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.row_keys import key_of
from ndb_formats.types.column_types import WireType

TABLES = """
CREATE TABLE t (k INT NOT NULL PRIMARY KEY, x BIGINT UNSIGNED, v INT);
CREATE TABLE n (k INT NOT NULL PRIMARY KEY, x BIGINT UNSIGNED, v INT);
"""
MORE_TABLES = """
CREATE TABLE m (k INT NOT NULL PRIMARY KEY, x BIGINT UNSIGNED, v INT NOT NULL);
CREATE TABLE q (k INT NOT NULL PRIMARY KEY, x BIGINT UNSIGNED, v INT, UNIQUE KEY (v));
CREATE TABLE z (k INT NOT NULL PRIMARY KEY, x BIGINT UNSIGNED, v INT, w TEXT);
CREATE TABLE c (k INT NOT NULL PRIMARY KEY, x BIGINT UNSIGNED, v INT);
"""
KEYLESS_TABLE = "CREATE TABLE h (k INT, x BIGINT UNSIGNED, v INT);"
JUDGED = "tmq"
BASIC_EXCEPTIONS = """
CREATE TABLE `{}` (
    server_id INT UNSIGNED, source_server_id INT UNSIGNED, source_epoch BIGINT UNSIGNED, count INT UNSIGNED,
    k INT NOT NULL, PRIMARY KEY (server_id, source_server_id, source_epoch, count)
);
"""
TYPES = (WireType(ColumnCode.LONG), WireType(ColumnCode.LONGLONG), WireType(ColumnCode.LONG))
WIDTHS = (4, 8, 4)
CLUSTERS = "ABCD"
SERVER_IDS = {"A": 1, "B": 2}

_WORD = re.compile(r"([A-D]):(?:<(!?)([A-D]?)([\d.]+)(\??)(?:\^([\d.:,]+))?|([^@<]+))@([\d.]+)")
_CHANGE = re.compile(r"([iudr])([tnmqzch]?)(\d+)(?:=(.*))?")

Setups = dict[str, dict[str, TableSetup]]
NO_ROLES: Mapping[str, Role] = {}
Ignored = Mapping[str, Mapping[str, frozenset[int]]]
NONE_IGNORED: Ignored = {}


@cache
def _layouts(text: str) -> dict[str, RowLayout]:
    extra = (WireType(ColumnCode.BLOB, 2),)
    tables = parse_schema(text, database="d").tables
    return {table.full_name: layout_of_types(table, TYPES + extra * (len(table.columns) - 3)) for table in tables}


def layouts(text: str = TABLES) -> dict[str, RowLayout]:
    """Return the layouts of tables, of t and n if no others are named."""
    return dict(_layouts(text))


def epoch(text: str) -> int:
    """Return an epoch; ``high.low`` gives its two words."""
    high, point, low = text.partition(".")
    return int(high) << 32 | int(low) if point else int(text)


@cache
def key(number: int) -> bytes:
    """Return the identity of the row with that key, in any table."""
    table = parse_schema(TABLES, database="d").tables[0]
    return key_of(table.columns[:1], [number.to_bytes(4, "little")])


def image(table: str, values: Mapping[int, int | None]) -> RowImage:
    """Return an image that holds these values by position: 0 is k, 1 is x, 2 is v."""
    present = tuple(sorted(values))
    payloads = [values[place] for place in present]
    return RowImage(
        _layouts(TABLES + MORE_TABLES + KEYLESS_TABLE)[f"d.{table}"],
        present,
        tuple(
            None if value is None else value.to_bytes(WIDTHS[place], "little")
            for place, value in zip(present, payloads, strict=True)
        ),
    )


def change(text: str, transaction_id: int | None = None) -> RowChange:
    """Return one row change."""
    found = _CHANGE.fullmatch(text)
    assert found, f"cannot read the change {text!r}"
    letter, table, number, values = found.groups()
    table = table or "t"
    before, arrow, after = (values or "").partition(">")
    if not arrow and letter != "d":
        before, after = "", before
    if table == "h":
        return _keyless_change(letter, number, (before, after), transaction_id)
    operation = {"i": Operation.WRITE_ROW, "d": Operation.DELETE_ROW}.get(letter, Operation.UPDATE_ROW)
    return RowChange(
        f"d.{table}",
        key(int(number)),
        operation,
        None if letter == "i" else image(table, _columns(number, before)),
        None if letter == "d" else image(table, _columns(number, after) if after != "-" else {}),
        transaction_id,
        ConflictFlag.READ if letter == "r" else ConflictFlag(0),
    )


def _keyless_change(letter: str, number: str, values: tuple[str, str], transaction_id: int | None) -> RowChange:
    rows = [_columns(number, text) for text in values]
    before, after = (image("h", {place: row.get(place) for place in range(3)}) for row in rows)
    keys = [str(each.payloads).encode() for each in (before, after)]
    if letter == "i":
        return RowChange("d.h", keys[1], Operation.WRITE_ROW, None, after, transaction_id, keyless=True)
    if letter == "d":
        return RowChange("d.h", keys[0], Operation.DELETE_ROW, before, None, transaction_id, keyless=True)
    images = before, after, transaction_id
    return RowChange("d.h", keys[0], Operation.UPDATE_ROW, *images, moved_to=keys[1], keyless=True)


def _columns(number: str, values: str) -> dict[int, int | None]:
    x, _, v = values.partition("/")
    columns: dict[int, int | None] = {0: int(number)}
    for place, text in ((1, x), (2, v)):
        if text:
            columns[place] = None if text == "N" else int(text)
    return columns


def _moment(text: str) -> RowMoment:
    number, _, after = text.partition(":")
    own, _, group = after.partition(".")
    return RowMoment("d.t", key(int(number)), (int(own), int(group)))


@attrs.define
class _Timeline:
    """A cluster's timeline while its words are read."""

    name: str
    source: str
    items: list[Transaction | EpochApply] = attrs.field(factory=list)
    groups: dict[int, int] = attrs.field(factory=dict)
    transactions: int = 0

    def add(self, word: re.Match[str], *, with_ids: bool) -> None:
        """Add what a word says."""
        _, restarted, source, foreign, untraced, judged, changes, own = word.groups()
        number = epoch(own)
        group = self.groups.get(number, 0)
        if foreign is not None:
            apply = EpochApply(number, group, source or self.source, epoch(foreign), restarted=bool(restarted))
            if judged:
                apply = attrs.evolve(apply, moments=tuple(_moment(text) for text in judged.split(",")))
            if untraced:
                self.items.append(attrs.evolve(apply, group=group - 1, traced=False))
                return
            self.items.append(apply)
        else:
            self.transactions += 1
            identity = (CLUSTERS.index(self.name) + 1) * 100 + self.transactions if with_ids else None
            self.items.append(Transaction(number, group, tuple(change(text, identity) for text in changes.split(","))))
        self.groups[number] = group + 1


def history(text: str, roles: Mapping[str, Role] = NO_ROLES, *, with_ids: bool = True) -> History:
    """
    Return the History that a text describes.

    Args:
        text: Words of the language.
        roles: Role of each cluster that has one.
        with_ids: Whether the servers log transaction ids.
    """
    words = [_WORD.fullmatch(word) for word in text.split()]
    assert all(words), f"cannot read {text!r}"
    last = max([1, *(CLUSTERS.index(word.group(1)) for word in words if word)])
    names = CLUSTERS[: last + 1]
    timelines = {name: _Timeline(name, names[place - 1]) for place, name in enumerate(names)}
    for word in words:
        assert word is not None
        timelines[word.group(1)].add(word, with_ids=with_ids)
    clusters = tuple(
        Cluster(name, place, tuple(timelines[name].items), roles.get(name, Role.NONE))
        for place, name in enumerate(names, start=1)
    )
    return History(clusters, layouts(TABLES + MORE_TABLES + KEYLESS_TABLE))


def numbers_of(tables: Setups) -> TableNumbers:
    """Return the numbers of tables that are set up once."""
    over_time = [{name: [setup] for name, setup in own.items()} for own in tables.values()]
    return TableNumbers.of([setup.table for setup in tables["A"].values()], over_time)


def setups(
    a: str | None = None,
    b: str | None = None,
    exceptions: str | None = None,
    *,
    tables: str = TABLES,
    binlog_type: int = 7,
    others: str = "",
) -> Setups:
    """
    Return how the servers set up the tables.

    Args:
        a: Conflict function of the judged tables on cluster A.
        b: The same on cluster B, and on the clusters after it.
        exceptions: Name of a basic exceptions table.
        tables: Definitions of the tables.
        binlog_type: Of all tables.
        others: Names of the clusters after B.
    """
    text = tables + (BASIC_EXCEPTIONS.format(exceptions) if exceptions else "")
    functions = {"A": a, "B": b, **dict.fromkeys(others, b)}
    made = {}
    for server_id, (name, function) in enumerate(functions.items(), start=1):
        rows = [ReplicationRow("d", "%", 0, binlog_type, None)]
        rows += [ReplicationRow("d", table, server_id, binlog_type, function) for table in JUDGED if function]
        made[name] = set_up(parse_schema(text, database="d"), rows, server_id)
    return made


def resolved(
    text: str,
    a: str | None = None,
    b: str | None = None,
    exceptions: str | None = None,
    *,
    roles: Mapping[str, Role] = NO_ROLES,
    binlog_type: int = 7,
    with_ids: bool = True,
    skip_missing: bool = False,
    ignored: Ignored = NONE_IGNORED,
    tables: str = TABLES + MORE_TABLES,
) -> Resolution:
    """
    Resolve a text with the reference engine, and find what stays open; arguments as in `history` and `setups`.

    Args:
        ignored: By cluster and source, the server ids that it does not take from there.
    """
    made = history(text, roles, with_ids=with_ids)
    clusters = tuple(attrs.evolve(each, ignored=ignored.get(each.name, {})) for each in made.clusters)
    made = attrs.evolve(made, clusters=clusters)
    others = "".join(cluster.name for cluster in made.clusters[2:])
    found = setups(a, b, exceptions, tables=tables, binlog_type=binlog_type, others=others)
    return resolve(made, found, skip_missing=skip_missing)


def replayed(
    text: str,
    a: str | None = None,
    b: str | None = None,
    exceptions: str | None = None,
    *,
    roles: Mapping[str, Role] = NO_ROLES,
    binlog_type: int = 7,
) -> dict[str, ReplayedCluster]:
    """Do what a text says, in exactly its order, and return the clusters; arguments as in `resolved`."""
    made = history(text, roles)
    tables = TABLES + MORE_TABLES
    found = setups(a, b, exceptions, tables=tables, binlog_type=binlog_type)
    clusters = {cluster.name: ReplayedCluster(cluster, found[cluster.name], made.layouts) for cluster in made.clusters}
    appliers = {name: Applier(cluster) for name, cluster in clusters.items()}
    timelines = {cluster.name: iter(cluster.timeline) for cluster in made.clusters}
    for word in text.split():
        item = next(timelines[word[0]])
        if isinstance(item, Transaction):
            clusters[word[0]].commit(item)
        else:
            appliers[word[0]].apply_epoch(item, clusters[item.source])
    return clusters


def counters(resolution: Resolution, name: str) -> dict[str, int]:
    """Return the counters of a cluster that moved, without their common start."""
    found = resolution.clusters[name].counters
    return {counter.removeprefix("Ndb_conflict_"): value for counter, value in found.items() if value}


def rows(resolution: Resolution, name: str, table: str = "d.t") -> list[tuple[object, ...]]:
    """Return the rows of a table on one cluster."""
    return resolution.clusters[name].rows[table]  # type: ignore[return-value]
