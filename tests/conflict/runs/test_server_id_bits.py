"""`server_id_bits`: of a server id in a row event, the upper bits are the application's."""

from pathlib import Path

import pytest

import conflict
from conflict.results.doubts import is_contradicted

# MySQL NDB Cluster 9.7.2 with server_id_bits = 8. A's own changes carry the application's bits 5, so 1281 for 1. Each
# cluster's NDB$MAX(x) rejected the other one's change of one row, as the servers' counters and rows say.
RECORDING = Path("tests/recordings/reports/14-server-id-bits")


@pytest.mark.parametrize("engine", ["local", "reference"])
def test_changes_are_those_of_their_server(engine: str, tmp_path: Path) -> None:
    """What the clusters held and counted; nothing contradicts it."""
    result = conflict.resolve(RECORDING / "run.toml", out=tmp_path / "result", engine=engine)
    assert {name: found["Ndb_conflict_fn_max"] for name, found in result.counters.items()} == {"A": 1, "B": 1}
    for cluster in "AB":
        rows = result.rows(cluster, "shop.items").to_pylist()
        assert sorted((row["id"], row["x"], row["s"]) for row in rows) == [(1, 3, "A"), (2, 3, "B")]
    assert not is_contradicted(result.run)
    assert sorted((row["applier"], row["key"]) for row in result.outcomes().to_pylist()) == [
        ("A", "id=1"),
        ("B", "id=2"),
    ]


def test_decode_finds_changes_by_server() -> None:
    """With the number of bits; without, the id is another one."""
    binlog = RECORDING / "A.binlog.000001"
    assert conflict.decode(binlog, "shop.items", server_id=1).to_arrow().num_rows == 0
    found = conflict.decode(binlog, "shop.items", server_id=1, server_id_bits=8).to_arrow()
    assert found.num_rows == 4
    assert set(found["server_id"].to_pylist()) == {1}
