"""
A run that can be resolved: what the user wrote, and the definitions of its tables over the time of its binlogs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import attrs

from conflict.config.configuration import ClusterConfiguration, Configuration, Links, Span
from conflict.config.definitions import ClusterDefinitions
from conflict.history.scheduling.schedule import ClusterHints, HintsOf, Summary
from conflict.history.tables import TableNumbers
from conflict.rules.table_setup import TableSetup, is_exceptions_table
from ndb_formats.findings import LogRemark
from ndb_formats.schema.tables import Schema

__all__ = ["Run", "Setups"]


@attrs.frozen
class Setups:
    """
    How the servers of a run set up its tables, by cluster and table.

    Attributes:
        at_start: When the binlogs start.
        at_end: When they end, or last; tables that are gone by then are refused.
        over_time: Every setup that a table had, one after the other.
    """

    at_start: Mapping[str, dict[str, TableSetup]]
    at_end: Mapping[str, dict[str, TableSetup]]
    over_time: Mapping[str, dict[str, list[TableSetup]]]

    @property
    def first(self) -> dict[str, dict[str, TableSetup]]:
        """The first of each table: at the start, or when it is created."""
        return {name: {table: own[0] for table, own in over.items()} for name, over in self.over_time.items()}

    @property
    def last_functions(self) -> dict[str, dict[str, TableSetup]]:
        """The last of each table with a conflict function, or the last one of all."""

        def last(own: Sequence[TableSetup]) -> TableSetup:
            return next((each for each in reversed(own) if each.function is not None), own[-1])

        return {name: {table: last(own) for table, own in over.items()} for name, over in self.over_time.items()}


@attrs.frozen
class Run:
    """
    One use of the program on the binlogs of some clusters, which `conflict.history.definitions.following` makes once.

    With a configuration alone, it is a run whose tables are those of the configuration for all time.

    Attributes:
        configuration: What the user wrote, with the names and the tables that the binlogs show.
        definitions: By cluster, its definitions over time, where they change or differ between the clusters; else
            empty.
        history_tables: The tables with every column that they ever had, and the exceptions tables, if there are
            definitions over time; else None.
        span: Which part of the logs it reads, and what was before it.
        kept_columns: By table, the column whose values a History keeps although no function compares it.
        notes: What is to be said about the definitions.
        remarks: What the binlogs hold besides rows.
        hints_of: What is known from other sources of when epochs were applied; None if nothing is.
    """

    configuration: Configuration
    definitions: Mapping[str, ClusterDefinitions] = attrs.field(factory=dict, repr=False)
    history_tables: Schema | None = attrs.field(default=None, repr=False)
    span: Span = attrs.field(default=attrs.Factory(lambda self: self.configuration.span, takes_self=True))
    kept_columns: Mapping[str, str] = attrs.field(factory=dict)
    notes: tuple[str, ...] = ()
    remarks: tuple[LogRemark, ...] = ()
    hints_of: HintsOf | None = attrs.field(default=None, eq=False, repr=False)

    @property
    def clusters(self) -> tuple[ClusterConfiguration, ...]:
        """The clusters."""
        return self.configuration.clusters

    @property
    def links(self) -> Links:
        """Which clusters replicate from which."""
        return self.configuration.links

    @property
    def schema(self) -> Schema:
        """All tables over the time of the binlogs, exceptions tables among them."""
        return self.configuration.schema if self.history_tables is None else self.history_tables

    @property
    def data_schema(self) -> Schema:
        """The tables without the exceptions tables."""
        return Schema(tuple(table for table in self.schema.tables if not is_exceptions_table(table)))

    @cached_property
    def setups(self) -> Setups:
        """How the servers set up the tables."""
        if not self.definitions:
            declared = self.configuration.setups()
            always = {name: {table: [setup] for table, setup in own.items()} for name, own in declared.items()}
            return Setups(declared, declared, always)
        return Setups(
            {name: known.start.setups for name, known in self.definitions.items()},
            {name: known.setups for name, known in self.definitions.items()},
            {name: known.setups_over_time for name, known in self.definitions.items()},
        )

    @cached_property
    def numbers(self) -> TableNumbers:
        """The numbers of the tables, and the columns that are compared."""
        return TableNumbers.of(self.data_schema.tables, self.setups.over_time.values(), self.kept_columns)

    @property
    def start_is_open(self) -> bool:
        """Whether the logs have to show if tables held rows before; else they held none, or the run says so."""
        return self.span.empty is None and not self.definitions and self.links.is_pair

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
