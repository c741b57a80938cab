"""Reports in headless Chromium, where it is installed."""

import html
from pathlib import Path

import pytest

from tests.browser import BROWSER, measured
from tests.conflict.cli.commands import invoke

# A page that shows the report in a frame of some width, and then writes what it measured into its title.
HARNESS = """<!DOCTYPE html><title></title>
<iframe width="{width}" height="2000" srcdoc="{page}"></iframe>
<script>
onload = () => {{
  const frame = document.querySelector("iframe"), inside = frame.contentDocument, root = inside.documentElement;
  const wide = [...inside.querySelectorAll("svg")].filter(each => each.getBoundingClientRect().width > 0);
  const color = frame.contentWindow.getComputedStyle(inside.body).backgroundColor;
  document.title = ["measured", root.scrollWidth, wide.length, inside.querySelectorAll("figure").length,
    frame.contentWindow.performance.getEntriesByType("resource").length, color].join("|");
}};
</script>"""
THEMES = {"light": (1, "rgb(243, 245, 247)"), "dark": (0, "rgb(13, 17, 23)")}


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")
@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", [1280, 390])
def test_a_browser_shows_the_page(results: dict[str, Path], tmp_path: Path, width: int, theme: str) -> None:
    """It fits the width, shows each figure once, loads nothing, and follows the theme."""
    page = tmp_path / "r.html"
    assert invoke("report", *results.values(), "--out", page)[0] == 0
    harness = tmp_path / "harness.html"
    harness.write_text(HARNESS.format(width=width, page=html.escape(page.read_text("utf-8"))), "utf-8")
    scheme, color = THEMES[theme]
    found = measured(harness, tmp_path / "profile", f"--blink-settings=preferredColorScheme={scheme}")
    scrolled, shown, figures, requests, background = found.strip("|").split("|")
    assert int(scrolled) <= width
    assert int(shown) == int(figures) > 0
    assert int(requests) == 0
    assert background == color
