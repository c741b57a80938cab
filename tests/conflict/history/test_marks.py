"""What an applier marks as reflected, and which role and function that shows."""

import pytest

from conflict.history.roles import FittingMarks, Mark, mark_of
from conflict.rules.replication_table import Role
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.rows_event import ConflictFlag
from tests.conflict.histories import TABLES, Setups, setups

ONLY_REFLECTED, ONLY_NONE, EITHER = frozenset({Mark.REFLECTED}), frozenset({Mark.NONE}), frozenset(Mark)


def over_time(known: Setups) -> list[dict[str, list[TableSetup]]]:
    """Return setups that never change."""
    return [{name: [each] for name, each in own.items()} for own in known.values()]


@pytest.mark.parametrize(
    ("flags", "mark"),
    [
        (ConflictFlag(0), Mark.NONE),
        (ConflictFlag.REFLECTED, Mark.REFLECTED),
        (ConflictFlag.REFRESH, None),
        (ConflictFlag.REFLECTED | ConflictFlag.REFRESH, None),
        (ConflictFlag.READ, None),
    ],
)
def test_marks(flags: ConflictFlag, mark: Mark | None) -> None:
    """Refreshes and reads show nothing."""
    assert mark_of(flags) is mark


@pytest.mark.parametrize("function", ["NDB$EPOCH2()", "NDB$EPOCH2_TRANS()"])
@pytest.mark.parametrize("role", Role)
def test_the_primary_marks_all_that_it_changes(role: Role, function: str) -> None:
    """Other roles mark nothing, nor does a table without a function show a mark."""
    known = setups(function, function)
    fitting = FittingMarks.of(over_time(known))
    assert fitting.marks(known["A"], "d.t", role) == (ONLY_REFLECTED if role is Role.PRIMARY else ONLY_NONE)
    assert fitting.marks(known["A"], "d.n", role) == ONLY_NONE
    assert fitting.marks(known["A"], "d.unknown", role) == ONLY_NONE


@pytest.mark.parametrize("function", [None, "NDB$EPOCH()", "NDB$EPOCH_TRANS()", "NDB$MAX(x)"])
def test_other_functions_mark_nothing(function: str | None) -> None:
    """Whatever the role is."""
    known = setups(function, function)
    assert FittingMarks.of(over_time(known)).marks(known["A"], "d.t", Role.PRIMARY) == ONLY_NONE


def test_tables_without_a_primary_key() -> None:
    """The primary reflects inserts alone, if nothing changed the row since."""
    known = setups("NDB$EPOCH2()", "NDB$EPOCH2()", tables="CREATE TABLE t (k INT, x BIGINT UNSIGNED);")
    fitting = FittingMarks.of(over_time(known))
    assert fitting.marks(known["A"], "d.t", Role.PRIMARY) == EITHER
    assert fitting.marks(known["A"], "d.t", Role.SECONDARY) == ONLY_NONE


@pytest.mark.parametrize(("action", "marks"), [("CASCADE", EITHER), ("RESTRICT", ONLY_REFLECTED)])
def test_foreign_keys_that_act(action: str, marks: frozenset[Mark]) -> None:
    """A row that a foreign key changed or deleted need not be marked."""
    child = f"CREATE TABLE m (k INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES t (k) ON DELETE {action});"
    known = setups("NDB$EPOCH2()", "NDB$EPOCH2()", tables=TABLES + child)
    fitting = FittingMarks.of(over_time(known))
    assert fitting.marks(known["A"], "d.m", Role.PRIMARY) == marks
    assert fitting.marks(known["A"], "d.t", Role.PRIMARY) == ONLY_REFLECTED


def test_refreshes_for_another_table_function() -> None:
    """A secondary may refresh rows then; what the primary makes of that shows nothing."""
    known = setups("NDB$EPOCH2_TRANS()", "NDB$EPOCH2_TRANS()")
    other = setups(None, "NDB$EPOCH_TRANS()")["B"]
    fitting = FittingMarks.of([*over_time(known), {f"other.{name}": [each] for name, each in other.items()}])
    assert fitting.marks(known["A"], "d.t", Role.PRIMARY) == EITHER
    assert fitting.marks(known["B"], "d.t", Role.SECONDARY) == ONLY_NONE
