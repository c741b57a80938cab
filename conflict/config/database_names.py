"""
Databases that have other names on other clusters, because appliers rename what arrives (``replicate_rewrite_db``).

A change of database ``a`` arrives as one of ``b``, and is logged there as such. So within one cluster's log every name
is the cluster's own, and the two names stand for one database. A run knows it by one name: that of the first cluster
that has it. Readers of logs give tables that name, and what is shown of a cluster has the cluster's own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import attrs

from conflict.errors import ConfigurationError
from conflict.rules.replication_filter import ReplicationFilter
from ndb_formats.schema.tables import Schema, Table, full_name, split_full_name
from ndb_formats.types.column_types import WireType


@attrs.frozen
class DatabaseNames:
    """
    What the clusters of a run call their databases.

    Attributes:
        own: By cluster, the run's name of each database that the cluster calls otherwise, or whose name the run uses
            for another one; by the cluster's own name. Other databases have one name everywhere.
    """

    own: Mapping[str, Mapping[str, str]] = attrs.field(factory=dict)

    def __bool__(self) -> bool:
        return bool(self.own)

    def of(self, cluster: str) -> Mapping[str, str]:
        """Return the run's names of databases by those that a cluster uses, where they differ."""
        return self.own.get(cluster, {})

    def run_database(self, cluster: str, database: str) -> str:
        """Return the run's name of a database that a cluster has."""
        return self.of(cluster).get(database, database)

    def own_database(self, cluster: str, database: str) -> str:
        """Return the name that a cluster uses for a database of the run."""
        return next((own for own, name in self.of(cluster).items() if name == database), database)

    def own_name(self, cluster: str, table: str) -> str:
        """Return the full name that a cluster uses for a table of the run."""
        database, name = split_full_name(table)
        return full_name(self.own_database(cluster, database), name)

    def run_name(self, table: str) -> str:
        """Return the run's name of a table that is given by that name, or by the one that any cluster uses."""
        if "." not in table:
            return table
        database, name = split_full_name(table)
        databases = dict(pair for own in self.own.values() for pair in own.items())
        return table if database in databases.values() else full_name(databases.get(database, database), name)

    @property
    def renamed(self) -> str:
        """The names that clusters use in place of the run's, in words; empty if there are none."""
        return ", ".join(
            f"{name} is {own} on {cluster}"
            for cluster, databases in self.own.items()
            for own, name in databases.items()
            if own != name
        )

    def own_table(self, cluster: str, table: Table) -> Table:
        """Return a table of the run as a cluster names it."""
        return _renamed(table, {name: own for own, name in self.of(cluster).items()})

    def run_table(self, cluster: str, table: Table) -> Table:
        """Return a table of a cluster as the run names it."""
        return _renamed(table, self.of(cluster))

    def own_schema(self, cluster: str, schema: Schema) -> Schema:
        """Return tables of the run as a cluster names them."""
        return attrs.evolve(schema, tables=tuple(self.own_table(cluster, table) for table in schema.tables))

    def run_schema(self, schema: Schema) -> Schema:
        """
        Return the tables of a run, which may be given by the name of any cluster, as the run names them.

        Raises:
            ConfigurationError: A table is given by two names, and differently.
        """
        found: dict[str, tuple[Table, Table]] = {}
        for table in schema.tables:
            owner = next((name for name in self.own if table.database in self.own[name]), "")
            named = self.run_table(owner, table)
            other = found.setdefault(named.full_name, (named, table))
            if other[0] != named:
                message = (
                    f"{other[1].full_name} and {table.full_name} are one table, whose database appliers rename, and "
                    "the schema defines them differently; give each cluster its own schema in the run file"
                )
                raise ConfigurationError(message)
        return attrs.evolve(schema, tables=tuple(table for table, _ in found.values()))


def _renamed(table: Table, names: Mapping[str, str]) -> Table:
    """Return a table in a renamed database, with foreign keys that refer to renamed ones."""
    if not names:
        return table
    keys = tuple(
        attrs.evolve(key, parent_database=names.get(key.parent_database, key.parent_database))
        for key in table.foreign_keys
    )
    return attrs.evolve(table, database=names.get(table.database, table.database), foreign_keys=keys)


Place = tuple[str, str]  # a cluster, and a database by the name that it has there
Channel = tuple[str, str]  # an applying cluster, and its source


