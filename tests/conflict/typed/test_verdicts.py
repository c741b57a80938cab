"""What becomes of typed Histories under every conflict function, worked out by hand from the manual."""

from collections.abc import Mapping
from typing import Any

import attrs
import pytest

from conflict import History, Verdicts
from conflict.errors import ConfigurationError
from conflict.rules.decision import Cause, Verdict
from conflict.rules.functions import parse_conflict_function

APPLIED, REJECTED, IGNORED, DISCARDED = Verdict.APPLIED, Verdict.REJECTED, Verdict.IGNORED, Verdict.DISCARDED
NONE, MISSING, EXISTS, IN_CONFLICT, IN_TRANSACTION = Cause
Row = dict[str, int | None]

UPDATES = History(
    start=["insert 1 v=0 x=1"],
    A=["update 1 v=5 x=2", "apply 1"],
    B=["update 1 v=7 x=2", "apply 1", "apply 2"],
)
NEWER_ON_B = History(
    start=["insert 1 v=0 x=1"],
    A=["update 1 v=5 x=2", "apply 1"],
    B=["update 1 v=7 x=3", "apply 1", "apply 2"],
)
DELETE_AND_UPDATE = History(
    start=["insert 1 v=0 x=1"],
    A=["delete 1", "apply 1"],
    B=["update 1 v=7 x=2", "apply 1", "apply 2"],
)
INSERTS = History(A=["insert 1 v=5 x=3", "apply 1"], B=["insert 1 v=7 x=2", "apply 1", "apply 2"])
DELETES = History(start=["insert 1 v=0 x=1"], A=["delete 1", "apply 1"], B=["delete 1", "apply 1"])
TRANSACTIONS = History(
    start=["insert 1 v=0 x=1", "insert 2 v=0 x=1"],
    A=["update 1 v=5", "apply 1"],
    B=["update 1 v=7; update 2 v=7", "apply 1", "apply 2"],
)
DELETED_TRANSACTION = History(
    start=["insert 1 v=0 x=1", "insert 2 v=0 x=1"],
    A=["delete 1", "apply 1"],
    B=["delete 1; update 2 v=7", "apply 1", "apply 2"],
)
ONE_SIDED = History(start=["insert 1 v=0 x=1"], A=["apply 1"], B=["update 1 v=7 x=2", "apply 1"])


@attrs.frozen
class Expected:
    """
    What a History comes to.

    Attributes:
        a: Verdict and cause of each operation that A applied.
        b: The same of B.
        rows: v and x of each row at the end, on A and on B.
        counters: The counters that moved, on A and on B, without their common start.
        lost: Cluster and step of each change that is lost.
    """

    a: list[tuple[Verdict, Cause]]
    b: list[tuple[Verdict, Cause]]
    rows: tuple[list[tuple[int, ...]], list[tuple[int, ...]]]
    counters: tuple[Mapping[str, int], Mapping[str, int]]
    lost: list[tuple[str, int]]


