"""
Results into the project: from `build/bench` to `benchmarks/results`, and their tables into `docs/benchmarks.md`.

    python -m benchmarks.page build/bench

On the page, a comment such as ``<!-- resolve, table 1 -->`` stands over the first table of `results/resolve.md`.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

__all__ = ["PAGE", "RESULTS", "filled"]

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
_TABLE = re.compile(r"(?:^\|.*\|\n)+", re.MULTILINE)
_PLACE = re.compile(r"(<!-- ([\w-]+), table (\d+) -->\n)((?:\|.*\|\n)*)")


def filled(text: str, results: Path = RESULTS) -> str:
    """Return a page with the tables that its comments name; one whose results are not there stays as it is."""

    def table(found: re.Match[str]) -> str:
        comment, name, number, old = found.groups()
        path = results / f"{name}.md"
        tables = _TABLE.findall(path.read_text(encoding="utf-8")) if path.exists() else []
        return str(comment + (tables[int(number) - 1] if tables else old))

    return _PLACE.sub(table, text)


def main() -> None:
    """Take over the results that stand in a folder."""
    for path in sorted(Path(sys.argv[1]).iterdir()):
        if path.suffix in (".json", ".md"):
            shutil.copy(path, RESULTS / path.name)
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
