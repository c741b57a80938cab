"""Pieces that are planned for a query: those that are left out, and parts of them, have no row that is wanted."""

import pickle
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from conflict.spark.binlog_reader import BinlogReader
from conflict.spark.data_source import NdbBinlogDataSource
from ndb_formats.columnar.settled import settled_positions
from ndb_formats.columnar.stretches import table_names
from ndb_formats.errors import FormatError
from tests.conflict.raw_events import BEGIN, COMMIT, MAPS, OWN, insert, status
from tests.corpora import DEMO
from tests.ndb_formats.building import MAGIC, description_event, event_bytes
from tests.ndb_formats.events.test_gtid_event import ANONYMOUS
from tests.ndb_formats.recordings import BINLOGS, name_of

NAMES = ["position", "payload_position", "row", "timestamp", "server_id", "epoch", "database", "table"]


def reader_of(path: Path, **options: str) -> BinlogReader:
    """Return a reader of places, epochs and times."""
    source = NdbBinlogDataSource({"path": str(path), "remarks": "ignore", **options})
    schema = source.schema()
    return source.reader(type(schema)([schema[name] for name in NAMES]))


def rows_of(reader: BinlogReader) -> Iterator[dict[str, Any]]:
    """Yield the rows of all pieces."""
    for piece in reader.partitions():
        for batch in reader.read(piece):
            yield from batch.to_pylist()


def ranges_of(rows: list[dict[str, Any]], chosen: random.Random) -> Iterator[tuple[dict[str, str], Any]]:
    """Yield options, and whether a row is one that they choose."""
    times = sorted({int(row["timestamp"].timestamp()) for row in rows})
    for first, last in ((times[0], times[0] + 1), sorted(chosen.choices(times, k=2)), (times[-1] + 1, times[-1] + 9)):
        options = {"startTime": _shown(first), "endTime": _shown(last)}
        yield options, lambda row, first=first, last=last: first <= row["timestamp"].timestamp() < last
    epochs = sorted({int(row["epoch"]) for row in rows if row["epoch"] is not None}) or [5]
    for first, last in ((0, epochs[0]), sorted(chosen.choices(epochs, k=2)), (epochs[-1], epochs[-1] + 9), (0, 1)):
        options = {"startEpoch": str(first), "endEpoch": str(last)}
        yield options, lambda row, first=first, last=last: row["epoch"] is not None and first <= row["epoch"] <= last


def _shown(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).isoformat()


def places(rows: list[dict[str, Any]]) -> list[tuple[int, ...]]:
    """Return where rows are, in the order of the log."""
    return sorted((row["position"], row["payload_position"], row["row"]) for row in rows)


SAMPLE = [path for path in BINLOGS if path.parent.name in {"demo", "xa", "reports"}][::6]


def check(path: Path) -> None:
    """For ranges of epochs and times, servers, and tables: what is read is what filters leave of all rows."""
    chosen = random.Random(path.name)
    try:
        rows = list(rows_of(reader_of(path)))
    except FormatError:
        return
    for options, wanted in ranges_of(rows, chosen) if rows else ():
        assert places(list(rows_of(reader_of(path, **options)))) == places([row for row in rows if wanted(row)]), (
            options
        )
    servers = {row["server_id"] for row in rows}
    for some in ({*sorted(servers)[:1]}, servers, {2**32}):
        expected = [row for row in rows if row["server_id"] in some]
        given = ",".join(map(str, some))
        assert places(list(rows_of(reader_of(path, servers=given or "0")))) == places(expected), given
    for name in [*table_names([str(path)]), "no.such"]:
        expected = [row for row in rows if f"{row['database']}.{row['table']}" == name]
        if name != "mysql.ndb_apply_status":
            assert places(list(rows_of(reader_of(path, tables=name)))) == places(expected), name


@pytest.mark.parametrize("path", SAMPLE, ids=name_of)
def test_what_is_read_is_what_filters_leave(path: Path) -> None:
    """Of some recordings."""
    check(path)


