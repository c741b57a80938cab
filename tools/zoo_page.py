"""
The zoo of docs/zoo.md and its pictures.

    python -m tools.zoo_page [--out build/zoo]

Searches that are finished in the folder are not made again. The functions with roles, under which no schedule of the
zoo lets rows differ, are searched further under type 7.
"""

from __future__ import annotations

import argparse
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import conflict
from conflict.whatif.zoo.page import page_of, schedules_of
from conflict.whatif.zoo.written import OVERVIEW

__all__ = ["PAGE", "PICTURES", "part"]

ROOT = Path(__file__).parents[1]
PAGE, PICTURES = ROOT / "docs" / "zoo.md", ROOT / "docs" / "pictures" / "zoo"
_MARK = "<!-- {}: {} -->\n"
_ROLES = ("NDB$EPOCH2()", "NDB$EPOCH2_TRANS()")
# Transactions, rows, data columns, outages.
_FURTHER = ((4, 1, 1, 0), (3, 2, 1, 0), (2, 1, 1, 1))


def part(page: str, name: str) -> str:
    """Return what stands between marks of a page."""
    begin, end = _MARK.format("begin", name), _MARK.format("end", name)
    found = re.search(re.escape(begin) + "(.*?)" + re.escape(end), page, flags=re.DOTALL)
    assert found is not None, f"the page has no part {name}"
    return found[1]


def _put(page: Path, name: str, text: str) -> None:
    whole = page.read_text("utf-8")
    mark = _MARK.format("begin", name)
    page.write_text(whole.replace(mark + part(whole, name), mark + text), "utf-8")


def _further(out: Path) -> Iterator[str]:
    """Yield the lines of the table: how far functions with roles were searched for rows that differ."""
    yield "| searched | " + " | ".join(f"`{each}`" for each in _ROLES) + " |"
    yield f"|{'---|' * (len(_ROLES) + 1)}"
    for transactions, rows, columns, outages in _FURTHER:
        zoo = conflict.zoo(
            function=_ROLES,
            formats=7,
            find="difference",
            transactions=transactions,
            rows=rows,
            columns=columns,
            outages=outages,
            out=out / f"{transactions}-{rows}-{columns}-{outages}",
        )
        shown = (f"none in {each.states:,} states" if each.length is None else f"**{each.length}**" for each in zoo)
        yield f"| {zoo.bounds.words} | {' | '.join(shown)} |"


def main() -> None:
    """Search, and write the page and its pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "zoo")
    given = parser.parse_args()
    zoo = conflict.zoo(out=given.out)
    shutil.rmtree(PICTURES, ignore_errors=True)
    PICTURES.mkdir()
    shutil.copy(given.out / "pictures" / OVERVIEW, PICTURES)
    for cells in schedules_of(zoo).values():
        shutil.copy(given.out / "pictures" / f"{cells[0].name}.svg", PICTURES)
    _put(PAGE, "zoo", page_of(zoo, "pictures/zoo"))
    _put(PAGE, "further", "".join(f"{line}\n" for line in _further(given.out.with_name(f"{given.out.name}-further"))))


if __name__ == "__main__":
    main()
