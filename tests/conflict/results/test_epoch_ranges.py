"""Outcomes and overwritten changes divided by ranges of epochs."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads
import pytest
from hypothesis import given
from hypothesis import strategies as st

import conflict
from conflict.engine.ledger.layout import in_epoch_ranges
from conflict.errors import ConfigurationError
from conflict.results.result import Result
from conflict.spark.result_source import NdbResultDataSource
from tests.corpora import DEMO

EPOCHS = st.integers(0, 2**64 - 1)
ORDER = [(name, "ascending") for name in ("epoch", "source_epoch", "group", "ordinal", "table", "key")]


@given(st.lists(EPOCHS), st.integers(1, 2**33))
def test_each_row_is_in_its_range(epochs: list[int], width: int) -> None:
    """Ranges begin at multiples of the width, and have all rows once, in the order in which they were."""
    rows = pa.table({"epoch": pa.array(epochs, pa.uint64()), "n": np.arange(len(epochs))})
    parts = dict(in_epoch_ranges(rows, "epoch", width))
    assert sorted(n for part in parts.values() for n in part["n"].to_pylist()) == [*range(len(epochs))]
    for first, part in parts.items():
        assert first is not None
        assert first % width == 0
        assert all(first <= epoch >> 32 < first + width for epoch in part["epoch"].to_pylist())
        assert part["n"].to_pylist() == sorted(part["n"].to_pylist())
        assert len(part)
    assert [*in_epoch_ranges(rows, "epoch", None)] == [(None, rows)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """Return the demo's result without ranges."""
    out = tmp_path_factory.mktemp("whole") / "result"
    return conflict.resolve(DEMO / "run.toml", out=out, engine="local", all_outcomes=True)


@pytest.mark.parametrize("engine", ["local", "reference"])
def test_a_result_in_ranges(engine: str, whole: Result, tmp_path: Path) -> None:
    """It has the same rows, and programs that know folders as columns leave out what is not asked for."""
    found = conflict.resolve(DEMO / "run.toml", out=tmp_path / "r", engine=engine, all_outcomes=True, epoch_range=2)
    assert found.outcomes().sort_by(ORDER) == whole.outcomes().sort_by(ORDER)
    assert conflict.lost(found).changes == conflict.lost(whole).changes
    place = found.address("outcomes")
    ranges = {int(path.name.partition("=")[2]) for path in Path(place).glob("applier=*/applied_in=*")}
    assert len(ranges) > 2
    assert all(first % 2 == 0 for first in ranges)
    last = max(ranges)
    late = pads.dataset(place, partitioning="hive").to_table(filter=pads.field("applied_in") >= last)
    assert 0 < late.num_rows == sum(each >> 32 >= last for each in whole.outcomes()["epoch"].to_pylist())
    source = NdbResultDataSource({"path": str(tmp_path / "r"), "table": "outcomes"})
    schema = source.schema()
    assert [field.name for field in schema][-2:] == ["applier", "applied_in"]
    reader = source.reader(schema)
    rows = [row for each in reader.partitions() for batch in reader.read(each) for row in batch.to_pylist()]
    assert len(rows) == whole.outcomes().num_rows
    assert all(row["applied_in"] <= int(row["epoch"]) >> 32 < row["applied_in"] + 2 for row in rows)


def test_a_range_of_nothing_is_refused(tmp_path: Path) -> None:
    """Before any work."""
    with pytest.raises(ConfigurationError, match="epoch_range is 0"):
        conflict.resolve(DEMO / "run.toml", out=tmp_path / "r", epoch_range=0)
