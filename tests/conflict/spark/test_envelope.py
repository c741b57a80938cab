"""Option `envelope`: the changes of a table as Debezium gives them, made of its columns."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import StructType

from conflict.errors import ConfigurationError
from conflict.spark.data_source import NdbBinlogDataSource
from ndb_formats.columnar.stretches import table_names
from tests.corpora import DEMO
from tests.ndb_formats.recordings import ALL_RECORDINGS

LOGS = [
    DEMO / "A.binlog.000001",
    *(ALL_RECORDINGS / name for name in ("reports/xa.mysql.binlog", "binlogs/mariadb_10_11.000001")),
    ALL_RECORDINGS / "servers/mysql_8_0_28_compressed/binlog.000001",
]


def rows_of(path: Path, names: list[str] | None = None, **options: str) -> list[dict[str, Any]]:
    """Return the rows that a query reads, of all columns or of some."""
    source = NdbBinlogDataSource({"path": str(path), "remarks": "ignore", "temporals": "text", **options})
    schema = source.schema()
    reader = source.reader(StructType([schema[name] for name in names or schema.names]))
    return [row for piece in reader.partitions() for batch in reader.read(piece) for row in batch.to_pylist()]


@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_every_change(path: Path) -> None:
    """Has the images and facts of the table's columns."""
    seen = 0
    for table in sorted(table_names([str(path)]) - {"mysql.ndb_apply_status"}):
        expected, found = rows_of(path, table=table), rows_of(path, table=table, envelope="debezium")
        assert len(found) == len(expected)
        for row, change in zip(expected, found, strict=True):
            source = change["source"]
            second = round(row["timestamp"].timestamp()) * 1000
            committed = row["committed"] and round(row["committed"].timestamp() * 1_000_000) // 1000
            assert change["op"] == row["operation"][0].lower().replace("w", "c")
            assert (f"{source['db']}.{source['table']}", source["ts_ms"]) == (table, second)
            assert change["ts_ms"] == (second if committed is None else committed)
            for name in ("server_id", "gtid", "file", "row"):
                assert source[name] == row[name]
            assert (source["pos"], source["payload_pos"]) == (row["position"], row["payload_position"])
            for name in {"before", "before_columns", "after", "after_columns", "after_diffs"} & row.keys():
                assert change[name] == row[name]
            seen += 1
    assert seen > 0


def test_some_columns() -> None:
    """In the order asked for; without images none is decoded."""
    options = {"table": "cft.t1", "envelope": "Debezium", "schema": str(DEMO / "schema.sql")}
    whole = rows_of(LOGS[0], **options)
    names = ["ts_ms", "op"]
    assert rows_of(LOGS[0], names, **options) == [{name: row[name] for name in names} for row in whole]
    assert {row["op"] for row in whole} == {"c", "u", "d"}


@pytest.mark.parametrize("options", [{"envelope": "debezium"}, {"envelope": "avro", "table": "cft.t1"}])
def test_what_is_refused(options: dict[str, str]) -> None:
    """Another envelope, and one of all tables."""
    with pytest.raises(ConfigurationError, match="envelope is debezium, and needs table"):
        rows_of(LOGS[0], **options)
