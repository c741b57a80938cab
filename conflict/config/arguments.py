"""
What the arguments of functions for users are made of: types, choices, and how each is typed on the command line.

A function that `conflict` exports is the only declaration of its command (see `conflict.cli.from_functions`). What the
name, the type and the docstring of an argument do not say of its option stands above the function, as
``@typed(argument=Typed(...))``: its signature is for those who write Python.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

import attrs

# Conflict functions as users give them: by table, or as texts such as `shop.*=NDB$MAX(version)`.
ConflictFns = Mapping[str, str] | str | Sequence[str]
# Rules of `repair` as users give them: by table or pattern; as texts such as `shop.*=newest`; or the name of a file.
RepairRules = Mapping[str, str] | str | Sequence[str]
# Files and folders as users give them: one, or several.
Paths = Path | str | Iterable[Path | str]


class ResolveEngine(StrEnum):
    """An engine, or the one that fits the run."""

    AUTO = "auto"
    REFERENCE = "reference"
    LOCAL = "local"
    SPARK = "spark"


class DeploymentPolicy(StrEnum):
    """
    Which functions are allowed with which binlog types.

    NEEDS decides as the server does, by the columns that each event carries.

    MANUAL adds one rule for the minimal formats, whose before image holds the key alone (types 8 and 9, and type 0
    with equivalent options). The manual says that `NDB$OLD` and `NDB$MAX` do not work correctly with them, so both
    are refused. Any other function must need key values only: the `NDB$EPOCH*` functions compare epochs and pass;
    `NDB$MAX_DELETE_WIN`, `NDB$MAX_INS` and `NDB$MAX_DEL_WIN_INS` compare a column, the manual does not name them
    with these types, and they are refused.
    """

    MANUAL = "manual"
    NEEDS = "needs"


class JudgedEngine(StrEnum):
    """An engine that recordings judge: change by change, or the columnar one in this process or on Spark."""

    REFERENCE = "reference"
    LOCAL = "local"
    SPARK = "spark"


class WhatIfEngine(StrEnum):
    """An engine that compares and simulates, or the one that fits the run."""

    AUTO = "auto"
    LOCAL = "local"
    SPARK = "spark"


class Temporals(StrEnum):
    """How dates and timestamps are written to Parquet and CSV."""

    TYPED = "typed"
    TEXT = "text"


class SchemaAt(StrEnum):
    """The moment of the log that a schema file describes."""

    START = "start"
    END = "end"


class OnMissing(StrEnum):
    """What the applier does with an operation that lacks the value that its function compares."""

    STOP = "stop"
    SKIP = "skip"


@attrs.frozen
class Typed:
    """
    How an argument is typed on the command line.

    Attributes:
        metavar: What its help shows in place of the value; by default the kind of value.
        help: What its help says, where that is not what Python users read in the docstring.
        at_least: Its least value.
        at_most: Its greatest value.
        is_file: Whether it is a file that must be there.
        in_one: Whether several values are typed with commas between, not each with the option again.
    """

    metavar: str | None = None
    help: str | None = None
    at_least: float | None = attrs.field(default=None, kw_only=True)
    at_most: float | None = attrs.field(default=None, kw_only=True)
    is_file: bool = attrs.field(default=False, kw_only=True)
    in_one: bool = attrs.field(default=False, kw_only=True)


@attrs.frozen
class AskedServers:
    """
    Running servers that are asked.

    Attributes:
        given: Their addresses; none if no server is asked.
        defaults_file: Option file of the client; None for its own ones.
    """

    given: Sequence[str] = ()
    defaults_file: Path | str | None = None


CLUSTER, DATETIME = Typed("CLUSTER"), Typed("DATETIME")
EPOCH, FILE = Typed("CLUSTER=EPOCH"), Typed("CLUSTER=FILE")
RULE = Typed("MODULE:NAME")
SERVER = Typed("CLUSTER=mysql://USER@HOST:PORT/")
SOURCES = Typed(
    "RUN_FILE | BINLOGS...",
    "A run file (.toml); or the binlogs of both clusters: folders, index files, patterns or files.",
)
CONFLICT_FN = Typed(
    "TABLE=FUNCTION",
    "For bare binlogs: 'shop.orders=NDB$MAX(version)', in single quotes; or 'shop.*=...'. Without it, functions are "
    "found by trial.",
)

CONFLICT_FN_OF_CHECK = attrs.evolve(CONFLICT_FN, help="In place of rows: shop.orders=NDB$MAX(version), or shop.*=...")

Given = ParamSpec("Given")
Found = TypeVar("Found")
Answer = TypeVar("Answer")
_TYPED = "_typed"

StageProgress = Callable[[str, int, int], None]


class _NoProgress:
    """A function whose name is all that a signature shows of it."""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Report nothing."""

    def __repr__(self) -> str:
        return "no_progress"


no_progress = _NoProgress()


def typed(**arguments: Typed) -> Callable[[Callable[Given, Found]], Callable[Given, Found]]:
    """Say how arguments of a function are typed on the command line, where name, type and docstring do not."""

    def decorate(function: Callable[Given, Found]) -> Callable[Given, Found]:
        assert arguments.keys() <= inspect.signature(function).parameters.keys()
        function.__dict__[_TYPED] = arguments
        return function

    return decorate


def typed_of(function: Callable[..., object]) -> Mapping[str, Typed]:
    """Return what `typed` says of the arguments of a function."""
    found: Mapping[str, Typed] = inspect.unwrap(function).__dict__.get(_TYPED, {})
    return found


def answering(answer: Callable[[Found], Answer]) -> Callable[[Callable[Given, Found]], Callable[Given, Answer]]:
    """Make a function return to its users what `answer` makes of what it found; its command prints what it found."""

    def decorate(function: Callable[Given, Found]) -> Callable[Given, Answer]:
        @wraps(function)
        def answered(*args: Given.args, **kwargs: Given.kwargs) -> Answer:
            return answer(function(*args, **kwargs))

        said = inspect.signature(answer).return_annotation
        answered.__signature__ = inspect.signature(function).replace(return_annotation=said)  # type: ignore[attr-defined]
        return answered

    return decorate
