"""
What real servers counted and recorded: status counters, and rows of exceptions tables, from files or servers.

    CLUSTER=FILE            what SHOW GLOBAL STATUS prints; or rows of exceptions tables, as mysqldump writes them or as
                            SELECT prints them, in a file that is named after its table: ``shop.orders$EX.txt``
    CLUSTER:SERVER=FILE     the same of one of several SQL nodes, by its server id

The content of a file tells which of these it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from conflict.config.option_values import known_name
from conflict.config.printed_rows import printed_rows
from conflict.config.servers.addresses import addresses_of
from conflict.config.servers.connection import RunningServer, UnknownError, connected
from conflict.config.servers.facts import quoted_name
from conflict.config.statement_rows import created_columns, inserted_values
from conflict.config.table_rows import Cell
from conflict.config.text_file import located, read_text, refuse_address
from conflict.errors import ConfigurationError
from conflict.results.result import Result
from conflict.rules.counters import COUNTERS
from ndb_formats.cursor import whole_number
from ndb_formats.schema.tables import split_full_name

Row = Mapping[str, Cell]
_GIVEN = re.compile(r"(?P<cluster>[^=:]+)(?::(?P<server>\d+))?=(?P<file>.+)", re.DOTALL)
_NAMES, _VALUES = "variable_name", ("value", "variable_value")
_COUNTERS = {each.lower(): each for each in COUNTERS}
# What the manual's list of status variables calls one.
_COUNTERS["ndb_epoch_delete_delete_count"] = "Ndb_conflict_epoch_delete_delete_count"
_SQL = re.compile(r"^\s*(?:INSERT|REPLACE|CREATE TABLE)\b", re.MULTILINE | re.IGNORECASE)


@attrs.frozen
class Observed:
    """
    What one SQL node shows, or one file of it.

    Attributes:
        cluster: Its cluster.
        place: The file, or the address of the server.
        server: Its server id; None if it is not said.
        counters: Conflict counters by name; None if they are not given.
        exceptions: By exceptions table, its rows: values by column, names in small letters.
    """

    cluster: str
    place: str
    server: int | None = None
    counters: Mapping[str, int] | None = None
    exceptions: Mapping[str, tuple[Row, ...]] = attrs.field(factory=dict, repr=False)


def exceptions_tables(result: Result, cluster: str) -> dict[str, str]:
    """Return the exceptions tables that the server of a cluster uses, with the table of the run of each."""
    functions = result.run["configuration"]["functions"][cluster]
    return {own["exceptions_table"]: table for table, own in functions.items() if own["exceptions_table"] is not None}


def observed_in_files(given: Sequence[str], result: Result) -> list[Observed]:
    """
    Return what files show.

    Args:
        given: ``CLUSTER=FILE`` or ``CLUSTER:SERVER=FILE`` each.
        result: The result, which knows the clusters and the exceptions tables.

    Raises:
        ConfigurationError: A text is not understood, or a file holds neither counters nor rows of exceptions tables.
    """
    found = []
    for text in given:
        parts = _GIVEN.fullmatch(text)
        if parts is None:
            message = f"--observed {text} is not understood; give CLUSTER=FILE"
            raise ConfigurationError(message)
        refuse_address(parts["file"], "--observed")
        cluster = known_name("cluster", parts["cluster"], result.clusters, "the result", ConfigurationError)
        file = Path(parts["file"])
        observed = Observed(cluster, str(file), None if parts["server"] is None else int(parts["server"]))
        contents = read_text(file)
        with located(file):
            found.append(_with_contents(observed, contents, file.name, exceptions_tables(result, cluster)))
    return found


def _with_contents(observed: Observed, text: str, name: str, tables: Mapping[str, str]) -> Observed:
    if _SQL.search(text):
        return attrs.evolve(observed, exceptions=_of_dump(text, tables))
    try:
        rows = [(row.place, row.cells) for row in printed_rows(text)]
    except ConfigurationError as error:
        message = f"{error}; give what mysql -e 'SHOW GLOBAL STATUS' prints, or the rows of an exceptions table"
        raise ConfigurationError(message) from error
    if rows and _NAMES in rows[0][1]:
        return attrs.evolve(observed, counters=dict(_counters(rows)))
    cells = [{column: _cell(value) for column, value in row.items()} for _, row in rows]
    return attrs.evolve(observed, exceptions={_table_of(name, cells, tables): tuple(cells)})


def _cell(value: object) -> Cell:
    return value if isinstance(value, bytes) or value is None else str(value)


def _counters(rows: Sequence[tuple[str, Mapping[str, object]]]) -> Iterator[tuple[str, int]]:
    """Yield the conflict counters of SHOW STATUS; other status variables are passed over."""
    for place, row in rows:
        name = _COUNTERS.get(str(row[_NAMES]).strip().lower())
        value = next((row[each] for each in _VALUES if each in row), None)
        if name is not None:
            number = whole_number(str(value).strip())
            if number is None:
                message = f"{place}: {name} is {value!r}; a whole number is needed, as SHOW GLOBAL STATUS prints it"
                raise ConfigurationError(message)
            yield name, number


def _of_dump(text: str, tables: Mapping[str, str]) -> dict[str, tuple[Row, ...]]:
    """Return the rows of exceptions tables in a dump: of those that it inserts into, or creates."""
    found = dict[str, tuple[Row, ...]]()
    for table in tables:
        name = split_full_name(table)[1].lower()
        created, values = created_columns(text, name), list(inserted_values(text, name))
        if values and created is None and any(each.columns is None for each in values):
            message = f"it has no CREATE TABLE of {table}, and its INSERT statements name no columns; dump both"
            raise ConfigurationError(message)
        if values or created is not None:
            named = [each.named(each.columns or created or ()).cells for each in values]
            found[table] = tuple({name: _cell(value) for name, value in row.items()} for row in named)
    if not found:
        message = f"it has no rows of an exceptions table of the cluster, which are {', '.join(tables) or 'none'}"
        raise ConfigurationError(message)
    return found


def _table_of(name: str, rows: Sequence[Row], tables: Mapping[str, str]) -> str:
    """Return the exceptions table that a file is named after, or the only one that there is."""
    stem = name.rpartition(".")[0] or name
    named = [each for each in tables if stem in (each, split_full_name(each)[1], name)]
    if len(named) == 1:
        return named[0]
    if len(tables) == 1 and rows:
        return next(iter(tables))
    message = (
        "it holds neither what SHOW GLOBAL STATUS prints, nor rows of a table that its name tells; name it after the "
        f"exceptions table; there are {', '.join(tables) or 'none'}"
    )
    raise ConfigurationError(message)


def observed_on_servers(given: Sequence[str], defaults_file: Path | None, result: Result) -> list[Observed]:
    """
    Return what running servers show; a server without a name is found by its server id.

    Args:
        given: Addresses, as of ``check --server``.
        defaults_file: An option file of the client, in place of its own ones.
        result: As for `observed_in_files`.

    Raises:
        ConfigurationError: A server cannot be asked, or is of no cluster of the result.
    """
    found = []
    for address in addresses_of(given, defaults_file):
        with connected(address) as server:
            found.append(_of_server(server, result))
    return found


def _of_server(server: RunningServer, result: Result) -> Observed:
    (row,) = server.ask("SELECT @@GLOBAL.server_id AS id")
    number = int(str(row["id"]))
    cluster = server.address.cluster or _cluster_of(number, result)
    if cluster is None:
        message = (
            f"{server.address} has server id {number}, which the result does not know; say its cluster: CLUSTER=..."
        )
        raise ConfigurationError(message)
    known_name("cluster", cluster, result.clusters, "the result", ConfigurationError)
    status = server.ask("SHOW GLOBAL STATUS LIKE 'Ndb\\_%'")
    rows = [(str(server.address), {name.lower(): value for name, value in row.items()}) for row in status]
    exceptions = dict[str, tuple[Row, ...]]()
    for table in exceptions_tables(result, cluster):
        name = quoted_name(*split_full_name(table))
        try:
            read = server.ask(f"SELECT * FROM {name}", f"SELECT ON {name}")  # noqa: S608  # of the result
        except UnknownError:
            continue
        exceptions[table] = tuple({column.lower(): value for column, value in each.items()} for each in read)
    return Observed(cluster, str(server.address), number, dict(_counters(rows)), exceptions)


def _cluster_of(server: int, result: Result) -> str | None:
    for name, cluster in result.run["configuration"]["clusters"].items():
        if server in (cluster.get("server_ids") or [cluster["server_id"]]):
            return str(name)
    return None