CASES = {
    # Of equal values, and of values that are not those which the change had seen, each cluster keeps its own.
    "old": (
        "NDB$OLD(x)",
        UPDATES,
        Expected(
            [(REJECTED, IN_CONFLICT)],
            [(REJECTED, IN_CONFLICT)],
            ([(1, 5, 2)], [(1, 7, 2)]),
            ({"fn_old": 1}, {"fn_old": 1}),
            [("A", 1), ("B", 1)],
        ),
    ),
    "max of equal values": (
        "NDB$MAX(x)",
        UPDATES,
        Expected(
            [(REJECTED, IN_CONFLICT)],
            [(REJECTED, IN_CONFLICT)],
            ([(1, 5, 2)], [(1, 7, 2)]),
            ({"fn_max": 1}, {"fn_max": 1}),
            [("A", 1), ("B", 1)],
        ),
    ),
    "max": (
        "NDB$MAX(x)",
        NEWER_ON_B,
        Expected(
            [(APPLIED, NONE)],
            [(REJECTED, IN_CONFLICT)],
            ([(1, 7, 3)], [(1, 7, 3)]),
            ({}, {"fn_max": 1}),
            [("A", 1)],
        ),
    ),
    # A delete brings the value that its user saw: 1, where B has 2.
    "max of a delete": (
        "NDB$MAX(x)",
        DELETE_AND_UPDATE,
        Expected(
            [(REJECTED, MISSING)],
            [(REJECTED, IN_CONFLICT)],
            ([], [(1, 7, 2)]),
            ({"fn_max": 1}, {"fn_max": 1}),
            [("A", 1), ("B", 1)],
        ),
    ),
    "max_delete_win": (
        "NDB$MAX_DELETE_WIN(x)",
        DELETE_AND_UPDATE,
        Expected([(REJECTED, MISSING)], [(APPLIED, NONE)], ([], []), ({"fn_max_del_win": 1}, {}), [("B", 1)]),
    ),
    "max of inserts": (
        "NDB$MAX(x)",
        INSERTS,
        Expected(
            [(REJECTED, EXISTS)],
            [(REJECTED, EXISTS)],
            ([(1, 5, 3)], [(1, 7, 2)]),
            ({"fn_max": 1}, {"fn_max": 1}),
            [("A", 1), ("B", 1)],
        ),
    ),
    "max_ins": (
        "NDB$MAX_INS(x)",
        INSERTS,
        Expected(
            [(REJECTED, IN_CONFLICT)],
            [(APPLIED, NONE)],
            ([(1, 5, 3)], [(1, 5, 3)]),
            ({"fn_max_ins": 1}, {}),
            [("B", 1)],
        ),
    ),
    "max_del_win_ins": (
        "NDB$MAX_DEL_WIN_INS(x)",
        DELETE_AND_UPDATE,
        Expected([(REJECTED, MISSING)], [(APPLIED, NONE)], ([], []), ({"fn_max_del_win_ins": 1}, {}), [("B", 1)]),
    ),
    # A had not heard that its epoch 1 arrived: it keeps its row, and sends it to B again.
    "epoch": (
        "NDB$EPOCH()",
        UPDATES,
        Expected(
            [(REJECTED, IN_CONFLICT)],
            [(APPLIED, NONE), (APPLIED, NONE)],
            ([(1, 5, 2)], [(1, 5, 2)]),
            ({"fn_epoch": 1}, {"refresh_op_count": 1}),
            [("B", 1)],
        ),
    ),
    # Both wanted the row gone: a conflict that is counted, and nothing is refreshed or lost.
    "epoch of deletes": (
        "NDB$EPOCH()",
        DELETES,
        Expected(
            [(REJECTED, MISSING)],
            [(IGNORED, NONE)],
            ([], []),
            ({"fn_epoch": 1, "epoch_delete_delete_count": 1}, {}),
            [],
        ),
    ),
    # One row in conflict; with its transaction, both rows are rejected and sent again.
    "epoch_trans": (
        "NDB$EPOCH_TRANS()",
        TRANSACTIONS,
        Expected(
            [(REJECTED, IN_TRANSACTION), (REJECTED, IN_TRANSACTION)],
            [(APPLIED, NONE), (APPLIED, NONE), (APPLIED, NONE)],
            ([(1, 5, 1), (2, 0, 1)], [(1, 5, 1), (2, 0, 1)]),
            (
                {
                    "fn_epoch_trans": 1,
                    "trans_row_conflict_count": 1,
                    "trans_row_reject_count": 2,
                    "trans_reject_count": 1,
                    "trans_detect_iter_count": 1,
                    "trans_conflict_commit_count": 1,
                },
                {"refresh_op_count": 2},
            ),
            [("B", 1), ("B", 1)],
        ),
    ),
    "epoch2": (
        "NDB$EPOCH2()",
        UPDATES,
        Expected(
            [(REJECTED, IN_CONFLICT)],
            [(APPLIED, NONE), (APPLIED, NONE)],
            ([(1, 5, 2)], [(1, 5, 2)]),
            ({"fn_epoch2": 1}, {"refresh_op_count": 1}),
            [("B", 1)],
        ),
    ),
    # The primary applies the update and reflects it; the secondary, whose own update it is, does not need it.
    "epoch2 reflects": (
        "NDB$EPOCH2()",
        ONE_SIDED,
        Expected(
            [(APPLIED, NONE)],
            [(DISCARDED, NONE)],
            ([(1, 7, 2)], [(1, 7, 2)]),
            ({}, {"reflected_op_prepare_count": 1, "reflected_op_discard_count": 1}),
            [],
        ),
    ),
    # Under this function alone, a row that both deleted puts the transaction in conflict. A's own delete finds no row.
    "epoch2_trans": (
        "NDB$EPOCH2_TRANS()",
        DELETED_TRANSACTION,
        Expected(
            [(REJECTED, IN_TRANSACTION), (REJECTED, IN_TRANSACTION)],
            [(IGNORED, NONE), (IGNORED, NONE), (APPLIED, NONE)],
            ([(2, 0, 1)], [(2, 0, 1)]),
            (
                {
                    "fn_epoch2_trans": 1,
                    "trans_row_conflict_count": 1,
                    "trans_row_reject_count": 2,
                    "trans_reject_count": 1,
                    "trans_detect_iter_count": 1,
                    "trans_conflict_commit_count": 1,
                    "epoch_delete_delete_count": 1,
                },
                {"refresh_op_count": 2},
            ),
            [("B", 1)],
        ),
    ),
    # Each change is applied on the other cluster: the rows are exchanged.
    "none": (
        None,
        UPDATES,
        Expected([(APPLIED, NONE)], [(APPLIED, NONE)], ([(1, 7, 2)], [(1, 5, 2)]), ({}, {}), [("A", 1), ("B", 1)]),
    ),
}


