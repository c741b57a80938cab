"""Which statements' changes arrived at each side of a recording."""

import re
from collections.abc import Iterator
from typing import Any

import attrs

from conflict.judge.case import ConflictCase

STATEMENT = re.compile(
    r"(INSERT INTO|REPLACE INTO|UPDATE|DELETE FROM) `?([\w$]+)`?(?: SET (.*?)(?: WHERE|$))?", re.DOTALL
)


@attrs.frozen
class Arrival:
    """One statement whose changes arrive on a side: its table, its kind, and the columns that it sets."""

    table: str
    verb: str
    columns: frozenset[str]


def arrivals(case: ConflictCase) -> dict[str, list[Arrival]]:
    """Return, per side, what its applier gets to see: of the other side's statements those before its last run."""
    running, pending = {"A": True, "B": True}, {"A": list[Arrival](), "B": list[Arrival]()}
    seen = {"A": list[Arrival](), "B": list[Arrival]()}
    for step in case.steps:
        if "applier" in step and step["action"] in ("start", "stop"):
            running[step["applier"]] = step["action"] == "start"
        if "sql" in step and not step.get("rolled_back"):
            other = {"A": "B", "B": "A"}[step["on"]]
            pending[other] += statements(step)
        for side, is_running in running.items():
            if is_running:
                seen[side] += pending[side]
                pending[side].clear()
    return seen


def statements(step: dict[str, Any]) -> Iterator[Arrival]:
    """Yield the statements of a transaction that changed something."""
    texts = step["sql"] if isinstance(step["sql"], list) else [step["sql"]]
    for text, result in zip(texts, step.get("result", [{}] * len(texts)), strict=False):
        found = STATEMENT.match(text)
        if found is not None and result.get("affected") != 0 and "error" not in result:
            yield Arrival(found[2], found[1], frozenset(re.findall(r"(\w+)\s*=", found[3] or "")))
