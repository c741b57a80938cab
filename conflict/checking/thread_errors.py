"""
The errors of a channel's threads: what is wrong, and the statements that let the thread go on.

Kinds of stops that the engines know are in the words of `conflict.rules.stops`; the rest is what servers say besides.
Source: MySQL manual, "Server Error Message Reference", "Client Error Message Reference", "CHANGE REPLICATION SOURCE TO
Statement"; error numbers and texts as MySQL 9.7.4 and NDB Cluster 9.7.2 gave them.
"""

from __future__ import annotations

import re

import attrs

from conflict.checking.findings import Fix, quoted
from conflict.config.replica_status import ReplicaChannel
from conflict.rules.stops import ServerStop, StopError

_TABLE = re.compile(r"(?:event on table |[Tt]able '|fails \()(?P<table>`[^`]+`\.`[^`]+`|[^\s;']+\.[^\s;']+)")
_PLACE = re.compile(r"log (?P<log>\S+), end_log_pos (?P<end>\d+)")
_ACCOUNT = re.compile(r"for user ('[^']*'@'[^']*')")
_NDB_ERROR = re.compile(r"Got (?:temporary )?error (?P<number>\d+) '")
_DUPLICATES = (StopError.DUPLICATE_VALUE, 1062, 1586)
_CONVERSIONS = (StopError.NO_CONVERSION, 1677)
_NO_TABLE = (StopError.NO_SUCH_TABLE, 1049, 1051)
_LOCKS = (1205, 1213, 1297)
_INCIDENTS, _RELAY_LOGS = (13119, 1590), (13121, 1594)
# Errors of the NDB engine within 1296.
_NO_INFORMATION, _BLOBS, _NO_ROLE, _CLUSTER_FAILURE = 1610, 1627, 1794, 4009
# Errors of receivers.
_REFUSED, _FOREIGN_HOST = (1044, 1045, 1698), 1130
_UNREACHABLE = (2002, 2003, 2005, 2006, 2013)
_NEEDS_TLS = (2061, 3159)
_NO_PRIVILEGE = (13120, 1597, 1227)


@attrs.frozen
class Remedy:
    """
    What an error means and what to do.

    Attributes:
        why: What is wrong: a clause that begins in lower case; empty if the error is not known here.
        fix: What to type, on the applier's server if it does not name another one; without a full stop.
        later: What keeps it from happening again; empty if nothing is known.
    """

    why: str
    fix: str
    later: str = ""

    def on(self, cluster: str) -> Fix:
        """Return it as the fix of a finding about a cluster."""
        return Fix(f"{self.fix}; on ", (cluster,), f". Then {self.later}." if self.later else ".")


