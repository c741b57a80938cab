"""
Files of CREATE TABLE statements, as SQL or as the mysql client prints them.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path

from conflict.config.shown_definitions import as_statements
from conflict.config.text_file import located, read_text
from conflict.errors import ConfigurationError, ConflictError
from ndb_formats.binlog_reader import first_event
from ndb_formats.constants import DEFAULT_CHARSET
from ndb_formats.errors import FormatError
from ndb_formats.events.header import decode_format_description
from ndb_formats.schema.column_type import charset_name
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.session import ServerVersion
from ndb_formats.schema.tables import Schema
from ndb_formats.types.charsets import is_charset

__all__ = ["load_schema", "what_to_give"]

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
        tables: Names of tables, without their databases, of which any is looked for.
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
    """Return the version of the server that wrote the first binlog that can be read; whoever reads them says faults."""
    for file in binlogs:
        try:
            first = first_event(file, verify=False)
        except (FormatError, OSError):
            continue
        if first is not None:
            return ServerVersion.of(decode_format_description(first.body).server_version)
    return None
