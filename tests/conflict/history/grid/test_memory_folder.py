"""Tables in memory as long as they fit."""

from pathlib import Path

import pyarrow as pa
import pytest

from conflict.history.grid import memory_folder
from conflict.history.grid.blocks import places_of
from conflict.history.grid.folder import Folder
from conflict.history.grid.memory_folder import MemoryFolder, memory_limit
from conflict.history.grid.schemas import IMAGES


def made() -> pa.Table:
    """Return rows in buffers of their own."""
    return pa.table([[b"\0", None], [None, b"abc"]], schema=IMAGES)


ROWS = made()
SIZE = sum(buffer.size for column in ROWS.columns for buffer in column.chunk(0).buffers())


def folder(tmp_path: Path, limit: int | None = None) -> MemoryFolder:
    """Return a folder that does not exist yet."""
    return MemoryFolder.at(str(tmp_path / "history"), limit)


def test_what_fits_is_not_on_disk(tmp_path: Path) -> None:
    """A table comes back as it was, whole or in columns, and there is no file."""
    history = folder(tmp_path)
    history.write_table("images/a.parquet", ROWS)
    assert history.read_table("images/a.parquet", IMAGES).to_pydict() == ROWS.to_pydict()
    assert history.read_table("images/a.parquet", IMAGES, ["after"]).to_pydict() == {"after": [None, b"abc"]}
    assert not (tmp_path / "history").exists()


def test_what_does_not_fit_is_on_disk(tmp_path: Path) -> None:
    """The second table is a file, and both are read in the same way; a table that is deleted makes room."""
    history = folder(tmp_path, SIZE)
    for name in ("a", "b"):
        history.write_table(f"{name}.parquet", made())
    assert [path.name for path in (tmp_path / "history").iterdir()] == ["b.parquet"]
    assert Folder(history.uri).read_table("b.parquet", IMAGES).to_pydict() == ROWS.to_pydict()
    assert history.read_table("b.parquet", IMAGES).to_pydict() == ROWS.to_pydict()
    history.delete("a.parquet")
    history.write_table("c.parquet", ROWS)
    assert not (tmp_path / "history/c.parquet").exists()


def test_a_table_is_replaced(tmp_path: Path) -> None:
    """A smaller table takes the place of an earlier one, also of one that is on disk."""
    history, small = folder(tmp_path, SIZE), ROWS.slice(0, 0)
    for first in (ROWS, pa.concat_tables([made(), made()])):
        history.write_table("a.parquet", first)
        history.write_table("a.parquet", small)
        assert len(history.read_table("a.parquet", IMAGES)) == 0


def test_shared_buffers_count_once(tmp_path: Path) -> None:
    """Parts of one table fit where the table does, and take no room twice; each is read alone."""
    history = folder(tmp_path, SIZE)
    parts = [ROWS.slice(0, 1), ROWS.slice(1, 0), ROWS.slice(1, 1)]
    places = places_of("a.arrow", 3, history.write_parts("a.arrow", parts))
    history.write_table("b.parquet", ROWS)
    assert not (tmp_path / "history").exists()
    with history.parts(places) as found:
        assert [each.of(bucket).to_pydict() for bucket, each in enumerate(found)] == [
            {"before": [b"\0"], "after": [None]},
            {"before": [], "after": []},
            {"before": [None], "after": [b"abc"]},
        ]
    places = places_of("c.arrow", 2, history.write_parts("c.arrow", [made(), made().slice(0, 0)]))
    with Folder(history.uri).parts(places) as there, history.parts(places) as found:
        assert [len(each.of(bucket)) for blocks in (there, found) for bucket, each in enumerate(blocks)] == [2, 0, 2, 0]
    for path in ("a.arrow", "b.parquet"):
        history.delete(path)
    history.write_table("d.parquet", made())
    assert not (tmp_path / "history/d.parquet").exists()


def test_what_is_not_there_is_empty(tmp_path: Path) -> None:
    """As in a folder on disk."""
    history = folder(tmp_path)
    assert history.read_table("a.parquet", IMAGES).schema == IMAGES
    assert not history.may_be_null("a.parquet", "after")
    assert not history.exists("a.parquet")


def test_folders_in_memory(tmp_path: Path) -> None:
    """A folder exists with its tables and goes with them; another one whose name only begins alike stays."""
    history = folder(tmp_path)
    history.below("images/cluster=A").write_table("a.parquet", ROWS)
    history.write_table("images-too/a.parquet", ROWS)
    history.write_json("images/b.json", 1)
    assert history.exists("images/cluster=A/a.parquet")
    assert history.exists("images/cluster=A")
    assert history.may_be_null("images/cluster=A/a.parquet", "after")
    history.delete("images")
    assert not history.exists("images")
    assert history.exists("images-too/a.parquet")
    history.delete()
    assert not history.exists()


def test_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of a small machine's memory, and 4 GiB of a large one's."""
    for pages, limit in ((1 << 20, 1 << 30), (1 << 24, 4 << 30)):
        memory = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": pages}
        monkeypatch.setattr(memory_folder.os, "sysconf", memory.__getitem__)
        assert memory_limit() == limit
