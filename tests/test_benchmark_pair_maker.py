"""The binlogs of two clusters that benchmarks read."""

from pathlib import Path

import conflict
from benchmarks.makers.pair_maker import CLUSTERS, ROWS, make_pair


def test_the_binlogs_agree_with_what_is_derived(tmp_path: Path) -> None:
    """Of 100 epochs, B rejects one change of each of A's that updates rows and reaches it: 100 - 10 - 1."""
    own, logged = make_pair(tmp_path, 80_000)
    result = conflict.resolve(tmp_path / "run.toml", engine="local")
    # Each cluster applies all epochs of the other one but the last.
    assert own == 2 * 100 * ROWS
    assert logged == own + 2 * 99 * ROWS - 89
    assert result.conflicts.num_rows == 89
    assert set(result.conflicts.column("applier").to_pylist()) == {"B"}
    assert result.summary.compared > 0
    assert result.summary.contradicted == 0


def test_epochs_of_many_rows(tmp_path: Path) -> None:
    """Of 12 epochs, 2 insert rows; B rejects one change of each of A's later ones that reaches it."""
    own, _ = make_pair(tmp_path, 0, rows=2000)
    result = conflict.resolve(tmp_path / "run.toml", engine="local")
    assert own == 2 * 12 * 2000
    assert result.conflicts.num_rows == 12 - 2 - 1
    assert result.summary.compared > 0
    assert result.summary.contradicted == 0


def test_several_files_hold_what_one_holds(tmp_path: Path) -> None:
    """Cut into files, the binlogs give the same counters and rows."""
    made = [make_pair(tmp_path / name, 400_000, file_bytes=size) for name, size in (("one", None), ("many", 1 << 22))]
    one, many = (conflict.resolve(tmp_path / name / "run.toml", engine="local") for name in ("one", "many"))
    assert made[0] == made[1]
    assert len([*(tmp_path / "many").glob("A.*")]) > 1
    assert many.counters == one.counters
    assert many.conflicts.num_rows == one.conflicts.num_rows > 0
    assert all(many.rows(name, "account").equals(one.rows(name, "account")) for name in CLUSTERS)


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    """Another seed gives others."""
    for name, seed in (("one", 1), ("two", 1), ("three", 2)):
        make_pair(tmp_path / name, 80_000, seed=seed)
    for cluster in CLUSTERS:
        one, two, three = ((tmp_path / name / f"{cluster}.000001").read_bytes() for name in ("one", "two", "three"))
        assert one == two
        assert one != three
