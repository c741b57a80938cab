"""Columns that no operation wrote: a data node holds their defaults, which decide and are sent again."""

from typing import Any

import attrs
import pytest

from conflict.config.configuration import ClusterConfiguration, Configuration, LoggingServer
from conflict.history.run import Run
from conflict.history.tasks import in_process
from conflict.rules.replication_table import ReplicationRow, Role
from ndb_formats.schema.create_table import parse_schema
from tests.conflict.engine.columnar.both_engines import by_kernels, by_reference
from tests.conflict.histories import TABLES, history

EPOCH = [("t", 1, "NDB$EPOCH()")]


def run_of(functions: list[tuple[str, int, str]], *, binlog_type: int = 2, tables: str = TABLES) -> Run:
    """Return a run with some functions of tables by server id."""
    rules = (
        *(ReplicationRow("d", table, server_id, binlog_type, function) for table, server_id, function in functions),
        ReplicationRow("d", "%", 0, binlog_type, None),
    )
    clusters = (
        ClusterConfiguration("A", (LoggingServer(1),), Role.PRIMARY),
        ClusterConfiguration("B", (LoggingServer(2),), Role.SECONDARY),
    )
    return Run(Configuration(clusters, parse_schema(tables, database="d"), rules))


def both(text: str, run: Run) -> list[dict[str, Any]]:
    """Return what each engine makes of a text."""
    made = history(text, {"A": Role.PRIMARY, "B": Role.SECONDARY})
    return [by_reference(made, run), by_kernels(made, run, in_process, buckets=2, epochs_per_segment=2)]


# Row 1 has v = 2 on both clusters, and A deletes it. An update on B, logged as a write, inserts it on A with x alone.
DELETED = "A:i1=1/2@1 B:<1@11 A:<11@2 A:d1=1/2@3 B:i1=7@12 "


@pytest.mark.parametrize(("v", "value"), [("INT", None), ("INT NOT NULL", 0), ("INT NOT NULL DEFAULT 42", 42)])
@pytest.mark.parametrize(
    "text",
    [
        # A rejects another insert, and refreshes the row: B takes v with it.
        DELETED + "B:<3@13 B:i1=9/4@14 A:<12@4 A:<14@5 B:<5@15",
        # A rejects a delete: B inserts the row, as it has all columns.
        DELETED + "B:<3@13 A:<12@4 A:u1=7@5 B:d1@14 A:<14@6 B:<6@15",
    ],
)
def test_a_refresh_carries_them(text: str, v: str, value: int | None) -> None:
    """In all recordings a refresh has all columns, so both clusters end with the same row."""
    for found in both(text, run_of(EPOCH, tables=TABLES.replace("v INT", f"v {v}"))):
        assert found["rows A t"] == found["rows B t"] == [(1, 7, value)]


@pytest.mark.parametrize(("x", "stored"), [("NOT NULL", 0), ("NULL", 0), ("NOT NULL DEFAULT 5", 5)])
def test_a_default_is_compared(x: str, stored: int) -> None:
    """An insert without x makes a row with its default, against which an update with the value 4 wins or loses."""
    tables = TABLES.replace("x BIGINT UNSIGNED", f"x BIGINT UNSIGNED {x}")
    run = run_of([("t", 0, "NDB$MAX(x)")], binlog_type=7, tables=tables)
    for found in both("A:i1@1 B:<1@11 A:u1=9>4@2 B:<2@12", run):
        assert found["rows B t"] == [(1, max(stored, 4), None)]


def test_a_refresh_of_a_default_is_compared() -> None:
    """B skips an insert without x; the refresh of that row carries x = 5, which loses against 6 there."""
    tables = TABLES.replace("x BIGINT UNSIGNED", "x BIGINT UNSIGNED NOT NULL DEFAULT 5")
    run = run_of([*EPOCH, ("t", 2, "NDB$MAX_INS(x)")], binlog_type=7, tables=tables)
    run = Run(attrs.evolve(run.configuration, skip_missing=True))
    for found in both("A:i1=/3@1 B:i1=6/9@11 A:<11@2 B:<1@12 B:<2@13", run):
        assert (found["rows A t"], found["rows B t"]) == ([(1, 5, 3)], [(1, 6, 9)])
        assert found["counters"]["B"]["Ndb_conflict_fn_max_ins"] == 1


@pytest.mark.parametrize(("binlog_type", "stops"), [(6, True), (7, False), (8, True), (9, False)])
def test_a_reflected_update_without_the_compared_column(binlog_type: int, stops: bool) -> None:
    """The changed columns alone do not hold x, though the row does: B, which compares it, stops."""
    run = run_of([("t", 1, "NDB$EPOCH2()"), ("t", 2, "NDB$MAX_DEL_WIN_INS(x)")], binlog_type=binlog_type)
    for found in both("A:i1=5/1@1 B:<1@11 A:<11@2 B:u1=/9@12 A:<12@3 B:<3@13", run):
        assert ("B" in found["summary"]["stops"]) == stops
