"""
Settings of servers that change what replication between NDB clusters does.

`SETTINGS` is the table of variables that are judged by their own value; `conflict.checking.rules.appliers` judges those
that go together. A variable that is not given is not judged; one that an option file leaves out has its default.

Source: MySQL manual; the page stands beside each rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from enum import Enum

import attrs

from conflict.checking.findings import (
    REPLICA_CODES,
    Code,
    Finding,
    Fix,
    ReplicaCode,
    TablePlace,
    set_in_my_cnf,
    set_variable,
)
from conflict.checking.subject import Subject
from conflict.config.configuration import ClusterConfiguration
from conflict.rules.replication_filter import FILTER_OPTIONS
from conflict.rules.server_variables import MANUAL_NAMES, VARIABLE_OF

_REPLICA, _LOG = "replication-options-replica", "replication-options-binary-log"
_NDB, _ISSUES = "mysql-cluster-options-variables", "mysql-cluster-replication-issues"
_WORKERS = "mysql-cluster-replication-mta"


class Side(Enum):
    """The servers that a setting matters to: those that apply changes of others, those whose changes others apply."""

    APPLYING = "applying"
    LOGGING = "logging"


@attrs.frozen
class Setting:
    """
    A variable that is judged by its value alone.

    Attributes:
        name: The variable.
        wrong: Which values are wrong, in capital letters.
        code: The code of the finding.
        sentence: What happens, and why; ``{value}`` stands for the value.
        better: What to set it to.
        page: The page of the manual.
        side: The servers that it matters to; None for all.
        restart: Whether a running server cannot change it.
    """

    name: str
    wrong: Callable[[str], bool]
    code: Code
    sentence: str
    better: str
    page: str
    side: Side | None = None
    restart: bool = False


def _is(*values: str) -> Callable[[str], bool]:
    return lambda value: value in values


def _is_not(*values: str) -> Callable[[str], bool]:
    return lambda value: value not in values


_ON, _OFF = _is("ON", "1", "TRUE"), _is("OFF", "0", "FALSE")
_UNUSED = "It has no effect on NDB tables"

SETTINGS = (
    Setting(
        "gtid_mode",
        _is("ON", "ON_PERMISSIVE", "2", "3"),
        Code.GTIDS,
        "Transactions get global ids (gtid_mode = {value}). NDB does not support them, and replication between "
        "clusters is likely to fail.",
        "OFF",
        _ISSUES,
        restart=True,
    ),
    Setting(
        "replica_skip_errors",
        _is_not("OFF", "", "0"),
        Code.SKIPPED_ERRORS,
        "The applier passes over errors (replica_skip_errors = {value}): a statement that fails is missing here, and "
        "no counter and no exceptions row says so. An epoch that fails is undone whole; the applier stops at the next "
        "one, or leaves it out if ndb_applier_allow_skip_epoch is ON.",
        "OFF",
        _REPLICA,
        Side.APPLYING,
        restart=True,
    ),
    Setting(
        "sql_replica_skip_counter",
        _is_not("0", ""),
        Code.SKIPPED_ERRORS,
        "The applier passes over the next event groups when it starts (sql_replica_skip_counter = {value}); a group is "
        "a whole epoch, of which nothing is applied.",
        "0",
        _REPLICA,
        Side.APPLYING,
    ),
    Setting(
        "replica_exec_mode",
        _is_not("STRICT", "0"),
        Code.NO_EFFECT,
        f"{_UNUSED} (replica_exec_mode = {{value}}): NDB applies rows idempotently, whatever it says.",
        "STRICT",
        _ISSUES,
        Side.APPLYING,
    ),
    Setting(
        "replica_parallel_type",
        _is("DATABASE", "0"),
        Code.PARALLEL_TYPE,
        "The applier divides its work by databases (replica_parallel_type = DATABASE), which NDB does not support: an "
        "epoch has changes of many.",
        "LOGICAL_CLOCK",
        _WORKERS,
        Side.APPLYING,
    ),
    Setting(
        "replica_allow_batching",
        _OFF,
        Code.NO_BATCHING,
        "The applier sends each change of a row by itself (replica_allow_batching = OFF): it is slower, most of all "
        "with blobs, and transactions of its own cluster can change a row between two changes of one epoch.",
        "ON",
        _NDB,
        Side.APPLYING,
    ),
    Setting(
        "replicate_same_server_id",
        _ON,
        Code.SAME_SERVER_ID,
        "The applier applies its own changes when they come back (replicate_same_server_id = ON), over later ones. A "
        "server with log_replica_updates = ON does not start so.",
        "OFF",
        _REPLICA,
        Side.APPLYING,
        restart=True,
    ),
    Setting(
        "relay_log_recovery",
        _OFF,
        Code.RELAY_LOG,
        "After a crash, the applier goes on with the relay log as the crash left it (relay_log_recovery = OFF); it is "
        "not fetched again from the source.",
        "ON",
        _REPLICA,
        Side.APPLYING,
        restart=True,
    ),
    Setting(
        "relay_log_space_limit",
        _is_not("0", ""),
        Code.LIMITED_RELAY_LOG,
        "The receiver stops when its relay logs hold {value} bytes (relay_log_space_limit), until the applier has "
        "removed some: while the applier stands still, only the source's log has what comes after.",
        "0",
        _REPLICA,
        Side.APPLYING,
        restart=True,
    ),
    Setting(
        "relay_log_info_repository",
        _is("FILE"),
        Code.RELAY_LOG,
        "The applier keeps its position in a file (relay_log_info_repository = FILE), which after a crash need not be "
        "the position of what it applied.",
        "TABLE",
        _REPLICA,
        Side.APPLYING,
        restart=True,
    ),
    Setting(
        "ndb_log_empty_epochs",
        _ON,
        Code.EMPTY_EPOCHS,
        "Epochs without changes are logged (ndb_log_empty_epochs = ON): the log and mysql.ndb_binlog_index grow while "
        "nothing happens.",
        "OFF",
        _NDB,
        Side.LOGGING,
    ),
    Setting(
        "ndb_log_fail_terminate",
        _OFF,
        Code.INCOMPLETE_LOG,
        "A server that cannot log all changes of an epoch goes on (ndb_log_fail_terminate = OFF): what it did not log "
        "does not arrive elsewhere. With ON it terminates, and another SQL node's log can be used.",
        "ON",
        _NDB,
        Side.LOGGING,
        restart=True,
    ),
    Setting(
        "ndb_log_binlog_index",
        _OFF,
        Code.NO_BINLOG_INDEX,
        "The server does not write down where epochs stand in its log (ndb_log_binlog_index = OFF): a channel that "
        "moves to this server does not find its place in mysql.ndb_binlog_index.",
        "ON",
        "mysql-cluster-replication-failover",
        Side.LOGGING,
    ),
    Setting(
        "sync_binlog",
        _is_not("1"),
        Code.SYNC_BINLOG,
        "The log is not written to disk with every commit (sync_binlog = {value}): after a crash of the machine it can "
        "lack epochs that the cluster keeps and that other clusters have applied already.",
        "1",
        _LOG,
        Side.LOGGING,
    ),
    Setting(
        "binlog_error_action",
        _is("IGNORE_ERROR", "0"),
        Code.LOGGING_STOPS,
        "When the server cannot write its log, it goes on without one until it is restarted (binlog_error_action = "
        "IGNORE_ERROR): later changes do not arrive elsewhere.",
        "ABORT_SERVER",
        _LOG,
        Side.LOGGING,
    ),
    Setting(
        "binlog_format",
        _is("STATEMENT", "1"),
        Code.STATEMENTS,
        "Statements are logged in place of rows (binlog_format = STATEMENT): appliers execute them again, no conflict "
        "function judges what they change, and changes of other SQL nodes of the cluster do not arrive.",
        "ROW",
        "mysql-cluster-replication-general",
        Side.LOGGING,
    ),
    Setting(
        "log_bin_use_v1_row_events",
        _ON,
        Code.OLD_ROWS_EVENTS,
        "Rows events have version 1 (log_bin_use_v1_row_events = ON), which has no room for transaction ids, nor for "
        "the marks of changes that a function sends back.",
        "OFF",
        "mysql-cluster-replication-conflict-resolution",
        Side.LOGGING,
    ),
    Setting(
        "binlog_row_image",
        _is_not("FULL", "2"),
        Code.NO_EFFECT,
        f"{_UNUSED} (binlog_row_image = {{value}}): binlog_type of mysql.ndb_replication and ndb_log_updated_only say "
        "which columns are logged.",
        "FULL",
        "mysql-cluster-replication-schema",
        Side.LOGGING,
    ),
    Setting(
        "binlog_row_value_options",
        _is("PARTIAL_JSON"),
        Code.NO_EFFECT,
        f"{_UNUSED} (binlog_row_value_options = PARTIAL_JSON): they log JSON values whole.",
        "''",
        _LOG,
        Side.LOGGING,
    ),
    Setting(
        "ndb_table_temporary",
        _ON,
        Code.NO_EFFECT,
        f"{_UNUSED} (ndb_table_temporary = ON): it is a known issue that the server does not heed it.",
        "OFF",
        _NDB,
    ),
)


# The codes of the variables that other rules judge, together with others or with tables.
_JUDGED_TOGETHER: Mapping[str, tuple[Code | ReplicaCode, ...]] = {
    **dict.fromkeys(("auto_increment_increment", "auto_increment_offset"), (Code.SAME_GENERATED_KEYS,)),
    **dict.fromkeys(
        ("binlog_expire_logs_auto_purge", "binlog_expire_logs_seconds", "expire_logs_days"),
        (Code.PURGED_LOGS, Code.NEVER_PURGED, Code.PURGED_BEFORE_READ),
    ),
    **dict.fromkeys(("binlog_transaction_dependency_tracking", "ndb_log_transaction_dependency"), (Code.IDLE_WORKERS,)),
    **dict.fromkeys(("binlog_transaction_compression", "ndb_log_transaction_compression"), (Code.COMPRESSED_EPOCHS,)),
    **dict.fromkeys(("binlog_cache_size", "ndb_log_cache_size"), (Code.LARGE_EPOCHS,)),
    "log_bin": (Code.NO_BINLOG,),
    "lower_case_table_names": (Code.LETTER_CASE,),
    "log_replica_updates": (Code.NO_REPLICA_UPDATES,),
    "max_binlog_cache_size": (Code.TOO_LARGE_EPOCHS,),
    "ndb_applier_allow_skip_epoch": (Code.SKIPPED_EPOCHS, Code.NO_EFFECT),
    "ndb_applier_conflict_role": (Code.NO_ROLE, Code.ROLE_PASS, Code.SAME_ROLES, Code.NO_EFFECT),
    "ndb_log_apply_status": (Code.NO_APPLIED_EPOCHS,),
    "ndb_log_bin": (Code.NO_BINLOG,),
    "ndb_log_exclusive_reads": (Code.USELESS_READS,),
    **dict.fromkeys(("ndb_log_row_slice_count", "ndb_log_row_slice_id"), (Code.ROW_SLICES,)),
    "ndb_log_transaction_id": (Code.NO_TRANSACTION_IDS,),
    **dict.fromkeys(
        ("ndb_log_update_as_write", "ndb_log_update_minimal", "ndb_log_updated_only"),
        (Code.UPDATES_AS_WRITES, Code.NO_UPDATE, Code.LACKING, Code.DELETES_LACKING, Code.AS_WRITES, Code.POLICY),
    ),
    **dict.fromkeys(("read_only", "super_read_only"), (Code.READ_ONLY,)),
    "relay_log_purge": (Code.RELAY_LOG,),
    "replica_parallel_workers": (Code.IDLE_WORKERS, Code.WORKERS_NOT_IN_RELEASE),
    "replica_preserve_commit_order": (Code.COMMIT_ORDER,),
    "replica_type_conversions": tuple(REPLICA_CODES[f"NDB-R0{number}"] for number in (20, 22, 23)),
    **dict.fromkeys(
        (name for name in FILTER_OPTIONS if name != "replicate_rewrite_db"),
        (Code.APPLY_STATUS_FILTERED, Code.FUNCTION_FILTERED, Code.ONE_WAY_FILTER, Code.FILTER_LIST),
    ),
    "replicate_rewrite_db": (Code.RENAMED_DATABASE, Code.FILTER_LIST),
    **dict.fromkeys(
        ("binlog_do_db", "binlog_ignore_db", "replicate_do_db", "replicate_ignore_db"),
        (
            Code.APPLY_STATUS_FILTERED,
            Code.FUNCTION_FILTERED,
            Code.ONE_WAY_FILTER,
            Code.CROSS_DATABASE,
            Code.FILTER_LIST,
        ),
    ),
    "server_id": (Code.NO_SERVER_ID, Code.MASKED_SERVER_ID),
    "server_id_bits": (Code.NO_SERVER_ID, Code.MASKED_SERVER_ID),
}


def codes_of(name: str) -> tuple[Code | ReplicaCode, ...]:
    """Return the codes by which a variable is judged."""
    own = tuple(each.code for each in SETTINGS if each.name == name)
    return tuple(dict.fromkeys((*own, *_JUDGED_TOGETHER.get(name, ()))))


def single_settings(subject: Subject) -> Iterator[Finding]:
    """Yield settings of `SETTINGS` that are wrong, on servers that they matter to."""
    for cluster in subject.clusters:
        sides = {
            Side.APPLYING: bool(subject.links.sources(cluster.name)),
            Side.LOGGING: bool(subject.links.replicas(cluster.name)),
        }
        for each in SETTINGS:
            value = subject.value(cluster, each.name)
            matters = each.side is None or sides[each.side]
            if value is None or not matters or not each.wrong(value.strip().upper()):
                continue
            fix = (set_in_my_cnf if each.restart else set_variable)(cluster.name, each.name, each.better)
            yield _finding(each.code, each.sentence.format(value=value.strip()), cluster, fix, each.page)


# Names that begin so belong to replication, the binary log or NDB, and `VARIABLES` has all of them.
_FAMILIES = (
    *("ndb", "binlog_", "replica_", "replicate_", "slave_", "gtid_", "relay_log", "log_bin", "log_replica"),
    *("log_slave", "rpl_", "server_id", "sync_", "master_", "source_", "sql_replica_", "sql_slave_"),
)
_LIKE = 0.88  # a slip of the pen; no other variable of a server is that like one of the table


def unknown_names(subject: Subject) -> Iterator[Finding]:
    """Yield variables that no server has, with the one that is meant."""
    for cluster in subject.clusters:
        given = () if cluster.variables is None or cluster.variables.are_all else cluster.variables.options
        for name in dict.fromkeys(name for name, _ in given if name not in VARIABLE_OF):
            near = get_close_matches(name, VARIABLE_OF, n=1, cutoff=0.6 if name.startswith(_FAMILIES) else _LIKE)
            if not near and not name.startswith(_FAMILIES):
                continue
            meant = MANUAL_NAMES.get(name) or (VARIABLE_OF[near[0]].name if near else "")
            nearest = f"the nearest is {meant}" if meant else "no name is near it"
            if name in MANUAL_NAMES:
                nearest = f"it is the manual's name of {meant}"
            sentence = f"{name} is no variable of a server; {nearest}. It sets nothing."
            before = (
                f"write {meant} in place of {name} in the my.cnf of " if meant else f"remove {name} from the my.cnf of "
            )
            page = _NDB if name.startswith("ndb") else _REPLICA
            yield _finding(Code.NO_SUCH_VARIABLE, sentence, cluster, Fix(before, (cluster.name,), "."), page, name)


def _finding(
    code: Code, sentence: str, cluster: ClusterConfiguration, fix: Fix, page: str, at: str | None = None
) -> Finding:
    return Finding(code, sentence, (TablePlace(cluster.name),), fix, at=at, page=page)
