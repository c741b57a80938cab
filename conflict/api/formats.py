"""
What Python users and commands call about formats of logs.

How statements and rows are logged, which functions can work with that, whether a replica can apply it, and the same
changes in another format.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from conflict.config.arguments import DeploymentPolicy, Paths, StageProgress, Typed, no_progress, typed
from conflict.config.option_values import path_of, words_of
from conflict.errors import ConfigurationError
from conflict.rules.replication_table import Role
from ndb_formats.constants import DEFAULT_CHARSET
from ndb_formats.errors import CutFileError, did_you_mean
from ndb_formats.statement_logging.decision import BinlogFormat

if TYPE_CHECKING:
    from conflict.checking.answers import Requirements
    from conflict.checking.logged_statements import LoggedStatements
    from conflict.checking.replica_report import ReplicaReport
    from conflict.decoding.rewritten import Rewritten
    from conflict.resolvers.user_policies import Given
    from conflict.rules.functions import ConflictFunction
    from ndb_formats.binlog_reader import Event
    from ndb_formats.rules.replica.check import ReplicaSettings
    from ndb_formats.rules.row_image_rules import RowImageRule
    from ndb_formats.rules.update_format import ServerOptions, UpdateFormat
    from ndb_formats.schema.tables import Table
    from ndb_formats.writing.rewriting_plans import Plans

_FILE = Typed(is_file=True)
_SHOWN_EVERY = 1000  # events


@typed(schema=_FILE)
def requirements(
    *,
    function: Given | str | None = None,
    binlog_type: str | int | None = None,
    schema: Path | str | None = None,
    table: str | None = None,
    policy: DeploymentPolicy | str = "manual",
    role: Role | str | None = None,
    transaction_ids: bool | None = None,
    option: Mapping[str, str] | str | Sequence[str] | None = None,
) -> Requirements:
    """
    Return which conflict function can work with which binlog type, why not, and what would work; as the command.

    Args:
        function: A conflict_fn, such as NDB$MAX(version); all without it.
        binlog_type: A binlog_type, by number or name; all without it.
        schema: CREATE TABLE statements.
        table: A table of the schema, with or without its database.
        policy: As for `resolve`.
        role: ndb_applier_conflict_role of the applier.
        transaction_ids: Whether the other cluster logs transaction ids.
        option: A server option for type 0, such as ndb_log_update_minimal=ON.

    Raises:
        ConfigurationError: Something is not known, or the schema does not have the table.
    """
    from conflict.checking.answers import Requirements
    from conflict.checking.deployment import Deployment, TableLogging
    from conflict.checking.requirements import TABLE_TYPES, example_function
    from conflict.checking.requirements import requirements as requirements_of
    from conflict.resolvers.user_policies import asked_function
    from conflict.rules.functions import FUNCTIONS, typed_function
    from ndb_formats.rules.update_format import parse_binlog_type

    options, allowed = _options(option or ()), DeploymentPolicy(policy)
    asked = None if function is None else typed_function(*asked_function(function))
    definition = _definition(path_of(schema), table, asked)
    types = TABLE_TYPES if binlog_type is None else (parse_binlog_type(binlog_type),)
    loggings = [TableLogging(number, options, transaction_ids) for number in types]
    applier = None if role is None else Role(role)
    rows = {
        each.spec.name: tuple(
            requirements_of(Deployment(each, definition, logging, role=applier), allowed) for logging in loggings
        )
        for each in ([asked] if asked else map(example_function, FUNCTIONS))
    }
    return Requirements(allowed, rows)


def _options(given: Mapping[str, str] | str | Sequence[str]) -> ServerOptions:
    from ndb_formats.rules.update_format import ServerOptions, server_options

    values: dict[str, str] = dict(given) if isinstance(given, Mapping) else {}
    settings = [] if isinstance(given, Mapping) else words_of(given)
    for name, _, value in (setting.partition("=") for setting in settings):
        if values.setdefault(name, value) != value:
            message = f"--option {name} is given as {values[name]} and as {value}; give one of them"
            raise ConfigurationError(message)
    known = [field.name for field in attrs.fields(ServerOptions)]
    for name in values:
        if name not in known:
            message = (
                f"--option {name} is unknown{did_you_mean(name, known)}; the options for type 0 are {', '.join(known)}"
            )
            raise ConfigurationError(message)
    return server_options(values)


def _definition(schema: Path | None, name: str | None, function: ConflictFunction | None) -> Table:
    """Return the named table, or an example table with the column that the function compares."""
    from conflict.checking.requirements import example_table
    from conflict.config.schema_file import load_schema

    if schema is None:
        if name is not None:
            message = "--table names a table of a schema; give --schema, too"
            raise ConfigurationError(message)
        return example_table() if function is None or function.column is None else example_table(function.column)
    if function is None:
        message = "--schema needs --function, which names the column to compare"
        raise ConfigurationError(message)
    tables = load_schema(schema).tables
    found = [each for each in tables if name in (None, each.name, each.full_name)]
    if not tables:
        message = f"{schema}: no CREATE TABLE statement; give what SHOW CREATE TABLE prints"
        raise ConfigurationError(message)
    if len(found) != 1:
        names = ", ".join(each.full_name for each in tables)
        meant = did_you_mean(name or "", (each.full_name for each in tables))
        message = f"{schema}: --table must name one of {names}{meant}"
        raise ConfigurationError(message)
    return found[0]


@typed(source=_FILE, replica=_FILE)
def check_replica(
    source: Path | str,
    replica: Path | str,
    *,
    row_image: str | None = None,
    binlog_type: str | int | None = None,
    type_conversions: str = "",
    database: str = "",
    charset: str = DEFAULT_CHARSET,
) -> ReplicaReport:
    """
    Return, table by table, whether changes of a source find their rows on a replica; as the command ``check-replica``.

    Args:
        source: CREATE TABLE statements of the source.
        replica: CREATE TABLE statements of the replica.
        row_image: binlog_row_image of the source: full, minimal or noblob; for tables not of NDB.
        binlog_type: A binlog_type, by number or name; for NDB tables.
        type_conversions: replica_type_conversions of the replica, such as ALL_NON_LOSSY,ALL_UNSIGNED.
        database: Database of tables that are not qualified.
        charset: Character set of tables that declare none.

    Raises:
        ConfigurationError: A file or a setting is wrong.
    """
    from conflict.checking.rules.replicas import check_schemas
    from conflict.config.schema_file import load_schema

    settings = _replica_settings(row_image, binlog_type, type_conversions)
    ours, theirs = (load_schema(Path(file), database=database, charset=charset) for file in (source, replica))
    return check_schemas(ours, theirs, settings)


def _replica_settings(row_image: str | None, binlog_type: str | int | None, conversions: str) -> ReplicaSettings:
    """Return the settings; the one of the two formats that is given alone also rules tables without ENGINE."""
    from ndb_formats.rules.images import Logging
    from ndb_formats.rules.replica.check import ReplicaSettings
    from ndb_formats.rules.replica.conversions import parse_type_conversions
    from ndb_formats.rules.row_image_rules import RowImageRule, parse_row_image
    from ndb_formats.rules.update_format import effective_format, parse_binlog_type

    logging = Logging(
        effective_format(parse_binlog_type(binlog_type)),
        RowImageRule.FULL if row_image is None else parse_row_image(row_image),
    )
    of_ndb = binlog_type is not None and row_image is None
    return ReplicaSettings(logging, parse_type_conversions(conversions), undeclared_is_ndb=of_ndb)


@typed(schema=_FILE)
def logging(
    source: Path | str,
    *,
    binlog_format: BinlogFormat | str | None = None,
    schema: Path | str | None = None,
    engine: str | None = None,
) -> LoggedStatements:
    """
    Return how statements are logged: as statements, as rows, both or not at all; as the command ``logging``.

    Args:
        source: Statements, or a file of them; they are one session.
        binlog_format: The binlog_format at the start; all three if left out.
        schema: CREATE statements of tables, triggers, routines and views.
        engine: The engine of tables that the schema does not have.

    Raises:
        ConfigurationError: There is no statement, or something is not known.
    """
    from conflict.checking.logged_statements import LoggedStatements
    from conflict.config.schema_file import as_statements
    from conflict.config.text_file import located, read_text
    from ndb_formats.statement_logging.session import LoggingSession
    from ndb_formats.statement_logging.settings import Settings
    from ndb_formats.statement_logging.sql_text import split_statements
    from ndb_formats.statement_logging.statement_log import catalog_of, log_statements

    file, definitions = statements_file(source), path_of(schema)
    statements = split_statements(str(source) if file is None else read_text(file))
    if not statements:
        message = f"{source}: there is no statement"
        raise ConfigurationError(message)
    created = "" if definitions is None else as_statements(read_text(definitions))
    with located(definitions):
        catalog = catalog_of(created)
    catalog.assumed_engine = None if engine is None else _known_engine(engine)
    formats = tuple(BinlogFormat) if binlog_format is None else (BinlogFormat(binlog_format),)
    return LoggedStatements(
        {each: log_statements(statements, LoggingSession(Settings(each), catalog.copy())) for each in formats}
    )


def statements_file(source: Path | str) -> Path | None:
    """
    Return the file that is meant; None for statements.

    Raises:
        ConfigurationError: It is an address.
    """
    from conflict.config.text_file import refuse_address

    if isinstance(source, Path):
        return source
    # One word that has a dot or a slash is no statement.
    named = not any(each.isspace() for each in source) and any(each in source for each in "./")
    if not named and not source.endswith(".sql"):
        return None
    refuse_address(source, "argument SQL|FILE.sql|-")
    return Path(source)


def _known_engine(name: str) -> str:
    from ndb_formats.statement_logging.catalog import engine_name
    from ndb_formats.statement_logging.settings import ENGINES

    found = engine_name(name)
    if found not in ENGINES:
        meant = did_you_mean(name, ENGINES)
        message = f"--engine {name} is no storage engine of MySQL{meant}; give one of {', '.join(sorted(ENGINES))}"
        raise ConfigurationError(message)
    return found


@typed(schema=_FILE)
def rewrite(
    files: Paths,
    *,
    out: Path | str,
    binlog_type: str | int | None = None,
    row_image: str | None = None,
    schema: Path | str | None = None,
    from_binlog_type: str | int | None = None,
    from_row_image: str | None = None,
    inexact_keys: bool = False,
    force: bool = False,
    progress: StageProgress = no_progress,
) -> Rewritten:
    """
    Write the changes of binlog files in another format, and return what became of each; as the command ``rewrite``.

    Args:
        files: Binlog files, in order.
        out: Folder for the new files, which keep their names.
        binlog_type: Format of NDB tables, by number or name.
        row_image: Format of other tables: full, minimal or noblob.
        schema: CREATE TABLE statements that are not in the log.
        from_binlog_type: Format of NDB tables in the log, if known.
        from_row_image: Format of other tables in the log, if known.
        inexact_keys: As for `resolve`.
        force: As for `resolve`.
        progress: As for `resolve`.

    Raises:
        ConfigurationError: No format is given, or a file cannot be read or written.
    """
    from conflict.config.schema_file import load_schema
    from conflict.decoding.rewritten import Rewritten
    from conflict.decoding.staging import check_output, refuse_same_output
    from ndb_formats.rules.relogging import LoggedAs
    from ndb_formats.schema.row_keys import with_inexact_keys
    from ndb_formats.writing.rewriting_plans import Plans, Target

    logs, folder = _log_files(files), Path(out)
    if binlog_type is None and row_image is None:
        message = "give the format to write: --binlog-type for NDB tables, --row-image for others, or both"
        raise ConfigurationError(message)
    targets, inputs = [folder / file.name for file in logs], [*logs, path_of(schema)]
    if len(set(targets)) < len(targets):
        message = "two of the binlog files have the same name; rewrite them into different folders"
        raise ConfigurationError(message)
    refuse_same_output(*targets)
    definitions = load_schema(path_of(schema), binlogs=logs)
    plans = Plans(
        Target(_update_format(binlog_type), _row_image(row_image)),
        with_inexact_keys(definitions) if inexact_keys else definitions,
        LoggedAs(_update_format(from_binlog_type), _row_image(from_row_image)),
    )
    with _folder(folder):
        for target in targets:
            check_output(target, inputs, force=force)
        cut = _rewrite_all(logs, targets, plans, progress)
    return Rewritten(tuple(targets), plans.counts, cut)


def _log_files(given: Paths) -> list[Path]:
    """Return binlog files; a folder, or what another command wrote, is refused by what it is."""
    from conflict.config.text_file import what_commands_wrote

    files = [Path(each) for each in ([given] if isinstance(given, Path | str) else given)]
    for file in files:
        if file.is_dir():
            written = what_commands_wrote(file, "a binlog file", "the files, in order")
            raise ConfigurationError(written or f"{file} is a folder, not a binlog file; give its files, in order")
        if not file.exists():
            message = f"{file}: there is no such file"
            raise ConfigurationError(message)
    return files


def _update_format(value: str | int | None) -> UpdateFormat | None:
    from ndb_formats.rules.update_format import effective_format, parse_binlog_type

    return None if value is None else effective_format(parse_binlog_type(value))


def _row_image(value: str | None) -> RowImageRule | None:
    from ndb_formats.rules.row_image_rules import parse_row_image

    return None if value is None else parse_row_image(value)


@contextmanager
def _folder(out: Path) -> Iterator[None]:
    """Make the folder for the new files; it goes again if it is new and the block fails before a file is in it."""
    new = not out.exists()
    out.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        if new:
            with suppress(OSError):  # it holds a file
                out.rmdir()
        raise


def _rewrite_all(
    files: Sequence[Path], targets: Sequence[Path], plans: Plans, progress: StageProgress
) -> CutFileError | None:
    """Rewrite each file; return the fault of the last one if it ends too early."""
    from conflict.decoding.staging import staged_file
    from ndb_formats.binlog_reader import read_events
    from ndb_formats.writing.rewriting import Rewriter

    for file, target in zip(files, targets, strict=True):
        with staged_file(target) as out:
            try:
                Rewriter(out, plans).rewrite(_counted(read_events(file), file, progress))
            except CutFileError as fault:
                if file != files[-1]:
                    raise
                return fault
    return None


def _counted(events: Iterator[Event], file: Path, progress: StageProgress) -> Iterator[Event]:
    """Yield events, and show how far they have come."""
    size = file.stat().st_size
    for number, event in enumerate(events):
        if number % _SHOWN_EVERY == 0:
            progress(file.name, event.position, size)
        yield event
