r"""
What servers said as files, and the run file that names them: a check of the files is a check of the servers.

    run.toml
    A/variables.txt         as SHOW GLOBAL VARIABLES prints it to a pipe, filters of the log among them
    A/schema.sql            CREATE TABLE statements
    A/ndb_replication.tsv   rows of mysql.ndb_replication, if the server has that table
    A/replica_status.txt    as SHOW REPLICA STATUS\G prints it; the error of a stopped applier is its worker's
    A/status.txt            the counters of NDB, as SHOW GLOBAL STATUS prints them

The files of a cluster of several SQL nodes stand in folders of their server ids, `A/1` and `A/3`.
"""

from __future__ import annotations

import json
import re
import shlex
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from glob import escape
from itertools import count
from pathlib import Path

import attrs

from conflict.config.arguments import StageProgress, no_progress
from conflict.config.counter_reads import CounterReads, conflict_counters
from conflict.config.option_values import known_name
from conflict.config.replica_status import NO_CHANNEL, parse_replica_status
from conflict.config.run_file import RunFile, load_run_file
from conflict.config.server_settings import load_epoch_times
from conflict.config.servers.addresses import ServerAddress, addresses_of
from conflict.config.servers.connection import Cell, Row, RunningServer, connected, with_password
from conflict.config.servers.facts import ServerFacts, counters_of, facts_of, quoted_name, without_auto_increment
from conflict.errors import ConfigurationError
from conflict.telling.shown_text import counted, one_line

RUN_FILE = "run.toml"
COUNTING_SECONDS = 2.0  # between two reads of the counters
_VARIABLES, _STATUS, _CHANNELS = "variables.txt", "status.txt", "replica_status.txt"
_SCHEMA, _ROWS = "schema.sql", "ndb_replication.tsv"
_BARE = r"[A-Za-z0-9_-]+"  # a key of TOML
_COLUMNS = ("db", "table_name", "server_id", "binlog_type", "conflict_fn")
_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\0": "\\0"})


@attrs.frozen
class SavedServers:
    """
    What servers said.

    Attributes:
        files: By path, relative to the run file, the files that it names, and the run file itself, last.
        sentences: What a user should know of the servers.
        clocks: By cluster, `ServerFacts.clock` of its first SQL node: of the moment, and so in no file.
        counted: By cluster, the counters of conflicts of its first SQL node, read twice; in no file, too.
    """

    files: Mapping[str, str] = attrs.field(repr=False)
    sentences: tuple[str, ...]
    clocks: Mapping[str, tuple[int, int]] = attrs.field(factory=dict)
    counted: Mapping[str, CounterReads] = attrs.field(factory=dict)

    def run(self, config_ini: Mapping[str, Path]) -> RunFile:
        """
        Return the run that the files describe; it has no binlogs.

        Args:
            config_ini: By cluster, its config.ini, which no SQL node knows.

        Raises:
            ConfigurationError: The servers do not fit together, or say something that cannot be read.
        """
        with tempfile.TemporaryDirectory() as folder:
            for name, text in self.files.items():
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, "utf-8")
            try:
                run = load_run_file(Path(folder, RUN_FILE), binlogs=False)
            except ConfigurationError as error:
                message = str(error).replace(f"{folder}/{RUN_FILE}: ", "").replace(f"{folder}/", "")
                raise ConfigurationError(message) from error
        configuration = run.configuration
        names = [each.name for each in configuration.clusters]
        times = {
            known_name("cluster", name, names, "--server", ConfigurationError): load_epoch_times(file)
            for name, file in config_ini.items()
        }
        clusters = (
            attrs.evolve(
                each,
                epoch_times=times.get(each.name),
                clock=self.clocks.get(each.name),
                counted=self.counted.get(each.name),
            )
            for each in configuration.clusters
        )
        configuration = attrs.evolve(configuration, clusters=tuple(clusters))
        return attrs.evolve(run, path=Path(RUN_FILE), configuration=configuration, inputs=(*config_ini.values(),))


@attrs.frozen
class _Node:
    """An SQL node, and what it said; with its counters of conflicts, if it was asked for these twice."""

    address: ServerAddress
    facts: ServerFacts
    counted: CounterReads | None = None

    @property
    def cluster(self) -> str:
        return self.address.cluster or f"server{self.facts.server_id}"


