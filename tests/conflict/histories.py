"""
Small Histories in a one-line language.

    A:i1=5@1  B:<1@11  A:<11@2  B:u1=5>9@12

Each word is one thing that a cluster did, in the order in which it happened there: the cluster, a
colon, what it did, `@` and the own epoch in which that committed. Clusters are A (server id 1) and B (server id 2).

    i1=5        inserted row 1 with x = 5;  i1=5/6 with v = 6 too;  i1=N with x NULL;  i1 with neither
    u1=5>9      updated row 1: x is 5 in the before image and 9 in the after image
    u1=9        the same, but the before image holds the key alone;  u1 has no x in either
    d1=9        deleted row 1: x is 9 in the before image;  d1 has the key alone
    r1          read row 1 under an exclusive lock
    i1=5,d2     two changes in one transaction
    in1=5       row 1 of table n; without a letter it is table t
    <7          took epoch 7 of the other cluster;  <7? did so and left no trace

An epoch is a number, or `high.low` for its two words. Words of a cluster with the same epoch are groups 0, 1, 2 of it.
"""

from __future__ import annotations

import re

from conflict.engine.replay import resolve
from conflict.history import Cluster, History, RowChange, Take, Transaction
from conflict.replication_table import ReplicationRow
from conflict.resolution import Resolution
from conflict.setup import TableSetup, set_up
from ndb_formats.collation import key_of
from ndb_formats.column_types import WireType
from ndb_formats.constants import ColumnCode
from ndb_formats.create_table import parse_schema
from ndb_formats.events.rows_event import Operation
from ndb_formats.extra_row_info import ConflictFlag
from ndb_formats.row_image import RowImage, RowLayout, layout_of_types

TABLES = """
CREATE TABLE t (k INT NOT NULL PRIMARY KEY, x BIGINT UNSIGNED, v INT);
CREATE TABLE n (k INT NOT NULL PRIMARY KEY, x BIGINT UNSIGNED, v INT);
"""
BASIC_EXCEPTIONS = """
CREATE TABLE `{}` (
    server_id INT UNSIGNED, source_server_id INT UNSIGNED, source_epoch BIGINT UNSIGNED, count INT UNSIGNED,
    k INT NOT NULL, PRIMARY KEY (server_id, source_server_id, source_epoch, count)
);
"""
TYPES = (WireType(ColumnCode.LONG), WireType(ColumnCode.LONGLONG), WireType(ColumnCode.LONG))
WIDTHS = (4, 8, 4)
SERVER_IDS = {"A": 1, "B": 2}

_WORD = re.compile(r"([AB]):(?:<([\d.]+)(\??)|([^@<]+))@([\d.]+)")
_CHANGE = re.compile(r"([iudr])([tn]?)(\d+)(?:=(.*))?")

Setups = dict[str, dict[str, TableSetup]]


def layouts() -> dict[str, RowLayout]:
    """Return the layouts of tables t and n."""
    tables = parse_schema(TABLES, database="d").tables
    return {table.full_name: layout_of_types(table, TYPES) for table in tables}


def epoch(text: str) -> int:
    """Return an epoch; ``high.low`` gives its two words."""
    high, point, low = text.partition(".")
    return int(high) << 32 | int(low) if point else int(text)


def key(number: int) -> bytes:
    """Return the identity of the row with that key, in either table."""
    table = parse_schema(TABLES, database="d").tables[0]
    return key_of(table.columns[:1], [number.to_bytes(4, "little")])


def image(table: str, values: dict[int, int | None]) -> RowImage:
    """Return an image that holds these values by position: 0 is k, 1 is x, 2 is v."""
    present = tuple(sorted(values))
    payloads = [values[place] for place in present]
    return RowImage(
        layouts()[f"d.{table}"],
        present,
        tuple(
            None if value is None else value.to_bytes(WIDTHS[place], "little")
            for place, value in zip(present, payloads, strict=True)
        ),
    )


def change(text: str) -> RowChange:
    """Return one row change."""
    found = _CHANGE.fullmatch(text)
    assert found, f"cannot read the change {text!r}"
    letter, table, number, values = found.groups()
    table = table or "t"
    before, arrow, after = (values or "").partition(">")
    if not arrow and letter != "d":
        before, after = "", before
    operation = {"i": Operation.WRITE_ROW, "d": Operation.DELETE_ROW}.get(letter, Operation.UPDATE_ROW)
    return RowChange(
        f"d.{table}",
        key(int(number)),
        operation,
        None if letter == "i" else image(table, _columns(number, before)),
        None if letter == "d" else image(table, _columns(number, after)),
        flags=ConflictFlag.READ if letter == "r" else ConflictFlag(0),
    )


def _columns(number: str, values: str) -> dict[int, int | None]:
    x, _, v = values.partition("/")
    columns: dict[int, int | None] = {0: int(number)}
    for place, text in ((1, x), (2, v)):
        if text:
            columns[place] = None if text == "N" else int(text)
    return columns


def history(text: str) -> History:
    """Return the History that a text describes."""
    timelines: dict[str, list[Transaction | Take]] = {"A": [], "B": []}
    groups: dict[tuple[str, int], int] = {}
    for word in text.split():
        found = _WORD.fullmatch(word)
        assert found, f"cannot read the word {word!r}"
        name, foreign, untraced, changes, own = found.groups()
        number = epoch(own)
        group = groups.get((name, number), 0)
        if untraced:
            timelines[name].append(Take(number, group - 1, _other(name), epoch(foreign), traced=False))
            continue
        groups[name, number] = group + 1
        if foreign is not None:
            timelines[name].append(Take(number, group, _other(name), epoch(foreign)))
        else:
            timelines[name].append(Transaction(number, group, tuple(map(change, changes.split(",")))))
    clusters = tuple(Cluster(name, SERVER_IDS[name], tuple(timeline)) for name, timeline in timelines.items())
    return History(clusters, layouts())


def _other(name: str) -> str:
    return "B" if name == "A" else "A"


def setups(a: str | None = None, b: str | None = None, exceptions: str | None = None) -> Setups:
    """
    Return how both servers set up the tables.

    Args:
        a: Conflict function of table t on cluster A.
        b: Conflict function of table t on cluster B.
        exceptions: Name of a basic exceptions table.
    """
    schema = parse_schema(TABLES + (BASIC_EXCEPTIONS.format(exceptions) if exceptions else ""), database="d")
    rows = [ReplicationRow("d", "t", SERVER_IDS[name], 7, text) for name, text in (("A", a), ("B", b)) if text]
    return {name: set_up(schema, rows, server_id) for name, server_id in SERVER_IDS.items()}


def resolved(text: str, a: str | None = None, b: str | None = None, exceptions: str | None = None) -> Resolution:
    """Resolve a text with the reference engine; arguments as in `setups`."""
    return resolve(history(text), setups(a, b, exceptions))
