"""
Tables with and without a primary key in one transaction, worked by hand, in both engines.
"""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from conflict.config.configuration import ClusterConfiguration, Configuration, LoggingServer
from conflict.history.run import Run
from conflict.history.tasks import in_process
from conflict.rules.replication_table import ReplicationRow, Role
from ndb_formats.schema.create_table import parse_schema
from tests.conflict.engine.columnar.both_engines import by_kernels, by_reference
from tests.conflict.histories import KEYLESS_TABLE, TABLES, history

MAX, EPOCH, TRANS, EPOCH2 = "NDB$MAX(x)", "NDB$EPOCH()", "NDB$EPOCH_TRANS()", "NDB$EPOCH2()"
ROLES = {"A": Role.PRIMARY, "B": Role.SECONDARY}
# Row 1 of t, and a row without a key, are the same on both clusters; A knows that its epoch 1 has arrived.
BASE = "A:i1=1,ih1=1@1 B:<1@11 A:<11@2 "


@attrs.frozen
class Case:
    """
    A History, and what the clusters end with.

    Attributes:
        text: The History, in the language of `tests.conflict.histories`, after `BASE`.
        function: Of t, on A alone for functions by epoch without roles.
        t: Per cluster, the values of x of rows 1, 2, ... of t.
        h: Per cluster, the rows (k, x) of the table without a key.
        counters: Per cluster, the counters that are not 0.
        stop: The cluster whose applier does not find a row, and how many epochs it applied before.
        base: What comes before the text.
        h_too: Whether the function is that of h too.
    """

    text: str
    function: str | None
    t: tuple[list[int], list[int]]
    h: tuple[list[tuple[int, int | None]], list[tuple[int, int | None]]]
    counters: tuple[dict[str, int], dict[str, int]] = ({}, {})
    stop: tuple[str, int] | None = None
    base: str = BASE
    h_too: bool = False


REJECTED = {"trans_reject_count": 1, "trans_detect_iter_count": 1, "trans_conflict_commit_count": 1}
CONFLICT = {"fn_epoch_trans": 1, "trans_row_conflict_count": 1}
CASES = {
    # Both rows of A's transaction arrive.
    "no function": Case("A:u1=1>5,uh1=1>5@3 B:<3@12", None, ([5], [5]), ([(1, 5)], [(1, 5)])),
    # Two more rows like the first one make three; B takes one of them away, and A another one.
    "no function, equal rows": Case(
        "A:ih1=1,ih1=1,u1=1>2@3 B:<3@12 B:dh1=1,u1=2>3@13 A:<13@4 A:dh1=1@5 B:<5@14",
        None,
        ([3], [3]),
        ([(1, 1)], [(1, 1)]),
    ),
    # B deleted the row, so A's second transaction stops B's applier; its change of t is undone, and the next epoch
    # never comes.
    "no function, no such row": Case(
        "B:dh1=1@12 A:u1=1>5,dh1=1@3 A:u1=5>6@4 B:<3@13 B:<4@14", None, ([6], [1]), ([], []), stop=("B", 1)
    ),
    # 7 loses against 9 on A; the row without a key in the same transaction is applied. 9 wins on B.
    "MAX": Case(
        "A:u1=1>9@3 B:u1=1>7,ih2=1@12 A:<12@4 B:<3@13",
        MAX,
        ([9], [9]),
        ([(1, 1), (2, 1)], [(1, 1), (2, 1)]),
        ({"fn_max": 1}, {}),
    ),
    # NULL equals NULL when a row is looked for: of the two rows (3, NULL), B deletes one and updates the other.
    "MAX, NULL": Case(
        "A:ih3=N,ih3=N,u1=1>2@3 B:<3@12 B:dh3=N,uh3=N>0,u1=2>2@13 A:<13@4",
        MAX,
        ([2], [2]),
        ([(1, 1), (3, 0)], [(1, 1), (3, 0)]),
        ({"fn_max": 1}, {}),
    ),
    # A's change of row 1 has not come back: B's is in conflict and the row is refreshed. The row without a key follows.
    "EPOCH": Case(
        "A:u1=1>5@3 B:u1=1>9,uh1=1>9@12 A:<12@4 B:<3@13 B:<4@14",
        EPOCH,
        ([5], [5]),
        ([(1, 9)], [(1, 9)]),
        ({"fn_epoch": 1}, {"refresh_op_count": 1}),
    ),
    # Both insert the same row: no conflict, two rows on each cluster.
    "EPOCH, insert on both": Case(
        "A:ih3=1,u1=1>5@3 B:ih3=1,i2=7@12 A:<12@4 B:<3@13",
        EPOCH,
        ([5, 7], [5, 7]),
        ([(1, 1), (3, 1), (3, 1)], [(1, 1), (3, 1), (3, 1)]),
    ),
    # Both update the same row: A does not find it, which stops its applier before the conflict of row 1 counts.
    "EPOCH, update on both": Case(
        "A:u1=1>5,uh1=1>5@3 B:u1=1>9,uh1=1>9@12 A:<12@4", EPOCH, ([5], [9]), ([(1, 5)], [(1, 9)]), stop=("A", 1)
    ),
    # The insert is rejected with its transaction, and counted; nothing takes the row away from B. Row 1 is refreshed.
    "EPOCH_TRANS, insert": Case(
        "A:u1=1>5@3 B:u1=1>9,ih2=1@12 A:<12@4 B:<3@13 B:<4@14",
        TRANS,
        ([5], [5]),
        ([(1, 1)], [(1, 1), (2, 1)]),
        ({**CONFLICT, **REJECTED, "trans_row_reject_count": 2}, {"refresh_op_count": 1}),
    ),
    # A second transaction inserts an equal row, so it depends on the first one and is rejected, too.
    "EPOCH_TRANS, equal inserts": Case(
        "A:u1=1>5@3 B:u1=1>9,ih2=1@12 B:ih2=1,i2=7@12 A:<12@4 B:<3@13 B:<4@14",
        TRANS,
        ([5], [5]),
        ([(1, 1)], [(1, 1), (2, 1), (2, 1)]),
        ({**CONFLICT, **REJECTED, "trans_reject_count": 2, "trans_row_reject_count": 4}, {"refresh_op_count": 2}),
    ),
    # An update is no part of the conflict: it is applied.
    "EPOCH_TRANS, update": Case(
        "A:u1=1>5@3 B:u1=1>9,uh1=1>9@12 A:<12@4 B:<3@13 B:<4@14",
        TRANS,
        ([5], [5]),
        ([(1, 9)], [(1, 9)]),
        ({**CONFLICT, **REJECTED, "trans_row_reject_count": 1}, {"refresh_op_count": 1}),
    ),
    # A second transaction deletes the row whose insert is rejected, and so finds none: the epoch is undone whole.
    "EPOCH_TRANS, delete after it": Case(
        "A:u1=1>5@3 B:u1=1>9,ih2=1@12 B:dh2=1,i2=7@12 A:<12@4",
        TRANS,
        ([5], [9, 7]),
        ([(1, 1)], [(1, 1)]),
        stop=("A", 1),
    ),
    # Recorded as `no_primary_key_apart`: the primary reflects the insert alone, so the secondary has the row twice.
    "EPOCH2": Case(
        "B:uh1=1>9,ih2=1,i2=7@12 A:<12@4 B:<4@13",
        EPOCH2,
        ([1, 7], [1, 7]),
        ([(1, 9), (2, 1)], [(1, 9), (2, 1), (2, 1)]),
        ({}, {"reflected_op_prepare_count": 2, "reflected_op_discard_count": 1}),
        h_too=True,
    ),
    # A row that comes and goes within the epoch leaves no event that could be reflected.
    "EPOCH2, insert and delete": Case(
        "B:ih2=1@12 B:dh2=1,i2=7@12 A:<12@4 B:<4@13",
        EPOCH2,
        ([1, 7], [1, 7]),
        ([(1, 1)], [(1, 1)]),
        ({}, {"reflected_op_prepare_count": 1, "reflected_op_discard_count": 1}),
        h_too=True,
    ),
}