def read_servers(
    given: Sequence[str],
    defaults_file: Path | None = None,
    progress: StageProgress = no_progress,
    *,
    twice: bool = False,
) -> SavedServers:
    """
    Ask servers, and return what they said.

    Args:
        given: Their addresses, as of ``--server``.
        defaults_file: An option file of the client, in place of its own ones.
        progress: As for `facts_of`; passwords are asked for before.
        twice: Read the counters of conflicts of servers with functions once more, `COUNTING_SECONDS` later.

    Raises:
        ConfigurationError: A server cannot be asked, or the servers do not fit together.
    """
    addresses = [with_password(each) for each in addresses_of(given, defaults_file)]
    with ExitStack() as stack:
        servers = [stack.enter_context(connected(each)) for each in addresses]
        nodes = [_Node(server.address, facts_of(server, progress)) for server in servers]
        if twice and any(each.facts.judges for each in nodes):
            nodes = _counted_again(servers, nodes)
    _refuse_same(nodes)
    clusters = dict[str, list[_Node]]()
    for node in nodes:
        clusters.setdefault(node.cluster, []).append(node)
    for own in clusters.values():  # the one that applies stands first: by it the cluster is known
        own.sort(key=lambda node: not node.facts.channels)
    files = {path: text for name, own in clusters.items() for path, text in _files(name, own).items()}
    _drop_copies(files, list(clusters))
    run = "".join(f"{line}\n" for line in _run_file(clusters, files))
    clocks = {name: own[0].facts.clock for name, own in clusters.items()}
    counted = {name: own[0].counted for name, own in clusters.items() if own[0].counted is not None}
    return SavedServers({**files, RUN_FILE: run}, tuple(_sentences(clusters)), clocks, counted)


def _counted_again(servers: Sequence[RunningServer], nodes: Sequence[_Node]) -> list[_Node]:
    """Return the nodes with the counters of their servers a while later."""
    time.sleep(COUNTING_SECONDS)
    return [
        attrs.evolve(node, counted=CounterReads.of(node.facts.counters, counters_of(server), COUNTING_SECONDS))
        for server, node in zip(servers, nodes, strict=True)
    ]


