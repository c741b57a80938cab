"""
The site as a browser shows it, read from the disk: `make docs-check` builds it before.

Its pages are opened in frames of a page that writes what it measured into its title.
"""

import json
import re
from pathlib import Path

import pytest

from tests.browser import BROWSER, measured

ROOT = Path(__file__).parents[1]
SITE = ROOT / "build/site"
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")

HARNESS = """<!DOCTYPE html><title></title><body><script>
const pause = milliseconds => new Promise(done => setTimeout(done, milliseconds));
const until = async condition => { for (let i = 0; i < 200 && !condition(); i++) await pause(50); };
const open = async page => {
  const frame = document.createElement("iframe");
  const loaded = new Promise(done => frame.onload = done);
  frame.width = 1280; frame.height = 900; frame.src = page;
  document.body.append(frame);
  await loaded;
  return frame;
};
onload = async () => { document.title = "measured" + JSON.stringify(await measure(ASKED)); };
MEASURE
</script>"""

# What is wider than its place: the page, the box of a table, a picture, and on a wide screen a table of few columns.
# Also pictures that are not there, and what is loaded from another server.
TOO_WIDE = """
const measure = async ({ pages, widths }) => {
  const found = [], seen = [];
  for (const page of pages) {
    const frame = await open(page), inside = frame.contentDocument;
    const tables = [...inside.querySelectorAll(".md-typeset table:not([class])")];
    await until(() => tables.every(each => each.closest(".md-typeset__scrollwrap")));
    for (const width of widths) {
      frame.width = width;
      await pause(20);
      const right = each => each.getBoundingClientRect().right;
      const column = right(inside.querySelector(".md-content__inner")) + 1;
      const wide = tables.filter(each => {
        const box = each.closest(".md-typeset__scrollwrap");
        return right(box) > column || frame.contentWindow.getComputedStyle(box).overflowX !== "auto"
          || width > 1000 && each.rows[0].cells.length <= 8 && right(each) > column;
      });
      const pictures = [...inside.querySelectorAll(".md-content__inner img")];
      for (const each of [...wide, ...pictures.filter(each => right(each) > column || !each.naturalWidth)])
        found.push([page, width, each.outerHTML.slice(0, 100)]);
      if (inside.documentElement.scrollWidth > width) found.push([page, width, "the page"]);
      seen.push(page);
    }
    for (const each of frame.contentWindow.performance.getEntriesByType("resource"))
      if (each.name.startsWith("http")) found.push([page, each.name]);
    frame.remove();
  }
  return { found, seen: seen.length };
};"""

# The pages that the search finds for each text.
SEARCH = """
const measure = async ({ page, texts }) => {
  const frame = await open(page), inside = frame.contentDocument, found = {};
  const field = inside.querySelector(".md-search__input");
  field.focus();
  await until(() => inside.querySelector(".md-search-result__meta").textContent.startsWith("Type"));
  for (const text of texts) {
    field.value = text;
    field.dispatchEvent(new KeyboardEvent("keyup"));
    await pause(400);
    found[text] = [...inside.querySelectorAll(".md-search-result__link")].map(each => each.pathname.split("/").at(-1));
  }
  return found;
};"""


def ask(measure: str, asked: dict[str, object], folder: Path) -> dict[str, object]:
    """Return what a piece of JavaScript measures."""
    page = folder / "harness.html"
    page.write_text(HARNESS.replace("MEASURE", measure).replace("ASKED", json.dumps(asked)), "utf-8")
    answer = measured(page, folder / "profile", "--allow-file-access-from-files", milliseconds=600_000)
    found: dict[str, object] = json.loads(answer)
    return found


def test_nothing_is_wider_than_its_place(tmp_path: Path) -> None:
    """On every page, on a wide and on a narrow screen, without a network; wide tables scroll in a box."""
    pages = [path.as_uri() for path in sorted(SITE.rglob("*.html")) if path.name != "404.html"]
    assert pages
    answer = ask(TOO_WIDE, {"pages": pages, "widths": [1280, 390]}, tmp_path)
    assert answer == {"found": [], "seen": 2 * len(pages)}


def test_the_search_finds_every_term(tmp_path: Path) -> None:
    """From the disk, every term of the glossary leads to the glossary, or to a page that its entry names."""
    glossary = (ROOT / "docs/glossary.md").read_text("utf-8")
    entries = re.findall(r'<a id="[\w-]+"></a>\**([^*|:]+)(.*)', glossary)
    assert entries
    found = ask(SEARCH, {"page": (SITE / "index.html").as_uri(), "texts": [term for term, _ in entries]}, tmp_path)
    for term, entry in entries:
        explained = {"glossary.html", *(f"{page}.html" for page in re.findall(r"\]\(([\w-]+)\.md", entry))}
        assert explained.intersection(found[term]), (term, found[term])


def test_every_anchor_of_a_page_is_one_of_the_site() -> None:
    """What a page sets as anchors, such as the terms of the glossary, can be linked to on the site."""
    for page in (ROOT / "docs").glob("*.md"):
        anchors = set(re.findall(r'<a id="([\w-]+)"></a>', page.read_text("utf-8")))
        shown = set(re.findall(r'<a id="([\w-]+)"></a>', (SITE / f"{page.stem}.html").read_text("utf-8")))
        assert anchors <= shown, page