def run_of(case: Case) -> Run:
    """Return the run of a case."""
    servers = 1 if case.function in (EPOCH, TRANS) else 0
    rows = [ReplicationRow("d", "%", 0, 7, None), ReplicationRow("d", "t", servers, 7, case.function)]
    rows += [ReplicationRow("d", "h", 0, 7, case.function)] if case.h_too else []
    schema = parse_schema(TABLES + KEYLESS_TABLE, database="d")
    roles = ROLES if case.function == EPOCH2 else {}
    clusters = [
        ClusterConfiguration(name, (LoggingServer(number),), roles.get(name, Role.NONE))
        for number, name in [(1, "A"), (2, "B")]
    ]
    return Run(Configuration(tuple(clusters), schema, tuple(rows)))


def moved(found: dict[str, Any]) -> list[dict[str, int]]:
    """Return the counters that moved, per cluster, without their common start."""
    return [
        {name.removeprefix("Ndb_conflict_"): value for name, value in found["counters"][side].items() if value}
        for side in "AB"
    ]


def x_of_t(found: dict[str, Any]) -> tuple[list[int], ...]:
    """Return the values of x of all rows of t, per cluster."""
    return tuple([row[1] for row in found[f"rows {side} t"]] for side in "AB")


@pytest.mark.parametrize("engine", ["reference", "kernels"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_rows_counters_and_stop(case: Case, engine: str) -> None:
    """All rows and counters, and the stop, from either engine."""
    made, run = history(case.base + case.text, ROLES if case.function == EPOCH2 else {}), run_of(case)
    if engine == "reference":
        found = by_reference(made, run)
    else:
        found = by_kernels(made, run, in_process, buckets=1, epochs_per_segment=2)
    assert x_of_t(found) == case.t
    assert tuple(sorted(row[:2] for row in found[f"rows {side} h"]) for side in "AB") == case.h
    assert tuple(moved(found)) == case.counters
    stops = {name: (stop["error"], stop["table"]) for name, stop in found["summary"]["stops"].items()}
    assert stops == ({case.stop[0]: (1032, "d.h")} if case.stop else {})
    if case.stop:
        assert len(found[f"epochs {case.stop[0]}"]) == case.stop[1]
