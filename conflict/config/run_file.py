"""
`run.toml`: the file that describes a run.

    schema = "schema.sql"          # CREATE TABLE of every table, also of exceptions tables; not needed for tables that
                                   # the binlogs create, or describe (binlog_row_metadata=FULL)
    schema_at = "start"            # whether it describes the tables at the "start" or the "end" of the binlogs
    database = "shop"              # of tables that schema.sql does not qualify
    charset = "utf8mb4"            # of tables that declare none
    start = "empty"                # tables were empty before the binlogs; or "middle"; else the binlogs show it
    inexact_keys = false           # optional: allow keys whose equality is not known exactly (docs/keys.md)

    [clusters.A]
    server_id = 1                  # or server_ids = [1, 3] of several SQL nodes, the first of which applies at first
    binlogs = ["a/binlog.0*"]      # relative to this file; patterns are sorted by name
    role = "NONE"                  # ndb_applier_conflict_role
    ndb_log_update_as_write = "ON" # and the other two options that count for binlog_type 0
    ndb_log_transaction_id = "ON"  # if known; the _TRANS functions need it
    rows = ["a/rows.sql"]          # rows that its tables held before the binlogs: a dump, or .csv, .parquet per table
    rows_epoch = 4294967297        # the own epoch after which they were read; by default before the first one
    rows_of = "B"                  # or: the rows of the other cluster are also those of this one
    replicates_from = ["B"]        # with more than two clusters: those whose binlogs its applier applies
    ignore_server_ids = { B = [3] } # IGNORE_SERVER_IDS of the channel from a source
    schema = "schema-a.sql"        # if its tables differ from those of the other cluster
    replica_type_conversions = ""  # if it is set
    replicate_wild_ignore_table = ["shop.log%"] # and the other replicate_* filters of its applier
    replicate_rewrite_db = ["b->a"] # databases that its applier renames
    replica_status = "status.txt"  # or what SHOW REPLICA STATUS prints: the filters of each channel
    variables = "my.cnf"           # or what SHOW VARIABLES prints; gives the settings above that are left out; like
                                   # replica_status, also a list with a file of each SQL node
    config_ini = "config.ini"      # of its management node, for `check`
    ndb_replication = "a.sql"      # if its rows differ from those of the run

    [clusters.B]
    ...

    [[ndb_replication]]            # rows of mysql.ndb_replication, the same on both clusters
    db = "shop"
    table_name = "%"
    server_id = 0
    binlog_type = 7                # or by name: "FULL_USE_UPDATE"
    conflict_fn = "NDB$MAX(version)"
    # or, at the top, a file with the rows: ndb_replication = "ndb_replication.sql" (or .csv, .tsv, .toml)

    [[conflict_function]]          # optional: a function of your own, for conflict_fn = "NEWEST(version)"
    name = "NEWEST"
    write = "reject if present"    # and update, delete; see `conflict.rules.functions.Cell`
    update = "at least"
    delete = "equal"

    [schedule]                     # optional: apply times that the binlogs do not show
    steps = "scenario.json"        # steps of a recording, or:
    [[schedule.applied]]           # cluster A applied this epoch of the other one after its own epoch
    applier = "A"
    epoch = 4294967297
    after_epoch = 4294967300
    [[schedule.stopped]]           # cluster A's applier applied nothing after this epoch of the other one
    applier = "A"
    after_epoch = 4294967299
    [[schedule.role]]              # cluster A had this role after its applier had applied this epoch of the other one
    applier = "A"
    after_epoch = 4294967299
    role = "SECONDARY"
"""

from __future__ import annotations

import json
import os.path
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import attrs

from conflict.config.case import SCENARIO, Case
from conflict.config.cluster_tables import ClusterTable, matching_binlogs, read_clusters
from conflict.config.configuration import ClusterConfiguration, Configuration, Span
from conflict.config.option_values import known_name
from conflict.config.replication_rows import load_replication_rows, rows_of_tables
from conflict.config.schema_file import load_schema
from conflict.config.text_file import FileName, located, parsed_toml, place_of, read_text, what_commands_wrote
from conflict.documents import GIVEN, Epoch, Must, Name, Text, read
from conflict.errors import ConfigurationError
from conflict.resolvers.user_policies import add_functions, policies_of_tables
from conflict.rules.functions import FUNCTIONS
from conflict.rules.replication_table import Role
from ndb_formats.columnar.kernel_mode import expect_files
from ndb_formats.constants import DEFAULT_CHARSET
from ndb_formats.errors import did_you_mean
from ndb_formats.schema.tables import Schema
from ndb_formats.stored import Stored, beside


@attrs.frozen
class Applied:
    """A table ``[[schedule.applied]]``."""

    applier: Text
    epoch: Epoch
    after_epoch: Epoch


