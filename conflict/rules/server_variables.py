"""
The server variables and options of replication and of NDB: names, releases, defaults, what is known of their effect.

One table, `VARIABLES`, for MySQL 8.0, 8.4 and 9.x. The effect is that on replication between NDB clusters. The checks
look up names, releases and defaults, and docs/settings.md is made from the table.

Source: MySQL manual, "Replication and Binary Logging Option and Variable Reference", "NDB Cluster mysqld Option and
Variable Reference", "Options, Variables, and Parameters Added, Deprecated or Removed" of each release.
"""

from __future__ import annotations

import re
from enum import StrEnum

import attrs

from conflict.errors import ConfigurationError

Release = tuple[int, int, int]
_RELEASE = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:-.*)?")


class Effect(StrEnum):
    """What is known of a variable's effect on replication between NDB clusters."""

    JUDGED = "judged"
    HARMLESS = "harmless"
    OPEN = "not known"


@attrs.frozen
class ServerVariable:
    """
    A variable or an option of mysqld.

    Attributes:
        name: Its name, with underscores.
        effect: What is known of its effect on replication.
        note: What it does, in a few words.
        default: Its default in MySQL 9; None if no check needs it.
        changed: The release since which that is the default, and the default before; empty if it always was.
        older: Its name in releases before the present one, which later releases take as well; empty without one.
        since: The first release that has it under its present name; empty if 8.0.11 had it. If older series got it
            later on, the first one of each: ``8.0.40, 8.4.3, 9.1.0``.
        until: The first release that no longer has it; empty if 9.7 has it, or if that is not known.
    """

    name: str
    effect: Effect
    note: str = ""
    default: str | None = None
    changed: tuple[str, ...] = ()
    older: str = ""
    since: str = ""
    until: str = ""

    def default_in(self, release: Release | None) -> str | None:
        """Return its default in a release, or in MySQL 9; None if that is not known, or if the release lacks it."""
        if release is None:
            return self.default
        if self.changed and release < parse_release(self.changed[0]):
            return self.changed[1]
        return self.default if self.is_in(release) else None

    def is_in(self, release: Release) -> bool:
        """Whether a release has it under its present name."""
        first = [parse_release(each) for each in self.since.split(",")] if self.since else [release]
        begun = release >= first[-1] or any(each[:2] == release[:2] and each <= release for each in first)
        return begun and not (self.until and release >= parse_release(self.until))


def parse_release(text: str) -> Release:
    """
    Return a server's release.

    Args:
        text: Three numbers, such as ``8.0.34``, with or without what ``version`` appends to them.

    Raises:
        ConfigurationError: It is none.
    """
    found = _RELEASE.fullmatch(text.strip())
    if found is None:
        message = (
            f"{text!r} is no version of a server; give three numbers, like 8.0.34, as SELECT VERSION() prints them"
        )
        raise ConfigurationError(message)
    return int(found[1]), int(found[2]), int(found[3])


def is_release(version: str) -> bool:
    """Whether what a server or a log says of its version is a release of MySQL."""
    return _RELEASE.fullmatch(version.strip()) is not None and "mariadb" not in version.lower()


def _judged(
    name: str, note: str, default: str | None = None, changed: tuple[str, ...] = (), **names: str
) -> ServerVariable:
    return ServerVariable(name, Effect.JUDGED, note, default, changed, **names)


def _harmless(name: str, note: str, **names: str) -> ServerVariable:
    return ServerVariable(name, Effect.HARMLESS, note, None, (), **names)


def _open(name: str, note: str, **names: str) -> ServerVariable:
    return ServerVariable(name, Effect.OPEN, note, None, (), **names)


_RENAMED = "8.0.26"  # the release that named the replica and the source

# What the manual calls a variable, and what the server does.
MANUAL_NAMES = {"ndb_conflict_role": "ndb_applier_conflict_role"}