def test_what_is_left_out_is_not_read() -> None:
    """Of one epoch, its transactions alone; and nothing where there is nothing."""
    whole = sum(piece.stop - piece.start for piece in reader_of(DEMO).partitions())
    rows = list(rows_of(reader_of(DEMO / "A.binlog.000001")))
    epoch = rows[len(rows) // 2]["epoch"]
    pieces = reader_of(DEMO, startEpoch=str(epoch), endEpoch=str(epoch)).partitions()
    assert 0 < sum(piece.stop - piece.start for piece in pieces) < whole / 5
    assert reader_of(DEMO, endTime="2001-01-01").partitions() == []
    assert reader_of(DEMO, tables="cft.nowhere").partitions() == []
    assert reader_of(DEMO, servers="77").partitions() == []
    of_one = reader_of(DEMO / "A.binlog.000001", servers=str(rows[-1]["server_id"])).partitions()
    assert 0 < sum(piece.stop - piece.start for piece in of_one) < whole / 2


def test_an_epoch_that_is_not_named_first(tmp_path: Path) -> None:
    """What an applier wrote to `ndb_apply_status` comes before it, or there is nothing else."""
    gtid, foreign = (34, OWN, ANONYMOUS), status(2, 5, log_name=b"x")
    rows = [[status(1, 10), insert(1)], [foreign, status(1, 20), insert(2)], [foreign, insert(3)], [status(1, 30)]]
    events = [each for row in rows for each in (gtid, BEGIN, *MAPS, *row, insert(9), COMMIT)]
    file = tmp_path / "A.000001"
    file.write_bytes(
        MAGIC
        + description_event()
        + b"".join(event_bytes(kind, body, server_id=server) for kind, server, body in events)
    )
    assert [int(row["epoch"]) for row in rows_of(reader_of(file, startEpoch="20", endEpoch="20"))] == [20, 20]
    assert [row["epoch"] for row in rows_of(reader_of(file))].count(None) == 2
    check(file)


def test_errors_after_the_last_epoch(tmp_path: Path) -> None:
    """They are ignored, as before; those before it, and of a range of times, are met."""
    file = tmp_path / "A.000001"
    file.write_bytes((DEMO / "A.binlog.000001").read_bytes()[:9000])
    first = min(row["epoch"] for row in rows_of(reader_of(DEMO / "A.binlog.000001")))
    assert list(rows_of(reader_of(file, endEpoch=str(first))))
    for options in ({"endEpoch": str(2**64 - 1)}, {"endTime": "2001-01-01"}, {"tables": "cft.nowhere"}):
        with pytest.raises(FormatError, match=r"A\.000001, position \d+"):
            list(rows_of(reader_of(file, **options)))


def test_files_that_have_changed_are_planned_again(tmp_path: Path) -> None:
    """Since the columns of a table were looked up; a task gets no plan."""
    file, data = tmp_path / "A.000001", (DEMO / "A.binlog.000001").read_bytes()
    options = {"path": str(file), "table": "cft.t1", "schema": str(DEMO / "schema.sql")}
    file.write_bytes(data)
    source = NdbBinlogDataSource(options)
    reader = source.reader(source.schema())
    planned = list(reader.partitions())
    file.write_bytes(data[: settled_positions(file)[-9]])
    assert [piece.stop for piece in planned] > [piece.stop for piece in reader.partitions()]
    assert list(map(str, reader.partitions())) == list(
        map(str, NdbBinlogDataSource(options).reader(source.schema()).partitions())
    )
    assert b"Piece" in pickle.dumps(planned)
    assert b"Piece" not in pickle.dumps(reader)


@pytest.mark.slow
@pytest.mark.parametrize("path", BINLOGS, ids=name_of)
def test_of_every_recording(path: Path) -> None:
    """The same."""
    check(path)