@attrs.frozen
class Stopped:
    """A table ``[[schedule.stopped]]``."""

    applier: Text
    after_epoch: Epoch


@attrs.frozen
class RoleChange:
    """A table ``[[schedule.role]]``."""

    applier: Text
    after_epoch: Epoch
    role: Role


@attrs.frozen
class GivenSchedule:
    """The table ``[schedule]``."""

    steps: FileName | None = None
    applied: tuple[Applied, ...] = ()
    stopped: tuple[Stopped, ...] = ()
    role: tuple[RoleChange, ...] = ()

    @property
    def entries(self) -> dict[str, Applied | Stopped | RoleChange]:
        """The tables of all its lists, by their paths."""
        return {
            f"schedule.{name}#{number}": each
            for name in ("applied", "stopped", "role")
            for number, each in enumerate(getattr(self, name), start=1)
        }


_Rows = Annotated[
    list[Any] | FileName,
    Must(
        "tables [[ndb_replication]], or a file name",
        lambda given: isinstance(given, str) or all(isinstance(row, dict) for row in given),
    ),
]


@attrs.frozen
class _Document:
    """The whole file."""

    clusters: dict[str, ClusterTable] = attrs.field(factory=dict)
    schema: FileName | None = None
    schema_at: Literal["start", "end"] = "start"
    database: Text = ""
    charset: Name = DEFAULT_CHARSET
    start: Literal["empty", "middle"] | None = None
    inexact_keys: bool = False
    ndb_replication: _Rows = attrs.field(factory=list)
    conflict_function: list[Any] = attrs.field(factory=list)
    schedule: GivenSchedule = GivenSchedule()

    def schema_of(self, folder: Path, name: str | None, binlogs: Sequence[Path]) -> Schema:
        """Return the tables of a file of definitions; none without a file."""
        path = None if name is None else beside(folder, name)
        return load_schema(path, database=self.database, charset=self.charset, binlogs=binlogs)


@attrs.frozen
class RunFile:
    """
    A run as its file describes it.

    Attributes:
        path: The file.
        configuration: The run.
        schedule: Its `schedule` table.
        inputs: Every file that the run reads: the run file if there is one, the files that it names, and the binlogs.
        text: Its text; empty if it was made otherwise.
        open_functions: Which conflict functions may have been in force besides those that were found by trial, as a
            sentence; empty if none may, and None if they were given.
        resolvers: Names, as ``module:name``, of the resolvers of one's own that were given beside it.
    """

    path: Path
    configuration: Configuration
    schedule: GivenSchedule
    inputs: tuple[Path, ...] = attrs.field(repr=False)
    text: str = attrs.field(default="", repr=False)
    open_functions: str | None = attrs.field(default=None, repr=False)
    resolvers: tuple[str, ...] = attrs.field(default=(), repr=False)


def is_run_file(path: Path) -> bool:
    """Whether a path is a run file, or the folder of a case, whose `scenario.json` is one."""
    return path.suffix == ".toml" or _is_case(path)


def _is_case(path: Path) -> bool:
    return not isinstance(path, Stored) and os.path.isfile(path / SCENARIO)  # noqa: PTH113  # it never raises


def load_run_file(path: Path | str, *, binlogs: bool = True) -> RunFile:
    """
    Read a run file.

    Args:
        path: The file, or the folder of a case (docs/cases.md).
        binlogs: Whether the binlogs must be there.

    Raises:
        ConfigurationError: Something in it, or a file that it names, is missing or wrong.
    """
    path = place_of(path, "the run file")
    if _is_case(path):
        path /= SCENARIO
    elif path.is_dir():
        give = next((str(file) for file in sorted(path.glob("*.toml"))), "the run file (.toml)")
        written = what_commands_wrote(path, "a run file", give)
        raise ConfigurationError(written or f"{path} is a folder, not a run file; give {give}")
    run = parse_run_file(read_text(path), path, binlogs=binlogs)
    return attrs.evolve(run, inputs=(path, *run.inputs))


