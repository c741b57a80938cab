"""
The settings nearest to a pair that does not work, or not fully: the fewest changes, the smallest first.

Every suggestion is a changed pair that was judged by the same rules, so none is offered that would not work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product

import attrs

from conflict.compatibility.pairing import Pairing, Policy, TableLogging, type_name
from conflict.compatibility.reasons import Concern, reasons_of
from conflict.rules.functions import FUNCTIONS, ConflictFunction, FunctionSpec
from conflict.rules.roles import Role
from conflict.rules.table_setup import RefusalKind, refusal_of
from ndb_formats.rules.update_format import BINLOG_TYPES, ServerOptions, UpdateFormat
from ndb_formats.schema.tables import Column, Table

__all__ = ["NearestSetting", "nearest_settings"]

_MOST_CHANGES = 3
_MOST_SUGGESTIONS = 6


@attrs.frozen
class NearestSetting:
    """
    Settings that would work.

    Attributes:
        changes: What to set, as ``name = value``, one entry per setting.
        pairing: The pair as it then is.
    """

    changes: tuple[str, ...]
    pairing: Pairing = attrs.field(repr=False)

    def __str__(self) -> str:
        return " and ".join(self.changes)


@attrs.frozen
class _Step:
    """One setting that could be changed: how far the new value is from the old one, its words, and the change."""

    distance: int
    words: str
    apply: Callable[[Pairing], Pairing]


def nearest_settings(pairing: Pairing, policy: Policy) -> tuple[NearestSetting, ...]:
    """Return the nearest settings that work; none if there is nothing that a setting could mend, or none does."""
    concerns = {reason.concern for reason in reasons_of(pairing, policy)}
    # No setting makes a unique key compared; blobs in reach are worth a change of their own only where nothing else
    # is wrong. Nothing that is offered may bring in what was not wrong before.
    accepted = concerns & {Concern.UNIQUE_KEYS}
    if concerns - accepted - {Concern.BLOBS_IN_REACH}:
        accepted |= concerns & {Concern.BLOBS_IN_REACH}
    if not concerns - accepted or Concern.NO_KEY in concerns:
        return ()
    axes = [axis for axis in (_formats(pairing), *_options(pairing), _others(pairing), *_switches(pairing)) if axis]
    for count in range(1, _MOST_CHANGES + 1):
        found = sorted(_that_work(pairing, policy, axes, count, accepted), key=lambda each: each[0])
        if found:
            return tuple(setting for _, setting in found[:_MOST_SUGGESTIONS])
    return ()


def _that_work(
    pairing: Pairing, policy: Policy, axes: Sequence[Sequence[_Step]], count: int, accepted: set[Concern]
) -> Iterator[tuple[int, NearestSetting]]:
    for chosen in combinations(axes, count):
        for steps in product(*chosen):
            changed = pairing
            for step in steps:
                changed = step.apply(changed)
            if {reason.concern for reason in reasons_of(changed, policy)} <= accepted:
                words = tuple(step.words for step in steps)
                yield sum(step.distance for step in steps), NearestSetting(words, changed)


# -----------------------------------------------------------------------------------------------------------
# Logging
# -----------------------------------------------------------------------------------------------------------


def _flags_that_differ(one: attrs.AttrsInstance, other: attrs.AttrsInstance) -> int:
    """Return in how many attributes two values of one class differ."""
    return sum(getattr(one, field.name) != getattr(other, field.name) for field in attrs.fields(type(one)))


def _formats(pairing: Pairing) -> list[_Step]:
    """Every binlog type with a name and a meaning of its own; of two with the same the manual uses the later."""
    types: dict[UpdateFormat, int] = {row.format: row.number for row in BINLOG_TYPES if row.names and row.format}
    return [
        _Step(_format_distance(pairing, fixed), f"binlog_type = {type_name(number)}", _with_type(number))
        for fixed, number in types.items()
        if fixed.logged
    ]


def _format_distance(pairing: Pairing, wanted: UpdateFormat) -> int:
    return _flags_that_differ(pairing.source.format, wanted) + _flags_that_differ(pairing.own_logging.format, wanted)


def _with_type(number: int) -> Callable[[Pairing], Pairing]:
    return lambda pairing: _with_logging(pairing, lambda logging: attrs.evolve(logging, binlog_type=number))


def _with_logging(pairing: Pairing, change: Callable[[TableLogging], TableLogging]) -> Pairing:
    own = None if pairing.own is None else change(pairing.own)
    return attrs.evolve(pairing, source=change(pairing.source), own=own)


def _options(pairing: Pairing) -> Iterator[list[_Step]]:
    """Each server option the other way round; they count for type 0 alone."""
    if pairing.source.binlog_type == 0 and pairing.own_logging.binlog_type == 0:
        for field in attrs.fields(ServerOptions):
            value = not getattr(pairing.source.options, field.name)
            words = f"{field.name} = {'ON' if value else 'OFF'}"
            yield [_Step(2, words, _with_options({field.name: value}))]


def _with_options(values: dict[str, bool]) -> Callable[[Pairing], Pairing]:
    def change(logging: TableLogging) -> TableLogging:
        return attrs.evolve(logging, options=attrs.evolve(logging.options, **values))

    return lambda pairing: _with_logging(pairing, change)


# -----------------------------------------------------------------------------------------------------------
# Function, roles, table
# -----------------------------------------------------------------------------------------------------------


def _others(pairing: Pairing) -> list[_Step]:
    """Other functions of the same family, on the same column; or the same function on another column."""
    function = pairing.function
    steps = [
        _function_step(attrs.evolve(function, spec=spec), _spec_distance(spec, function.spec))
        for spec in FUNCTIONS
        if spec.argument is function.spec.argument and spec != function.spec
    ]
    refusal = refusal_of(pairing.table, function, pairing.own_logging.format)
    if function.column is not None and refusal is not None:
        key = pairing.table.primary_key
        names = [column.name for column in pairing.table.columns if column.name not in key]
        return [_function_step(attrs.evolve(function, column=name), 1) for name in names if name != function.column]
    return steps


def _function_step(function: ConflictFunction, distance: int) -> _Step:
    return _Step(distance, f"conflict_fn = {function}", lambda pairing: attrs.evolve(pairing, function=function))


def _spec_distance(one: FunctionSpec, other: FunctionSpec) -> int:
    """Return how differently two functions behave; what they are called does not count."""
    renamed = attrs.evolve(one, name=other.name, counter=other.counter)
    return 2 + _flags_that_differ(renamed, other)


def _switches(pairing: Pairing) -> Iterator[list[_Step]]:
    """Whatever else has one right value or two."""
    spec = pairing.function.spec
    if spec.uses_role and (pairing.role in (Role.NONE, Role.PASS) or pairing.role == pairing.peer_role):
        roles = [role for role in (Role.PRIMARY, Role.SECONDARY) if role is not pairing.peer_role]
        yield [_Step(1, f"ndb_applier_conflict_role = {role}", _with_role(role)) for role in roles]
    if pairing.source.transaction_ids is False:
        yield [
            _Step(
                1,
                "ndb_log_transaction_id = ON",
                lambda each: _with_logging(each, lambda logging: attrs.evolve(logging, transaction_ids=True)),
            )
        ]
    if pairing.on_both:
        words = "conflict_fn of one cluster only = NULL"
        yield [_Step(1, words, lambda each: attrs.evolve(each, on_both=False))]
    yield _table_steps(pairing)


def _with_role(role: Role) -> Callable[[Pairing], Pairing]:
    return lambda pairing: attrs.evolve(pairing, role=role)


def _table_steps(pairing: Pairing) -> list[_Step]:
    """What could be changed in the table itself, which is the greatest change."""
    refusal = refusal_of(pairing.table, pairing.function, pairing.own_logging.format)
    kind = None if refusal is None else refusal.kind
    column = pairing.function.column
    if kind in (RefusalKind.NO_COLUMN, RefusalKind.WRONG_TYPE) and column:
        declared = _resolve_column(pairing.table, column)
        table = _with_column(pairing.table, declared)
        words = f"column {column} = {declared.sql_type.upper()}"
        return [_Step(4, words, lambda each: attrs.evolve(each, table=table))]
    if kind is RefusalKind.BLOB:
        kept = tuple(each for each in pairing.table.columns if not each.is_blob)
        moved = ", ".join(each.name for each in pairing.table.columns if each.is_blob)
        table = attrs.evolve(pairing.table, columns=kept)
        words = f"{moved} = in a table of its own" if "," not in moved else f"{moved} = in a table of their own"
        return [_Step(4, words, lambda each: attrs.evolve(each, table=table))]
    return []


def _resolve_column(table: Table, name: str) -> Column:
    """Return a column as a function can compare it; an INT stays one."""
    column = table.find(name)
    kind = "int" if column is not None and column.type == "int" else "bigint"
    return Column(name, kind, unsigned=True, nullable=False)


def _with_column(table: Table, column: Column) -> Table:
    kept = [column if each.name == column.name else each for each in table.columns]
    return attrs.evolve(table, columns=tuple(kept if table.find(column.name) else [*kept, column]))
