"""What holds of every answer: usable means that every event carries what is needed, and what is offered works."""

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from conflict.checking.deployment import Deployment, Handling, TableLogging
from conflict.checking.findings import Code
from conflict.checking.reasons import CREATION, rules_out
from conflict.checking.requirements import Status, requirements
from conflict.config.arguments import DeploymentPolicy
from conflict.rules.functions import FUNCTIONS, Argument, ConflictFunction
from conflict.rules.replication_table import Role
from conflict.rules.stops import ServerStop
from ndb_formats.events.rows_event import Operation
from ndb_formats.rules.row_image_rules import EventColumns
from ndb_formats.rules.update_format import BINLOG_TYPES, ServerOptions, UpdateFormat, ndb_columns
from ndb_formats.schema.tables import Table
from tests.strategies import ndb_tables

ARRIVAL = {Code.NO_UPDATE, Code.LACKING, Code.DELETES_LACKING, Code.AS_WRITES, Code.NOT_LOGGED}
LOGGINGS = st.builds(
    TableLogging,
    st.sampled_from([row.number for row in BINLOG_TYPES]),
    st.builds(ServerOptions, st.booleans(), st.booleans(), st.booleans()),
    st.sampled_from([None, True, False]),
)
ROLES = st.none() | st.sampled_from(Role)


@st.composite
def functions(draw: st.DrawFn) -> ConflictFunction:
    """Return functions; those by column compare ``x``, or rarely a column that may not exist."""
    spec = draw(st.sampled_from(FUNCTIONS))
    if spec.argument is Argument.COLUMN:
        return ConflictFunction(spec, draw(st.sampled_from(["x", "x", "x", "c0", "nosuch"])))
    return ConflictFunction(spec, gci_bits=draw(st.integers(0, 31)))


DEPLOYMENTS = st.builds(
    Deployment,
    functions(),
    ndb_tables(),
    LOGGINGS,
    own=st.none() | LOGGINGS,
    role=ROLES,
    peer_role=ROLES,
    on_both=st.sampled_from([None, True, False]),
    others=st.lists(ndb_tables(), max_size=1).map(tuple),
)


@given(DEPLOYMENTS)
def test_stops_come_in_the_order_of_the_server(deployment: Deployment) -> None:
    """The first reason that stops the applier at its first change is the one that the server names."""
    stops = [
        reason.kind.stop for reason in requirements(deployment, DeploymentPolicy.NEEDS).reasons if rules_out(reason)
    ]
    found = [stop for stop in stops if stop is not None]
    assert found == sorted(found, key=list(ServerStop).index)
    if deployment.role is Role.PASS and deployment.function.spec.uses_role:
        # What is left stops an applier whatever the function: a row that is known by its values alone.
        assert found == ([] if deployment.table.primary_key else [ServerStop.ROW_NOT_FOUND])


def writable(table: Table) -> list[int]:
    """Return the columns that an update that keeps the key can set."""
    return [
        place
        for place, column in enumerate(table.columns)
        if column.name not in table.primary_key and not column.generated
    ]


def serves(function: ConflictFunction, table: Table, event: EventColumns | None, statement: Operation) -> bool:
    """Whether an event carries what the function compares, and is not an update that is taken for an insert."""
    if event is None:
        return False
    taken_for_insert = statement is Operation.UPDATE_ROW and event.operation is Operation.WRITE_ROW
    needed = function.spec.needs.get(event.operation)
    if needed is not None:
        image = event.before if needed.value == "before" else event.after
        return image is not None and table.ordinal(function.column or "") in image
    return function.spec.conditional_write or not taken_for_insert


def events(
    update_format: UpdateFormat, table: Table, written: list[int]
) -> Iterator[tuple[Operation, EventColumns | None]]:
    """Yield what is logged of an insert, of an update that sets these columns, and of a delete."""
    yield Operation.WRITE_ROW, ndb_columns(update_format, table, Operation.WRITE_ROW)
    if written:
        yield Operation.UPDATE_ROW, ndb_columns(update_format, table, Operation.UPDATE_ROW, written)
    yield Operation.DELETE_ROW, ndb_columns(update_format, table, Operation.DELETE_ROW)


@given(DEPLOYMENTS, st.data())
def test_usable_means_that_every_event_carries_what_is_needed(deployment: Deployment, data: st.DataObject) -> None:
    """Whatever an update sets: where no reason speaks of what arrives, no event lacks anything."""
    answer = requirements(deployment, DeploymentPolicy.NEEDS)
    if CREATION & {reason.kind for reason in answer.reasons}:
        return
    table = deployment.table
    settable = writable(table)
    written = data.draw(st.lists(st.sampled_from(settable), unique=True) if settable else st.just([]))
    found = list(events(deployment.source.format, table, written))
    all_serve = all(serves(deployment.function, table, event, statement) for statement, event in found)
    if not ARRIVAL & {reason.kind for reason in answer.reasons}:
        assert all_serve
        assert {change.handling for change in answer.changes} == {Handling.JUDGED}


@given(DEPLOYMENTS)
def test_what_is_said_to_lack_does_lack(deployment: Deployment) -> None:
    """Each change that an answer finds fault with has an event that shows it."""
    answer = requirements(deployment, DeploymentPolicy.NEEDS)
    if CREATION & {reason.kind for reason in answer.reasons}:
        return
    table = deployment.table
    singles: list[list[int]] = [[place] for place in writable(table)] or [[]]
    all_serve = all(
        serves(deployment.function, table, event, statement)
        for written in singles
        for statement, event in events(deployment.source.format, table, written)
    )
    assert all_serve == (not ARRIVAL & {reason.kind for reason in answer.reasons})


@given(DEPLOYMENTS, st.sampled_from(DeploymentPolicy))
def test_what_is_offered_works(deployment: Deployment, policy: DeploymentPolicy) -> None:
    """Nothing speaks against the nearest settings but what no setting mends; every one changes something."""
    answer = requirements(deployment, policy)
    for setting in answer.nearest:
        then = requirements(setting.deployment, policy)
        assert then.status is not Status.REFUSED
        assert {change.handling for change in then.changes} <= {Handling.JUDGED}
        left = {reason.kind for reason in then.reasons}
        assert left <= {Code.UNIQUE_KEYS, Code.BLOBS_IN_REACH} & {reason.kind for reason in answer.reasons}
        assert setting.deployment != deployment
        assert setting.changes
    if answer.status is Status.USABLE:
        assert answer.nearest == ()


@given(DEPLOYMENTS)
def test_the_manual_is_stricter_and_only_about_the_minimal_formats(deployment: Deployment) -> None:
    """It takes away nothing but pairs, and those only where a before image holds the key alone."""
    needs, manual = (requirements(deployment, policy) for policy in (DeploymentPolicy.NEEDS, DeploymentPolicy.MANUAL))
    more = set(manual.reasons) - set(needs.reasons)
    assert set(needs.reasons) <= set(manual.reasons)
    assert {reason.kind for reason in more} <= {Code.POLICY}
    if more:
        assert deployment.source.format.minimal
        assert manual.status is Status.REFUSED
    if not deployment.source.format.minimal or not deployment.function.spec.needs:
        assert not more
