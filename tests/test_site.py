"""What the site of the pages holds; tests/check_site.py looks at the site itself."""

import re
from pathlib import Path

import conflict
from tools.api_pages import API_PAGES

ROOT = Path(__file__).parents[1]


def test_every_page_is_in_the_navigation_once() -> None:
    """The pages of docs/ and those beside it, notebooks, and the API reference."""
    listed = re.findall(r"^ +- .*: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    beside = {path.name for path in ROOT.glob("*.md")} - {"README.md"} | {"index.md"}
    pages = {path.with_suffix(".md").name for pattern in ("*.md", "*.ipynb") for path in (ROOT / "docs").glob(pattern)}
    assert sorted(listed) == sorted(beside | pages | set(API_PAGES))


def test_every_public_name_is_in_the_reference_once() -> None:
    """All that users import from `conflict`, and what pages and examples import from `ndb_formats`."""
    named = [name for page in API_PAGES.values() for name in page.names]
    assert len(named) == len(set(named))
    assert {f"conflict.{name}" for name in conflict.__all__} <= set(named)
    used = set()
    for path in [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs/examples").glob("*.py")]:
        for module, names in re.findall(r"^from (ndb_formats\S+) import (.*)$", path.read_text("utf-8"), re.MULTILINE):
            used |= {f"{module}.{name}" for name in names.split(", ")}
    assert used
    assert used <= set(named)
