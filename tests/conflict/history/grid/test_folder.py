"""Folders of Parquet and JSON."""

import threading
import time
from contextlib import suppress
from decimal import Decimal
from itertools import count, product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from conflict.errors import HistoryError
from conflict.history.grid.blocks import BlockPlace
from conflict.history.grid.columns import GridColumns
from conflict.history.grid.epoch_files import schedule_tables
from conflict.history.grid.folder import Folder
from conflict.history.grid.memory_folder import MemoryFolder
from conflict.history.grid.schemas import CHANGES, IMAGES, KEYS, SCHEDULE, never_null, part
from conflict.history.scheduling.schedule_columns import ScheduleColumns, with_defaults

HIGH = [0, 2**63 - 1, 2**63, 2**64 - 1]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """Return a folder that does not exist yet."""
    return Folder(str(tmp_path / "history"))


def schedule_of(epochs: list[int]) -> pa.Table:
    """Return epoch applies with these epochs."""
    columns = {"foreign_epoch": np.array(epochs, np.uint64), "epoch": np.array(epochs[::-1], np.uint64)}
    return pa.concat_tables(schedule_tables("A", ScheduleColumns("B", with_defaults(len(epochs), columns))))


class TestTables:
    """Parquet."""

    @pytest.mark.parametrize("path", ["schedule.parquet", "deep/er/schedule.parquet"])
    def test_round_trip(self, folder: Folder, path: str):
        """Unsigned 64-bit numbers come back as they were; folders are made as needed."""
        folder.write_table(path, schedule_of(HIGH))
        read = folder.read_table(path, SCHEDULE)
        assert read.schema == SCHEDULE
        assert read.column("foreign_epoch").to_pylist() == HIGH
        assert read.column("epoch").to_pylist() == HIGH[::-1]

    def test_absent_and_empty_images(self, folder: Folder):
        """An image that is not there stays apart from one without bytes."""
        columns = [[b"\0", None], [None, b""]]
        folder.write_table("images.parquet", pa.table([pa.array(each, pa.binary()) for each in columns], schema=IMAGES))
        read = folder.read_table("images.parquet", IMAGES)
        assert [read.column(name).to_pylist() for name in IMAGES.names] == columns

    def test_some_columns(self, folder: Folder):
        """Only the named columns are read, in that order."""
        folder.write_table("schedule.parquet", schedule_of(HIGH))
        read = folder.read_table("schedule.parquet", SCHEDULE, ["epoch", "applier"])
        assert read.column_names == ["epoch", "applier"]
        assert read.column("epoch").to_pylist() == HIGH[::-1]

    def test_a_column_without_nulls_is_not_nullable(self, folder: Folder):
        """Which is known without reading a value; a file that does not exist holds no NULL."""
        kinds = {"all": pa.int64(), "some": pa.int64(), "none": pa.int64()}
        columns = {"all": [None, None], "some": [None, 2], "none": [1, 2]}
        folder.write_table("a.parquet", never_null(pa.table(columns, pa.schema(kinds))))
        assert {name for name in kinds if folder.may_be_null("a.parquet", name)} == {"all", "some"}
        assert folder.read_table("a.parquet", pa.schema(kinds)).to_pydict() == columns
        assert not folder.may_be_null("b.parquet", "none")
        assert GridColumns(folder, ["b.parquet", "a.parquet"], pa.schema(kinds)).may_be_null("some")

    def test_spark_reads_every_encoding(self, folder: Folder, spark: SparkSession):
        """Signed and unsigned integers, epochs, compared values and dictionaries are the same for other readers."""
        dictionary = pa.dictionary(pa.int32(), pa.binary())
        kinds = {"epoch": pa.uint64(), "key": pa.int32(), "before_value": pa.uint64(), "position": pa.uint64()}
        kinds |= {"operation": pa.int8(), "columns": dictionary}
        columns = [[epoch for epoch in HIGH for _ in range(20)], range(80), HIGH * 20, [None, *range(79)]]
        columns += [[1, 2] * 40, [b"", b"\1\0"] * 40]
        table = pa.table([pa.array(*each) for each in zip(columns, kinds.values(), strict=True)], pa.schema(kinds))
        folder.write_table("a.parquet", table)
        assert folder.read_table("a.parquet", table.schema).to_pylist() == table.to_pylist()
        rows = spark.read.parquet(f"{folder.uri}/a.parquet").orderBy("key").collect()
        assert [tuple(row) for row in rows] == [tuple(row.values()) for row in table.to_pylist()]

    @pytest.mark.parametrize("schema", [CHANGES, KEYS, SCHEDULE])
    def test_a_missing_part_is_empty(self, folder: Folder, schema: pa.Schema):
        """A bucket that has no rows in a segment has no file."""
        read = folder.read_table(part("changes", "A", 0, 0), schema)
        assert (len(read), read.schema) == (0, schema)

    def test_a_missing_part_of_some_columns(self, folder: Folder):
        """It has the named columns."""
        assert folder.read_table("none.parquet", SCHEDULE, ["epoch"]).schema.names == ["epoch"]

    def test_several(self, folder: Folder):
        """Files are joined in the order given; those that are missing add nothing."""
        folder.write_table("0.parquet", schedule_of([1, 2]))
        folder.write_table("2.parquet", schedule_of([2**64 - 1]))
        read = folder.read_tables(("2.parquet", "1.parquet", "0.parquet"), SCHEDULE)
        assert read.column("foreign_epoch").to_pylist() == [2**64 - 1, 1, 2]

    @pytest.mark.parametrize("in_memory", [False, True])
    def test_some_rows(self, folder: Folder, in_memory: bool):
        """The rows of a range of epochs, in whichever groups of rows they are, as a table without groups has them."""
        folder = MemoryFolder.at(folder.uri) if in_memory else folder
        epochs = [HIGH[0], *[7] * 5, 8, 9, 9, 9, *[HIGH[2]] * 4, HIGH[3]]
        table = pa.table(
            [pa.array(epochs, pa.uint64()), pa.array([str(each) for each in epochs]).dictionary_encode()],
            pa.schema([("epoch", pa.uint64()), ("text", pa.dictionary(pa.int32(), pa.string()))]),
        )
        folder.write_table("a.parquet", table, 3)
        for least, greatest in product((0, 1, 7, 9, 2**63, 2**64 - 1), (0, 6, 7, 8, 2**63, 2**64 - 1)):
            expected = [place for place, epoch in enumerate(epochs) if least <= epoch <= greatest]
            first, count = folder.rows_within("a.parquet", "epoch", least, greatest)
            assert count == len(expected)
            if count:
                assert first == expected[0]
                found = folder.read_rows("a.parquet", table.schema, first, count)
                assert found.to_pylist() == table.slice(first, count).to_pylist()
        assert folder.rows_within("none.parquet", "epoch", 0, 2**64 - 1) == (0, 0)

    def test_a_missing_staged_file_is_damage(self, folder: Folder):
        """A task that comes too late must not take it for empty."""
        place = BlockPlace("a.arrow", range(1), 0, 8)
        with pytest.raises(HistoryError, match=r"a.arrow is damaged \(it is missing\)"), folder.parts([place]):
            pass

    def test_none(self, folder: Folder):
        """No files are an empty table."""
        assert folder.read_tables((), SCHEDULE).schema == SCHEDULE

    def test_a_path_that_looks_partitioned(self, folder: Folder):
        """Names such as ``cluster=A`` on the way add no columns."""
        folder.write_table(part("keys", "A", 0, 1), schedule_of([5]))
        assert folder.read_table(part("keys", "A", 0, 1), SCHEDULE).column_names == SCHEDULE.names

    def test_long_decimals(self, folder: Folder):
        """DECIMAL(65, 30) keeps all its digits."""
        schema = pa.schema([("d", pa.decimal256(65, 30))])
        digits = "9" * 35 + "." + "9" * 30
        values = [Decimal(digits), None, Decimal("-" + digits)]
        folder.write_table("d.parquet", pa.table([pa.array(values, schema[0].type)], schema=schema))
        assert folder.read_table("d.parquet", schema).column("d").to_pylist() == values