def counters(verdicts: Verdicts, name: str) -> dict[str, int]:
    """Return the counters of a cluster that moved, without their common start."""
    return {counter.removeprefix("Ndb_conflict_"): value for counter, value in verdicts.counters[name].items()}


def rows(verdicts: Verdicts, name: str) -> list[tuple[Any, ...]]:
    """Return the rows of a cluster."""
    return [tuple(row.values()) for row in verdicts.rows(name)]


@pytest.mark.parametrize("name", CASES)
def test_every_function(name: str) -> None:
    """Verdicts, rows, counters and what is lost, worked out by hand."""
    function, history, expected = CASES[name]
    found = history.resolve(function)
    judged = {
        cluster: [(each.verdict, each.cause) for each in found.judged if each.applier == cluster] for cluster in "AB"
    }
    assert {"A": expected.a, "B": expected.b} == judged
    assert expected.rows == (rows(found, "A"), rows(found, "B"))
    assert expected.counters == (counters(found, "A"), counters(found, "B"))
    assert expected.lost == sorted((each.cluster, each.step) for each in found.lost)
    assert bool(found.differing) == (expected.rows[0] != expected.rows[1])
    assert found.converged == (expected.rows[0] == expected.rows[1] and not any(found.unsettled.values()))


def test_a_function_can_be_given_as_a_value() -> None:
    """A parsed function is taken as its text is."""
    function = parse_conflict_function("NDB$MAX(x)")
    assert str(NEWER_ON_B.resolve("NDB$MAX(x)")) == str(NEWER_ON_B.resolve(function))


def test_the_other_cluster_can_be_the_primary() -> None:
    """Under NDB$EPOCH with primary B, the change of B survives."""
    found = UPDATES.settled().resolve("NDB$EPOCH()", primary="B")
    assert (rows(found, "A"), rows(found, "B")) == ([(1, 7, 2)], [(1, 7, 2)])
    assert counters(found, "B") == {"fn_epoch": 1}


