"""Columnar decoding: the same answers as the scalar codecs."""

from pathlib import Path

import pytest

from tests.ndb_formats.columnar_answers import columnar_answer, scalar_answer

RECORDINGS = Path(__file__).parents[1] / "recordings"
SHARED = Path(__file__).parents[2].parent / "shared"


def binlogs(folder: Path) -> list[Path]:
    """Return every binlog below a folder."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return sorted(path for path in files if path.open("rb").read(4) == b"\xfebin")


@pytest.mark.parametrize("path", binlogs(RECORDINGS), ids=lambda path: str(path.relative_to(RECORDINGS)))
def test_recordings(path: Path) -> None:
    """Every row of every bundled file, whatever the size of a take."""
    expected = scalar_answer(path)
    assert columnar_answer(path) == expected
    assert columnar_answer(path, batch_rows=3, batch_bytes=900) == expected


@pytest.mark.slow
def test_every_file_beside_the_project() -> None:
    """Every row of every file of the corpus, and the error of a broken one."""
    for path in binlogs(SHARED if SHARED.exists() else RECORDINGS):
        assert columnar_answer(path) == scalar_answer(path), path