def parse_run_file(text: str, path: Path, *, binlogs: bool = True) -> RunFile:
    """
    Return the run that the text of a run file describes.

    Args:
        text: The text.
        path: Where the file stands, or would stand: its paths are relative to that.
        binlogs: Whether the binlogs must be there.

    Raises:
        ConfigurationError: Something in it, or a file that it names, is missing or wrong.
    """
    if path.name == SCENARIO:
        return _run_of_case(text, path, binlogs=binlogs)
    folder = path.parent
    with located(path):
        document = read(_Document, parsed_toml(text))
        clusters = read_clusters(folder, document.clusters, binlogs=binlogs)
        names = [cluster.name for cluster in clusters]
        expect_files(file for cluster in clusters for file in cluster.files)
        functions = add_functions(FUNCTIONS, policies_of_tables(document.conflict_function))
        span = _span(document, clusters)
        for place, entry in document.schedule.entries.items():
            known_name("cluster", entry.applier, names, f"{place}.applier: the run file", ConfigurationError)
    if document.schedule.steps is not None:
        load_steps(beside(folder, document.schedule.steps), names)
    rows = document.ndb_replication
    if isinstance(rows, str):
        replication = load_replication_rows(beside(folder, rows))
    else:
        with located(path):
            replication = rows_of_tables(rows)
    logs = [file for cluster in clusters for file in cluster.files]
    schema = document.schema_of(folder, document.schema, logs)
    own = {name: table.schema for name, table in document.clusters.items() if table.schema is not None}
    clusters = tuple(
        attrs.evolve(each, schema=document.schema_of(folder, own[each.name], each.files)) if each.name in own else each
        for each in clusters
    )
    of_clusters = [name for table in document.clusters.values() for name in table.files]
    named = [name for name in (document.schema, *of_clusters, rows, document.schedule.steps) if isinstance(name, str)]
    inputs = (
        *(beside(folder, name) for name in named),
        *(file for cluster in clusters for file in (*cluster.files, *cluster.rows)),
    )
    configuration = Configuration(
        clusters, schema, replication, functions, span=span, schema_at_end=document.schema_at == "end"
    )
    if document.inexact_keys:
        configuration = configuration.with_inexact_keys()
    return RunFile(path, configuration, document.schedule, inputs, text)


def matching_files(run: RunFile) -> dict[str, tuple[Path, ...]]:
    """
    Return, by cluster, the binlogs that the patterns of a run file match now.

    Args:
        run: The run file; it has a text.

    Raises:
        ConfigurationError: A pattern is none.
    """
    return matching_binlogs(run.path.parent, read(_Document, parsed_toml(run.text)).clusters)


def _run_of_case(text: str, path: Path, *, binlogs: bool) -> RunFile:
    """Return the run that a recording describes; arguments and errors as of `parse_run_file`."""
    with located(path):
        case = Case.parse(text, path.parent)
        configuration = case.configuration(binlogs=binlogs)
        names = [cluster.name for cluster in configuration.clusters]
        expect_files(configuration.files)
    if case.steps:
        load_steps(path, names)
    schedule = GivenSchedule(SCENARIO if case.steps else None)
    return RunFile(path, configuration, schedule, configuration.files, text)


def _span(document: _Document, clusters: Sequence[ClusterConfiguration]) -> Span:
    """Return what part of the logs to read: after the epochs at which rows were read, if any were."""
    # Without an entry, the binlogs have to show it.
    empty, first = None if document.start is None else document.start == "empty", dict[str, int]()
    names = {cluster.name for cluster in clusters}
    for cluster in clusters:
        if cluster.rows_of is not None and cluster.rows_of not in names - {cluster.name}:
            meant = did_you_mean(cluster.rows_of, names)
            message = f"rows_of of cluster {cluster.name} is {cluster.rows_of!r}; it must name the other cluster{meant}"
            raise ConfigurationError(message)
        if cluster.rows and empty:
            message = f'cluster {cluster.name} has rows at the start, but start is "empty"; leave one of them out'
            raise ConfigurationError(message)
        epoch = document.clusters[cluster.name].rows_epoch
        if epoch is not None:
            first[cluster.name] = epoch + 1
    given = any(cluster.rows for cluster in clusters)
    return Span(False if given else empty, first)


@attrs.frozen
class _Step:
    """A step of a recording, as far as a run needs it."""

    action: Any = None
    on: Annotated[Name | None, GIVEN] = None
    applier: Annotated[Name | None, GIVEN] = None
    epoch: Annotated[Epoch | None, GIVEN] = None
    role: Annotated[Role | None, GIVEN] = None
    result: Annotated[str | list[Any] | None, GIVEN] = None


def load_steps(path: Path, clusters: Collection[str]) -> list[dict[str, Any]]:
    """
    Read a file of steps.

    Args:
        path: The file.
        clusters: Names of the clusters of the run.

    Raises:
        ConfigurationError: It cannot be read, or a step is not what it must be.
    """
    text = read_text(path)
    with located(path):
        try:
            given = json.loads(text)["steps"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            message = f"a JSON object with a list of steps is needed ({error})"
            raise ConfigurationError(message) from error
        steps: list[dict[str, Any]] = read(list[dict[str, Any]], given, "steps")
        for place, each in ((f"steps#{number}", each) for number, each in enumerate(steps, 1)):
            step = read(_Step, {name: each[name] for name in attrs.fields_dict(_Step) if name in each}, place)
            for name in filter(None, (step.on, step.applier)):
                known_name("cluster", name, clusters, f"{place}: the run file", ConfigurationError)
            if step.action == "role" and None in (step.applier, step.role):
                message = f"{place}: an action role needs an applier and a role"
                raise ConfigurationError(message)
    return steps
