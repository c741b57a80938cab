"""Change events of Debezium as Histories; the envelope is that of its documentation of the MySQL connector."""

import json
from pathlib import Path
from typing import Any

import pytest

from conflict import History
from conflict.errors import ConfigurationError

TABLES = """
CREATE TABLE inventory.customers (
    id INT NOT NULL PRIMARY KEY, first_name VARCHAR(255), email VARCHAR(255), points BIGINT UNSIGNED
) ENGINE=NDB
"""
Row = dict[str, Any]


def row(email: str, points: int = 1) -> Row:
    """Return customer 1004."""
    return {"id": 1004, "first_name": "Anne", "email": email, "points": points}


def event(op: str, before: Row | None, after: Row | None, server: int, ts_ms: int, **source: Any) -> Row:
    """Return the value of an event."""
    return {
        "before": before,
        "after": after,
        "source": {
            "version": "3.0.0.Final",
            "name": "mysql-server-1",
            "connector": "mysql",
            "ts_ms": ts_ms,
            "snapshot": "false",
            "db": "inventory",
            "table": "customers",
            "server_id": server,
            "gtid": None,
            "file": "mysql-bin.000003",
            "pos": ts_ms,
            "row": 0,
            "thread": 7,
            "query": None,
            **source,
        },
        "op": op,
        "ts_ms": ts_ms + 400,
        "transaction": None,
    }


FIRST = event("r", None, row("a@noanswer.org"), 0, 0)
A = [FIRST, event("u", row("a@noanswer.org"), row("b@noanswer.org"), 1, 1000)]
B = [FIRST, event("u", row("a@noanswer.org"), row("c@noanswer.org", -1), 2, 1200)]
EXPECTED = History(
    tables=TABLES,
    start=["insert 1004 first_name='Anne' email='a@noanswer.org' points=1"],
    A=["update 1004 email='b@noanswer.org'", "apply 1"],
    B=["update 1004 email='c@noanswer.org' points=18446744073709551615", "apply 1"],
)


def test_with_a_delay_between_the_clusters(tmp_path: Path) -> None:
    """Without events of appliers, a transaction is under way for some time. Wrapped or not, as file or values."""
    path = tmp_path / "a.jsonl"
    lines = [json.dumps(A[0]), "null", json.dumps({"schema": {}, "payload": A[1]}), ""]
    path.write_text("\n".join(lines))
    assert History.from_debezium(A=path, B=B, tables=TABLES, delay_ms=500) == EXPECTED
    with pytest.raises(ConfigurationError, match="as in delay_ms=500"):
        History.from_debezium(A=A, B=B, tables=TABLES)


def test_with_events_of_appliers() -> None:
    """An event with the server id of the other cluster tells what was applied when; epochs before it were, too."""
    second = event("d", row("c@noanswer.org", -1), None, 2, 1300)
    seen_by_a = [*A, {**second, "source": {**second["source"], "pos": 77}}]
    found = History.from_debezium(A=seen_by_a, B=[*B, second], tables=TABLES, server_ids={"A": 1, "B": 2})
    assert found == History(
        tables=TABLES,
        start=EXPECTED.start,
        A=["update 1004 email='b@noanswer.org'", "apply 1"],
        B=["update 1004 email='c@noanswer.org' points=18446744073709551615", "delete 1004"],
    )
    with pytest.raises(ConfigurationError, match="the events of A have server ids 1, 2; say which one is its own"):
        History.from_debezium(A=seen_by_a, B=[*B, second], tables=TABLES)


def test_events_of_one_transaction_are_one_epoch() -> None:
    """A GTID, or the id that the connector gives with transaction metadata, holds events together."""
    with_gtid = [
        event("c", None, {**row("a"), "id": number}, 1, 1000 + number, gtid="3e11fa47:23") for number in (1, 2)
    ]
    with_id = [{**each, "source": {**each["source"], "gtid": None}, "transaction": {"id": "x:9"}} for each in with_gtid]
    for events in (with_gtid, with_id):
        found = History.from_debezium(A=events, B=[], tables=TABLES, delay_ms=0)
        assert [len(step.changes) for step in found.lanes["A"]] == [2]  # type: ignore[union-attr]


def test_a_column_that_is_not_in_the_log_is_absent() -> None:
    """It is not set, and not NULL."""
    after = {**row("b"), "first_name": "__debezium_unavailable_value"}
    del after["points"]
    found = History.from_debezium(A=[FIRST, event("u", None, after, 1, 1000)], B=[], tables=TABLES, delay_ms=0)
    assert found.resolve().rows("A") == [{**row("b"), "first_name": "Anne"}]


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([{"op": "t"}], "event 1 of A: it has op 't'; a change of a row has op c, u, d, r"),
        ([{"status": "BEGIN"}], "event 1 of A: it has no op"),
        (["{"], "event 1 of A: Expecting property name"),
        ([event("u", None, None, 1, 1)], "event 1 of A: an event with op u needs the row after it"),
        ([event("c", None, {"email": "x"}, 1, 1)], "event 1 of A: a row of inventory.customers has no column id"),
        (
            [event("c", None, {"id": 1, "phone": 5}, 1, 1)],
            "event 1 of A: table inventory.customers has no column",
        ),
        ([event("c", None, {"id": 1}, 1, 1, table="x")], "event 1 of A: inventory.x is no table"),
        ([{"op": "c", "after": {"id": 1}}], "event 1 of A: source.db is missing"),
    ],
)
def test_events_that_cannot_be_read(events: list[Any], message: str) -> None:
    """The message names the event."""
    with pytest.raises(ConfigurationError) as error:
        History.from_debezium(A=events, B=[], tables=TABLES, delay_ms=0)
    assert message in str(error.value)


def test_snapshots_that_differ() -> None:
    """A History begins with the same rows on both clusters."""
    other = event("r", None, row("other"), 0, 0)
    with pytest.raises(ConfigurationError, match="the snapshots of A and B differ in the row"):
        History.from_debezium(A=[FIRST], B=[other], tables=TABLES, delay_ms=0)
