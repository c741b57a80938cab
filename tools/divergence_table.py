"""
The tables of docs/diverge.md: the smallest divergence of every function under every format, or the sizes searched.

    python -m tools.divergence_table --state build/diverge.json [--seconds 200]

Searches that are in the state file are not repeated, so that the program can be run in parts. When all are there, it
writes the tables between the marks of the page.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from conflict.checking.requirements import Status
from conflict.config.arguments import DeploymentPolicy
from conflict.rules.functions import FUNCTIONS, Argument
from conflict.whatif.diverging.scope import Goal, Scope, Values
from conflict.whatif.diverging.search import search

PAGE = Path(__file__).parents[1] / "docs" / "diverge.md"
TYPES = (2, 3, 6, 7, 8, 9)  # type 0 is one of them by the server options, and 4 means the same as 6
# (transactions, rows, data columns, outages): searched in this order, until one of them is reached
SIZES = ((2, 1, 2, 0), (3, 1, 1, 0), (3, 1, 2, 0), (2, 2, 1, 0), (4, 1, 1, 0), (2, 1, 1, 1))
LARGEST = (3, 2, 1, 0)  # takes a minute; searched for differences under type 7 alone
GOALS = (Goal.DIFFERENCE, Goal.STOP, Goal.LOST)
MARK = "<!-- {}: {} -->\n"


@attrs.frozen
class Cell:
    """A function as it is configured and used, and a format."""

    function: str | None
    values: Values
    binlog_type: int

    @property
    def row(self) -> str:
        """Its row in the tables."""
        if self.function is None:
            return "none"
        return f"`{self.function}`" + (f", {self.values}" if self.function.endswith("(x)") else "")

    def scope(self, size: tuple[int, int, int, int]) -> Scope:
        """Return a scope of a size."""
        transactions, rows, columns, outages = size
        return Scope(self.function, self.binlog_type, transactions, rows, columns, None, outages, self.values)

    @property
    def allowed(self) -> bool:
        """Whether the requirements allow it, by what each operation needs."""
        answer = self.scope(SIZES[0]).answer(DeploymentPolicy.NEEDS)
        return answer is None or answer.status is not Status.REFUSED


def sizes(cell: Cell, goal: Goal) -> tuple[tuple[int, int, int, int], ...]:
    """Return the sizes to search; what stops an applier or loses an update shows in small ones."""
    if goal is not Goal.DIFFERENCE:
        return SIZES[:2]
    return (*SIZES, LARGEST) if cell.binlog_type == 7 else SIZES


def names(cell: Cell, goal: Goal) -> dict[str, tuple[int, int, int, int]]:
    """Return the names of the searches of a cell, each with its size."""
    return {f"{cell.row}/{cell.binlog_type}/{goal.value}/{size}": size for size in sizes(cell, goal)}


def cells() -> Iterator[Cell]:
    """Yield all cells, row by row."""
    for spec in FUNCTIONS:
        by_column = spec.argument is Argument.COLUMN
        for values in (Values.VERSION, Values.CLOCK) if by_column else (Values.VERSION,):
            for number in TYPES:
                yield Cell(f"{spec.name}({'x' if by_column else ''})", values, number)
    for number in TYPES:
        yield Cell(None, Values.VERSION, number)


def work(path: Path, seconds: float) -> bool:
    """Search what is missing, small sizes first, for so long; return whether all is there."""
    end = time.monotonic() + seconds
    state = load(path)
    for name, cell, goal, size in missing(state):
        if time.monotonic() > end:
            return False
        state[name] = searched(cell.scope(size), goal)
        print(name, state[name], flush=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(state, indent=1))
    return True


def load(path: Path) -> dict[str, Any]:
    """Return the searches that were made."""
    return dict(json.loads(path.read_text())) if path.exists() else {}


def missing(state: dict[str, Any]) -> Iterator[tuple[str, Cell, Goal, tuple[int, int, int, int]]]:
    """Yield the searches that are still to be made: none of a cell that reached its goal in a smaller size."""
    for wanted in (*SIZES, LARGEST):
        for cell in cells():
            for goal in GOALS if cell.allowed else ():
                known = names(cell, goal)
                reached = any(name in state and state[name]["steps"] is not None for name in known)
                for name, size in known.items():
                    if size == wanted and not reached and name not in state:
                        yield name, cell, goal, size


def searched(scope: Scope, goal: Goal) -> dict[str, Any]:
    """Search a scope."""
    began = time.process_time()
    found = search(scope, goal)
    steps = None if found.steps is None else len(found.steps) - 1
    return {"steps": steps, "states": found.states, "seconds": round(time.process_time() - began, 2)}


def table(state: dict[str, Any], goal: Goal) -> str:
    """Return the table of a goal: steps of the shortest schedule, or a dash."""
    lines = ["| function | " + " | ".join(f"type {number}" for number in TYPES) + " |", "|---" * (len(TYPES) + 1) + "|"]
    rows: dict[str, list[str]] = {}
    for cell in cells():
        rows.setdefault(cell.row, []).append(shown(state, cell, goal))
    return "\n".join([*lines, *(f"| {name} | {' | '.join(texts)} |" for name, texts in rows.items())]) + "\n"


def shown(state: dict[str, Any], cell: Cell, goal: Goal) -> str:
    """Return a cell of a table: the steps, or how many states were searched."""
    if not cell.allowed:
        return "refused"
    results = [state[name] for name in names(cell, goal) if name in state]
    steps = [each["steps"] for each in results if each["steps"] is not None]
    return f"**{min(steps)}**" if steps else f"none in {sum(each['states'] for each in results):,}"


def speed(state: dict[str, Any]) -> str:
    """Return how many states were searched, and how fast."""
    states = sum(each["states"] for each in state.values())
    seconds = sum(each["seconds"] for each in state.values())
    largest = max(state.values(), key=lambda each: each["states"])
    return (
        f"{len(state)} searches saw {states:,} states, {states / seconds:,.0f} per second of one core; "
        f"the largest one saw {largest['states']:,}.\n"
    )


def put(page: str, name: str, text: str) -> str:
    """Return the page with a text between its marks."""
    begin, end = MARK.format("begin", name), MARK.format("end", name)
    return re.sub(re.escape(begin) + ".*?" + re.escape(end), lambda _: f"{begin}{text}{end}", page, flags=re.DOTALL)


def main() -> None:
    """Search, and write the tables when all is there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    given = parser.parse_args()
    complete = work(given.state, given.seconds)
    state = load(given.state)
    if complete:
        page = PAGE.read_text("utf-8")
        for goal in GOALS:
            page = put(page, goal.value, table(state, goal))
        PAGE.write_text(put(page, "speed", speed(state)), "utf-8")


if __name__ == "__main__":
    main()
