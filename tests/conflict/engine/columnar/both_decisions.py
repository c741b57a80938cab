"""
One decision in both spellings: as the reference engine's pass makes it, and as the kernels do.

The kernel is compiled here and not taken from a cache, so that it is the one that stands in the source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from conflict.engine.columnar.setups import ClusterSetup, rules_of
from conflict.engine.kernels.records import ROW_STATE, RULE
from conflict.engine.kernels.rules import decide_operation
from conflict.engine.reference.cluster import LoggedChange, ReplayedCluster
from conflict.engine.reference.epoch_pass import EpochPass
from conflict.engine.reference.row_store import Row
from conflict.history.model import Cluster
from conflict.history.timeline import NO_FLAGS, EpochApply, RowChange
from conflict.rules.decision import Cause, Decision
from conflict.rules.functions import FUNCTIONS, Cell, ConflictFunction, FunctionSpec, parse_conflict_function
from conflict.rules.replication_table import Role
from conflict.rules.stops import first_stop
from conflict.rules.table_setup import TableSetup
from ndb_formats.columnar.kernel_mode import Mode
from ndb_formats.constants import ColumnCode
from ndb_formats.events.row_image import RowImage, layout_of_types
from ndb_formats.events.rows_event import ConflictFlag, Operation
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.types.column_types import WireType
from ndb_formats.types.values import ABSENT, Absent

__all__ = [
    "ABSENT",
    "NO_FUNCTION",
    "OWN_FUNCTIONS",
    "TABLE",
    "Answer",
    "Case",
    "Met",
    "Value",
    "by_kernel",
    "by_reference",
    "refreshes",
]

# The resolve column of a row to which no operation wrote it has its default; a new row must be given v.
(TABLE,) = parse_schema(
    "CREATE TABLE t (k INT NOT NULL PRIMARY KEY, x BIGINT UNSIGNED DEFAULT 1, v INT NOT NULL)", database="d"
).tables
LAYOUT = layout_of_types(TABLE, tuple(map(WireType, (ColumnCode.LONG, ColumnCode.LONGLONG, ColumnCode.LONG))))
KEY = bytes(4)
NO_FUNCTION = "none"


def _alike(name: str, cell: Cell) -> FunctionSpec:
    """Return a function that has one cell for all operations."""
    return FunctionSpec(name, name.lower(), cell, cell, cell)


# Functions with the cells that no function of the server has.
OWN_FUNCTIONS = (
    FunctionSpec("APPLIES", "applies", Cell.APPLY, Cell.LESS, Cell.APPLY),
    _alike("AT_LEAST", Cell.AT_LEAST),
    _alike("LESS", Cell.LESS),
    _alike("ALL_BY_EPOCH", Cell.BY_EPOCH),
    _alike("UNSEEN", Cell.LESS_IF_UNSEEN),
)
INCOMING = np.dtype(
    [
        *[("operation", "i1"), ("reflected", "?"), ("before_given", "?"), ("before", "u8")],
        *[("after_given", "?"), ("after", "u8"), ("complete", "?")],
    ],
    align=True,
)
ANSWER = np.dtype([("verdict", "i1"), ("cause", "i1"), ("incoming", "u8"), ("stored", "u8")], align=True)

Value = int | Absent | None


class Met(NamedTuple):
    """The row that an operation meets; its resolve column is absent if no operation wrote it."""

    value: Value = 5
    local: bool = False
    epoch: int = 1


class Case(NamedTuple):
    """
    One operation that arrives.

    Attributes:
        function: As `conflict_fn` has it, or `NO_FUNCTION`.
        operation: Write, update or delete.
        met: The row that it meets; None if there is none.
        before: The resolve column in its before image.
        after: The same in its after image.
        known: Max replicated epoch.
        role: Of the applier's cluster.
        reflected: Whether it is reflected.
        complete: Whether a write has all columns that a new row must be given.
        skips: Whether an operation that lacks the value to compare is skipped; else it stops the applier.
    """

    function: str
    operation: Operation
    met: Met | None = None
    before: Value = ABSENT
    after: Value = ABSENT
    known: int = 0
    role: Role = Role.NONE
    reflected: bool = False
    complete: bool = True
    skips: bool = False


# Verdict, cause, and what was compared: incoming and stored, 0 if nothing was.
Answer = tuple[int, int, int, int]


def by_reference(cases: Sequence[Case]) -> Iterator[Answer | None]:
    """Yield what the reference engine decides on each case; None if the applier stops there."""
    for case in cases:
        judging, setup = _applier(case.role, case.skips), _setup(case.function)
        judging.cluster.max_replicated_epoch = case.known
        arrives = case.operation, case.before, case.after, case.reflected, case.complete
        if _stops(case.role, case.skips, case.function, arrives):
            yield None
            continue
        change = _change(*arrives)
        row = None if case.met is None else _row(case.met)
        found = judging.decide_on(row, LoggedChange(change, 0, 0, 0), setup)
        yield int(found.verdict), int(found.cause), found.incoming or 0, found.stored or 0


def by_kernel(cases: Sequence[Case], mode: Mode = Mode.COMPILED) -> list[Answer]:
    """Return what the kernel decides on each case, whether or not the applier stops there."""
    if mode is Mode.INTERPRETED:
        return _interpreted(cases)
    rules = [_rule(case.function, case.role, case.skips) for case in cases]
    cells = np.array([each[1][case.operation] for each, case in zip(rules, cases, strict=True)], np.int8)
    records = np.array([each[0].item() for each in rules], RULE)
    states = np.array([tuple(_state(case).values()) for case in cases], ROW_STATE)
    incoming = np.array([_incoming(case) for case in cases], INCOMING)
    known, found = np.array([case.known for case in cases], np.uint64), np.zeros(len(cases), ANSWER)
    _compiled()(cells, records, states, incoming, known, found)
    return [tuple(each) for each in found.tolist()]


def _interpreted(cases: Sequence[Case]) -> list[Answer]:
    """Decide as kernels do that Python runs, with the values that they are given there."""
    decide, found = decide_operation.form(Mode.INTERPRETED), []
    for case in cases:
        rule, cells = _rule(case.function, case.role, case.skips)
        fields = dict(zip(RULE.names or (), rule.item(), strict=True))
        answer = decide(int(cells[case.operation]), fields, _state(case), _incoming(case), case.known)
        verdict, cause, incoming, stored = map(int, answer)
        found.append((verdict, cause, incoming, stored))
    return found


@cache
def _compiled() -> Any:
    """Return the kernel over arrays, compiled anew."""
    decide = decide_operation.form(Mode.COMPILED)

    def decide_all(cells, rules, states, operations, known, found):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        for number in range(len(cells)):
            given, answer = operations[number], found[number]
            incoming = (
                given["operation"],
                given["reflected"],
                given["before_given"],
                given["before"],
                given["after_given"],
                given["after"],
                given["complete"],
            )
            answer["verdict"], answer["cause"], answer["incoming"], answer["stored"] = decide(
                cells[number], rules[number], states[number], incoming, known[number]
            )

    return njit(decide_all)


@cache
def _setup(function: str) -> TableSetup:
    """Return the setup of the table with a function."""
    known = (*FUNCTIONS, *OWN_FUNCTIONS)
    return TableSetup(TABLE, None if function == NO_FUNCTION else parse_conflict_function(function, known))


@cache
def _rule(function: str, role: Role, skips: bool) -> tuple[Any, tuple[int, ...]]:
    """Return the kernels' rule for a function in a role, and its cells by operation."""
    clusters = [ClusterSetup("A", 1, (_setup(function),), role, skips), ClusterSetup("B", 2, (_setup(function),))]
    rules = rules_of(clusters)
    return rules.tables[0, 0], tuple(rules.cells[0, 0].tolist())


