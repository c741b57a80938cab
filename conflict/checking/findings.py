"""
What the checks find: a code, the places that it holds for, a sentence that says what happens and why, and a fix.

`requirements`, `check` and `check-replica` have one type of finding and one table of codes, `CODES`, of which
docs/findings.md is made. A code keeps its meaning for ever; new findings get new numbers.
Findings that say the same are one, with all their places. The sentence therefore names no table and no cluster that
can differ between them, and a `Fix` keeps apart what does. Statements in a fix are text for people, and never run here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum, StrEnum
from typing import Any

import attrs

from conflict.rules.replication_table import ReplicationRow
from conflict.rules.stops import ServerStop, StopError
from ndb_formats.findings import Rule
from ndb_formats.rules.replica.codes import RULES
from ndb_formats.schema.tables import Table


class Severity(StrEnum):
    """
    How much a finding matters, the worst first.

    REFUSED: the server refuses a statement, or an applier stops at the first change that meets the fault, whatever the
    rows hold. ERROR: an applier stops at some rows, or rows end different. WARNING: it depends on the changes that are
    made, or on facts that a check cannot see. NOTE: a fact to know.
    """

    REFUSED = "refused"
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


_REFUSED, _, _WARNING, _NOTE = Severity


class Code(Enum):
    """
    The codes of a configuration: one row for each kind of finding.

    Attributes:
        code: The stable code, such as ``NDB-E013``.
        severity: How much it matters.
        title: The finding in a few words.
        stop: How the applier stops, if it does so with the server's words for a kind of stop.
        error: Error or warning number of the server, if it gives one.
        words: The server's words, if they are the same in all findings.
    """

    # What CREATE TABLE says (with the names of `RefusalKind`), and which row of mysql.ndb_replication counts.
    PARSE = (1, _REFUSED, "conflict_fn cannot be read", 1626)
    NO_COLUMN = (2, _REFUSED, "the resolve column does not exist", 1005)
    WRONG_TYPE = (3, _REFUSED, "the resolve column's type cannot be compared", 1005)
    BLOB = (4, _REFUSED, "a function by epoch on a table with blobs", 1005)
    UPDATES_AS_WRITES = (5, _REFUSED, "a function with roles on a table that logs updates as writes", 1005)
    AMBIGUOUS_ROWS = (6, _WARNING, "rows of ndb_replication match equally well", 1625)
    ROW_WITHOUT_TABLE = (7, _WARNING, "a row of ndb_replication without a table")
    ROW_FOR_OTHER_SERVER = (8, _WARNING, "a row of ndb_replication for another server")
    OTHER_ENGINE = (9, _WARNING, "a function on another storage engine")
    NO_FUNCTION = (10, _NOTE, "no conflict function")
    # What the function gets to compare.
    NO_UPDATE = (11, _REFUSED, "no update has the value to compare", ServerStop.MISSING_INFORMATION)
    LACKING = (12, _WARNING, "changes that lack the value to compare", ServerStop.MISSING_INFORMATION)
    DELETES_LACKING = (13, _WARNING, "deletes without before values", ServerStop.MISSING_INFORMATION)
    AS_WRITES = (14, _WARNING, "updates logged as writes")
    POLICY = (15, _WARNING, "a function and a binlog type that the manual advises against")
    NOT_LOGGED = (16, _WARNING, "changes are not logged")
    NULLABLE = (17, _NOTE, "a resolve column that can be NULL")
    COLUMN_IN_KEY = (18, _WARNING, "a resolve column in the primary key")
    ONE_SIDED_COLUMN = (19, _WARNING, "a function by column on one cluster only")
    # Server variables and epochs.
    NO_TRANSACTION_IDS = (20, _REFUSED, "transaction ids are not logged", ServerStop.NO_TRANSACTION_IDS)
    NO_APPLIED_EPOCHS = (21, _WARNING, "applied epochs are not logged")
    NO_REPLICA_UPDATES = (22, _WARNING, "the applier's changes are not logged")
    NO_BINLOG = (23, _WARNING, "no binlog of NDB tables")
    FEW_GCI_BITS = (24, _WARNING, "too few extra GCI bits")
    UNKNOWN_VARIABLES = (25, _NOTE, "unknown variables")
    USELESS_READS = (26, _NOTE, "reads that have no effect")
    COMPRESSED_EPOCHS = (27, _WARNING, "reflected epochs that are compressed", ServerStop.RETURNED_EPOCH)
    # Roles and clusters.
    NO_ROLE = (30, _REFUSED, "no role", ServerStop.NO_ROLE)
    ROLE_PASS = (31, _WARNING, "role PASS")
    SAME_ROLES = (32, _WARNING, "the same role on both clusters")
    BOTH_PRIMARY = (33, _WARNING, "a primary on both sides")
    MANY_CLUSTERS = (34, _REFUSED, "a function by epoch with over two clusters")
    NO_REFRESH = (35, _WARNING, "refreshes are not logged")
    ONE_SIDED_ROLES = (36, _WARNING, "a function with roles on one cluster only")
    HIDDEN_COLUMNS = (37, _NOTE, "hidden columns")
    DELETE_DELETE = (38, _NOTE, "delete-delete is not refreshed")
    REFRESHES_LACKING = (
        39,
        _WARNING,
        "refreshes a function by column cannot judge",
        ServerStop.MISSING_INFORMATION,
    )
    # What stops an applier, whatever the function.
    NO_KEY = (40, _WARNING, "no primary key", ServerStop.ROW_NOT_FOUND)
    UNIQUE_KEYS = (41, _WARNING, "a further unique key", ServerStop.DUPLICATE_VALUE)
    FOREIGN_KEYS = (42, _WARNING, "a foreign key", ServerStop.PARENT_MISSING)
    BLOBS_IN_REACH = (43, _WARNING, "blobs that a rejected transaction can reach", ServerStop.BLOB_REFRESH)
    ROW_SLICES = (44, _WARNING, "row slices")
    # Exceptions tables.
    MALFORMED_EXCEPTIONS = (50, _WARNING, "a malformed exceptions table")
    UNKNOWN_EXCEPTIONS_COLUMN = (51, _NOTE, "an unfilled column of an exceptions table")
    LOWER_CASE_EXCEPTIONS = (52, _WARNING, "an exceptions table in lower case")
    USELESS_EXCEPTIONS = (53, _WARNING, "an unused exceptions table")
    NO_EXCEPTIONS = (54, _NOTE, "no exceptions table")
    # Filters.
    APPLY_STATUS_FILTERED = (60, _WARNING, "a filter that drops mysql.ndb_apply_status")
    FUNCTION_FILTERED = (61, _WARNING, "a filter that drops a table with a function")
    ONE_WAY_FILTER = (62, _WARNING, "a filter on one side only")
    CROSS_DATABASE = (63, _WARNING, "a filter by the default database")
    RENAMED_DATABASE = (64, _NOTE, "a renamed database")
    # Other settings of servers.
    GTIDS = (65, _WARNING, "global transaction ids")
    SKIPPED_ERRORS = (66, _WARNING, "errors that the applier skips")
    SKIPPED_EPOCHS = (67, _WARNING, "epochs that the applier may skip")
    IDLE_WORKERS = (68, _NOTE, "workers without effect")
    COMMIT_ORDER = (69, _WARNING, "workers that do not keep commit order")
    PARALLEL_TYPE = (70, _WARNING, "workers by database")
    NO_BATCHING = (71, _NOTE, "an applier without batches")
    NO_SERVER_ID = (72, _REFUSED, "an unusable server id")
    MASKED_SERVER_ID = (73, _WARNING, "server ids that count as one")
    SAME_SERVER_ID = (74, _WARNING, "own changes applied again")
    EMPTY_EPOCHS = (75, _NOTE, "epochs without changes in the log")
    INCOMPLETE_LOG = (76, _NOTE, "a log that can lack changes")
    NO_BINLOG_INDEX = (77, _NOTE, "epochs without a log position")
    RELAY_LOG = (78, _NOTE, "a relay log that a crash can damage")
    SYNC_BINLOG = (79, _WARNING, "a log that a crash can cut")
    PURGED_LOGS = (80, _NOTE, "logs purged within a day")
    LOGGING_STOPS = (81, _WARNING, "logging stops at an error")
    STATEMENTS = (82, _WARNING, "statements instead of rows")
    OLD_ROWS_EVENTS = (83, _WARNING, "rows events of version 1")
    NO_EFFECT = (84, _NOTE, "a setting without effect on NDB tables")
    SAME_GENERATED_KEYS = (85, _WARNING, "same generated keys on both clusters")
    NO_SUCH_VARIABLE = (86, _WARNING, "a variable that no server has")
    # What a release lacks.
    NOT_IN_RELEASE = (87, _WARNING, "a variable that the release lacks")
    FUNCTION_NOT_IN_RELEASE = (88, _REFUSED, "a function that the release lacks", 1626)
    LOST_KEY_COLUMNS = (89, _WARNING, "a minimal type that loses key columns")
    WORKERS_NOT_IN_RELEASE = (90, _WARNING, "workers that the release lacks")
    SLICES_NOT_IN_RELEASE = (91, _WARNING, "row slices that the release lacks")
    # How an option file is written.
    FILTER_LIST = (92, _WARNING, "a list in a filter of one name")
    # What running servers show.
    NO_NDB = (93, _WARNING, "a server without NDB")
    NODES_DIFFER = (94, _WARNING, "SQL nodes that log in different ways")
    NOT_RECORDED = (95, _NOTE, "a release without recordings")
    # How long logs are kept.
    NEVER_PURGED = (96, _NOTE, "logs are never purged")
    LIMITED_RELAY_LOG = (97, _NOTE, "a relay log of limited size")
    PURGED_BEFORE_READ = (98, _WARNING, "logs purged before channels read them")
    # What binlogs, or running servers, show.
    LARGE_EPOCHS = (99, _NOTE, "epochs larger than the cache")
    TOO_LARGE_EPOCHS = (100, _WARNING, "epochs too large to be logged")
    CLOCKS = (101, _WARNING, "clocks that differ")
    NOT_SERVED = (102, _WARNING, "a source that cannot send")
    APPLIER_STANDS = (103, _WARNING, "a stopped applier")
    RECEIVER_STANDS = (104, _WARNING, "a stopped receiver")
    DELAYED = (105, _WARNING, "a delayed applier")
    NO_CHANNEL = (106, _WARNING, "a missing channel")
    READ_ONLY = (107, _WARNING, "a read-only server")
    # Functions of two clusters.
    DIFFERENT_FUNCTIONS = (108, _WARNING, "different functions on the two clusters")
    # Tables, exceptions tables and names.
    UNKNOWN_TYPE = (109, _WARNING, "an unknown binlog type")
    NO_KEY_IN_EXCEPTIONS = (110, _NOTE, "an exceptions table without the key")
    LETTER_CASE = (111, _WARNING, "letter case counts on one side only")
    # What running servers show of the moment.
    BEHIND = (112, _WARNING, "an applier that is behind")
    CONFLICTS_NOW = (113, _WARNING, "conflicts at this moment")

    def __init__(self, number: int, severity: Severity, title: str, stop: ServerStop | int | None = None) -> None:
        self.code = f"NDB-E{number:03d}"
        self.severity = severity
        self.title = title
        self.stop = stop if isinstance(stop, ServerStop) else None
        self.error = stop.error if isinstance(stop, ServerStop) else stop
        self.words = None if self.stop is None else self.stop.words_of_any
        self.rule: Rule | None = None


@attrs.frozen
class ReplicaCode:
    """
    A code of a replica's tables.

    Attributes:
        code: The stable code, such as ``NDB-R001``.
        severity: How much it matters; an error that stops the applier at the first change is refused.
        title: The finding in a few words.
        error: Error number of the applier's stop, if all findings have the same.
        rule: The row of `ndb_formats.rules.replica.codes`, with what happens and the condition of the manual.
        words: Nothing: its findings do not quote the server.
        name: Nothing: its code is its name.
    """

    code: str
    severity: Severity
    title: str
    error: int | None
    rule: Rule
    words: None = None
    name: None = None


_AT_ONCE = {
    "NDB-R001": StopError.NO_SUCH_TABLE,
    "NDB-R016": None,
    "NDB-R020": StopError.NO_CONVERSION,
    "NDB-R021": StopError.NO_CONVERSION,
    "NDB-R044": None,
}
REPLICA_CODES = {
    rule.code: ReplicaCode(
        rule.code,
        Severity.REFUSED if rule.code in _AT_ONCE else Severity(rule.severity),
        rule.title,
        _AT_ONCE.get(rule.code),
        rule,
    )
    for rule in RULES
}
CODES: tuple[Code | ReplicaCode, ...] = (*Code, *REPLICA_CODES.values())


@attrs.frozen(order=True)
class TablePlace:
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

    before: str = ""
    items: tuple[str, ...] = ()
    after: str = ""
    between: str = ", "

    def __str__(self) -> str:
        return f"{self.before}{self.between.join(self.items)}{self.after}"

    def then(self, text: str) -> Fix:
        """Return the fix with more text after it."""
        return attrs.evolve(self, after=self.after + text)

    def shortened(self, most: int) -> str:
        """Return the text with the first statements alone, if there are more."""
        left_out = len(self.items) - most
        if self.between != " " or left_out <= 0:
            return str(self)
        rest = f" (and {left_out} more such statements; --json has all)"
        return str(attrs.evolve(self, items=self.items[:most]).then(rest))


@attrs.frozen
class Finding:
    """
    One thing that was found.

    Attributes:
        kind: Its code, severity and title.
        sentence: What happens, and why; with its full stop.
        places: Where it holds; none in an answer about one function.
        fix: What to change; empty where the nearest settings say it.
        at: Column or option at fault, if one is.
        server: The words of the server, if it says something.
        page: The page of the manual that says so: the name in its address, without ``.html``.
        number: The server's error number, where findings of a kind have different ones; 0 for that of the kind.
    """

    kind: Code | ReplicaCode
    sentence: str
    places: tuple[TablePlace, ...] = ()
    fix: Fix = Fix()
    at: str | None = None
    server: str | None = attrs.field(default=attrs.Factory(lambda self: self.kind.words, takes_self=True))
    page: str | None = None
    number: int = 0

    @property
    def code(self) -> str:
        """The stable code."""
        return self.kind.code

    @property
    def severity(self) -> Severity:
        """How much it matters."""
        return self.kind.severity

    @property
    def error(self) -> int | None:
        """Error or warning number of the server, if it gives one."""
        return self.number or self.kind.error

    @property
    def document(self) -> dict[str, Any]:
        """All but its places, for JSON and DataFrames."""
        rule = self.kind.rule
        return {
            "code": self.code,
            "severity": self.severity.value,
            "title": self.kind.title,
            "error": self.error,
            "at": self.at,
            "sentence": self.sentence,
            "fix": str(self.fix) or None,
            "server": self.server,
            "effect": None if rule is None else rule.effect.value,
            "condition": None if rule is None else rule.condition,
            "manual_page": self.page if rule is None else rule.page,
        }


def merged(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings with those that say the same made one, the worst first, then by code."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for each in findings:
        key = (each.kind, each.sentence, each.at, each.server, each.fix.before, each.fix.after)
        groups.setdefault(key, []).append(each)
    order = list(Severity)
    return tuple(sorted(map(_as_one, groups.values()), key=lambda each: (order.index(each.severity), each.code)))


def _as_one(alike: Sequence[Finding]) -> Finding:
    """Return findings that say the same as one, with the places and the items of all."""
    places = dict.fromkeys(place for each in alike for place in each.places)
    items = dict.fromkeys(item for each in alike for item in each.fix.items)
    return attrs.evolve(alike[0], places=tuple(places), fix=attrs.evolve(alike[0].fix, items=tuple(items)))


# -----------------------------------------------------------------------------------------------------------
# Fixes
# -----------------------------------------------------------------------------------------------------------

_TABLE = "mysql.ndb_replication"
_WITH_KEY = "(db, table_name, server_id) IN ("


def quoted(text: str) -> str:
    """Return a SQL string."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def identifier(table: Table, name: str | None = None) -> str:
    """Return a table as a SQL identifier, or another name in its database."""
    parts = [table.database, name or table.name] if table.database else [name or table.name]
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def key_of(row: ReplicationRow) -> str:
    """Return the primary key of a row of ``mysql.ndb_replication``."""
    return f"({quoted(row.db)}, {quoted(row.table_name)}, {row.server_id})"


