"""
Takes what came of the zoo's schedules on real clusters into the list of recorded cells.

    ndb-conflict zoo --json build/zoo.json --recordings build/cases
    make test-ndb NDB=DIR ZOO=build/cases
    python -m tools.recorded_cells build/zoo.json build/ndb/cells.json

The second file is what the recorder writes: ``server``, and ``cells`` with ``case``, the folder of a schedule, whether
it was ``recorded``, and whether it ``agreed``. Cells that are in the list already are replaced.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

__all__ = ["FILE", "merged", "recorded_cells"]

FILE = Path(__file__).parents[1] / "conflict" / "whatif" / "zoo" / "recorded.json"


def recorded_cells(zoo: Mapping[str, Any], outcomes: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """
    Yield the cells of a zoo that were recorded.

    Args:
        zoo: The document of `zoo`.
        outcomes: The recorder's document.
    """
    steps = {(cell["pair"], cell["anomaly"]): cell.get("steps") for cell in zoo["zoo"]}
    for each in outcomes["cells"]:
        pair, _, anomaly = each["case"].partition("/")
        if each["recorded"] and steps.get((pair, anomaly)):
            taken = steps[pair, anomaly]
            yield {
                "pair": pair,
                "anomaly": anomaly,
                "steps": taken,
                "server": outcomes["server"],
                "agreed": each["agreed"],
            }


def merged(before: Mapping[str, Any], new: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the list with some cells, in order; they replace what it has of them."""
    cells = {(each["pair"], each["anomaly"]): each for each in [*before["cells"], *new]}
    return {"cells": [cells[name] for name in sorted(cells)]}


def main() -> None:
    """Read both files, and write the list."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("zoo", type=Path)
    parser.add_argument("outcomes", type=Path)
    given = parser.parse_args()
    zoo, outcomes, before = (json.loads(path.read_text("utf-8")) for path in (given.zoo, given.outcomes, FILE))
    new = list(recorded_cells(zoo, outcomes))
    FILE.write_text(json.dumps(merged(before, new), indent=1, ensure_ascii=False) + "\n", "utf-8")
    agreed = sum(each["agreed"] for each in new)
    print(f"{len(new)} cells were recorded, {agreed} of them agreed.")


if __name__ == "__main__":
    main()
