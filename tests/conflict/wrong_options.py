"""
Every wrong option of a run on a recording, and what the run then says first.

A cause is right if it names the option that is wrong. It is as honest to say that the binlogs do not tell which of
several causes it is, if the right one is among them. A wrong cause first is a fault.
"""

import contextlib
import re
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path

import attrs

from conflict.config.configuration import Configuration
from conflict.errors import ConfigurationError, ConflictError
from conflict.history.grid.folder import Folder
from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.preparing.log_files import check_log_files
from conflict.judge.case import ConflictCase
from conflict.results.cause_kinds import CauseKind, LikelyCause
from conflict.results.run_document import RunDocument
from conflict.rules.functions import FUNCTIONS, Argument, ConflictFunction, FunctionSpec, parse_conflict_function
from conflict.rules.replication_table import ReplicationRow, Role
from conflict.runs.pipeline import ENGINES
from ndb_formats.errors import FormatError
from tests.conflict import faults

Wrong = tuple[str, Configuration]  # what is wrong in detail, and the run with it
Makes = Callable[[Configuration, Path], Iterator[Wrong]]


class Said(StrEnum):
    """How good what a run says first is."""

    RIGHT = "right first"
    CANNOT_TELL = "cannot tell"
    WRONG = "wrong first"
    SAME = "silent, nothing changes"
    VERDICTS = "silent, verdicts alone change"
    SILENT = "silent, something changes"


@attrs.frozen
class WrongOption:
    """
    A kind of wrong option.

    Attributes:
        name: What is wrong.
        makes: Makes runs with it of a right one; files go to the folder.
        kinds: The causes that are right.
        refusal: What a refusal says that names it.
    """

    name: str
    makes: Makes
    kinds: frozenset[CauseKind]
    refusal: str


@attrs.frozen
class Answer:
    """What a run with a wrong option says."""

    option: str
    case: str
    detail: str
    said: Said
    first: str


def answers(
    cases: Iterable[Path], options: Sequence[WrongOption], engine: str = "reference", only: str | None = None
) -> Iterator[Answer]:
    """
    Yield what runs of recordings say with each wrong option; not of those that say something when all is right.

    Args:
        cases: Folders of recordings.
        options: What is made wrong.
        engine: The engine that resolves them.
        only: What is wrong in detail; None for all.
    """
    for path in cases:
        right = ConflictCase.load(path).configuration()
        usual = _run(right, engine)
        if not isinstance(usual, RunDocument) or usual.contradicted or usual.likely_causes:
            continue
        for option in options:
            with tempfile.TemporaryDirectory() as folder:
                for detail, wrong in option.makes(right, Path(folder)):
                    if only in (None, detail):
                        said, first = _judged(option, usual, _run(wrong, engine))
                        yield Answer(option.name, f"{path.parent.name}/{path.name}", detail, said, first)


def counts(found: Iterable[Answer]) -> dict[str, Counter[Said]]:
    """Return how often each is said, per wrong option."""
    table: dict[str, Counter[Said]] = {}
    for answer in found:
        table.setdefault(answer.option, Counter())[answer.said] += 1
    return table


def table_text(table: dict[str, Counter[Said]]) -> str:
    """Return counts as lines."""
    width = max(map(len, table), default=0)
    lines = [" " * width + "".join(f"  {said}" for said in Said)]
    for name, row in table.items():
        lines.append(f"{name:{width}}" + "".join(f"  {row[said]:{len(said)}}" for said in Said))
    return "\n".join(lines)


def _run(configuration: Configuration, engine: str) -> RunDocument | str:
    """Return a run, or the message with which it is refused."""
    with tempfile.TemporaryDirectory() as out, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            check_log_files(configuration)
            return ENGINES[engine](make_run(configuration), Folder(f"{out}/out"))
        except (ConflictError, FormatError) as error:
            return str(error)


