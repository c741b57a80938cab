"""The notebooks of the documentation show what their code gives."""

import json
from pathlib import Path

import pytest

from tests.notebooks import outputs_of

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_gives_what_it_shows(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every code cell runs, in order, and its kept outputs are those that it has now."""
    notebook = json.loads(path.read_text("utf-8"))
    monkeypatch.chdir(path.parent)
    kept = [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert any(kept)
    assert list(outputs_of(notebook)) == kept
