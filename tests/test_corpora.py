"""Tests of corpora beside the checkout."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def summary(folder: str, where: Path) -> str:
    """Run one test of a corpus and one without, and return what pytest prints."""
    file = where / "test_it.py"
    file.write_text(f"""
import pytest

@pytest.mark.corpus({folder!r})
def test_of_a_corpus():
    pass

def test_of_none():
    pass
""")
    command = [sys.executable, "-m", "pytest", "-p", "tests.corpora", "-p", "no:cacheprovider", str(file)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_a_test_of_an_absent_corpus_is_reported_as_not_run(tmp_path: Path) -> None:
    """It neither passes nor is skipped."""
    printed = summary("no such corpus", tmp_path)
    assert "1 passed, 1 deselected" in printed
    assert "../shared/no such corpus is absent; tests not run: 1" in printed


def test_a_test_of_a_corpus_runs_where_the_corpus_is(tmp_path: Path) -> None:
    """And there is nothing to report."""
    printed = summary(str(tmp_path), tmp_path)
    assert "2 passed" in printed
    assert "not run" not in printed
