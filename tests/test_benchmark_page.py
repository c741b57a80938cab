"""The figures on the page of benchmarks are those of the results that are kept."""

from pathlib import Path

from benchmarks.page import PAGE, RESULTS, filled


def test_the_page_shows_the_results_that_are_kept() -> None:
    """Every table under a comment is the one that the comment names, and every file of results has a table there."""
    text = PAGE.read_text("utf-8")
    assert filled(text) == text
    assert all(f"<!-- {path.stem}, table 1 -->" in text for path in RESULTS.glob("*.md"))


def test_a_table_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    """The rest of the page stays, and so does a table without results."""
    (tmp_path / "resolve.md").write_text("| a |\n| --- |\n| 1 |\n\n| b |\n| --- |\n| 2 |\n")
    page = "Text\n\n<!-- resolve, table 2 -->\n{}\n<!-- other, table 1 -->\n| kept |\n\nMore\n"
    expected = page.format("| b |\n| --- |\n| 2 |\n")
    assert filled(page.format("| old |\n"), tmp_path) == expected
    assert filled(page.format(""), tmp_path) == expected
