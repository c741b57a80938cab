"""
What `check` finds: a code, the places that it holds for, a sentence that says what happens and why, and a fix.

Findings that say the same are one, with all their places. The sentence therefore names no table and no cluster that
can differ between them, and a `Fix` keeps apart what does.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TypeVar

import attrs

__all__ = ["Code", "Finding", "Fix", "Place", "Severity", "merged"]

Item = TypeVar("Item")


class Severity(StrEnum):
    """
    How much a finding matters, the worst first.

    REFUSED: the server refuses a statement, or an applier stops at the first change that meets the fault, whatever the
    rows hold. WARNING: it depends on the changes that are made, or nothing stops and rows can end different. NOTE: a
    fact to know.
    """

    REFUSED = "refused"
    WARNING = "warning"
    NOTE = "note"


@attrs.frozen
class Code:
    """
    What all findings of one code have in common.

    Attributes:
        code: The stable code, such as ``NDB-E013``; it keeps its meaning for ever.
        severity: How much it matters.
        title: The finding in a few words.
        error: Error or warning number of the server, if it gives one.
    """

    code: str
    severity: Severity
    title: str
    error: int | None = None


@attrs.frozen(order=True)
class Place:
    """A cluster, and the table on it; an empty text stands for all clusters, or for the cluster as a whole."""

    cluster: str
    table: str = ""

    def __str__(self) -> str:
        return f"{self.cluster}: {self.table}" if self.cluster and self.table else self.cluster or self.table


@attrs.frozen
class Fix:
    """
    Something to type or to change; `items` are what findings that are otherwise the same can differ in.

    Attributes:
        before: The text before the items.
        items: The items.
        after: The text after them.
        between: What separates the items; a blank between whole statements.
    """

    before: str
    items: tuple[str, ...] = ()
    after: str = ""
    between: str = ", "

    def __str__(self) -> str:
        return f"{self.before}{self.between.join(self.items)}{self.after}"

    def shortened(self, most: int) -> str:
        """Return the text with the first statements alone, if there are more."""
        left_out = len(self.items) - most
        if self.between != " " or left_out <= 0:
            return str(self)
        rest = f" (and {left_out} more such statements; --json has all)"
        return str(attrs.evolve(self, items=self.items[:most], after=self.after + rest))


@attrs.frozen
class Finding:
    """
    One thing that was found.

    Attributes:
        kind: Its code, severity and title.
        places: Where it holds.
        sentence: What happens, and why; with its full stop.
        fix: What to change.
        server: The words of the server, if it says something.
    """

    kind: Code
    places: tuple[Place, ...]
    sentence: str
    fix: Fix
    server: str | None = None

    @property
    def code(self) -> str:
        """The stable code."""
        return self.kind.code

    @property
    def severity(self) -> Severity:
        """How much it matters."""
        return self.kind.severity


def merged(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings with those that say the same made one, the worst first, then by code."""
    groups: dict[tuple[object, ...], Finding] = {}
    for each in findings:
        key = (each.kind, each.sentence, each.server, each.fix.before, each.fix.after)
        known = groups.setdefault(key, each)
        fix = attrs.evolve(known.fix, items=_together(known.fix.items, each.fix.items))
        groups[key] = attrs.evolve(known, places=_together(known.places, each.places), fix=fix)
    order = list(Severity)
    return tuple(sorted(groups.values(), key=lambda each: (order.index(each.severity), each.code)))


def _together(one: tuple[Item, ...], other: tuple[Item, ...]) -> tuple[Item, ...]:
    return tuple(dict.fromkeys((*one, *other)))