class TestFiles:
    """JSON, and what is done with whole folders."""

    def test_json(self, folder: Folder):
        """A document comes back as it was; large numbers are exact."""
        document = {"epoch": 2**64 - 1, "nested": [{"a": None}, "é"]}
        folder.write_json("deep/history.json", document)
        assert folder.read_json("deep/history.json") == document

    def test_exists(self, folder: Folder):
        """Files and folders are there once they were written."""
        assert not folder.exists()
        folder.write_json("deep/a.json", {})
        assert folder.exists()
        assert folder.exists("deep")
        assert folder.exists("deep/a.json")
        assert not folder.exists("deep/b.json")

    def test_below(self, folder: Folder):
        """A folder below is a part of it."""
        folder.below("history").write_json("a.json", 1)
        assert folder.read_json("history/a.json") == 1

    def test_delete(self, folder: Folder):
        """Files and folders can be deleted, and what is not there too."""
        for name in ("a/1.json", "a/2.json", "b.json"):
            folder.write_json(name, {})
        folder.delete("b.json")
        folder.delete("none.json")
        folder.delete("none")
        assert [folder.exists(name) for name in ("b.json", "a/1.json")] == [False, True]
        folder.delete("a")
        assert [folder.exists(name) for name in ("a", "")] == [False, True]
        folder.delete()
        folder.delete()
        assert not folder.exists()


def test_arrays_are_replaced_whole(tmp_path: Path) -> None:
    """Arrays keep their types; who has mapped a file keeps its content when it is replaced."""
    folder = Folder(str(tmp_path))
    first = {"epoch": np.array([2**63, 2**64 - 1], np.uint64), "key": np.zeros(0, np.int32)}
    folder.write_arrays("rows.arrow", first)
    seen = folder.read_arrays("rows.arrow")
    folder.write_arrays("rows.arrow", {"epoch": np.arange(1, dtype=np.uint64)})
    assert {name: (each.dtype, each.tolist()) for name, each in seen.items()} == {
        "epoch": (np.uint64, [2**63, 2**64 - 1]),
        "key": (np.int32, []),
    }
    assert folder.read_arrays("rows.arrow")["epoch"].tolist() == [0]
    assert [path.name for path in tmp_path.iterdir()] == ["rows.arrow"]


def test_a_folder_is_deleted_while_a_thread_ends(tmp_path: Path):
    """The last files of an interrupted run go with it."""
    folder = tmp_path / "work"
    folder.mkdir()
    ended = time.monotonic() + 0.2

    def write() -> None:
        with suppress(OSError):
            for number in count():
                if time.monotonic() > ended:
                    break
                (folder / f"{number}").write_text("")

    thread = threading.Thread(target=write)
    thread.start()
    Folder(str(folder)).delete()
    thread.join()
    assert not folder.exists()