@cache
def _applier(role: Role, skips: bool) -> EpochPass:
    """Return a pass of an applier, whose decisions depend on the row and the operation alone."""
    cluster = ReplayedCluster(Cluster("A", 1, (), role), {}, {}, skip_missing=skips)
    return EpochPass(cluster, Cluster("B", 2, ()), EpochApply(2, 0, "B", 1))


@cache
def _stops(role: Role, skips: bool, function: str, arrives: tuple[Operation, Value, Value, bool, bool]) -> bool:
    """Whether an operation stops the applier."""
    entry = LoggedChange(_change(*arrives), 0, 0, 2)
    return first_stop(_applier(role, skips)._facts(entry, _setup(function), None)) is not None


@cache
def _change(operation: Operation, before: Value, after: Value, reflected: bool, complete: bool) -> RowChange:
    """Return an operation of the other cluster."""
    return RowChange(
        TABLE.full_name,
        KEY,
        operation,
        None if operation is Operation.WRITE_ROW else _image(before, complete=False),
        None if operation is Operation.DELETE_ROW else _image(after, complete=complete),
        transaction_id=1,
        flags=ConflictFlag.REFLECTED if reflected else NO_FLAGS,
    )


def _image(value: Value, *, complete: bool) -> RowImage:
    """Return an image of the key, the resolve column unless it is absent, and v if it is complete."""
    held: dict[int, bytes | None] = {0: KEY, **({2: KEY} if complete else {})}
    if not isinstance(value, Absent):
        held[1] = None if value is None else value.to_bytes(8, "little")
    present = tuple(sorted(held))
    return RowImage(LAYOUT, present, tuple(held[place] for place in present))


@cache
def _row(met: Met) -> Row:
    """Return the row as the reference engine has it."""
    image = _image(met.value, complete=True)
    return Row(dict(zip(image.present, image.payloads, strict=True)), met.local, met.epoch)


def _state(case: Case) -> dict[str, Any]:
    """Return the row as the kernels have it."""
    if case.met is None:
        return dict.fromkeys(ROW_STATE.names or (), 0)
    unwritten = int(_rule(case.function, case.role, case.skips)[0]["unwritten"])
    value = unwritten if case.met.value is ABSENT else case.met.value or 0
    return {"epoch": case.met.epoch, "value": value, "exists": True, "local": case.met.local, "table": 0}


def _incoming(case: Case) -> tuple[int, bool, bool, int, bool, int, bool]:
    """Return the operation as the kernels have it: NULL is 0, and so is what is not given."""
    before, after = (None if each is ABSENT else each for each in (case.before, case.after))
    given = case.before is not ABSENT, case.after is not ABSENT
    return int(case.operation), case.reflected, given[0], before or 0, given[1], after or 0, case.complete


def refreshes(spec: FunctionSpec, operation: Operation, decision: Decision) -> bool:
    """Return whether the reference engine refreshes the row of a rejected operation."""
    judging = EpochPass(_applier(Role.PRIMARY, False).cluster, Cluster("B", 2, ()), EpochApply(2, 0, "B", 1))
    entry = LoggedChange(_change(operation, ABSENT, ABSENT, False, True), 0, 0, 2)
    if decision.cause is Cause.TRANS_IN_CONFLICT:
        judging._reject_with_transaction(entry, _setup(NO_FUNCTION))
    else:
        judging._note_conflict(entry, ConflictFunction(spec), decision)
    return entry.row in judging.refreshes
