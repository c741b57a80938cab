"""Tables that are of another engine for a time: their rows come back, as far as the binlogs show them."""

import json
from pathlib import Path

import pytest

import conflict
from conflict.results.result import Result
from tests.conflict.changing_logs import FIRST, Columns, table_id
from tests.conflict.raw_events import BEGIN, LONG, LONGLONG, TABLE_MAP, XID, Raw
from tests.conflict.small_logs import UPDATE, WRITE, SmallLogs
from tests.corpora import RECORDINGS
from tests.ndb_formats.building import rows_body, table_map_body

RECORDED = RECORDINGS / "reports/13-engine-and-back"
ENGINES = ["reference", "local"]
MORE: Columns = (*FIRST, "w INT")


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_and_counters_are_those_of_the_servers(engine: str, tmp_path: Path) -> None:
    """There and back between two changes; B's applier logs the rows that it copies, and its last epoch again."""
    expected = json.loads((RECORDED / "expected.json").read_text())
    found = conflict.resolve(RECORDED / "run.toml", out=tmp_path / "out", engine=engine)
    for name, cluster in expected["clusters"].items():
        assert sorted(found.rows(name, "shop.items").to_pylist(), key=str) == cluster["rows"]["items"]
        assert {counter: value for counter, value in found.counters[name].items() if value} == cluster["counters"]
    assert (found.summary.contradicted, found.summary.converged, found.run["repeated_epochs"]) == (0, True, [])


def moved(folder: Path, *statements: str, changed: bool = False, after: Columns = FIRST) -> Path:
    """
    Write logs in which A makes a row, and statements take its table away and back, before A changes the row.

    Args:
        folder: Where to write.
        statements: The statements.
        changed: Whether the other engine logs a change of the table on A in front of the last one.
        after: The columns of the table at the end.
    """
    logs = SmallLogs()
    logs.commit("A", (WRITE, "judged", (1, 10, 7)), (WRITE, "judged", (2, 10, 7)))
    logs.take("B", (WRITE, "judged", (1, 10, 7)), (WRITE, "judged", (2, 10, 7)))
    logs.rotate()
    for number, statement in enumerate(statements, start=1):
        if changed and number == len(statements):
            logs.sides["A"].log += other_engine()
        logs.define(statement, {"judged": after} if number == len(statements) else {})
        if number == 1:
            for side in logs.sides.values():
                del side.tables["judged"]
    rest = (5,) * (len(after) - 3)
    null = (None,) * (len(after) - 3)
    logs.commit("A", (UPDATE, "judged", (1, 10, 7, *null), (1, 20, 8, *rest)))
    logs.take("B", (UPDATE, "judged", (1, 10, 7, *null), (1, 20, 8, *rest)))
    logs.settle()
    return logs.write(folder)


def other_engine() -> list[Raw]:
    """Return a transaction of InnoDB that writes a row of the table."""
    body = table_map_body(LONG + LONGLONG + LONG, table_id=table_id("judged"), database=b"d", table=b"judged")
    row = b"\0" + bytes([9, 0, 0, 0]) + bytes(8) + bytes(4)
    written = rows_body(row, 3, [range(3)], table_id=table_id("judged"))
    return [BEGIN, (TABLE_MAP, 1, body), (WRITE, 1, written), (XID, 1, bytes(8))]


def rows(found: Result) -> list[list[tuple[object, ...]]]:
    """Return the final rows of the table on A and on B."""
    return [sorted(tuple(row.values()) for row in found.rows(name, "d.judged").to_pylist()) for name in "AB"]


AWAY, BACK = "ALTER TABLE judged ENGINE=InnoDB", "ALTER TABLE judged ENGINE=NDB"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("statements", "after", "expected"),
    [
        ((AWAY, BACK), FIRST, [(1, 20, 8), (2, 10, 7)]),
        ((AWAY, "ALTER TABLE judged ADD COLUMN w INT", BACK), MORE, [(1, 20, 8, 5), (2, 10, 7, None)]),
        ((AWAY + ", ADD COLUMN w INT", BACK), MORE, [(1, 20, 8, 5), (2, 10, 7, None)]),
        ((AWAY, BACK + ", ADD COLUMN w INT"), MORE, [(1, 20, 8, 5), (2, 10, 7, None)]),
        ((AWAY, "RENAME TABLE judged TO away", "RENAME TABLE away TO judged", BACK), FIRST, [(1, 20, 8), (2, 10, 7)]),
    ],
)
def test_rows_come_back(
    statements: tuple[str, ...], after: Columns, expected: list[object], engine: str, tmp_path: Path
) -> None:
    """Also by other names, and with other columns, as the statements in between say."""
    found = conflict.resolve(moved(tmp_path, *statements, after=after), out=tmp_path / "out", engine=engine)
    assert rows(found) == [expected, expected]
    assert (found.summary.contradicted, found.summary.conflicts) == (0, 0)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "statements",
    [
        (AWAY, "TRUNCATE TABLE judged", BACK),
        (
            AWAY,
            "DROP TABLE judged",
            "CREATE TABLE judged (k INT NOT NULL PRIMARY KEY, x BIGINT UNSIGNED NOT NULL, v INT)",
        ),
    ],
)
def test_rows_that_are_gone_do_not_come_back(statements: tuple[str, ...], engine: str, tmp_path: Path) -> None:
    """The update of a row that was emptied away in the other engine finds none on B, and is rejected there."""
    found = conflict.resolve(moved(tmp_path, *statements), out=tmp_path / "out", engine=engine)
    assert found.summary.conflicts == 1
    assert (2, 10, 7) not in rows(found)[0] + rows(found)[1]


def test_changes_in_the_other_engine_are_not_guessed(tmp_path: Path) -> None:
    """The table is left out from there on, which is said, and contradicts what its function would have done."""
    found = conflict.resolve(moved(tmp_path, AWAY, BACK, changed=True), out=tmp_path / "out", engine="local")
    (said,) = (str(each) for each in found.summary.doubts if "another engine" in str(each))
    assert "table d.judged: it becomes a table of NDB with rows that were changed in another engine" in said
    assert "from here on the table is left out" in said
