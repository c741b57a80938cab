"""
What is searched: two clusters with one table, a conflict function, a format, and how much happens at most.

A function by epoch is on cluster A alone; a function with roles is on both, with A as the primary; every other function
is on both.

The words of a search: what to look for, and what the application writes.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property

import attrs

from conflict.checking.deployment import Deployment, TableLogging
from conflict.checking.requirements import Answer, Status, requirements
from conflict.config.arguments import DeploymentPolicy
from conflict.errors import ConfigurationError
from conflict.history.model import Cluster
from conflict.rules.functions import FUNCTIONS, Argument, ConflictFunction, FunctionSpec, typed_function
from conflict.rules.own_rule import Read
from conflict.rules.replication_table import ReplicationRow, Role
from conflict.rules.table_setup import TableSetup, set_up
from ndb_formats.constants import ColumnCode
from ndb_formats.events.row_image import RowLayout, layout_of_types
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.row_keys import key_of
from ndb_formats.schema.tables import Schema, Table
from ndb_formats.types.column_types import WireType


class Goal(StrEnum):
    """
    What a schedule is searched for.

    DIFFERENCE: Rows end different on the two clusters once everything has been applied.
    LOST: A change of a user is rejected, or overwritten by one that had not seen it.
    STOP: An applier stops with an error.
    RETURNS: Once everything has been applied, a cluster has a row that a user deleted, and every insert of it was there
        already when he did.
    COUNTERS: Once everything has been applied, a change was lost and no counter of conflicts moved on either cluster,
        or one moved and nothing was lost; see `conflict.rules.counters.conflicts_counted`.
    """

    DIFFERENCE = "difference"
    LOST = "lost"
    STOP = "stop"
    RETURNS = "returns"
    COUNTERS = "counters"


class Values(StrEnum):
    """
    What the application sets the resolve column to.

    VERSION: one more than the value that it finds, and 1 in a new row, so both clusters can reach one value.
    CLOCK: a value greater than all before it, on either cluster.
    UNSET: 1 in a new row; updates do not set it.
    """

    VERSION = "version"
    CLOCK = "clock"
    UNSET = "unset"


DATABASE, TABLE = "d", "t"
NAMES = ("A", "B")
LARGEST = 3  # number of data columns, and of rows
_KEY_NAMES, _DATA_NAMES = ("k", "id"), ("v", "w", "y", "z")
_INT, _BIGINT = WireType(ColumnCode.LONG), WireType(ColumnCode.LONGLONG)
KEY_BYTES, VALUE_BYTES, DATA_BYTES = 4, 8, 4


@attrs.frozen(slots=False)
class Scope:
    """
    A scope of the search.

    Attributes:
        function: Text of the conflict function; None for none.
        binlog_type: NDB binlog type of the table, by number.
        transactions: How many transactions users commit at most, on both clusters together.
        rows: How many rows there are at most; a transaction changes any of them, each once.
        columns: Data columns of the table besides the resolve column; an update sets one of them.
        epochs: In how many epochs of each cluster users commit at most; None for no limit.
        outages: How often an applier is set back to the start of the other cluster's binlog at most.
        values: What the application sets the resolve column to.
        functions: The known conflict functions, those of a user among them.
    """

    function: str | None = None
    binlog_type: int = 7
    transactions: int = 3
    rows: int = 1
    columns: int = 1
    epochs: int | None = None
    outages: int = 0
    values: Values = Values.VERSION
    functions: tuple[FunctionSpec, ...] = attrs.field(default=FUNCTIONS, repr=False)

    def __reduce__(self) -> tuple[type[Scope], tuple[object, ...]]:
        """Pickle what was given, without what follows from it."""
        return Scope, attrs.astuple(self, recurse=False)

    @cached_property
    def parsed(self) -> ConflictFunction | None:
        """The conflict function."""
        return None if self.function is None else typed_function(self.function, self.functions)

    @cached_property
    def reads(self) -> frozenset[Read]:
        """What a rule of one's own reads; nothing for every other function."""
        own = None if self.parsed is None else self.parsed.spec.own
        return frozenset() if own is None else own.reads

    @cached_property
    def by_epoch(self) -> bool:
        """Whether the function goes by epoch."""
        return self.parsed is not None and self.parsed.spec.by_epoch

    @cached_property
    def roles(self) -> tuple[Role, Role]:
        """The role of each cluster."""
        has_roles = self.parsed is not None and self.parsed.spec.uses_role
        return (Role.PRIMARY, Role.SECONDARY) if has_roles else (Role.NONE, Role.NONE)

    @cached_property
    def resolve_column(self) -> str | None:
        """Name of the column that the function compares."""
        return None if self.parsed is None or self.parsed.spec.argument is not Argument.COLUMN else self.parsed.column

    @cached_property
    def first_data_column(self) -> int:
        """Ordinal of the first data column."""
        return 1 if self.resolve_column is None else 2

    @property
    def definition(self) -> str:
        """The statement that creates the table."""
        compared = self.resolve_column
        taken = (compared or "").lower()  # letter case is no difference between names of columns
        key, *_ = (name for name in _KEY_NAMES if name != taken)
        data = [name for name in _DATA_NAMES if name != taken][: self.columns]
        quoted = f"`{compared.replace('`', '``')}`" if compared else ""
        columns = [f"{key} INT NOT NULL", *([f"{quoted} BIGINT UNSIGNED NOT NULL"] if compared else ())]
        columns += [*(f"{name} INT" for name in data), f"PRIMARY KEY ({key})"]
        return f"CREATE TABLE {TABLE} ({', '.join(columns)}) ENGINE=NDB"

    @cached_property
    def schema(self) -> Schema:
        """The table."""
        return parse_schema(f"{self.definition};", database=DATABASE)

    @cached_property
    def table(self) -> Table:
        """The table."""
        return self.schema.tables[0]

    @cached_property
    def layout(self) -> RowLayout:
        """How its rows are read."""
        resolve = () if self.resolve_column is None else (_BIGINT,)
        return layout_of_types(self.table, (_INT, *resolve, *[_INT] * self.columns))

    @cached_property
    def keys(self) -> tuple[bytes, ...]:
        """Identity of each row; row 1 comes first."""
        column = self.table.columns[:1]
        return tuple(key_of(column, [(number + 1).to_bytes(KEY_BYTES, "little")]) for number in range(self.rows))

    @property
    def replication_rows(self) -> list[ReplicationRow]:
        """The rows of `mysql.ndb_replication`, which are the same on both clusters."""
        alone = self.parsed is not None and self.parsed.spec.on_primary_alone
        functions = {1: self.function, 2: None} if alone else {0: self.function}
        return [ReplicationRow(DATABASE, TABLE, server, self.binlog_type, text) for server, text in functions.items()]

    @cached_property
    def setups(self) -> tuple[dict[str, TableSetup], dict[str, TableSetup]]:
        """How the server of each cluster sets up the table."""
        rows = self.replication_rows
        known = self.functions
        return set_up(self.schema, rows, 1, None, known), set_up(self.schema, rows, 2, None, known)

    @cached_property
    def clusters(self) -> tuple[Cluster, Cluster]:
        """Both clusters, before anything happens."""
        return Cluster("A", 1, (), self.roles[0]), Cluster("B", 2, (), self.roles[1])

    @cached_property
    def learns(self) -> tuple[bool, bool]:
        """Whether it matters to each cluster which of its epochs came back."""
        asks = not self.reads.isdisjoint({Read.EPOCHS, Read.UNSEEN})
        return self.by_epoch or asks, asks and not self.by_epoch

    @cached_property
    def symmetric(self) -> bool:
        """Whether the clusters can be exchanged."""
        return not self.by_epoch and Read.SITES not in self.reads

    def check(self, policy: DeploymentPolicy = DeploymentPolicy.MANUAL) -> None:
        """
        Make sure that servers create the table, and that the policy allows the function with the format.

        Raises:
            ConfigurationError: A bound is out of range, a server refuses the table, or the policy the pair.
        """
        for name, value in (("rows", self.rows), ("columns", self.columns)):
            if not 1 <= value <= LARGEST:
                message = f"{name} is {value}; give 1 to {LARGEST}"
                raise ConfigurationError(message)
        answer = self.answer(policy)
        refusal = next((each.refusal for setup in self.setups for each in setup.values() if each.refusal), None)
        if refusal is not None:
            message = f"the servers refuse the table: {refusal.message}"
            raise ConfigurationError(message)
        if not self.setups[0][self.table.full_name].format.logged:
            message = f"binlog type {self.binlog_type} logs nothing; choose another type"
            raise ConfigurationError(message)
        if answer is not None and answer.status is Status.REFUSED:
            reasons = " ".join(reason.sentence for reason in answer.reasons)
            by_policy = " --policy needs allows it." if answer.by_policy else ""
            message = f"{self.function} is refused with binlog type {self.binlog_type}: {reasons}{by_policy}"
            raise ConfigurationError(message)

    def answer(self, policy: DeploymentPolicy) -> Answer | None:
        """Return whether the function can work with the format; None if there is no function."""
        if self.parsed is None:
            return None
        return requirements(Deployment(self.parsed, self.table, TableLogging(self.binlog_type)), policy)