@attrs.frozen
class StoppedApplier:
    """
    An applier that stopped with an error.

    Attributes:
        channel: Its channel.
        cluster: Its cluster.
        source: The cluster whose changes it applies.
    """

    channel: ReplicaChannel
    cluster: str
    source: str

    @property
    def table(self) -> str | None:
        """``database.table`` of the change; None if the server does not say it."""
        found = _TABLE.search(self.channel.applier_words)
        return None if found is None else found["table"].replace("`", "")

    def remedy(self, *, has_key: bool, transactional: bool) -> Remedy:
        """
        Return what to do.

        Args:
            has_key: The table has a primary key.
            transactional: The table's function judges transactions.
        """
        error, start, table = self.channel.applier_error, _start(self.channel), self.table or "a table"
        if error in _DUPLICATES:
            why = ServerStop.DUPLICATE_VALUE.because(table=table)
            here = f"DELETE or UPDATE the one on {self.cluster}, with sql_log_bin = 0, then {start}"
            what = f"SELECT both rows of {table}; {here}"
            return Remedy(why, what, ServerStop.DUPLICATE_VALUE.advice)
        if error == StopError.ROW_NOT_FOUND:
            why = (
                f"{table} lacks the row that the change looks for"
                if has_key
                else ServerStop.ROW_NOT_FOUND.because(table=table)
            )
            advice = "" if has_key else "give the table a primary key on both clusters"
            row = f"the before image of {self._place} has its values"
            return Remedy(why, f"INSERT the row into {table}, with sql_log_bin = 0 ({row}), then {start}", advice)
        if error in _NO_TABLE:
            why = f"{table} does not exist on {self.cluster}"
            return Remedy(why, f"CREATE TABLE as SHOW CREATE TABLE on {self.source} prints it, then {start}")
        if error in _CONVERSIONS:
            why = f"a column of {table} has another type on {self.source}, which may not be converted"
            return Remedy(why, f"{ServerStop.NO_CONVERSION.advice} (SET PERSIST), then {start}")
        if error in _LOCKS:
            why = (
                "another transaction held a lock, or NDB lacked a resource, until replica_transaction_retries was over"
            )
            locks = "ndbinfo.cluster_locks or performance_schema.data_locks shows it"
            return Remedy(why, f"end the transaction that holds the lock ({locks}), then {start}")
        if error in (StopError.PARENT_MISSING, StopError.PARENT_NEEDED):
            return self._foreign_key()
        if error in _INCIDENTS:
            why = f"{self.source} says that its log may lack changes (an incident)"
            where = "go on in the log of another SQL node that has them (ndb-conflict channel); if nothing is lost, "
            return Remedy(why, where + _skip(self.channel))
        if error in _RELAY_LOGS:
            why = "the relay log is damaged"
            return Remedy(why, _change(self.channel, self._executed))
        if error == StopError.FROM_NDB:
            return self._of_ndb(transactional=transactional)
        return Remedy("", f"mend what the server says, then {start}")

    @property
    def _place(self) -> str:
        found = _PLACE.search(self.channel.applier_words)
        return f"the change before position {found['end']} of {self.source}'s {found['log']}" if found else "the change"

    @property
    def _executed(self) -> str:
        log, position = self.channel.executed
        return f"SOURCE_LOG_FILE = {quoted(log)}, SOURCE_LOG_POS = {position}"

    def _foreign_key(self) -> Remedy:
        table = self.table or "a table"
        if self.channel.applier_error == StopError.PARENT_MISSING:
            stop, why = ServerStop.PARENT_MISSING, f"a row of {table} would refer to a row that does not exist here"
            what = "INSERT the row that it refers to"
        else:
            stop, why = ServerStop.PARENT_NEEDED, "another row still refers to the row that is deleted or changed"
            what = f"DELETE or UPDATE the rows of {table} that refer to it"
        return Remedy(why, f"{what}, with sql_log_bin = 0, then {_start(self.channel)}", stop.advice)

    def _of_ndb(self, *, transactional: bool) -> Remedy:
        """Return what to do about an error of the NDB engine."""
        words, start, table = self.channel.applier_words, _start(self.channel), self.table or "a table"
        found = _NDB_ERROR.search(words)
        number = 0 if found is None else int(found["number"])
        passed = f"{_skip(self.channel)} (it leaves out the whole epoch: see ndb-conflict repair)"
        if number == _NO_ROLE or _says(ServerStop.NO_ROLE, words):
            role = "SET GLOBAL ndb_applier_conflict_role = PRIMARY, SECONDARY or PASS"
            why = f"the function of {table} needs ndb_applier_conflict_role, and it is NONE"
            return Remedy(why, f"{role}, then {start}")
        if number == _BLOBS or _says(ServerStop.BLOB_REFRESH, words):
            why = f"a transaction in conflict changed {table} or another table with blobs, which cannot be refreshed"
            return Remedy(why, passed, ServerStop.BLOB_REFRESH.advice)
        if number == _NO_INFORMATION or _says(ServerStop.MISSING_INFORMATION, words):
            stop = ServerStop.NO_TRANSACTION_IDS if transactional else ServerStop.MISSING_INFORMATION
            what = "transaction ids" if transactional else "a column in an image"
            why = f"the change of {table} lacks what its function needs: {what}"
            advice = stop.advice.replace("there", f"on {self.source}")
            return Remedy(why, passed, advice)
        if _says(ServerStop.RETURNED_EPOCH, words):
            stop = ServerStop.RETURNED_EPOCH
            return Remedy("an older epoch came back", f"{stop.advice.format(source=self.source)}, then {start}")
        if number == _CLUSTER_FAILURE:
            why = "the SQL node has lost its data nodes"
            return Remedy(
                why, f"wait until Ndb_number_of_ready_data_nodes is above 0 (SHOW GLOBAL STATUS), then {start}"
            )
        more = f" (perror --ndb {number} says more)" if number else ""
        return Remedy("", f"mend what the server says{more}, then {start}")


