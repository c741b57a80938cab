"""Decisions that binlogs leave open, and what they mean for the counters."""

import attrs
import pytest

from conflict.engine.inference.replay import resolve
from conflict.engine.ledger.resolution import ClusterResult
from conflict.engine.ledger.resolution_ledger import ReferenceLedger
from conflict.history.model import History
from conflict.history.timeline import EpochApply
from conflict.rules.counters import moved_counters
from conflict.rules.decision import Cause, Decision, Verdict
from conflict.rules.functions import parse_conflict_function
from ndb_formats.events.rows_event import Operation
from tests.conflict.figures import figures
from tests.conflict.histories import history, key, setups

TRANS = "NDB$EPOCH_TRANS()"
FUNCTION, ROW_CONFLICTS = "Ndb_conflict_fn_epoch_trans", "Ndb_conflict_trans_row_conflict_count"
DELETE_DELETE = "Ndb_conflict_epoch_delete_delete_count"
# After its last applied epoch A changed rows 1 and 2, one by one; one transaction of B changes both.
TEXT = "A:i1=1,i2=1,i3=1@1 B:<1@11 A:<11@2 A:u1=1>5@3 A:u2=1>5@4 B:u1=1>9,u2=1>9,u3=1>9@12 A:<12@5"
SETUPS = setups(TRANS)


def primary(made: History) -> ClusterResult:
    """Resolve, and return what A ends with."""
    return resolve(made, SETUPS).clusters["A"]


def ranges(made: History) -> dict[str, tuple[int, int]]:
    """Return the counters of A that depend on open decisions."""
    return figures(ReferenceLedger(made, SETUPS, resolve(made, SETUPS))).counter_ranges["A"]


def arrived(made: History, place: tuple[int, int]) -> History:
    """Return the History, in which A's applier cannot have begun with epoch 12 before (epoch, group)."""
    first, second = made.clusters
    timeline = tuple(
        attrs.evolve(item, arrived=place) if isinstance(item, EpochApply) and item.foreign_epoch == 12 else item
        for item in first.timeline
    )
    return attrs.evolve(made, clusters=(attrs.evolve(first, timeline=timeline), second))


def test_rows_that_changed_meanwhile():
    """The pass that found the conflict can have seen rows 1 and 2 before or after A changed them; row 3 it cannot."""
    found = primary(history(TEXT))
    assert [(each.key, each.source_epoch, each.operation) for each in found.undecided] == [
        (key(1), 12, Operation.UPDATE_ROW),
        (key(2), 12, Operation.UPDATE_ROW),
    ]
    for each in found.undecided:
        assert each.decided is not None
        assert each.decided.cause is Cause.ROW_IN_CONFLICT
        assert {candidate.verdict for candidate in each.candidates} == {Verdict.APPLIED, Verdict.REJECTED}


def test_ranges():
    """Either operation may have been in conflict or not; nothing else is open."""
    assert primary(history(TEXT)).counters[FUNCTION] == 2
    assert ranges(history(TEXT)) == {FUNCTION: (0, 2), ROW_CONFLICTS: (0, 2)}


def test_what_is_known_of_the_arrival():
    """An epoch that arrived after the change of row 1 leaves only row 2 open."""
    made = arrived(history(TEXT), (3, 0))
    assert [each.key for each in primary(made).undecided] == [key(2)]
    assert ranges(made) == {FUNCTION: (1, 2), ROW_CONFLICTS: (1, 2)}


def test_an_epoch_that_arrived_after_all_changes():
    """Nothing is open."""
    made = arrived(history(TEXT), (4, 0))
    assert (primary(made).undecided, ranges(made)) == ([], {})


def test_an_epoch_that_was_not_rejected():
    """Where no transaction was in conflict, one pass did it all: nothing is open."""
    found = primary(history("A:i1=1@1 B:<1@11 A:<11@2 A:i2=1@3 B:u1=1>9@12 A:<12@4"))
    assert found.undecided == []


def test_a_transaction_that_was_not_rejected():
    """It was applied in the pass that committed, after all own changes."""
    found = primary(history("A:i1=1,i2=1@1 B:<1@11 A:<11@2 A:u1=1>5@3 A:d2=1@4 B:u1=1>9@12 B:d2=1@12 A:<12@5"))
    assert [each.key for each in found.undecided] == [key(1)]


def test_a_change_before_the_last_applied_epoch():
    """The applier had not begun with the epoch then."""
    found = primary(history("A:i1=1@1 B:<1@11 A:<11@2 A:u1=1>5@3 B:i2=1@12 A:<12@4 B:u1=1>9@13 A:<13@5"))
    assert (found.counters[FUNCTION], found.undecided) == (1, [])


def test_delete_delete_or_not():
    """A deleted the row at the end: the delete that came may have met the changed row, or none."""
    text = "A:i1=1,i2=1@1 B:<1@11 A:<11@2 A:u1=1>5,u2=1>5@3 B:u2=1>9,d1=1@12 A:d1=5@4 A:<12@5"
    found = primary(history(text))
    (each,) = (each for each in found.undecided if each.key == key(1))
    assert {(candidate.verdict, candidate.cause) for candidate in each.candidates} == {
        (Verdict.APPLIED, Cause.NONE),
        (Verdict.REJECTED, Cause.ROW_IN_CONFLICT),
        (Verdict.REJECTED, Cause.ROW_DOES_NOT_EXIST),
    }
    found_ranges = ranges(history(text))
    assert found_ranges[DELETE_DELETE] == (0, 1)
    assert found_ranges[FUNCTION] == (0, 2)


@pytest.mark.parametrize(
    ("function", "names"),
    [
        ("NDB$EPOCH()", [DELETE_DELETE, "Ndb_conflict_fn_epoch"]),
        (TRANS, [DELETE_DELETE, FUNCTION]),
        ("NDB$EPOCH2_TRANS()", [DELETE_DELETE, "Ndb_conflict_fn_epoch2_trans", ROW_CONFLICTS]),
        ("NDB$MAX(x)", ["Ndb_conflict_fn_max"]),
    ],
)
def test_what_a_delete_of_a_missing_row_counts(function: str, names: list[str]):
    """It counts for its function; by epoch as delete-delete too; as a conflict of its transaction in EPOCH2_TRANS."""
    spec = parse_conflict_function(function).spec
    missing = Decision(Verdict.REJECTED, Cause.ROW_DOES_NOT_EXIST)
    assert sorted(moved_counters(spec, Operation.DELETE_ROW, missing)) == names


def test_what_is_not_rejected_counts_nothing():
    """Nor does what was not decided."""
    spec = parse_conflict_function(TRANS).spec
    assert moved_counters(spec, Operation.DELETE_ROW, None) == {}
    assert moved_counters(spec, Operation.DELETE_ROW, Decision(Verdict.APPLIED)) == {}
