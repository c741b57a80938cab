"""
Clusters for recordings: each a management node, a data node and one or more SQL nodes, on this machine.

All files are below one temporary folder, all ports are those of 127.0.0.1, and all is gone at the end.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import attrs
import pymysql

from tests.recorder.processes import Processes, free_ports
from tests.recorder.programs import Programs
from tests.recorder.sql_node import SqlNode, until

__all__ = ["Clusters", "Pool", "Topology"]

Topology = tuple[tuple[str, int], ...]  # cluster and server id of each SQL node
USER, PASSWORD = "repl", "repl"  # of the appliers
READER = "reader"  # an account that may read, and its password
START_SECONDS = 300
_ACCOUNTS = f"""CREATE USER {USER}@'%' IDENTIFIED BY '{PASSWORD}';
GRANT REPLICATION SLAVE ON *.* TO {USER}@'%';
CREATE USER {READER}@'%' IDENTIFIED BY '{READER}';
GRANT REPLICATION CLIENT, SELECT ON *.* TO {READER}@'%';
"""
# The row slices of 9.x are left out: a table without them is taken by every version.
_REPLICATION_TABLE = """CREATE TABLE IF NOT EXISTS mysql.ndb_replication (db VARBINARY(63), table_name VARBINARY(63),
server_id INT UNSIGNED, binlog_type INT UNSIGNED, conflict_fn VARBINARY(128), PRIMARY KEY USING HASH (db, table_name,
server_id)) ENGINE=NDB PARTITION BY KEY (db, table_name)"""


def config_ini(folder: Path, port: int, sql_nodes: int, epoch_ms: int) -> str:
    """Return the file of a management node; data node 2 holds everything once."""
    return "\n".join(
        [
            *("[ndb_mgmd]", "NodeId=1", "HostName=127.0.0.1", f"PortNumber={port}", f"DataDir={folder}"),
            *("[ndbd default]", "NoOfReplicas=1", "DataMemory=80M", "NoOfFragmentLogFiles=4", "RedoBuffer=8M"),
            *("LongMessageBuffer=8M", f"TimeBetweenEpochs={epoch_ms}", "TimeBetweenGlobalCheckpoints=2000"),
            *("[ndbd]", "NodeId=2", "HostName=127.0.0.1", f"DataDir={folder}"),
            *("[mysqld]\nHostName=127.0.0.1" for _ in range(sql_nodes)),
            *("[api]", "HostName=127.0.0.1", ""),
        ]
    )


def my_cnf(node: SqlNode, connect: str, options: Mapping[str, str]) -> str:
    """Return the option file of an SQL node; it has the settings of the recordings, and then others."""
    given = {
        "datadir": node.folder / "data",
        "socket": node.folder / "sock",
        "log-error": node.folder / "error.log",
        "port": node.port,
        "bind-address": "127.0.0.1",
        "loose-mysqlx": "OFF",
        "server-id": node.server_id,
        "pid-file": node.folder / "pid",
        "log-bin": "binlog",
        "relay-log": "relay",
        "log-replica-updates": "ON",
        "ndbcluster": "ON",
        "ndb-connectstring": connect,
        "ndb-wait-connected": 120,
        "ndb-wait-setup": 120,
        "gtid-mode": "OFF",
        "ndb-log-bin": "ON",
        "ndb-log-apply-status": "ON",
        "ndb-log-transaction-id": "ON",
        "replica-parallel-workers": 1,
        "skip-replica-start": "ON",
        "default-time-zone": "+00:00",
        "innodb-buffer-pool-size": "64M",
        "innodb-flush-log-at-trx-commit": 0,
        **options,
        **({"user": "root"} if os.geteuid() == 0 else {}),
    }
    return "[mysqld]\n" + "".join(f"{name}={value}\n" for name, value in given.items())


@attrs.define(eq=False)
class Clusters:
    """
    Running clusters; a context.

    Attributes:
        programs: The programs.
        topology: The SQL nodes.
        epoch_ms: TimeBetweenEpochs.
        nodes: The SQL nodes that run.
    """

    programs: Programs
    topology: Topology
    epoch_ms: int = 100
    nodes: list[SqlNode] = attrs.field(factory=list, init=False)
    _folder: Path = attrs.field(init=False)
    _processes: Processes = attrs.field(factory=Processes, init=False)
    _running: dict[str, subprocess.Popen[bytes]] = attrs.field(factory=dict, init=False)
    _connect: dict[str, str] = attrs.field(factory=dict, init=False)
    _options: dict[int, dict[str, str]] = attrs.field(factory=dict, init=False)

    def __enter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix="ndb-"))
        self._processes.__enter__()
        try:
            self._start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for node in self.nodes:
            node.close()
        self._processes.__exit__(None, None, None)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self) -> None:
        names = list(dict.fromkeys(cluster for cluster, _ in self.topology))
        ports = iter(free_ports(len(names) + len(self.topology)))
        for name in names:
            self._start_cluster(name, next(ports), sum(cluster == name for cluster, _ in self.topology))
        template = self._data_folder()
        for cluster, server_id in self.topology:
            folder = self._folder / f"{cluster}{server_id}"
            folder.mkdir()
            shutil.copytree(template, folder / "data")
            (folder / "data" / "auto.cnf").unlink(missing_ok=True)  # the server's own UUID
            self.nodes.append(SqlNode(cluster, server_id, folder, next(ports)))
            self._start_server(self.nodes[-1])
        for node in self.nodes:
            self.wait_for(node)

    def _start_cluster(self, name: str, port: int, sql_nodes: int) -> None:
        folder = self._folder / name
        folder.mkdir()
        (folder / "config.ini").write_text(config_ini(folder, port, sql_nodes, self.epoch_ms))
        self._connect[name] = f"127.0.0.1:{port}"
        options = ["--no-defaults", "--nodaemon", "--config-cache=FALSE", f"--config-file={folder / 'config.ini'}"]
        self._processes.start([self.programs.ndb_mgmd, *options, "--ndb-nodeid=1"], folder / "mgmd.log")
        self.start_data_node(name)

    def start_data_node(self, cluster: str) -> None:
        """Start the data node of a cluster."""
        options = ["--no-defaults", f"--ndb-connectstring={self._connect[cluster]}", "--foreground", "--ndb-nodeid=2"]
        log = self._folder / cluster / "ndbd.log"
        self._running[cluster] = self._processes.start([self.programs.ndbd, *options], log)

    def kill_data_node(self, cluster: str) -> None:
        """Kill the data node of a cluster."""
        self._running[cluster].kill()
        self._running[cluster].wait()

    def _data_folder(self) -> Path:
        """Return the data folder of a new server, which takes half a minute to make."""
        folder, accounts = self._folder / "template", self._folder / "accounts.sql"
        accounts.write_text(_ACCOUNTS)
        options = ["--no-defaults", "--initialize-insecure", f"--datadir={folder}", f"--init-file={accounts}"]
        log = self._folder / "initialize.log"
        if self._processes.start([self.programs.mysqld, *options, *self.programs.files, *_as_root()], log).wait():
            message = f"mysqld --initialize-insecure failed:\n{log.read_text('utf-8', 'replace')[-2000:]}"
            raise RuntimeError(message)
        return folder

    def _start_server(self, node: SqlNode) -> None:
        options = node.folder / "my.cnf"
        options.write_text(my_cnf(node, self._connect[node.cluster], self._options.get(node.server_id, {})))
        self._running[str(node.server_id)] = self._processes.start(
            [self.programs.mysqld, f"--defaults-file={options}", *self.programs.files], node.folder / "mysqld.log"
        )

    def wait_for(self, node: SqlNode) -> None:
        """Wait until an SQL node changes tables of NDB."""
        process = self._running[str(node.server_id)]

        def answers() -> bool:
            if process.poll() is not None:
                log = (node.folder / "error.log").read_text("utf-8", "replace")
                message = f"mysqld {node.server_id} of cluster {node.cluster} ended:\n{log[-2000:]}"
                raise RuntimeError(message)
            try:
                node.rows(_REPLICATION_TABLE)
                return node.latest_epoch() > 0
            except (pymysql.err.MySQLError, KeyError):
                return False

        until(f"mysqld {node.server_id} of cluster {node.cluster}", answers, START_SECONDS, 0.2)

    def restart_server(self, node: SqlNode, options: Mapping[str, str] | None = None) -> None:
        """Stop an SQL node in order, and start it, with other options if they are given."""
        node.close()
        if options is not None:
            self._options[node.server_id] = dict(options)
        process = self._running[str(node.server_id)]
        process.send_signal(signal.SIGTERM)
        process.wait()
        self._start_server(node)
        self.wait_for(node)

    def options(self, node: SqlNode) -> Mapping[str, str]:
        """Return the options with which an SQL node was started besides those of all."""
        return self._options.get(node.server_id, {})


def _as_root() -> Sequence[str]:
    return ["--user=root"] if os.geteuid() == 0 else []


@attrs.define(eq=False)
class Pool:
    """One set of clusters at a time, kept until another one is needed; a context."""

    programs: Programs
    _running: Clusters | None = attrs.field(default=None, init=False)

    def clusters(self, topology: Topology, epoch_ms: int) -> Clusters:
        """Return running clusters; nobody may use those that it returned before, unless they are the same."""
        running = self._running
        if running is None or (running.topology, running.epoch_ms) != (topology, epoch_ms):
            self.__exit__(None, None, None)
            self._running = Clusters(self.programs, topology, epoch_ms).__enter__()
        assert self._running is not None
        return self._running

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._running is not None:
            self._running.__exit__(kind, error, at)
            self._running = None