def receiver_remedy(channel: ReplicaChannel, cluster: str, source: str) -> Remedy:
    """
    Return what to do about a receiver that has no connection.

    Args:
        channel: Its channel, with an error of the receiver or without.
        cluster: Its cluster.
        source: The cluster that it reads.
    """
    error, user = channel.receiver_error, quoted(channel.user)
    where = f"SOURCE_HOST = {quoted(channel.host)}, SOURCE_PORT = {channel.port}"
    account = _ACCOUNT.search(channel.receiver_words)
    known = account[1] if account else user
    if error in _REFUSED:
        why = f"{source} refuses the account or its password"
        return Remedy(why, _change(channel, f"SOURCE_USER = {user}, SOURCE_PASSWORD = '...'"))
    if error == _FOREIGN_HOST:
        what = f"CREATE USER {user}@'...' for the host of {cluster}, GRANT REPLICATION SLAVE ON *.* TO it"
        return Remedy(f"{source} lets no account in from this host", f"on {source}: {what}")
    if error in _NO_PRIVILEGE and "denied" in channel.receiver_words:
        what = f"GRANT REPLICATION SLAVE ON *.* TO {known} on {source}, then "
        return Remedy("the account lacks the privilege REPLICATION SLAVE", f"{what}STOP REPLICA; {_start(channel)}")
    if error in _NEEDS_TLS:
        return Remedy(f"{source} asks for a secure connection", _change(channel, "SOURCE_SSL = 1"))
    if error in _UNREACHABLE:
        why = f"nothing answers there as a server of {source}"
        return Remedy(why, f"start that server and open its port; or correct the address: {_change(channel, where)}")
    return Remedy("", f"mend what the server says, then {_start(channel)}" if error else _start(channel))


def unserved_remedy(channel: ReplicaChannel) -> Remedy:
    """Return what to do about a receiver that stopped because its source cannot send on."""
    words = channel.receiver_words
    if "first log file name" in words:
        why = "as the log that has it is purged, or has another name there"
    elif "position > file size" in words:
        why = "as the log there ends before the position of the channel"
    elif "same server_uuid/server_id" in words:
        what = "SET PERSIST server_id = a number that no other server has (or remove auto.cnf and restart)"
        return Remedy("as another replica has the same server id or UUID", f"{what}; {_start(channel)}")
    elif "max_allowed_packet" in words:
        what = "SET PERSIST max_allowed_packet = 1073741824 on the source, and replica_max_allowed_packet here"
        return Remedy("as an event is larger than max_allowed_packet", f"{what}; {_start(channel)}")
    else:
        why = "as where the log that has it is purged"
    where = (
        "go on in the log of another SQL node that has it (ndb-conflict channel says where), or copy the cluster anew"
    )
    return Remedy(why, f"{where}; {_change(channel, 'SOURCE_LOG_FILE = ..., SOURCE_LOG_POS = ...')}")


def _start(channel: ReplicaChannel) -> str:
    return f"START REPLICA{_for(channel)}"


def _skip(channel: ReplicaChannel) -> str:
    return f"SET GLOBAL sql_replica_skip_counter = 1; {_start(channel)}"


def _change(channel: ReplicaChannel, options: str) -> str:
    of_channel = _for(channel)
    return f"STOP REPLICA{of_channel}; CHANGE REPLICATION SOURCE TO {options}{of_channel}; {_start(channel)}"


def _for(channel: ReplicaChannel) -> str:
    return f" FOR CHANNEL {quoted(channel.name)}" if channel.name else ""


def _says(stop: ServerStop, words: str) -> bool:
    """Whether the words of a server are those of a stop."""
    parts = re.split(r"\{\w+\}", stop.words or "")
    return bool(stop.words) and re.search(".*?".join(map(re.escape, parts)), words) is not None
