"""
What stops an applier at each table, as arrays over the kinds of rows: `first_stop` for every kind of row there is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from conflict.engine.columnar.setups import ClusterSetup, steps_before
from conflict.engine.kernels.arrays import Bool, EpochApplies, Int8, Int64, Presence
from conflict.engine.kernels.column_scans import NEEDS_TRANSACTION_ID, NEVER_STOPS, STOPS
from conflict.history.grid.schemas import RowStep
from conflict.rules.own_rule import Image
from conflict.rules.replication_table import Role
from conflict.rules.stops import ServerStop, StopFacts, first_stop, stop_facts
from conflict.rules.table_setup import TableSetup
from ndb_formats.columnar.kernel import read_only
from ndb_formats.events.rows_event import Operation

Numbers = npt.NDArray[np.integer[Any]]
OPERATIONS = max(RowStep) + 1
_WRITE = Operation.WRITE_ROW, Presence.ABSENT, Presence.PRESENT


@attrs.frozen
class StopRule:
    """
    What stops an applier at a table, as one of its setups has it. Rules that stop the same operations are equal.

    Attributes:
        setup: The setup.
        role: Role of the applier's cluster.
        skip_missing: Skip operations that lack the value to compare.
        misfit: Whether the applier may not convert a column.
        drops: Whether a filter of the applier drops all operations.
        counting: What counts of the setup here.
    """

    setup: TableSetup = attrs.field(eq=False)
    role: Role
    skip_missing: bool
    misfit: bool
    drops: bool
    counting: tuple[object, ...] = attrs.field(init=False)

    @counting.default
    def _counting(self) -> tuple[object, ...]:
        setup = self.setup
        spec = None if setup.function is None else setup.function.spec
        return setup.refusal is not None, bool(setup.table.primary_key), spec

    def stop(
        self, operation: int, before: int, after: int, *, identified: bool = True, rejected: bool = False
    ) -> ServerStop | None:
        """Return why an operation stops the applier, by the `Presence` of the resolve column in its images."""
        if self.drops:
            return None
        function, known = self.setup.function, Operation(operation)
        needed = None if function is None or self.skip_missing else function.spec.needs.get(known)
        found = StopFacts(
            no_conversion=self.misfit,
            empty=known is Operation.UPDATE_ROW and after == Presence.NO_COLUMNS,
            rejected=rejected,
            no_transaction_id=not identified,
            no_value=needed is not None and (before if needed is Image.BEFORE else after) != Presence.PRESENT,
        )
        return first_stop(stop_facts(self.setup, self.role, known, found))

    @cache  # noqa: B019  # a few small arrays: rules are equal where their functions are
    def kinds(self) -> Int8:
        """
        Return which rows stop the applier: `NEVER_STOPS`, `NEEDS_TRANSACTION_ID` or `STOPS`.

        Shape (operations, presences, presences); the presences are those of the resolve column in the before and the
        after image.
        """
        kinds = np.full((OPERATIONS, len(Presence), len(Presence)), NEVER_STOPS, np.int8)
        for operation, before, after in product(Operation, Presence, Presence):
            if self.stop(operation, before, after, identified=True) is not None:
                kinds[operation, before, after] = STOPS
            elif self.stop(operation, before, after, identified=False) is not None:
                kinds[operation, before, after] = NEEDS_TRANSACTION_ID
        return read_only(kinds)


@attrs.frozen
class StopRules:
    """
    What stops one applier, by rule: one for each role of the applier and each setup that a table had.

    Attributes:
        rules: The rules.
        first: The first rule of each table. Shape (tables,).
        kinds: Which rows stop the applier (see `StopRule.kinds`). Shape (rules, operations, presences, presences).
        column_in_key: The resolve column is part of the primary key, which every image carries. Shape (rules,).
        blobs: Which rules stop the applier where a transaction is rejected, for the table's blobs. Shape (rules,).
        steps: By table number, how many changes of its definition come before each epoch apply. Shape (applies,).
        setups: How many setups each table had. Shape (tables,).
        role: Place of the role at each epoch apply among those of the applier. Shape (applies,).
    """

    rules: Sequence[StopRule]
    first: Int64
    kinds: Int8
    column_in_key: Bool
    blobs: Bool
    steps: Mapping[int, Int64]
    setups: Int64
    role: Int64

    @property
    def change(self) -> bool:
        """Whether a table has several rules, of which one is in force at an epoch apply."""
        return len(self.rules) > len(self.first)

    def at(self, table: Numbers, apply: Numbers) -> Int64:
        """Return the rules of some tables at some epoch applies. Shape of each (rows,)."""
        found: Int64 = self.first[table] + self.role[apply] * self.setups[table]
        for number, steps in self.steps.items():
            found += np.where(table == number, steps[apply], 0)
        return found

    def rule(self, table: int, apply: int) -> StopRule:
        """Return the rule of a table at an epoch apply."""
        return self.rules[int(self.at(np.array([table]), np.array([apply]))[0])]

    @property
    def stopping(self) -> Bool:
        """Which rules stop the applier at some operation, whether or not it has a transaction id. Shape (rules,)."""
        return np.asarray((self.kinds == STOPS).any(axis=(1, 2, 3)))

    @property
    def identified(self) -> Bool:
        """Which rules stop the applier at operations without a transaction id. Shape (rules,)."""
        return np.asarray((self.kinds == NEEDS_TRANSACTION_ID).any(axis=(1, 2, 3)))


def stop_rules(cluster: ClusterSetup, applies: EpochApplies | None = None) -> StopRules:
    """Return what stops an applier; without epoch applies, it is not known which setup and role are in force."""
    over_time = [cluster.over_time(table) for table in range(len(cluster.setups))]
    rules = [
        StopRule(setup, role, cluster.skip_missing, table in cluster.misfits, cluster.drops(table))
        for table, setups in enumerate(over_time)
        for _, role in cluster.roles
        for setup in setups
    ]
    setups = np.array([len(each) for each in over_time], np.int64)
    return StopRules(
        rules,
        first=(np.cumsum(setups) - setups) * len(cluster.roles),
        kinds=np.array([rule.kinds() for rule in rules], np.int8).reshape(-1, OPERATIONS, *2 * [len(Presence)]),
        column_in_key=np.array([_compares_key(rule.setup) for rule in rules], np.bool_),
        blobs=np.array([rule.stop(*_WRITE, rejected=True) is ServerStop.BLOB_REFRESH for rule in rules], np.bool_),
        steps={} if applies is None else {table: steps_before(each, applies) for table, each in cluster.steps.items()},
        setups=setups,
        role=np.zeros(0, np.int64) if applies is None else _places(cluster, applies),
    )


def _places(cluster: ClusterSetup, applies: EpochApplies) -> Int64:
    """Return the place of the role at each epoch apply among those of a cluster; any number for another's."""
    if not cluster.later_roles:
        return np.broadcast_to(np.int64(0), len(applies))
    places = np.zeros(len(Role) + 1, np.int64)
    places[[number + 1 for number, _ in cluster.roles]] = np.arange(len(cluster.roles))
    return np.asarray(places[applies.role + 1])


def _compares_key(setup: TableSetup) -> bool:
    return setup.function is not None and setup.function.column in setup.table.primary_key
