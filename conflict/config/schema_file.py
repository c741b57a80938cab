"""
Files of table definitions, as SQL or as the mysql client prints them.

The client prints SHOW CREATE TABLE as a box, with --vertical as lines below each other, and in a pipe as columns
between tabs. A table without a database, as in SHOW CREATE TABLE and in a dump of one database, gets that of the logs.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import attrs

from conflict.config.text_file import located, read_text
from conflict.errors import ConfigurationError, ConflictError
from conflict.rules.table_setup import is_exceptions_table
from ndb_formats.binlog_reader import first_event
from ndb_formats.constants import DEFAULT_CHARSET
from ndb_formats.errors import FormatError
from ndb_formats.events.header import decode_format_description
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.declared_type import charset_name
from ndb_formats.schema.session import ServerVersion
from ndb_formats.schema.tables import Schema, Table
from ndb_formats.stored import path_of, reading
from ndb_formats.types.charsets import is_charset

Name = tuple[str, str]


def in_databases(schema: Schema, known: Collection[Name]) -> Schema:
    """
    Return a schema in which each table that names no database stands in those that are known to have its name.

    An exceptions table stands where its table does. A table that no database is known to have stands in the only one
    that is known at all; if there are several or none, it is left as it is.

    Args:
        schema: The tables.
        known: Database and name of each table that the binlogs change, or that has a row in mysql.ndb_replication.
    """
    qualified = {(table.database, table.name) for table in schema.tables if table.database}
    if len(qualified) == len(schema.tables):
        return schema
    tables = [each for table in schema.tables for each in _placed(table, known, qualified)]
    return attrs.evolve(schema, tables=tuple(tables))


def _placed(table: Table, known: Collection[Name], qualified: Collection[Name]) -> Iterator[Table]:
    """Yield a table in its databases, but for those that the schema defines itself."""
    if table.database:
        yield table
        return
    name = table.name[: -len("$EX")] if is_exceptions_table(table) else table.name
    all_databases = sorted({database for database, _ in known})
    databases = [database for database in all_databases if (database, name) in known]
    if not databases:
        databases = all_databases if len(all_databases) == 1 else [""]
    for database in databases:
        if (database, table.name) not in qualified:
            yield attrs.evolve(table, database=database)


def named_as(schema: Schema, known: Collection[Name]) -> Schema:
    """
    Return a schema whose tables have the names that logs give them.

    Under lower_case_table_names a log has them in small letters, whatever statements and dumps say.

    Args:
        schema: The tables.
        known: Database and name of each table of the logs.
    """
    tables = []
    for table in schema.tables:
        database, name = logged_name((table.database, table.name), known)
        tables.append(attrs.evolve(table, database=database, name=name))
    return attrs.evolve(schema, tables=tuple(tables))


def logged_name(name: Name, known: Collection[Name]) -> Name:
    """
    Return the name that logs give a table: its own, unless they have it in small letters only.

    An exceptions table keeps its name, whose letters count.
    """
    small = name[0].lower(), name[1].lower()
    other = name not in known and small in known and not small[1].endswith("$ex")
    return small if other else name


# What stands before a statement: the box's or the tabs' first column, or the label of --vertical.
_BEFORE = re.compile(r"^(?:\|[^\n|]*\| |[^\n\t`']*\t| *Create Table: )(?=CREATE (?:TEMPORARY )?TABLE )", re.MULTILINE)
# What ends one, besides the next: the edge of the box, the header of the next answer, the client's count or prompt.
_AFTER = re.compile(r" *\|\n|^(?:\*{5,}|\+-|\d+ rows? in set|mysql>|Table\tCreate Table)", re.MULTILINE)
# --batch prints line breaks, tabs and backslashes in this way, --raw does not.
_ESCAPED = re.compile(r"\\(.)")
_CHARACTERS = {"n": "\n", "t": "\t", "0": "\0"}


def as_statements(text: str) -> str:
    """Return the statements that a text prints, each with a semicolon; a text of plain SQL as it is."""
    starts = list(_BEFORE.finditer(text))
    if not starts:
        return text
    ends = [*(start.start() for start in starts[1:]), len(text)]
    found = (_statement(text[start.end() : end]) for start, end in zip(starts, ends, strict=True))
    return "".join(f"{statement.rstrip().removesuffix(';')};\n" for statement in found)


def _statement(text: str) -> str:
    line = text.partition("\n")[0]
    if "(\\n" in line:
        return _ESCAPED.sub(lambda found: _CHARACTERS.get(found[1], found[1]), line)
    end = _AFTER.search(text)
    return text if end is None else text[: end.start()]


_MOST = 16 << 20  # bytes of a file of definitions that is looked for


def load_schema(
    path: Path | str | None,
    *,
    database: str = "",
    charset: str = DEFAULT_CHARSET,
    binlogs: Iterable[Path | str] = (),
) -> Schema:
    """
    Return the tables of a file of definitions; none without a file.

    Args:
        path: The file.
        database: The database of tables that are named without one.
        charset: The server's character set.
        binlogs: Binlogs of the server that has the tables; the version in the first one says what definitions mean.

    Raises:
        ConfigurationError: It cannot be read, or defines no table; the message names it. Or the server has no such
            character set.
    """
    charset = charset_name(charset)
    if not is_charset(charset):
        message = f"the charset {charset} is no character set of MySQL; give one that SHOW CHARACTER SET lists"
        raise ConfigurationError(message)
    if path is None:
        return Schema()
    text = as_statements(read_text(Path(path)))
    with located(path):
        schema = parse_schema(text, database=database, charset=charset, server=_server_of(binlogs))
    if not schema.tables:
        message = f"{path}: no CREATE TABLE statement; give what SHOW CREATE TABLE or mysqldump prints"
        raise ConfigurationError(message)
    return schema


def what_to_give(binlogs: Iterable[Path | str], tables: Iterable[str]) -> str:
    """
    Return how to give definitions; with the name of the file that has them, if one lies with the binlogs.

    Args:
        binlogs: The binlogs.
        tables: Names of tables, without their databases, any of which is looked for.
    """
    own = {Path(file).absolute().parent for file in binlogs}
    folders = dict.fromkeys([*sorted(own), *sorted(folder.parent for folder in own)])  # or beside their folders
    files, wanted = (file for folder in folders for file in sorted(folder.glob("*.sql"))), frozenset(tables)
    found = next((file for file in files if _defines(file, wanted)), None)
    if found is None:
        return "give CREATE TABLE statements (--schema FILE, or schema in the run file)"
    here = found.relative_to(Path.cwd()) if found.is_relative_to(Path.cwd()) else found
    return f"{here} has CREATE TABLE statements: give --schema {shlex.quote(str(here))}, or schema in the run file"


def _defines(file: Path, tables: frozenset[str]) -> bool:
    """Whether a file defines any of some tables; one that is no schema, or a dump of data, does not."""
    try:
        if file.stat().st_size > _MOST:
            return False
        return not tables.isdisjoint(table.name for table in load_schema(file).tables)
    except (ConflictError, FormatError, OSError):
        return False


def _server_of(binlogs: Iterable[Path | str]) -> ServerVersion | None:
    version = version_of_logs(binlogs)
    return None if version is None else ServerVersion.of(version)


def version_of_logs(binlogs: Iterable[Path | str]) -> str | None:
    """Return the version of the server that wrote the first binlog that can be read; whoever reads them says faults."""
    for file in binlogs:
        try:
            with reading(path_of(file)):
                first = first_event(file, verify=False)
        except (FormatError, OSError):
            continue
        if first is not None:
            return decode_format_description(first.body).server_version
    return None
