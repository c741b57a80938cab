"""
Results into the project: from `build/bench` to `benchmarks/results`, and their tables into `docs/benchmarks.md`.

    python -m benchmarks.page build/bench

Results are left where they are that cannot be published: others used the machine, or the runs lie too far apart (see
`benchmarks.documents.unfit`). On the page, a comment such as ``<!-- resolve, table 1 -->`` stands over the first table
of `results/resolve.md`.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

from benchmarks.documents import unfit

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
PICTURES = PAGE.parent / "pictures"
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


def take_over(folder: Path, results: Path = RESULTS, pictures: Path = PICTURES) -> list[str]:
    """Copy the results of a folder that can be published, and their pictures; return why the others cannot."""
    refused = []
    for path in sorted(folder.glob("*.json")):
        reasons = list(unfit(json.loads(path.read_text("utf-8"))))
        refused += [f"{path.name} is not published: {reason}" for reason in reasons]
        for file in () if reasons else (path, path.with_suffix(".md")):
            shutil.copy(file, results / file.name)
        if not reasons and path.with_suffix(".svg").exists():
            shutil.copy(path.with_suffix(".svg"), pictures / f"{path.stem}.svg")
    return refused


def main() -> None:
    """Take over the results that stand in a folder, and fill the page."""
    refused = take_over(Path(sys.argv[1]))
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.exit("\n".join(refused) or None)


if __name__ == "__main__":
    main()