def update_rows(column: str, value: str, *rows: ReplicationRow) -> Fix:
    """Return the statement that sets a column of rows of ``mysql.ndb_replication``."""
    before = f"UPDATE {_TABLE} SET {column} = {value} WHERE {_WITH_KEY}"  # noqa: S608  # text for people
    return Fix(before, tuple(map(key_of, rows)), ");")


def delete_rows(*rows: ReplicationRow) -> Fix:
    """Return the statement that deletes rows of ``mysql.ndb_replication``."""
    before = f"DELETE FROM {_TABLE} WHERE {_WITH_KEY}"  # noqa: S608  # text for people
    return Fix(before, tuple(map(key_of, rows)), ");")


def insert_row(table: Table, server_id: int, column: str, value: str) -> Fix:
    """Return the statement that gives a table a row of ``mysql.ndb_replication`` with a column."""
    values = f"({quoted(table.database)}, {quoted(table.name)}, {server_id}, {value})"
    before = f"INSERT INTO {_TABLE} (db, table_name, server_id, {column}) VALUES "  # noqa: S608  # text for people
    return Fix(before, (values,), ";")


def set_in_my_cnf(cluster: str, name: str, value: str) -> Fix:
    """Return how to set a variable that a running server does not change."""
    return Fix(f"set {name} = {value} under [mysqld] in the my.cnf of ", (cluster,), ", and restart the server.")


def set_variable(cluster: str, name: str, value: str) -> Fix:
    """Return the statement that sets a variable of a running server for good."""
    return Fix(f"SET PERSIST {name} = {value}; on ", (cluster,), ".")


def statement(text: str, before: str = "") -> Fix:
    """Return a statement of its own for each place."""
    return Fix(before, (text,), between=" ")