def _judged(option: WrongOption, usual: RunDocument, run: RunDocument | str) -> tuple[Said, str]:
    if isinstance(run, str):
        return (Said.RIGHT if re.search(option.refusal, run) else Said.WRONG), f"refused: {run}"
    if run.errors:
        return Said.RIGHT if re.search(option.refusal, str(run.errors)) else Said.WRONG, str(run.errors)
    if run.unrelated:
        return (Said.RIGHT if CauseKind.FILES in option.kinds else Said.WRONG), "unrelated binlogs"
    if run.likely_causes:
        first = run.likely_causes[0]
        return _of_cause(option, first), f"{first.kind}: {first.sentence}"
    if run.contradicted:
        return Said.WRONG, "contradicted, and no cause is given"
    if any(run.epochs_left_out.values()):
        return (Said.RIGHT if CauseKind.FILES in option.kinds else Said.WRONG), "epochs left out at the end"
    if _rows(run) != _rows(usual):
        return Said.SILENT, ""
    return (Said.SAME if _verdicts(run) == _verdicts(usual) else Said.VERDICTS), ""


def _of_cause(option: WrongOption, cause: LikelyCause) -> Said:
    alternatives = getattr(cause, "cannot_tell", ())
    if alternatives:
        return Said.CANNOT_TELL if option.kinds.intersection(alternatives) else Said.WRONG
    return Said.RIGHT if cause.kind in option.kinds else Said.WRONG


def _rows(run: RunDocument) -> object:
    """Return what becomes of rows, and which appliers stop."""
    return run.summary.rows, run.summary.differing_rows, set(run.summary.stops)


def _verdicts(run: RunDocument) -> object:
    """Return how many operations have which verdict, apart from those that none has."""
    return {
        name: {table: {each: count for each, count in row.items() if count} for table, row in tables.items()}
        for name, tables in run.summary.tables.items()
    }


def _functions(configuration: Configuration) -> dict[tuple[str, str], ConflictFunction]:
    """Return the function of each row of ndb_replication that has a valid one, by database and table."""
    found = {}
    for row in configuration.replication:
        with contextlib.suppress(ConfigurationError):
            if row.conflict_fn:
                found[row.db, row.table_name] = parse_conflict_function(row.conflict_fn)
    return found


def _column(function: ConflictFunction) -> str:
    return function.column or "x"


def with_function(
    configuration: Configuration, spec: FunctionSpec | None, places: Iterable[tuple[str, str]]
) -> Configuration:
    """Return a run in which some tables have another function, or none, as --conflict-fn and --primary set it up."""
    wanted = dict.fromkeys(places)
    known, first = _functions(configuration), configuration.clusters[0].server_id
    rows: list[ReplicationRow] = []
    for row in configuration.replication:
        place = row.db, row.table_name
        if place not in wanted:
            rows.append(row)
            continue
        text = None
        if spec is not None:
            text = f"{spec.name}()" if spec.argument is Argument.GCI_BITS else f"{spec.name}({_column(known[place])})"
        if text is None or spec is None or spec.uses_role or not spec.refreshes:
            rows.append(attrs.evolve(row, conflict_fn=text))
        else:
            others = [each.server_id for each in configuration.replication if (each.db, each.table_name) == place]
            every = [each.server_id for each in configuration.clusters if each.server_id not in others]
            servers = every if row.server_id == 0 else [row.server_id]
            rows += [attrs.evolve(row, server_id=each, conflict_fn=text if each == first else None) for each in servers]
    changed = attrs.evolve(configuration, replication=tuple(rows))
    if spec is not None and spec.uses_role and all(cluster.role is Role.NONE for cluster in configuration.clusters):
        return faults.with_roles(changed, Role.PRIMARY, Role.SECONDARY)
    return changed


def _left_out(configuration: Configuration, _: Path) -> Iterator[Wrong]:
    places = list(_functions(configuration))
    if places:
        yield "all", with_function(configuration, None, places)


def _left_out_of_one(configuration: Configuration, _: Path) -> Iterator[Wrong]:
    places = list(_functions(configuration))
    if len(places) > 1:
        for place in places:
            yield place[1], with_function(configuration, None, [place])


def _other_function(configuration: Configuration, _: Path) -> Iterator[Wrong]:
    known = _functions(configuration)
    names = {function.spec.name for function in known.values()}
    for spec in FUNCTIONS:
        if names and spec.name not in names:
            yield spec.name, with_function(configuration, spec, known)


def _of_roles(configuration: Configuration, *roles: Role) -> Iterator[Wrong]:
    old = tuple(cluster.role for cluster in configuration.clusters)
    if any(function.spec.uses_role for function in _functions(configuration).values()) and old != roles:
        yield f"{old} {roles}", faults.with_roles(configuration, *roles)