def batch_text(names: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """Return rows as the mysql client prints them to a pipe."""
    lines = [[*map(_escaped, names)], *([_escaped(cell) for cell in row] for row in rows)]
    return "".join("\t".join(line) + "\n" for line in lines)


def _escaped(cell: Cell) -> str:
    if cell is None:
        return "NULL"
    return (cell.decode("utf-8", "replace") if isinstance(cell, bytes) else cell).translate(_ESCAPES)


def _refuse_same(nodes: Sequence[_Node]) -> None:
    seen = dict[str, _Node]()
    for node in nodes:
        key = node.facts.variables.get("server_uuid", str(node.address))
        if key in seen:
            message = f"{seen[key].address} and {node.address} are the same server; give each once"
            raise ConfigurationError(message)
        seen[key] = node


def _sentences(clusters: Mapping[str, Sequence[_Node]]) -> Iterator[str]:
    asked = {node.facts.server_id for nodes in clusters.values() for node in nodes}
    for name, nodes in clusters.items():
        for node in nodes:
            facts = node.facts
            version = facts.variables.get("version", "?") + ("" if facts.is_of_ndb else " without NDB")
            holds = f"{counted(len(facts.definitions), 'table')}, {counted(len(facts.channels), 'channel')}"
            yield f"{name} has server {facts.server_id}, {node.address}: MySQL {version}, {holds}."
            for channel in parse_replica_status(_below_each_other(facts.channels)):
                if channel.state:
                    yield f"{name}, channel {channel.name!r} from server {channel.source_id}: {channel.state}."
            yield from facts.remarks
            if counts := conflict_counters(facts.counters):
                listed = ", ".join(f"{each} {value:,}" for each, value in counts.items())
                yield f"Conflicts that {name} has counted since its server {facts.server_id} started: {listed}."
            for source in sorted(facts.source_ids - asked - {0}):
                yield f"{name} replicates from server {source}, which is not asked."


# -----------------------------------------------------------------------------------------------------------
# Files
# -----------------------------------------------------------------------------------------------------------


def _files(cluster: str, nodes: Sequence[_Node]) -> dict[str, str]:
    """Return the files of a cluster; its tables are those that its first SQL node shows."""
    found = dict[str, str]()
    for node, folder in _folders(cluster, nodes):
        found[f"{folder}/{_VARIABLES}"] = batch_text(("Variable_name", "Value"), [*node.facts.variables.items()])
        found[f"{folder}/{_STATUS}"] = batch_text(("Variable_name", "Value"), [*node.facts.counters.items()])
        found[f"{folder}/{_CHANNELS}"] = _below_each_other(node.facts.channels)
    facts = nodes[0].facts
    found[f"{cluster}/{_SCHEMA}"] = "".join(
        f"USE {quoted_name(database)};\n{without_auto_increment(definition)};\n\n"
        for (database, _), definition in facts.definitions.items()
    )
    rows = facts.replication or ()
    found[f"{cluster}/{_ROWS}"] = batch_text([*rows[0]] if rows else _COLUMNS, [[*row.values()] for row in rows])
    return found


def _folders(cluster: str, nodes: Sequence[_Node]) -> Iterator[tuple[_Node, str]]:
    """Yield the SQL nodes of a cluster with their folders."""
    for node in nodes:
        yield node, cluster if len(nodes) == 1 else f"{cluster}/{node.facts.server_id}"


def _below_each_other(rows: Sequence[Row]) -> str:
    r"""Return rows as the client prints them with ``\G``."""
    if not rows:
        return f"{NO_CHANNEL}\n"
    lines = list[str]()
    for number, row in enumerate(rows, 1):
        lines.append(f"*************************** {number}. row ***************************")
        lines += [f"{name:>32}: {' '.join(_escaped(cell or '').split())}" for name, cell in row.items()]
    return "\n".join(lines) + "\n"


def _drop_copies(files: dict[str, str], clusters: Sequence[str]) -> None:
    """Leave out the definitions and rows of clusters that have those of the first one."""
    for name in (_SCHEMA, _ROWS):
        for cluster in clusters[1:]:
            if files[f"{cluster}/{name}"] == files[f"{clusters[0]}/{name}"]:
                del files[f"{cluster}/{name}"]


def _run_file(clusters: Mapping[str, Sequence[_Node]], files: Mapping[str, str]) -> Iterator[str]:
    first, *others = clusters
    said = ", ".join(one_line(str(node.address)) for own in clusters.values() for node in own)
    yield f"# What servers said: {said}."
    yield "# The files that this one names can be read again from them with init --server ... --force."
    yield f"schema = {_quoted(f'{first}/{_SCHEMA}')}"
    yield f"ndb_replication = {_quoted(f'{first}/{_ROWS}')}"
    for name, nodes in clusters.items():
        yield from ("", *_cluster(name, nodes, files))
        for entry, file in (("schema", _SCHEMA), ("ndb_replication", _ROWS)):
            if name in others and f"{name}/{file}" in files:
                yield f"{entry} = {_quoted(f'{name}/{file}')}"
        sources = _sources(name, clusters)
        if sources is not None:
            yield f"replicates_from = {json.dumps(sources)}"
    if not others:
        yield from ("", *_cluster_not_asked(clusters[first]))


def _cluster(name: str, nodes: Sequence[_Node], files: Mapping[str, str]) -> Iterator[str]:
    folders = [folder for _, folder in _folders(name, nodes)]
    yield f"[clusters.{name if re.fullmatch(_BARE, name) else json.dumps(name)}]"
    if len(nodes) > 1:
        yield f"server_ids = {[node.facts.server_id for node in nodes]}"
    for entry, file in (("variables", _VARIABLES), ("replica_status", _CHANNELS)):
        paths = [_quoted(f"{folder}/{file}") for folder in folders if f"{folder}/{file}" in files]
        if paths:
            every = ", ".join(paths)
            yield f"{entry} = {every}" if len(paths) == 1 else f"{entry} = [{every}]"
    logs = one_line(Path(nodes[0].facts.variables.get("log_bin_basename") or "binlog").name)
    patterns = ", ".join(_quoted(f"{folder}/{escape(logs)}.[0-9]*") for folder in folders)
    yield f"binlogs = [{patterns}]    # `resolve` reads them; to fetch them, beginning with the first that is there:"
    for node, folder in _folders(name, nodes):
        address = node.address
        at = ["--socket", address.socket] if address.socket else ["--host", address.host, "--port", str(address.port)]
        words = [*at, "--user", address.user, "--password", "--result-file", f"{folder}/", f"{logs}.000001"]
        yield one_line(f"# mysqlbinlog --raw --read-from-remote-server --stop-never {shlex.join(words)}")


def _sources(name: str, clusters: Mapping[str, Sequence[_Node]]) -> list[str] | None:
    """
    Return the clusters whose changes the channels of a cluster bring; None for the other one of a pair.

    Channels that have never been connected do not say their source; without any that does, clusters are a pair.
    """
    read = {each: frozenset[int]().union(*(node.facts.source_ids for node in own)) for each, own in clusters.items()}
    if len(clusters) == 1 or (len(clusters) == 2 and not any(ids - {0} for ids in read.values())):
        return None
    ids = {each: {node.facts.server_id for node in own} for each, own in clusters.items()}
    sources = {each: [other for other in clusters if other != each and read[each] & ids[other]] for each in clusters}
    is_pair = len(clusters) == 2 and all(sources.values())
    return None if is_pair else sources[name]


def _cluster_not_asked(nodes: Sequence[_Node]) -> Iterator[str]:
    """Yield the cluster beside the only one that was asked: of it, the server id alone is known."""
    known = {node.facts.server_id for node in nodes}
    sources = sorted(frozenset[int]().union(*(node.facts.source_ids for node in nodes)) - known - {0})
    number = sources[0] if sources else next(each for each in count(1) if each not in known)
    yield f"[clusters.server{number}]    # it was not asked: its tables and rows count as those of the other cluster"
    yield f"server_id = {number}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