def names_of_databases(
    clusters: Sequence[str],
    channels: Mapping[Channel, ReplicationFilter],
    schema: Collection[str],
    logged: Mapping[str, Collection[str]],
    tables: Collection[str],
) -> DatabaseNames:
    """
    Return which databases of some clusters are one, by the rewrite rules of their appliers.

    Args:
        clusters: The clusters in the order of the run.
        channels: By applying cluster and source, the filters and rewrite rules.
        schema: Databases of the tables that are declared for all clusters, by the name that any of them uses.
        logged: By cluster, the databases that its log or its own schema shows.
        tables: Names of all tables, without databases. What arrives of a database is dropped if that of each table is.

    Raises:
        ConfigurationError: Two databases of one cluster would be one, or a rule renames ``mysql``.
    """
    rules = {rule for each in channels.values() for rule in each.rewrite_db}
    if not rules:
        return DatabaseNames()
    if any("mysql" in rule for rule in rules):
        message = "replicate_rewrite_db renames mysql, whose ndb_apply_status shows which epochs were applied"
        raise ConfigurationError(message)
    named = {name for rule in rules for name in rule}
    starts = [(cluster, each) for cluster, own in logged.items() for each in own if each in named]
    starts += _declared(channels, schema)
    groups, order = _joined(channels, starts, tables), list(clusters)
    taken, own = set[str](), dict[str, dict[str, str]]()
    for group in sorted(groups, key=lambda group: min((order.index(cluster), name) for cluster, name in group)):
        first, name = min(group, key=lambda place: (order.index(place[0]), place[1]))
        chosen = f"{name} of {first}" if name in taken else name
        taken.add(chosen)
        for cluster, mine in group:
            own.setdefault(cluster, {})[mine] = chosen
    return DatabaseNames({cluster: own[cluster] for cluster in order if cluster in own})


def _declared(channels: Mapping[Channel, ReplicationFilter], schema: Collection[str]) -> Iterator[Place]:
    """Yield the databases of a schema where rules say that they are: on a source, or on the cluster with the rule."""
    for (applier, source), rules in channels.items():
        for before, after in rules.rewrite_db:
            if before in schema:
                yield source, before
            if after in schema:
                yield applier, after


def _joined(
    channels: Mapping[Channel, ReplicationFilter], starts: Iterable[Place], tables: Collection[str]
) -> list[frozenset[Place]]:
    """Return the databases that are one, each with where its changes go from cluster to cluster."""
    groups: dict[Place, set[Place]] = {}
    left = list(dict.fromkeys(starts))
    while left:
        place = left.pop()
        group = groups.setdefault(place, {place})
        for (applier, source), rules in channels.items():
            name = rules.rewritten(place[1])
            if source != place[0] or all(rules.drops(name, table) for table in tables or {""}):
                continue
            there = applier, name
            if there not in groups:
                left.append(there)
            group |= groups.get(there, {there})
            for each in group:
                groups[each] = group
            _refuse_two_names(group, place, there)
    return list({frozenset(group) for group in groups.values()})


def _refuse_two_names(group: Iterable[Place], source: Place, applier: Place) -> None:
    """Make sure that a cluster has one database of those that are one."""
    known: dict[str, str] = {}
    for cluster, name in sorted(group):
        other = known.setdefault(cluster, name)
        if other != name:
            message = (
                f"by the rules of replicate_rewrite_db, changes of {other} and of {name} on {cluster} would be changes "
                f"of one database: those of {source[1]} on {source[0]} arrive in {applier[1]} on {applier[0]}. Two "
                f"databases in one are not followed. Give the rule of each applier, such as replicate_rewrite_db = "
                f'["{other}->{name}"]; leave out with its filters what an applier drops; and give replicates_from, if '
                "changes go one way only"
            )
            raise ConfigurationError(message)


@attrs.frozen
class Rename:
    """
    A database whose changes seem to arrive under another name, although no rule says so.

    Attributes:
        applier: The cluster where they arrive.
        source: The cluster that makes them.
        before: The database on the source.
        after: The one that the applier has in its place.
        tables: Names of the tables that both have, in order.
    """

    applier: str
    source: str
    before: str
    after: str
    tables: tuple[str, ...]


Name = tuple[str, str]  # database and table
Types = tuple[WireType, ...]  # of the columns of a table


def possible_renames(
    channels: Mapping[Channel, ReplicationFilter], logged: Mapping[str, Mapping[Name, Types]]
) -> tuple[Rename, ...]:
    """
    Return the databases that an applier seems to rename.

    None of their tables is in the applier's log, which has tables of the same names and column types in a database that
    the source's log does not have.

    Args:
        channels: By applying cluster and source, the filters and rewrite rules.
        logged: By cluster, the tables of its log with the types of their columns.
    """
    found = []
    for (applier, source), rules in channels.items():
        mine, theirs = (_by_database(logged[cluster]) for cluster in (applier, source))
        for before, tables in theirs.items():
            arriving = rules.rewritten(before)
            if arriving in mine or all(rules.drops(arriving, table) for table in tables):
                continue
            alike = [
                after
                for after, own in mine.items()
                if after not in theirs and all(tables.get(table) == types for table, types in own.items())
            ]
            found += [Rename(applier, source, before, after, tuple(sorted(mine[after]))) for after in alike]
    return tuple(found)


def _by_database(tables: Mapping[Name, Types]) -> dict[str, dict[str, Types]]:
    """Return tables by database, but for those of the server."""
    found: dict[str, dict[str, Types]] = {}
    for (database, table), types in tables.items():
        if database != "mysql":
            found.setdefault(database, {})[table] = types
    return found
