"""The pictures of the pages, for who sees them and who does not."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.conflict.telling.test_palette import contrast

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("path", sorted(PICTURES.rglob("*.svg")), ids=lambda path: path.stem)
def test_a_picture_of_the_pages(path: Path) -> None:
    """It has a title, a description, and paper, on which every text can be read."""
    root = ET.fromstring(path.read_text("utf-8"))  # of this repository
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None
    assert description is not None
    assert title.text
    assert len(description.text or "") > len(title.text)
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"
    paper = {
        each.get("fill") or each.get("style", "") for each in root.iter() if each.tag in (f"{SVG}rect", f"{SVG}path")
    }
    assert any("#ffffff" in each for each in paper)
    own = [
        re.search(r"(?:fill: ?)?(#[0-9a-f]{6})", each.get("style") or each.get("fill") or "")
        for each in root.iter(f"{SVG}text")
    ]
    assert min(contrast(each[1], "#ffffff") for each in own if each) >= 4.5