_REPLICATION = (
    _open("abort_slave_event_count", "for tests of the server", until="8.2.0"),
    _judged("auto_increment_increment", "distance of generated keys", "1"),
    _judged("auto_increment_offset", "first generated key", "1"),
    _open("disconnect_slave_event_count", "for tests of the server", until="8.2.0"),
    _harmless("enforce_gtid_consistency", "refuses some statements"),
    _judged("expire_logs_days", "purge of old logs", "0", until="8.2.0"),
    _harmless("gtid_executed", "a state"),
    _harmless("gtid_executed_compression_period", "a table of GTIDs"),
    _judged("gtid_mode", "GTIDs", "OFF"),
    _harmless("gtid_next", "of a session"),
    _harmless("gtid_owned", "a state"),
    _harmless("gtid_purged", "a state"),
    _harmless("immediate_server_version", "of a session"),
    _open("init_replica", "statements at the start of an applier", older="init_slave", since=_RENAMED),
    _harmless("log_bin_trust_function_creators", "who creates functions"),
    _harmless("log_statements_unsafe_for_binlog", "messages"),
    _judged("lower_case_table_names", "letter case of names", "0"),
    _harmless("master_info_file", "name of a file", until="8.3.0"),
    _open("master_info_repository", "place of the receiver's position", until="8.3.0"),
    _harmless("master_retry_count", "attempts to connect"),
    _harmless("max_relay_log_size", "size of files"),
    _harmless("original_commit_timestamp", "of a session"),
    _harmless("original_server_version", "of a session"),
    _judged("read_only", "who can change rows", "OFF"),
    _harmless("relay_log", "name of a file"),
    _harmless("relay_log_basename", "name of a file"),
    _harmless("relay_log_index", "name of a file"),
    _harmless("relay_log_info_file", "name of a file", until="8.3.0"),
    _judged("relay_log_info_repository", "place of the applier's position", until="8.3.0"),
    _judged("relay_log_purge", "removal of applied relay logs", "ON"),
    _judged("relay_log_recovery", "relay log after a restart", "OFF"),
    _judged("relay_log_space_limit", "size of relay logs", "0"),
    _open("replica_allow_higher_version_source", "sources of later releases", since="9.7.0"),
    _harmless("replica_checkpoint_group", "no effect on NDB", older="slave_checkpoint_group", since=_RENAMED),
    _harmless("replica_checkpoint_period", "no effect on NDB", older="slave_checkpoint_period", since=_RENAMED),
    _harmless("replica_compressed_protocol", "network", older="slave_compressed_protocol", since=_RENAMED),
    _judged("replica_exec_mode", "set by NDB itself", "STRICT", older="slave_exec_mode", since=_RENAMED),
    _harmless("replica_load_tmpdir", "name of a folder", older="slave_load_tmpdir", since=_RENAMED),
    _open("replica_max_allowed_packet", "largest event", older="slave_max_allowed_packet", since=_RENAMED),
    _harmless("replica_net_timeout", "network", older="slave_net_timeout", since=_RENAMED),
    _judged("replica_parallel_type", "how work is divided", older="slave_parallel_type", since=_RENAMED),
    _judged(
        "replica_parallel_workers",
        "workers of an applier",
        "4",
        ("8.0.27", "0"),
        older="slave_parallel_workers",
        since=_RENAMED,
    ),
    _harmless("replica_pending_jobs_size_max", "memory", older="slave_pending_jobs_size_max", since=_RENAMED),
    _judged(
        "replica_preserve_commit_order",
        "order of workers",
        "ON",
        ("8.0.27", "OFF"),
        older="slave_preserve_commit_order",
        since=_RENAMED,
    ),
    _judged("replica_skip_errors", "errors to pass over", "OFF", older="slave_skip_errors", since=_RENAMED),
    _harmless("replica_sql_verify_checksum", "checks files", older="slave_sql_verify_checksum", since=_RENAMED),
    _open("replica_transaction_retries", "repeated attempts", older="slave_transaction_retries", since=_RENAMED),
    _judged("replica_type_conversions", "columns that differ", older="slave_type_conversions", since=_RENAMED),
    _judged("replicate_do_db", "filter"),
    _judged("replicate_do_table", "filter"),
    _judged("replicate_ignore_db", "filter"),
    _judged("replicate_ignore_table", "filter"),
    _judged("replicate_rewrite_db", "renames a database"),
    _judged("replicate_same_server_id", "own changes that come back", "OFF"),
    _judged("replicate_wild_do_table", "filter"),
    _judged("replicate_wild_ignore_table", "filter"),
    _harmless("replication_optimize_for_static_plugin_config", "locks", since="8.0.23"),
    _harmless("replication_sender_observe_commit_only", "locks", since="8.0.23"),
    _harmless("report_host", "shown on the source"),
    _harmless("report_password", "shown on the source"),
    _harmless("report_port", "shown on the source"),
    _harmless("report_user", "shown on the source"),
    _harmless("rpl_read_size", "size of reads"),
    *(
        _open(f"rpl_semi_sync_{new}", "semisynchronous replication", older=f"rpl_semi_sync_{old}", since=_RENAMED)
        for new, old in (
            ("replica_enabled", "slave_enabled"),
            ("replica_trace_level", "slave_trace_level"),
            ("source_enabled", "master_enabled"),
            ("source_timeout", "master_timeout"),
            ("source_trace_level", "master_trace_level"),
            ("source_wait_for_replica_count", "master_wait_for_slave_count"),
            ("source_wait_no_replica", "master_wait_no_slave"),
            ("source_wait_point", "master_wait_point"),
        )
    ),
    _harmless(
        "rpl_stop_replica_timeout", "how long STOP REPLICA waits", older="rpl_stop_slave_timeout", since=_RENAMED
    ),
    _judged("server_id", "whose changes they are", "1"),
    _harmless("server_uuid", "made by the server"),
    _harmless("show_replica_auth_info", "shown on the source", older="show_slave_auth_info", since=_RENAMED),
    _harmless("skip_replica_start", "appliers are started by hand", older="skip_slave_start", since=_RENAMED),
    _open("slave_rows_search_algorithms", "how rows are found", until="8.3.0"),
    _harmless("sql_log_bin", "of a session"),
    _judged("sql_replica_skip_counter", "events to pass over", older="sql_slave_skip_counter", since=_RENAMED),
    _judged("super_read_only", "who can change rows", "OFF"),
    _open("sync_relay_log", "writing to disk"),
    _open("sync_relay_log_info", "writing to disk"),
    _open("sync_source_info", "writing to disk", older="sync_master_info", since=_RENAMED),
    _harmless("terminology_use_previous", "terms in output", since="8.0.26"),
    _open("transaction_write_set_extraction", "dependencies of transactions", until="8.3.0"),
)