def test_an_exceptions_row() -> None:
    """The default table has an exceptions table, whose rows have the values before and after."""
    (row,) = UPDATES.resolve("NDB$EPOCH()").exceptions["A"]["d.t$EX"]
    named = {name.removeprefix("NDB$"): value for name, value in row.items()}
    assert tuple(named[each] for each in ("server_id", "source_server_id", "source_epoch", "count")) == (
        1,
        2,
        1 << 32,
        1,
    )
    assert tuple(named[each] for each in ("OP_TYPE", "CFT_CAUSE", "id")) == ("UPDATE_ROW", "DATA_IN_CONFLICT", 1)
    assert tuple(named[each] for each in ("v$OLD", "v$NEW", "x$OLD", "x$NEW")) == (0, 7, 1, 2)


def test_a_format_that_lacks_what_a_function_compares_stops_the_appliers() -> None:
    """NDB$OLD looks into before images, which type 8 does not have."""
    found = UPDATES.resolve("NDB$OLD(x)", 8)
    assert {"A", "B"} == found.stops.keys()
    assert (found.stops["A"].column, found.stops["A"].foreign_epoch) == ("x", 1 << 32)
    assert found.unsettled == {"A": 1, "B": 1}
    assert not found.converged
    assert str(found).count("the applier stops: an") == len(found.stops)


@pytest.mark.parametrize(
    ("binlog_type", "end"),
    [
        (7, [(1, 5, 3)]),  # all columns of A's update arrive
        (6, [(1, 5, 3)]),  # the columns that it wrote, into B's row
        (8, [(1, 5, 3)]),
        (2, [(1, 7, 2)]),  # as a write: NDB$MAX rejects a write of a row that is there
    ],
)
def test_formats_decide_what_arrives(binlog_type: int, end: list[tuple[int, ...]]) -> None:
    """A binlog type decides the images, and so what a function makes of a change."""
    history = History(start=["insert 1 v=0 x=1"], A=["update 1 v=5 x=3"], B=["update 1 v=7 x=2", "apply 1"])
    assert end == rows(history.resolve("NDB$MAX(x)", binlog_type), "B")


def test_columns_that_are_not_written_stay_as_they_are() -> None:
    """Under type 6 an update carries what it wrote: absent columns are absent, and not NULL."""
    history = History(start=["insert 1 v=0 x=1"], A=["update 1 x=3"], B=["update 1 v=7", "apply 1"])
    assert rows(history.resolve("NDB$MAX(x)", 6), "B") == [(1, 7, 3)]
    assert rows(history.resolve("NDB$MAX(x)", 7), "B") == [(1, 0, 3)]


def test_statements_that_find_no_row_do_nothing() -> None:
    """As on a server, an update of a missing row changes nothing, and an insert of one that is there is refused."""
    history = History(A=["insert 1 v=1", "delete 1", "update 1 v=2", "insert 2", "insert 2; insert 3"], B=["apply 5"])
    found = history.resolve()
    assert found.notes["A", 3] == ("update 1 v=2 finds no row",)
    assert "the server refuses the insert, and the transaction is undone" in found.notes["A", 5][0]
    assert [(2, None, None)] == rows(found, "A") == rows(found, "B")


def test_what_an_update_of_the_key_does() -> None:
    """A key that changes is a delete and an insert; one that is taken is refused."""
    history = History(start=["insert 1 v=1", "insert 3"], A=["update 1 id=2", "update 2 id=3"], B=["apply 2"])
    found = history.resolve()
    assert [(2, 1, None), (3, None, None)] == rows(found, "A") == rows(found, "B")
    assert sorted(each.operation for each in found.judged) == ["delete", "write"]
    assert "a row with the new key" in found.notes["A", 2][0]


def test_changes_of_one_row_in_a_transaction_are_logged_as_one() -> None:
    """An insert and an update are an insert, an insert and a delete nothing, a delete and an insert an update."""
    history = History(
        start=["insert 3 v=3 x=3"],
        A=["insert 1 v=1; update 1 v=2; insert 2; delete 2; delete 3; insert 3 v=4"],
        B=["apply 1"],
    )
    found = history.resolve("NDB$MAX_INS(x)")
    assert [(each.key, each.operation) for each in found.judged] == [((1,), "write"), ((3,), "update")]
    assert (3, 4, None) in rows(found, "A")


