"""
Statements that change definitions, in a story: which function judges at what time, and what becomes of a row.

Computes docs/definitions.md, "What a statement does".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs

from conflict.config.definitions import DefinitionStep, TableVersion
from conflict.history.timeline import DefinitionChange
from conflict.rules.functions import ConflictFunction
from conflict.rules.table_setup import TableSetup
from conflict.telling.shown_text import one_line

Moment = tuple[int, int]  # epoch of a cluster, and group in it
_MOST_SHOWN = 200


@attrs.frozen
class FunctionsOverTime:
    """
    The conflict functions of tables, as statements in the binlogs change them.

    Attributes:
        start: Per cluster and table, how its server sets it up at the start.
        changes: Per cluster, the statements, in order.
    """

    start: Mapping[str, Mapping[str, TableSetup]]
    changes: Mapping[str, Sequence[DefinitionChange]]

    def at(self, cluster: str, table: str, moment: Moment, *, rejected: bool = False) -> ConflictFunction | None:
        """
        Return the function that is in force.

        Args:
            cluster: The cluster that judges.
            table: ``database.table``.
            moment: When.
            rejected: Whether something was rejected then, so that there was one: else the last one before counts.
        """
        found = [function for since, function in self._since(cluster, table) if since < moment]
        if rejected:
            found = [each for each in found if each is not None] or found
        return found[-1] if found else None

    def ever(self, cluster: str, table: str) -> list[ConflictFunction | None]:
        """Return the functions one after the other."""
        found: list[ConflictFunction | None] = []
        for _, function in self._since(cluster, table):
            if not found or found[-1] != function:
                found.append(function)
        return found

    def text(self, cluster: str, table: str) -> str | None:
        """Return the function of a table as text; where it changes, one after the other; None if there is none."""
        texts = ["none" if each is None else str(each) for each in self.ever(cluster, table)]
        return None if texts in ([], ["none"]) else ", later by ".join(texts)

    def _since(self, cluster: str, table: str) -> Iterator[tuple[Moment, ConflictFunction | None]]:
        """Yield from when on which function is in force; while there is no such table, none changes."""
        setup = self.start.get(cluster, {}).get(table)
        if setup is not None:
            yield (-1, -1), setup.function
        for change in self.changes.get(cluster, ()):
            setup = change.step.after.setups.get(table)
            if table in change.step.touched and setup is not None:
                yield (change.epoch, change.group), setup.function


def _version(step: DefinitionStep, table: str) -> TableVersion | None:
    return next((each for each in step.after.versions.values() if each.history == table), None)


def places_after(step: DefinitionStep, table: str) -> frozenset[int] | None:
    """Return the positions of the columns that a row of a table has after a statement; None if no row is left."""
    version = _version(step, table)
    if version is None or table in step.emptied:
        return None
    return frozenset(version.places)


def statement_sentence(step: DefinitionStep, table: str) -> str:
    """Return what a statement is, and what it does to a table."""
    if _version(step, table) is None:
        effect = "the table is gone, and its rows with it"
    elif table in step.emptied:
        effect = "the table has no rows then"
    elif table in step.copied:
        effect = "the rows are copied into a new table, which knows no author and epoch of them"
    else:
        effect = "the rows stay"
    text = one_line(" ".join(step.text.split()))
    return f"{text[:_MOST_SHOWN]}{'...' if len(text) > _MOST_SHOWN else ''}: {effect}"