_BINARY_LOG = (
    _judged("binlog_cache_size", "memory for an epoch, before `ndb_log_cache_size`", "32768"),
    _harmless("binlog_checksum", "checks files"),
    _harmless("binlog_direct_non_transactional_updates", "other storage engines"),
    _judged("binlog_do_db", "filter"),
    _harmless("binlog_encryption", "encrypted files", since="8.0.14"),
    _judged("binlog_error_action", "errors of logging", "ABORT_SERVER"),
    _judged("binlog_expire_logs_auto_purge", "purge of old logs", "ON", since="8.0.29"),
    _judged("binlog_expire_logs_seconds", "purge of old logs", "2592000"),
    _judged("binlog_format", "rows or statements", "ROW"),
    _harmless("binlog_group_commit_sync_delay", "speed"),
    _harmless("binlog_group_commit_sync_no_delay_count", "speed"),
    _harmless("binlog_gtid_simple_recovery", "speed"),
    _judged("binlog_ignore_db", "filter"),
    _harmless("binlog_max_flush_queue_time", "speed"),
    _open("binlog_order_commits", "order of commits on the source"),
    _harmless("binlog_rotate_encryption_master_key_at_startup", "a key", since="8.0.14"),
    _harmless("binlog_row_event_max_size", "rows in an event"),
    _judged("binlog_row_image", "other storage engines alone", "FULL"),
    _harmless("binlog_row_metadata", "names of columns in the log"),
    _judged("binlog_row_value_options", "other storage engines alone", ""),
    _harmless("binlog_rows_query_log_events", "statements as comments"),
    _harmless("binlog_stmt_cache_size", "memory"),
    _judged("binlog_transaction_compression", "compressed epochs", since="8.0.20"),
    _harmless("binlog_transaction_compression_level_zstd", "speed", since="8.0.20"),
    _open("binlog_transaction_dependency_history_size", "dependencies of transactions: holds the rows of some epochs"),
    _judged(
        "binlog_transaction_dependency_tracking", "needed by workers", None, ("8.4.0", "COMMIT_ORDER"), until="8.4.0"
    ),
    _judged("log_bin", "binary log", "ON"),
    _harmless("log_bin_basename", "name of a file"),
    _harmless("log_bin_index", "name of a file"),
    _judged("log_bin_use_v1_row_events", "rows events without extra info", "OFF", until="8.3.0"),
    _judged("log_replica_updates", "logging of applied changes", "ON", older="log_slave_updates", since=_RENAMED),
    _judged("max_binlog_cache_size", "largest epoch", str(2**64 - 4096)),
    _open("max_binlog_dump_events", "for tests of the server"),
    _harmless("max_binlog_size", "size of files"),
    _harmless("max_binlog_stmt_cache_size", "other storage engines"),
    _harmless("source_verify_checksum", "checks files", older="master_verify_checksum", since=_RENAMED),
    _open("sporadic_binlog_dump_fail", "for tests of the server"),
    _judged("sync_binlog", "writing to disk", "1"),
)