def test_reads_make_transactions_depend_on_each_other() -> None:
    """Under NDB$EPOCH_TRANS, a transaction that read what a rejected one had written is rejected with it."""
    ends = {
        second: rows(
            History(
                start=["insert 1 v=0", "insert 2 v=0"],
                A=["update 1 v=5", "apply 2"],
                B=["2: update 1 v=7", f"2: {second}update 2 v=7"],
            ).resolve("NDB$EPOCH_TRANS()"),
            "A",
        )
        for second in ("read 1; ", "")
    }
    assert ends == {"read 1; ": [(1, 5, None), (2, 0, None)], "": [(1, 5, None), (2, 7, None)]}


def test_a_rewound_applier_applies_again() -> None:
    """After a rewind, epochs are applied again; nothing is lost twice."""
    history = History(A=["insert 1 x=1", "update 1 x=2"], B=["apply 2", "rewind", "apply 2"])
    found = history.resolve("NDB$MAX(x)")
    assert [each.step for each in found.judged] == [1, 1, 3, 3]
    assert [each.verdict for each in found.judged] == [APPLIED, APPLIED, REJECTED, REJECTED]
    assert found.lost == ()


def test_several_tables_with_functions_of_their_own() -> None:
    """A function by table; a table that is not named has none."""
    tables = """
    CREATE TABLE shop.orders (a INT, b VARCHAR(10), n INT UNSIGNED, PRIMARY KEY (a, b)) ENGINE=NDB;
    CREATE TABLE shop.plain (id INT PRIMARY KEY, v INT) ENGINE=NDB;
    """
    history = History(
        tables=tables,
        A=["insert (1, 'it''s') n=2; insert plain 1 v=1", "apply 1"],
        B=["insert shop.orders (1, 'it''s') n=3; insert plain 1 v=2", "apply 1"],
    )
    found = history.resolve({"orders": "NDB$MAX_INS(n)"})
    assert [{"a": 1, "b": "it's", "n": 3}] == found.rows("A") == found.rows("B", "orders")
    assert (found.rows("A", "plain"), found.rows("B", "plain")) == ([{"id": 1, "v": 2}], [{"id": 1, "v": 1}])
    assert "row (1, 'it''s') of orders" in str(found)
    (differing,) = found.differing
    assert (differing.table, differing.key) == ("shop.plain", (1,))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"function": "NDB$MAX(y)"}, "the servers refuse table d.t: Could not find resolve column y"),
        ({"function": "NDB$MAX(v)"}, "Column 'v' has wrong datatype"),
        ({"function": "NDB$MIN(x)"}, "unknown conflict resolution function"),
        ({"function": {"u": None}}, "u is no table"),
        ({"function": "NDB$EPOCH()", "primary": "C"}, "primary C is no cluster; there are A and B"),
        ({"function": None, "binlog_type": 1}, "binlog type 1 logs nothing"),
    ],
)
def test_rules_that_cannot_be(arguments: dict[str, Any], message: str) -> None:
    """What servers refuse is refused, with their words."""
    with pytest.raises(ConfigurationError) as error:
        UPDATES.resolve(**arguments)
    assert message in str(error.value)


def test_verdicts_as_a_table_of_pandas() -> None:
    """One row for each operation that an applier judged."""
    found = UPDATES.resolve("NDB$EPOCH()").to_pandas()
    assert list(found["applier"]) == ["A", "B", "B"]
    assert list(found["verdict"]) == ["REJECTED", "APPLIED", "APPLIED"]
    assert list(found["lost"]) == [True, False, False]
    assert list(found["key"]) == ["1", "1", "1"]


def test_verdicts_as_html() -> None:
    """A notebook shows the two lanes with the decisions, then the counters."""
    shown = UPDATES.resolve("NDB$EPOCH()")._repr_html_()
    assert shown.count("<svg") == 1
    assert "Ndb_conflict_fn_epoch" in shown
    assert "was rejected" in shown
