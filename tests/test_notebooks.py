"""The notebooks of the documentation show what their code gives."""

import json
import re
from pathlib import Path
from typing import Any

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
    assert [*map(in_words, outputs_of(notebook))] == [*map(in_words, kept)]


def in_words(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return outputs with the texts of their pictures: where lines run depends on the release of matplotlib."""
    found = []
    for each in outputs:
        data = dict(each.get("data", {}))
        if "image/svg+xml" in data:
            picture = "".join(data["image/svg+xml"])
            assert picture.count("<path") > 10, "nothing is drawn"
            data |= {"image/svg+xml": re.findall(r"<text[^>]*>([^<]*)</text>", picture), "text/plain": "a picture"}
        found.append({**each, "data": data})
    return found
