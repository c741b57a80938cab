"""Stops: their order, as docs/functions.md has the steps of a pass, and what makes the facts."""

from itertools import combinations, product

import attrs
import pytest

from conflict.rules.functions import FUNCTIONS, ConflictFunction, FunctionSpec
from conflict.rules.replication_table import Role
from conflict.rules.stops import ServerStop, StopFacts, first_stop, stop_facts
from conflict.rules.table_setup import Refusal, RefusalKind, TableSetup
from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.create_table import parse_schema

# Each fact with what it comes to if no earlier test holds, in the order of the steps; blobs count in a rejected one.
STEPS = (
    ({"no_table"}, ServerStop.NO_SUCH_TABLE),
    ({"no_conversion"}, ServerStop.NO_CONVERSION),
    ({"empty"}, None),
    ({"scanned"}, None),
    ({"no_role"}, ServerStop.NO_ROLE),
    ({"rejected", "blobs"}, ServerStop.BLOB_REFRESH),
    ({"rejected"}, None),
    ({"no_transaction_id"}, ServerStop.NO_TRANSACTION_IDS),
    ({"no_value"}, ServerStop.MISSING_INFORMATION),
)
NAMES = [field.name for field in attrs.fields(StopFacts)]
FOUND = StopFacts(no_transaction_id=True, no_value=True)
TABLE, KEYLESS, BLOBS = parse_schema(
    "CREATE TABLE t (k INT PRIMARY KEY, x INT UNSIGNED); CREATE TABLE n (k INT, x INT UNSIGNED);"
    "CREATE TABLE b (k INT PRIMARY KEY, x INT UNSIGNED, y TEXT);",
    database="d",
).tables


def test_the_first_step_that_holds_decides() -> None:
    """For every set of facts."""
    for count in range(len(NAMES) + 1):
        for names in combinations(NAMES, count):
            expected = next((stop for needed, stop in STEPS if needed <= set(names)), None)
            assert first_stop(StopFacts(**dict.fromkeys(names, True))) is expected


def test_the_table_has_the_kinds_in_the_order_of_the_steps() -> None:
    """The kinds that are found before the commit."""
    found = [stop for _, stop in STEPS if stop is not None]
    assert found == [stop for stop in ServerStop if stop in found]


@pytest.mark.parametrize("spec", FUNCTIONS)
def test_what_a_function_needs(spec: FunctionSpec) -> None:
    """A role, transaction ids and a value: as the function and the role of the cluster have it."""
    setup = TableSetup(TABLE, ConflictFunction(spec, "x"))
    for role, operation in product(Role, Operation):
        facts = stop_facts(setup, role, operation, FOUND)
        assert facts.no_role is (spec.uses_role and role is Role.NONE)
        passed = spec.uses_role and role is Role.PASS
        assert facts.no_transaction_id is (spec.transactional and not passed)
        assert facts.no_value is not (spec.uses_role and role in (Role.PASS, Role.SECONDARY))


def test_tables() -> None:
    """A refused table, one without a primary key, one with blobs, and one without a function."""
    function = ConflictFunction(FUNCTIONS[0], "x")
    refused = TableSetup(TABLE, function, refusal=Refusal(RefusalKind.DROPPED, 0, None, ""))
    assert stop_facts(refused, Role.NONE, Operation.WRITE_ROW, FOUND).no_table
    keyless = TableSetup(KEYLESS, function)
    assert [stop_facts(keyless, Role.NONE, operation, FOUND) for operation in Operation] == [
        StopFacts(),
        StopFacts(scanned=True),
        StopFacts(scanned=True),
    ]
    blobs = TableSetup(BLOBS, function)
    assert not stop_facts(blobs, Role.NONE, Operation.WRITE_ROW, StopFacts()).blobs
    assert stop_facts(blobs, Role.NONE, Operation.WRITE_ROW, StopFacts(rejected=True)).blobs
    assert stop_facts(TableSetup(TABLE), Role.NONE, Operation.WRITE_ROW, FOUND) == StopFacts()
