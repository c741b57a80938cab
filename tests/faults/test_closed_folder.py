"""Folders that may only be read: commands refuse to write there in one sentence, and read there as anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.corpora import DEMO
from tests.faults.commands import left_in, run

LOG, RUN = DEMO / "A.binlog.000001", DEMO / "run.toml"
WRITERS = {
    "decode": ("decode", "-vv", LOG, "-r"),
    "decode to a folder": ("decode", "--format", "parquet", LOG, "-r"),
    "ingest": ("ingest", RUN, "--out"),
    "resolve": ("resolve", RUN, "--engine", "reference", "--out"),
    "compare": ("compare", RUN, "--json"),
    "init": ("init", LOG, DEMO / "B.binlog.000001", "--out"),
}


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Path]:
    """Give a folder; closed by its `chmod` when the test has filled it, it is opened again to be removed."""
    folder = tmp_path / "closed"
    folder.mkdir()
    yield folder
    folder.chmod(0o755)


@pytest.mark.parametrize("name", WRITERS)
def test_nothing_is_written(name: str, closed: Path) -> None:
    """One sentence that names the folder, and nothing in it, not even a lock."""
    closed.chmod(0o555)
    ended = run(*WRITERS[name], closed / "out", powers=False)
    assert ended.code == 2, ended.said
    assert f"nothing can be written into {closed}; choose another place" in ended.said
    assert left_in(closed) == set()


@pytest.mark.parametrize(
    "words", [("conflicts",), ("report", "--out", "{open}/page.html")], ids=["conflicts", "report"]
)
def test_results_are_read(words: tuple[str, ...], closed: Path, tmp_path: Path) -> None:
    """A result in a folder that is closed by now."""
    made = run("resolve", RUN, "--engine", "reference", "--out", closed / "result")
    assert made.code == 0, made.said
    closed.chmod(0o555)
    (closed / "result").chmod(0o555)
    command, *options = (word.format(open=tmp_path) for word in words)
    ended = run(command, closed / "result", *options, powers=False)
    (closed / "result").chmod(0o755)
    assert ended.code == 0, ended.said
