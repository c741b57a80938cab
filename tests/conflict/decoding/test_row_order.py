"""Rows of tables stand in the order of the log, and each can be told apart, in compressed transactions too."""

import csv
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.conflict.cli.commands import invoke
from tests.corpora import DEMO, RECORDINGS

COMPRESSED = RECORDINGS / "binlogs" / "compressed.000001"
FILES = [COMPRESSED, RECORDINGS / "ndb_formats" / "epoch_type8" / "A.binlog.000001", DEMO / "A.binlog.000001"]
KEY = ("position", "payload_position", "row")
Keys = dict[tuple[str, str], list[tuple[int, ...]]]


def in_json(binlog: Path, folder: Path) -> Keys:
    """Return the key of each row of each table in the order of JSON lines, which is that of the log."""
    found: Keys = {}
    assert invoke("decode", "--format", "json", "-r", folder / "rows.json", binlog)[0] == 0
    for line in (folder / "rows.json").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        found.setdefault((row["database"], row["table"]), []).append(tuple(row.get(name, 0) for name in KEY))
    return found


def in_tables(binlog: Path, folder: Path, form: str) -> Keys:
    """Return the same of the files of tables."""
    found: Keys = {}
    assert invoke("decode", "--format", form, "-r", folder / form, binlog)[0] == 0
    for table in json.loads((folder / form / "tables.json").read_text(encoding="utf-8"))["tables"]:
        keys = found.setdefault((table["database"], table["table"]), [])
        for file in sorted((folder / form / table["folder"]).glob(f"*.{form}")):
            if form == "parquet":
                columns = pq.read_table(file, columns=list(KEY)).to_pydict()
                keys += zip(*(columns[name] for name in KEY), strict=True)
            else:
                with file.open(encoding="utf-8", newline="") as lines:
                    keys += [tuple(int(row[name]) for name in KEY) for row in csv.DictReader(lines)]
    return found


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.parent.name)
def test_rows_stand_in_the_order_of_the_log(file: Path, form: str, tmp_path: Path):
    """Writes, updates and deletes of a table among each other; the key names one row, and sorts them."""
    expected = in_json(file, tmp_path)
    assert in_tables(file, tmp_path, form) == expected
    for keys in expected.values():
        assert keys == sorted(keys)
        assert len(keys) == len(set(keys))


def test_events_of_a_compressed_transaction_have_places_inside(tmp_path: Path):
    """They share a position in the file."""
    keys = [key for found in in_json(COMPRESSED, tmp_path).values() for key in found]
    assert len({position for position, inside, _ in keys if inside}) < sum(inside > 0 for _, inside, _ in keys)