def _other_primary(configuration: Configuration, _: Path) -> Iterator[Wrong]:
    known = _functions(configuration)
    roles = tuple(cluster.role for cluster in configuration.clusters)
    if any(function.spec.uses_role for function in known.values()):
        if roles in ((Role.PRIMARY, Role.SECONDARY), (Role.SECONDARY, Role.PRIMARY)):
            yield from _of_roles(configuration, *reversed(roles))
    elif any(function.spec.refreshes for function in known.values()):
        ids = [cluster.server_id for cluster in configuration.clusters]
        swap = dict(zip(ids, reversed(ids), strict=True))
        rows = tuple(
            attrs.evolve(row, server_id=swap.get(row.server_id, row.server_id)) for row in configuration.replication
        )
        if set(rows) != set(configuration.replication):
            yield "functions on the other cluster", attrs.evolve(configuration, replication=rows)


def _other_type(configuration: Configuration, _: Path) -> Iterator[Wrong]:
    for number in (2, 3, 6, 7, 8, 9):
        rows = tuple(attrs.evolve(row, binlog_type=number) for row in configuration.replication)
        if rows != configuration.replication:
            yield str(number), attrs.evolve(configuration, replication=rows)


def _short_key(configuration: Configuration, _: Path) -> Iterator[Wrong]:
    changed = faults.shorter_key(configuration)
    if changed.schema != configuration.schema:
        yield "", changed


def _transactions_removed(
    configuration: Configuration, folder: Path, name: str, span: tuple[float, float]
) -> Iterator[Wrong]:
    """Leave out a part of the transactions of one cluster, as if they stood in a file of their own."""
    for number, cluster in enumerate(configuration.clusters):
        log = faults.Log.read(cluster)
        found = log.transactions()
        if len(found) < 6:
            continue
        first, last = (int(len(found) * each) for each in span)
        for file, start, end in reversed(found[first:last]):
            del log.files[file][start:end]
        clusters = list(configuration.clusters)
        clusters[number] = log.written(folder)
        yield f"{name} of {cluster.name}", attrs.evolve(configuration, clusters=tuple(clusters))


def _clock(configuration: Configuration, folder: Path) -> Iterator[Wrong]:
    """Set the clock of the second cluster back by a day."""
    log = faults.Log.read(configuration.clusters[1])
    log.files = [
        [(attrs.evolve(header, timestamp=max(1, header.timestamp - 86_400)), body) for header, body in events]
        for events in log.files
    ]
    yield "a day back", attrs.evolve(configuration, clusters=(configuration.clusters[0], log.written(folder)))


def _swapped(configuration: Configuration, _: Path) -> Iterator[Wrong]:
    yield "", faults.sides_swapped(configuration)


def _roles_option(name: str, *roles: Role) -> WrongOption:
    return WrongOption(name, lambda run, _: _of_roles(run, *roles), frozenset({CauseKind.ROLE}), "primary|role")


def _files_option(name: str, part: str, span: tuple[float, float]) -> WrongOption:
    makes = partial(_transactions_removed, name=part, span=span)
    return WrongOption(name, makes, frozenset({CauseKind.FILES}), "missing|all binlog files|start in the middle")


_FUNCTION = frozenset({CauseKind.FUNCTION})
OPTIONS = (
    WrongOption("function left out", _left_out, _FUNCTION, "conflict_fn|NDB\\$"),
    WrongOption("function of one table left out", _left_out_of_one, _FUNCTION, "conflict_fn|NDB\\$"),
    WrongOption("other function", _other_function, _FUNCTION, "NDB\\$"),
    WrongOption("other primary", _other_primary, frozenset({CauseKind.ROLE, CauseKind.PRIMARY}), "primary|role"),
    _roles_option("both primaries", Role.PRIMARY, Role.PRIMARY),
    _roles_option("no primary", Role.NONE, Role.NONE),
    WrongOption("other type", _other_type, frozenset({CauseKind.BINLOG_TYPE}), "binlog.type"),
    WrongOption("key too short", _short_key, frozenset({CauseKind.DEFINITION}), "KEY"),
    _files_option("first file left out", "first third", (0, 1 / 3)),
    _files_option("middle file left out", "second third", (1 / 3, 2 / 3)),
    _files_option("last file left out", "last third", (2 / 3, 1)),
    WrongOption("folders swapped", _swapped, frozenset({CauseKind.FILES}), "written by the server of"),
    WrongOption("clock", _clock, frozenset(), "clock"),
)