_NDB = (
    _harmless("ndb_allow_copying_alter_table", "ALTER TABLE by copy"),
    _judged("ndb_applier_allow_skip_epoch", "epochs left out", "OFF", since="8.0.28"),
    _judged(
        "ndb_applier_conflict_role", "role of the applier", "NONE", older="ndb_slave_conflict_role", since="8.0.23"
    ),
    _harmless("ndb_autoincrement_prefetch_sz", "gaps between generated keys"),
    _harmless("ndb_batch_size", "speed"),
    _harmless("ndb_blob_read_batch_bytes", "speed"),
    _harmless("ndb_blob_write_batch_bytes", "speed"),
    _harmless("ndb_clear_apply_status", "what RESET REPLICA does"),
    _harmless("ndb_cluster_connection_pool", "connections"),
    _harmless("ndb_cluster_connection_pool_nodeids", "connections"),
    _harmless("ndb_connectstring", "connections"),
    _harmless("ndb_data_node_neighbour", "speed"),
    _harmless("ndb_dbg_check_shares", "messages"),
    _harmless("ndb_default_column_format", "how rows are stored"),
    _open("ndb_deferred_constraints", "when unique keys are checked"),
    _harmless("ndb_distribution", "how rows are spread"),
    _open("ndb_eventbuffer_free_percent", "event buffer; a full one leaves a gap in the log"),
    _open("ndb_eventbuffer_max_alloc", "event buffer; a full one leaves a gap in the log"),
    _harmless("ndb_extra_logging", "messages"),
    _harmless("ndb_force_send", "speed"),
    _open("ndb_fully_replicated", "copies of a table within a cluster"),
    _harmless("ndb_index_stat_enable", "queries"),
    _harmless("ndb_index_stat_option", "queries"),
    _harmless("ndb_join_pushdown", "queries"),
    _judged("ndb_log_apply_status", "logging of applied epochs", "OFF"),
    _judged("ndb_log_bin", "logging of NDB tables", "OFF"),
    _judged("ndb_log_binlog_index", "positions of epochs", "ON"),
    _judged("ndb_log_cache_size", "memory for an epoch", "67108864", since="8.0.40, 8.4.3, 9.1.0"),
    _judged("ndb_log_empty_epochs", "epochs without changes", "OFF"),
    _harmless("ndb_log_empty_update", "updates without changes"),
    _judged("ndb_log_exclusive_reads", "logging of reads", "OFF"),
    _judged("ndb_log_fail_terminate", "errors of logging", "OFF", since="8.0.21"),
    _harmless("ndb_log_orig", "more rows in ndb_binlog_index"),
    _judged("ndb_log_row_slice_count", "slices of the rows", "1", since="9.4.0"),
    _judged("ndb_log_row_slice_id", "slices of the rows", "0", since="9.4.0"),
    _judged("ndb_log_transaction_compression", "compressed epochs", "OFF", since="8.0.31"),
    _harmless("ndb_log_transaction_compression_level_zstd", "speed", since="8.0.31"),
    _judged("ndb_log_transaction_dependency", "needed by workers", "OFF", since="8.0.33"),
    _judged("ndb_log_transaction_id", "needed by functions by transaction", "OFF"),
    _judged("ndb_log_update_as_write", "how updates are logged", "ON"),
    _judged("ndb_log_update_minimal", "how updates are logged", "OFF"),
    _judged("ndb_log_updated_only", "how updates are logged", "ON"),
    _harmless("ndb_metadata_check", "tables in the dictionary", since="8.0.16"),
    _harmless("ndb_metadata_check_interval", "tables in the dictionary", since="8.0.16"),
    _harmless("ndb_metadata_sync", "tables in the dictionary", since="8.0.19"),
    _harmless("ndb_mgm_tls", "connections", since="8.3.0"),
    _harmless("ndb_mgmd_host", "connections"),
    _harmless("ndb_nodeid", "connections"),
    _harmless("ndb_optimization_delay", "OPTIMIZE TABLE"),
    _harmless("ndb_optimized_node_selection", "speed"),
    _harmless("ndb_read_backup", "speed"),
    _harmless("ndb_recv_thread_activation_threshold", "speed"),
    _harmless("ndb_recv_thread_cpu_mask", "speed"),
    _harmless("ndb_replica_batch_size", "speed", since="8.0.30"),
    _harmless("ndb_replica_blob_write_batch_bytes", "speed", since="8.0.30"),
    _harmless("ndb_report_thresh_binlog_epoch_slip", "messages"),
    _harmless("ndb_report_thresh_binlog_mem_usage", "messages"),
    _harmless("ndb_row_checksum", "checks memory"),
    _open("ndb_schema_dist_lock_wait_timeout", "statements on all SQL nodes", since="8.0.18"),
    _open("ndb_schema_dist_timeout", "statements on all SQL nodes", since="8.0.16"),
    _open("ndb_schema_dist_upgrade_allowed", "statements on all SQL nodes", since="8.0.17"),
    _harmless("ndb_show_foreign_key_mock_tables", "messages"),
    _open("ndb_table_no_logging", "tables not kept on disk"),
    _judged("ndb_table_temporary", "no effect", "OFF"),
    _harmless("ndb_tls_search_path", "connections", since="8.3.0"),
    _harmless("ndb_transid_mysql_connection_map", "tables of information"),
    _open("ndb_use_copying_alter_table", "ALTER TABLE that writes all rows again"),
    _harmless("ndb_use_exact_count", "queries"),
    _open("ndb_use_transactions", "statements that commit in parts"),
    _harmless("ndb_version", "a constant"),
    _harmless("ndb_version_string", "a constant"),
    _harmless("ndb_wait_connected", "start of a server"),
    _harmless("ndb_wait_setup", "start of a server"),
    _harmless("ndbcluster", "the storage engine"),
    _harmless("ndbinfo", "tables of information"),
    *(
        _harmless(f"ndbinfo_{name}", "tables of information")
        for name in ("database", "max_bytes", "max_rows", "offline", "show_hidden", "table_prefix", "version")
    ),
    _judged(
        "replica_allow_batching",
        "speed of appliers",
        "ON",
        ("8.0.30", "OFF"),
        older="slave_allow_batching",
        since=_RENAMED,
    ),
    _judged("server_id_bits", "bits of a server id", "32"),
    _harmless("transaction_allow_batching", "speed"),
)

VARIABLES = tuple(sorted((*_REPLICATION, *_BINARY_LOG, *_NDB), key=lambda each: each.name))

# Each variable by its present name and by its older one.
VARIABLE_OF = {name: each for each in VARIABLES for name in (each.name, each.older) if name}
