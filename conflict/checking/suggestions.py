"""
The nearest settings under which a conflict function works: as few changes as possible, the smallest first.

Every suggestion is a changed deployment that passed the same rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product
from typing import Any

import attrs

from conflict.checking.deployment import Deployment, TableLogging, type_name
from conflict.checking.findings import Code, ReplicaCode
from conflict.checking.reasons import CREATION, reasons_of
from conflict.config.arguments import DeploymentPolicy
from conflict.rules.functions import FUNCTIONS, ConflictFunction, FunctionSpec
from conflict.rules.replication_table import Role
from conflict.rules.table_setup import RefusalKind
from ndb_formats.rules.update_format import BINLOG_TYPES, ServerOptions, UpdateFormat
from ndb_formats.schema.tables import Column, Table

# The reasons that another binlog type can remove.
_OF_LOGGING = CREATION | {
    Code.POLICY,
    Code.NOT_LOGGED,
    Code.NO_UPDATE,
    Code.LACKING,
    Code.DELETES_LACKING,
    Code.AS_WRITES,
    Code.NO_REFRESH,
}
_MOST_CHANGES = 3
_MOST_SUGGESTIONS = 6


@attrs.frozen
class NearestSetting:
    """
    Settings that would work.

    Attributes:
        changes: The settings to change, as ``name = value``.
        deployment: The deployment with these settings.
    """

    changes: tuple[str, ...]
    deployment: Deployment = attrs.field(repr=False)

    def __str__(self) -> str:
        return " and ".join(self.changes)


@attrs.frozen
class _Step:
    """One changed setting: how far the new value is from the old one, its text, and the change itself."""

    distance: int
    text: str
    apply: Callable[[Deployment], Deployment]


def nearest_settings(deployment: Deployment, policy: DeploymentPolicy) -> tuple[NearestSetting, ...]:
    """Return the nearest settings that work; none where nothing needs to change, or no setting helps."""
    kinds = _kinds(deployment, policy)
    # No setting makes a unique or foreign key compared. Blobs within reach are worth a change only where nothing else
    # is wrong. No suggestion may bring a new reason with it.
    accepted = kinds & {Code.UNIQUE_KEYS, Code.FOREIGN_KEYS}
    if kinds - accepted - {Code.BLOBS_IN_REACH}:
        accepted |= kinds & {Code.BLOBS_IN_REACH}
    if not kinds - accepted or Code.NO_KEY in kinds:
        return ()
    settings = [
        steps
        for steps in (
            _binlog_types(deployment),
            *_server_options(deployment),
            _functions(deployment),
            _roles(deployment),
            _transaction_ids(deployment),
            _one_cluster_only(deployment),
            _table_definitions(deployment),
        )
        if steps
    ]
    for count in range(1, _MOST_CHANGES + 1):
        found = [
            (distance, setting)
            for distance, setting in _changed(deployment, settings, count)
            if _kinds(setting.deployment, policy) <= accepted
        ]
        if found:
            nearest = sorted(found, key=lambda each: each[0])[:_MOST_SUGGESTIONS]
            return tuple(setting for _, setting in nearest)
    return ()


def nearest_type(deployment: Deployment, policy: DeploymentPolicy) -> int | None:
    """Return the nearest binlog type under which every change can be judged; None if no type alone is enough."""
    for step in sorted(_binlog_types(deployment), key=lambda each: each.distance):
        changed = step.apply(deployment)
        if not _kinds(changed, policy) & _OF_LOGGING:
            return changed.source.binlog_type
    return None


def _kinds(deployment: Deployment, policy: DeploymentPolicy) -> set[Code | ReplicaCode]:
    return {reason.kind for reason in reasons_of(deployment, policy)}


def _changed(
    deployment: Deployment, settings: Sequence[Sequence[_Step]], count: int
) -> Iterator[tuple[int, NearestSetting]]:
    """Yield every way to change so many settings, and how far it is from the deployment."""
    for chosen in combinations(settings, count):
        for steps in product(*chosen):
            changed = deployment
            for step in steps:
                changed = step.apply(changed)
            yield sum(step.distance for step in steps), NearestSetting(tuple(step.text for step in steps), changed)


def _set(**values: Any) -> Callable[[Deployment], Deployment]:
    return lambda deployment: attrs.evolve(deployment, **values)


# -----------------------------------------------------------------------------------------------------------
# Logging
# -----------------------------------------------------------------------------------------------------------


def _set_logging(change: Callable[[TableLogging], TableLogging]) -> Callable[[Deployment], Deployment]:
    """Change how both clusters log the table."""

    def apply(deployment: Deployment) -> Deployment:
        own = None if deployment.own is None else change(deployment.own)
        return attrs.evolve(deployment, source=change(deployment.source), own=own)

    return apply


def _binlog_types(deployment: Deployment) -> list[_Step]:
    """Every binlog type with a name and a meaning of its own; of two equivalent types the manual uses the later."""
    types: dict[UpdateFormat, int] = {row.format: row.number for row in BINLOG_TYPES if row.names and row.format}

    def step(wanted: UpdateFormat, number: int) -> _Step:
        distance = sum(_differing(each.format, wanted) for each in (deployment.source, deployment.own_logging))
        change = _set_logging(lambda logging: attrs.evolve(logging, binlog_type=number))
        return _Step(distance, f"binlog_type = {type_name(number)}", change)

    return [step(wanted, number) for wanted, number in types.items() if wanted.logged]


def _differing(one: UpdateFormat, other: UpdateFormat) -> int:
    """Return how many flags of two formats differ."""
    return sum(mine != yours for mine, yours in zip(attrs.astuple(one), attrs.astuple(other), strict=True))


def _server_options(deployment: Deployment) -> Iterator[list[_Step]]:
    """Each server option the other way round; they count for type 0 alone."""

    def step(name: str, value: bool) -> _Step:
        change = _set_logging(
            lambda logging: attrs.evolve(logging, options=attrs.evolve(logging.options, **{name: value}))
        )
        return _Step(2, f"{name} = {'ON' if value else 'OFF'}", change)

    if deployment.source.binlog_type == 0 and deployment.own_logging.binlog_type == 0:
        for field in attrs.fields(ServerOptions):
            yield [step(field.name, not getattr(deployment.source.options, field.name))]


def _transaction_ids(deployment: Deployment) -> list[_Step]:
    if deployment.source.transaction_ids is not False:
        return []
    change = _set_logging(lambda logging: attrs.evolve(logging, transaction_ids=True))
    return [_Step(1, "ndb_log_transaction_id = ON", change)]


# -----------------------------------------------------------------------------------------------------------
# Function and roles
# -----------------------------------------------------------------------------------------------------------


def _functions(deployment: Deployment) -> list[_Step]:
    """The same function on another column if its column is refused, else the other functions of its family."""
    function, table = deployment.function, deployment.table
    if function.column is not None and deployment.refusal is not None:
        others = [column.name for column in table.columns if column.name not in (*table.primary_key, function.column)]
        return [_function_step(attrs.evolve(function, column=name), 1) for name in others]
    return [
        _function_step(attrs.evolve(function, spec=spec), 2 + _behaviour_distance(spec, function.spec))
        for spec in FUNCTIONS
        if spec.argument is function.spec.argument and spec != function.spec
    ]


def _function_step(function: ConflictFunction, distance: int) -> _Step:
    return _Step(distance, f"conflict_fn = {function}", _set(function=function))


def _behaviour_distance(one: FunctionSpec, other: FunctionSpec) -> int:
    return sum(mine != yours for mine, yours in zip(_behaviour(one), _behaviour(other), strict=True))


def _behaviour(spec: FunctionSpec) -> tuple[object, ...]:
    """Return the traits that distinguish a function from the others of its family."""
    flags = (spec.conditional_write, spec.refreshes, spec.transactional, spec.uses_role, spec.delete_delete_conflicts)
    return (dict(spec.needs), *flags)


def _roles(deployment: Deployment) -> list[_Step]:
    role, peer_role = deployment.role, deployment.peer_role
    if not deployment.function.spec.uses_role or (role not in (Role.NONE, Role.PASS) and role != peer_role):
        return []
    wanted = [each for each in (Role.PRIMARY, Role.SECONDARY) if each is not peer_role]
    return [_Step(1, f"ndb_applier_conflict_role = {each}", _set(role=each)) for each in wanted]


def _one_cluster_only(deployment: Deployment) -> list[_Step]:
    return [_Step(1, "conflict_fn of one cluster only = NULL", _set(on_both=False))] if deployment.on_both else []


# -----------------------------------------------------------------------------------------------------------
# Table
# -----------------------------------------------------------------------------------------------------------


def _table_definitions(deployment: Deployment) -> list[_Step]:
    """Another definition of the table, which is the greatest change."""
    table, name, refusal = deployment.table, deployment.function.column, deployment.refusal
    refused = None if refusal is None else refusal.kind
    if refused in (RefusalKind.NO_COLUMN, RefusalKind.WRONG_TYPE) and name:
        column = _resolve_column(table, name)
        return [_Step(4, f"column {name} = {column.sql_type.upper()}", _set(table=_with_column(table, column)))]
    if refused is RefusalKind.BLOB:
        blobs = [each.name for each in table.columns if each.is_blob]
        without = attrs.evolve(table, columns=tuple(each for each in table.columns if not each.is_blob))
        whose = "its" if len(blobs) == 1 else "their"
        return [_Step(4, f"{', '.join(blobs)} = in a table of {whose} own", _set(table=without))]
    return []


def _resolve_column(table: Table, name: str) -> Column:
    """Return a column as a function can compare it; an INT column stays INT."""
    column = table.find(name)
    kind = "int" if column is not None and column.type == "int" else "bigint"
    return Column(name, kind, unsigned=True, nullable=False)


def _with_column(table: Table, column: Column) -> Table:
    kept = [column if each.name == column.name else each for each in table.columns]
    return attrs.evolve(table, columns=tuple(kept if table.find(column.name) else [*kept, column]))
