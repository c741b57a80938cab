"""
Rows that differ become equal: the cluster that a rule names wins, and the other one is repaired.

Computes docs/repair.md, "Rows that differ".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from conflict.engine.ledger.resolution import Outcome
from conflict.engine.reference.row_store import RowKey
from conflict.operating.repairing.ended_run import EndedRun
from conflict.operating.repairing.newest import ChangeOrder
from conflict.operating.repairing.statements import Payloads, RepairedRow, RowTable
from conflict.operating.repairing.watched_cluster import UserChange
from conflict.operating.repairing.winners import NEWEST, REVIEW, NotDecidedError, Rule
from conflict.rules.decision import Cause
from conflict.telling.shown_text import one_line
from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.default_values import implied_value
from ndb_formats.types.values import Value

_WORDS = {Operation.WRITE_ROW: "insert", Operation.UPDATE_ROW: "update", Operation.DELETE_ROW: "delete"}
# Types whose values are numbers here, or texts that sort as the server sorts the values.
_COMPARABLE = frozenset(
    {"tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double", "bit", "year"}
    | {"date", "datetime", "timestamp"}
)


def operation_in_words(operation: Operation) -> str:
    """Return what a user calls an operation."""
    return _WORDS[operation]


def equal_rows(ended: EndedRun, rules: Sequence[Rule]) -> Iterator[tuple[RowKey, RepairedRow | str]]:
    """
    Yield the rows that differ, or may differ, each with its repair, or with why it is to be reviewed.

    Args:
        ended: The clusters.
        rules: The first one that is for a row decides.
    """
    maker = _Maker(ended, rules, ChangeOrder(ended))
    for row in sorted([*ended.differing, *ended.may_differ]):
        doubt = ended.doubt(row)
        try:
            yield row, doubt if doubt is not None else maker.repaired(row)
        except NotDecidedError as undecided:
            yield row, str(undecided)


@attrs.frozen
class _Maker:
    """Makes the repairs of rows."""

    ended: EndedRun
    rules: Sequence[Rule]
    order: ChangeOrder

    def repaired(self, row: RowKey) -> RepairedRow:
        """
        Return the repair of a row.

        Raises:
            NotDecidedError: No rule decides it.
        """
        rule = next((each for each in self.rules if self._is_for(each, row)), None)
        if rule is None or rule.wins == REVIEW:
            message = "no rule is for it" if rule is None else f"the rule {rule} wants it reviewed"
            raise NotDecidedError(message)
        winner = self._winner(rule, row)
        loser = self.ended.other(winner)
        source, target = (self._table(name, row) for name in (winner, loser))
        won, lost = (table.stored(self.ended.state(table.cluster, row)) for table in (source, target))
        if won is None:
            if not rule.deletes:
                message = f"{winner} does not have it, and deletes are not asked for"
                raise NotDecidedError(message)
            after, written = None, frozenset[int]()
        else:
            after, written = self._after(row, source, target, won, lost)
        why = one_line(f"equal, {winner} wins ({rule}); {self._why(winner, row)}")
        return RepairedRow(target, row[0], row[1], lost, after, written, why)

    def _table(self, cluster: str, row: RowKey) -> RowTable:
        table = self.ended.table(cluster, row[0])
        assert table is not None
        return table

    def _is_for(self, rule: Rule, row: RowKey) -> bool:
        """Whether a rule is for a row: its table fits, and a cluster has the row with the values that it asks for."""
        if not rule.is_for(row[0]):
            return False
        return not rule.when or any(
            all(self._text(cluster, column, row) == value for column, value in rule.when.items())
            for cluster in self.ended.clusters
        )

    def _text(self, cluster: str, column: str, row: RowKey) -> str | None:
        try:
            value = self._value(cluster, column, row)
        except NotDecidedError:
            return None
        return None if value is None else str(value)

    def _value(self, cluster: str, column: str, row: RowKey) -> Value:
        """
        Return a value of a row.

        Raises:
            NotDecidedError: The row or the column is missing.
        """
        table = self._table(cluster, row)
        stored = table.stored(self.ended.state(cluster, row))
        places = [place for place, each in table.columns.items() if each.name.lower() == column.lower()]
        if not places:
            message = f"the table has no column {column} on {cluster}"
            raise NotDecidedError(message)
        if stored is None:
            message = f"{cluster} does not have it, so there is no {column} to compare"
            raise NotDecidedError(message)
        payload = stored[places[0]]
        return None if payload is None else table.layout.codecs[places[0]].decode(payload)

    def _winner(self, rule: Rule, row: RowKey) -> str:
        """
        Return the cluster whose row stands.

        Raises:
            NotDecidedError: The rule cannot tell.
        """
        if rule.wins in self.ended.clusters:
            return rule.wins
        if rule.wins == NEWEST:
            return self.order.newest(row)
        column = rule.column
        assert column is not None
        table = self.ended.definitions[row[0]]
        kinds = {each.type for each in table.columns if each.name.lower() == column.lower()}
        if kinds - _COMPARABLE:
            message = f"{column} is {', '.join(kinds)}; none is the greatest here"
            raise NotDecidedError(message)
        return self._greatest(column, row)

    def _greatest(self, column: str, row: RowKey) -> str:
        first, second = self.ended.clusters
        found: list[Any] = [self._value(cluster, column, row) for cluster in (first, second)]
        if None in found:
            unknown = " and ".join(name for name, value in zip((first, second), found, strict=True) if value is None)
            message = f"{column} is NULL on {unknown}"
            raise NotDecidedError(message)
        if found[0] == found[1]:
            message = f"the {column} is the same on both clusters"
            raise NotDecidedError(message)
        return first if found[0] > found[1] else second

    def _after(
        self, row: RowKey, source: RowTable, target: RowTable, won: Payloads, lost: Payloads | None
    ) -> tuple[Payloads, frozenset[int]]:
        """
        Return what a row is to store on the losing cluster, and the columns that an update sets.

        Raises:
            NotDecidedError: No statement can do that.
        """
        mine, theirs = source.columns, target.columns
        shared = [place for place in theirs if place in mine]
        after = dict(lost) if lost is not None else {}
        for place, column in theirs.items():
            if place in shared:
                after[place] = won[place]
            elif lost is None:
                if column.must_be_given or column.computed_default:
                    message = f"{source.cluster} has no column {column.name}, which {target.cluster} needs"
                    raise NotDecidedError(message)
                value = implied_value(column)
                after[place] = None if value is None else target.layout.codecs[place].encode(value)
        if lost is None:
            return after, frozenset()
        differing = {place for place in shared if not self._is_same(source, target, place, (won, lost))}
        if differing.intersection(target.key):
            message = "its key is spelled in another way, and an update of a key is a delete and an insert"
            raise NotDecidedError(message)
        written = {place for place in differing if theirs[place].generated is None}
        if not written:
            message = "only generated columns differ"
            raise NotDecidedError(message)
        return after, frozenset(written | self._also_set(row, target))

    def _is_same(self, source: RowTable, target: RowTable, place: int, rows: tuple[Payloads, Payloads]) -> bool:
        first, second = (each[place] for each in rows)
        if first == second or first is None or second is None:
            return first == second
        return source.layout.codecs[place].decode(first) == target.layout.codecs[place].decode(second)

    def _also_set(self, row: RowKey, target: RowTable) -> set[int]:
        """Return the columns that are set to the values that they have: what functions compare, what would move."""
        functions = [self._table(cluster, row).setup.function for cluster in self.ended.clusters]
        compared = {each.column for each in functions if each is not None}
        return {
            place
            for place, column in target.columns.items()
            if column.generated is None and place not in target.key and (column.on_update or column.name in compared)
        }

    def _why(self, winner: str, row: RowKey) -> str:
        """Return what left the row on the winning cluster, and which operation of a user came to nothing."""
        by = self.ended.last_change(winner, row)
        parts = ["its last change is not in the logs" if by is None else f"it has the {_made_by(by)}"]
        refused = self.ended.refused.get(row)
        if refused is not None:
            parts.append(_refusal(refused))
        return "; ".join(parts)


def _made_by(by: UserChange) -> str:
    place = "" if by.origin is None else f", {_file(by.origin.file)}, position {by.origin.position}"
    return f"{_WORDS[by.operation]} of {by.cluster}{place}"


def _refusal(outcome: Outcome) -> str:
    assert outcome.origin is not None
    cause = "" if outcome.cause is Cause.NONE else f", {outcome.cause.name}"
    place = f"{_file(outcome.origin.file)}, position {outcome.origin.position}"
    what = _WORDS[outcome.operation]
    return f"{outcome.applier}: {outcome.verdict.name}{cause}: {what} of {outcome.source}, {place}"


def _file(path: str) -> str:
    return path.rpartition("/")[2]
