"""A History, or a result, that is not as it was written."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import conflict
from conflict.errors import HistoryError
from conflict.history.grid.catalogue import facts_of
from conflict.history.grid.folder import Folder
from conflict.history.grid.manifest import read_manifest, refuse_damage
from conflict.history.grid.schemas import CHANGES
from tests.conflict.growing import DEMO, Recording, ingested

CHANGES_OF_A = "changes/cluster=A/bucket=00000/batch=00000.parquet"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Return a copy of the demo."""
    return Recording.copy(DEMO, tmp_path_factory.mktemp("demo") / "demo")


@pytest.fixture(scope="module")
def whole(demo: Recording, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a History of the demo."""
    folder = tmp_path_factory.mktemp("whole") / "history"
    ingested(demo, Folder(str(folder)))
    return folder


@pytest.fixture
def history(whole: Path, tmp_path: Path) -> Path:
    """Return a copy of the History."""
    return Path(shutil.copytree(whole, tmp_path / "history"))


def flip(path: Path, place: int) -> None:
    """Change one byte."""
    content = bytearray(path.read_bytes())
    content[place] ^= 0x10
    path.write_bytes(content)


def remove(history: Path) -> None:
    """All changes of a cluster."""
    shutil.rmtree(history / "changes/cluster=A")


def cut(history: Path) -> None:
    """A file without its last byte."""
    os.truncate(history / CHANGES_OF_A, (history / CHANGES_OF_A).stat().st_size - 1)


def swap(history: Path) -> None:
    """A file of the other cluster in place of one."""
    for kind in ("changes", "images"):
        shutil.copy(history / f"{kind}/cluster=B/bucket=00000/batch=00000.parquet", history / CHANGES_OF_A)


def add(history: Path) -> None:
    """A file too many."""
    shutil.copy(history / CHANGES_OF_A, history / "changes/cluster=A/batch=00099.parquet")


def flip_end(history: Path) -> None:
    """A byte of the description of a file."""
    flip(history / CHANGES_OF_A, -40)


def flip_schedule(history: Path) -> None:
    """A byte of the schedule."""
    flip(history / "schedule.parquet", 20)


def flip_catalogue(history: Path) -> None:
    """A byte of the catalogue."""
    flip(history / "catalogue/batch=00000.parquet", 20)


def change_manifest(history: Path) -> None:
    """A number in the manifest."""
    document = json.loads((history / "history.json").read_text())
    document["changes"] += 1
    (history / "history.json").write_text(json.dumps(document))


def cut_manifest(history: Path) -> None:
    """Half a manifest."""
    content = (history / "history.json").read_text()
    (history / "history.json").write_text(content[: len(content) // 2])


def list_manifest(history: Path) -> None:
    """Another document."""
    (history / "history.json").write_text("[]")


DAMAGES: dict[Callable[[Path], None], str] = {
    remove: r"changes/cluster=A/.* is missing; .*is missing",
    cut: r"batch=00000.parquet has \d+ bytes, but \d+ were written",
    swap: r"changes/cluster=A/bucket=00000/batch=00000.parquet (has \d+ bytes, but|has changed)",
    add: r"changes/cluster=A/batch=00099.parquet does not belong to it",
    flip_end: r"changes/cluster=A/bucket=00000/batch=00000.parquet has changed since it was written",
    flip_schedule: r"schedule.parquet has changed since it was written",
    flip_catalogue: r"catalogue/batch=00000.parquet has changed since it was written",
    change_manifest: r"history.json has changed since it was written",
    cut_manifest: r"history.json is damaged",
    list_manifest: r"the format of this History is unknown",
}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damage_is_refused(damage: Callable[[Path], None], demo: Recording, history: Path):
    """Before anything of it is used, and by a further ingest too; the error says what to do."""
    damage(history)
    folder = Folder(str(history))
    with pytest.raises(HistoryError, match=DAMAGES[damage]) as refusal:
        refuse_damage(folder, read_manifest(folder))
    assert str(history) in str(refusal.value)
    assert "again" in str(refusal.value)
    with pytest.raises(HistoryError, match=DAMAGES[damage]):
        ingested(demo, folder)


def test_a_history_as_it_was_written(whole: Path):
    """Nothing is refused; what a killed writer left beside is no part of it."""
    (whole / "changes/.x.incomplete").write_text("")
    folder = Folder(str(whole))
    manifest = read_manifest(folder)
    refuse_damage(folder, manifest)
    assert sum(each.rows for each in facts_of(folder, folder.sizes()) if each.path.startswith("changes/")) == 90


def test_a_damaged_page_is_refused(tmp_path: Path):
    """By its checksum when it is read, far from the end of the file; columns that are not read do not matter."""
    folder, rows = Folder(str(tmp_path)), 100_000
    columns = {
        field.name: pa.array([b"\1"] * rows, field.type)
        if pa.types.is_dictionary(field.type)
        else pa.array(range(rows) if field.name in {"key", "position"} else [1] * rows, field.type)
        for field in CHANGES
    }
    folder.write_table("a.parquet", pa.table(columns, schema=CHANGES))
    (before,) = facts_of(folder, ["a.parquet"])
    keys = pq.read_metadata(tmp_path / "a.parquet").row_group(0).column(0)
    flip(tmp_path / "a.parquet", keys.data_page_offset + keys.total_compressed_size // 2)
    assert before.rows == rows
    with pytest.raises(HistoryError, match=r"a.parquet is damaged \(.*CRC.*\); make the folder again"):
        folder.read_table("a.parquet", CHANGES, ["key"])
    assert len(folder.read_table("a.parquet", CHANGES, ["position"])) == rows


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a result of the demo."""
    out = tmp_path_factory.mktemp("out") / "result"
    conflict.resolve(DEMO / "run.toml", out=out, engine="local")
    return out


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda out: shutil.rmtree(out / "rows/B"), "rows/B/.* is missing"),
        (lambda out: (out / "counters.json").write_text("{}"), "counters.json has 2 bytes, but"),
        (lambda out: flip(out / "exceptions/A/cft.t1$EX.parquet", -20), "t1.EX.parquet has changed since"),
        (lambda out: shutil.copytree(out / "rows/B", out / "rows/C"), "rows/C/.* does not belong to it"),
        (lambda out: (out / "files.parquet").unlink(), "files.parquet is missing"),
        (lambda out: (out / "run.json").write_text("{}"), "of another version"),
        (lambda out: (out / "run.json").write_text("{"), "run.json is damaged"),
    ],
)
def test_a_damaged_result_is_refused(damage: Callable[[Path], object], message: str, result: Path, tmp_path: Path):
    """Before anything of it is read."""
    out = Path(shutil.copytree(result, tmp_path / "result"))
    damage(out)
    with pytest.raises(HistoryError, match=message):
        conflict.read_result(str(out))


def test_a_result_as_it_was_written(result: Path, tmp_path: Path):
    """Other files than tables may be added."""
    out = Path(shutil.copytree(result, tmp_path / "result"))
    (out / "notes.txt").write_text("kept")
    assert conflict.read_result(str(out)).rows("B", "cft.t1").num_rows == 2
