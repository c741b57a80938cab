"""What parallel workers would bring: schedules worked out by hand, and a recording against a count row by row."""

import json
from pathlib import Path

import numpy as np
import pytest

import conflict
from conflict.whatif.workers import LoggedRows, logged_waits, speedup, waits_for
from ndb_formats.binlog_reader import read_events
from ndb_formats.constants import EventType
from tests.conflict.cli.commands import invoke
from tests.corpora import DEMO

KEYS = {"t1": ("k",), "t2": ("a", "b"), "plain": ("id",)}


@pytest.mark.parametrize(
    ("costs", "waits", "workers", "expected"),
    [
        ([2, 2, 2], [-1, -1, -1], 1, 1.0),
        ([2, 2, 2], [-1, -1, -1], 2, 6 / 4),  # two at once, then the third
        ([2, 2, 2], [-1, -1, -1], 3, 6 / 2),
        ([2, 2, 2], [-1, 0, 1], 16, 1.0),  # each changes a row of the one before
        ([4, 1, 1, 1], [-1, -1, -1, -1], 2, 7 / 5),  # the second one is done at 1, and commits at 4
        ([3, 1, 1], [-1, -1, 0], 2, 5 / 4),  # the third one begins at 3
        ([1, 1, 9], [-1, 0, -1], 3, 11 / 10),  # epochs are given out in order: the third one begins at 1
        ([], [], 2, 1.0),
    ],
)
def test_a_schedule(costs: list[int], waits: list[int], workers: int, expected: float) -> None:
    """Total cost by the moment of the last commit."""
    found = speedup(np.array(costs, np.int64), np.array(waits, np.int64), workers)
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("epochs", "keys", "by_row", "by_epoch"),
    [
        ([0, 0, 1, 2, 2, 3], [1, 2, 1, 3, 2, 1], [-1, -1, 0, -1, 0, 1], [-1, 0, 0, 1]),
        ([0, 1, 1], [5, 5, 5], [-1, 0, 0], [-1, 0]),  # twice in one epoch: both wait for the epoch before
        ([0, 1], [-1, -1], [-1, 0], [-1, 0]),  # of a table without a primary key
        ([], [], [], []),
    ],
)
def test_rows_in_common(epochs: list[int], keys: list[int], by_row: list[int], by_epoch: list[int]) -> None:
    rows = LoggedRows(*(np.array(each, np.int64) for each in (epochs, keys, [0] * len(keys))))
    found = waits_for(rows)
    assert [each.tolist() for each in found] == [by_row, by_epoch]


def begins_of(file: Path) -> list[int]:
    """Return where the transactions of a log begin."""
    kinds = (EventType.ANONYMOUS_GTID_LOG_EVENT, EventType.GTID_LOG_EVENT)
    return [event.position for event in read_events(file) if event.header.type_code in kinds]


@pytest.mark.parametrize(
    ("given", "expected"),
    [({}, [-1, 0, 1, 2]), ({1: 0, 3: 1}, [-1, -1, 1, 0]), ({1: 0, 2: 0, 3: 0}, [-1, -1, -1, -1])],
)
def test_the_logical_clock(tmp_path: Path, given: dict[int, int], expected: list[int]) -> None:
    """A log as it was recorded, where each waits for the one before, and with other numbers for last_committed."""
    content, begins = bytearray((DEMO / "A.binlog.000001").read_bytes()), begins_of(DEMO / "A.binlog.000001")[:4]
    places = [each + 19 + 26 for each in begins]  # the header, and what precedes last_committed in the body
    for number, last in given.items():
        content[places[number] : places[number] + 8] = last.to_bytes(8, "little")
    times = [int.from_bytes(content[at + 16 : at + 23], "little") & (2**55 - 1) for at in places]
    (tmp_path / "log").write_bytes(content)
    found = logged_waits([tmp_path / "log"], np.array(times, np.int64))
    assert found is not None
    assert found.tolist() == expected


def moments(costs: list[int], waits: list[int], workers: int) -> int:
    """Return at which moment all epochs are committed, moment by moment."""
    now, given, committed, left = 0, 0, 0, dict[int, int]()
    while committed < len(costs):
        while given < len(costs) and len(left) < workers and waits[given] < committed:
            left[given] = costs[given]
            given += 1
        now += 1
        left = {number: max(rest - 1, 0) for number, rest in left.items()}
        while left.get(committed) == 0:
            del left[committed]
            committed += 1
    return now


@pytest.mark.parametrize(("cluster", "server"), [("A", 1), ("B", 2)])
def test_a_recording(cluster: str, server: int) -> None:
    """What waits for what, counted row by row from the rows as text."""
    logged = conflict.decode(DEMO / f"{cluster}.binlog.000001", schema=DEMO / "schema.sql").to_arrow().to_pylist()
    rows = [each for each in logged if each["server_id"] == server and each["table"] in KEYS]
    epochs = sorted({each["epoch"] for each in rows})
    waits, changed, waiting = [-1] * len(epochs), dict[tuple[str, str], set[int]](), dict[tuple[str, str], set[int]]()
    for row in rows:
        epoch, image = epochs.index(row["epoch"]), {**dict(row["before"] or ()), **dict(row["after"] or ())}
        text = ", ".join(f"{name}={image[name]}" for name in KEYS[row["table"]])
        key = (f"cft.{row['table']}", text)
        before = [number for number in changed.setdefault(key, set()) if number < epoch]
        if before:
            waits[epoch] = max(waits[epoch], *before)
            waiting.setdefault(key, set()).add(epoch)
        changed[key].add(epoch)
    found = conflict.workers(DEMO / "run.toml").clusters[cluster]
    costs = [sum(row["epoch"] == each for row in rows) for each in epochs]
    assert (found.epochs, found.changes) == (len(epochs), len(rows))
    expected = {workers: sum(costs) / moments(costs, waits, workers) for workers in (1, 2, 4, 8, 16)}
    assert found.speedup == pytest.approx(expected)
    assert {(each.table, each.key): each.epochs for each in found.rows}.items() <= {
        key: len(numbers) for key, numbers in waiting.items()
    }.items()
    assert found.logged == dict.fromkeys((1, 2, 4, 8, 16), 1.0)


def test_the_command(tmp_path: Path) -> None:
    """It prints what the function returns, and what the log lacks."""
    code, said = invoke("workers", DEMO / "run.toml", "--json", tmp_path / "workers.json")
    document = json.loads((tmp_path / "workers.json").read_text("utf-8"))
    assert code == 0
    assert document == json.loads(json.dumps(conflict.workers(DEMO / "run.toml").document()))
    assert set(document["clusters"]) == {"A", "B"}
    assert "ndb_log_transaction_dependency = ON" in " ".join(said.split())
