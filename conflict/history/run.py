"""
A run that can be resolved: what the user wrote, and the definitions of its tables over the time of its binlogs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

import attrs

from conflict.config.configuration import ClusterConfiguration, Configuration
from conflict.config.definitions import ClusterDefinitions
from conflict.history.scheduling.schedule import ClusterHints, HintsOf, Summary
from conflict.rules.table_setup import TableSetup
from ndb_formats.findings import LogRemark
from ndb_formats.schema.tables import Schema

__all__ = ["Run"]


@attrs.frozen
class Run(Configuration):
    """
    One use of the program on the binlogs of some clusters, which `conflict.history.definitions.following` makes once.

    Attributes:
        definitions: By cluster, its definitions over time, where they change or differ between the clusters; empty if
            `schema` holds for all time. `schema` then has History tables.
        notes: What is to be said about the definitions.
        remarks: What the binlogs hold besides rows.
        hints_of: What is known from other sources of when epochs were applied; None if nothing is.
    """

    definitions: Mapping[str, ClusterDefinitions] = attrs.field(factory=dict, repr=False)
    notes: tuple[str, ...] = ()
    remarks: tuple[LogRemark, ...] = ()
    hints_of: HintsOf | None = attrs.field(default=None, eq=False, repr=False)
    _setups: dict[str, dict[str, TableSetup]] = attrs.field(init=False, eq=False, repr=False)

    @_setups.default
    def _setups_at_end(self) -> dict[str, dict[str, TableSetup]]:
        if self.definitions:
            return {name: known.setups for name, known in self.definitions.items()}
        return Configuration.setups(self)

    @classmethod
    def of(cls, configuration: Configuration) -> Self:
        """Return the run of a configuration whose tables are those of its schema for all time."""
        return cls(**{field.name: getattr(configuration, field.name) for field in attrs.fields(Configuration)})

    def schema_at_start(self, cluster: ClusterConfiguration) -> Schema:
        """Return the tables of a cluster at the start of its binlogs, without the exceptions tables."""
        if cluster.name not in self.definitions:
            return self.data_schema
        tables = tuple(version.table for version in self.definitions[cluster.name].start.versions.values())
        return Schema(tables, self.schema.inexact_keys)

    def hints(self, summaries: Mapping[str, Sequence[Summary]]) -> ClusterHints:
        """
        Return what is known from other sources of when epochs were applied.

        Args:
            summaries: Per cluster, its own epochs.
        """
        return {} if self.hints_of is None else self.hints_of(summaries)

    def setups(self) -> dict[str, dict[str, TableSetup]]:
        """Return, per cluster, how its server sets up each table; at the end of its binlogs, if that changes."""
        return self._setups

    def setups_at_start(self) -> dict[str, dict[str, TableSetup]]:
        """Return, per cluster, how its server sets up each table at the start of its binlogs."""
        if not self.definitions:
            return self.setups()
        return {name: known.start.setups for name, known in self.definitions.items()}

    def first_setups(self) -> dict[str, dict[str, TableSetup]]:
        """Return, per cluster, how its server sets up each table at first: at the start, or when it is created."""
        return {name: {table: own[0] for table, own in over.items()} for name, over in self.setups_over_time().items()}

    def setups_over_time(self) -> dict[str, dict[str, list[TableSetup]]]:
        """Return, per cluster and table, every setup that it had, one after the other."""
        if not self.definitions:
            return {name: {table: [setup] for table, setup in setups.items()} for name, setups in self.setups().items()}
        return {name: known.setups_over_time for name, known in self.definitions.items()}

    def last_functions(self) -> dict[str, dict[str, TableSetup]]:
        """Return, per cluster, the last setup of each table that had a conflict function, or the last one of all."""

        def last(own: Sequence[TableSetup]) -> TableSetup:
            return next((each for each in reversed(own) if each.function is not None), own[-1])

        return {
            name: {table: last(own) for table, own in tables.items()}
            for name, tables in self.setups_over_time().items()
        }

    @property
    def start_is_open(self) -> bool:
        """Whether the logs have to show if tables held rows before; else they held none, or the run says so."""
        return self.span.empty is None and not self.definitions and self.is_pair
