"""An applier that sends operations one by one (`replica_allow_batching=OFF`): worked by hand."""

from __future__ import annotations

import attrs
import pytest

from conflict.engine.inference.hypotheses import TooManyWaysError, tried_in_turn
from conflict.engine.inference.replay import resolve
from conflict.engine.ledger.resolution import Resolution
from conflict.history.model import History
from conflict.history.shown_effects import Effect
from conflict.rules.decision import Cause
from conflict.runs.reference_run import resolve_settled
from tests.conflict.histories import MORE_TABLES, TABLES, counters, history, key, setups


def singly(text: str) -> History:
    """Return a History whose appliers send operations one by one."""
    made = history(text)
    return attrs.evolve(made, clusters=tuple(attrs.evolve(each, applies_singly=True) for each in made.clusters))


def causes(resolution: Resolution) -> list[Cause]:
    """Return the causes of what A rejected."""
    return [each.cause for each in resolution.outcomes if each.applier == "A"]


class TestAfterRefresh:
    """A row is refreshed at once, and nothing can follow that in the pass."""

    def test_operations_in_batches_meet_the_row(self):
        """A row that A deleted: B's update and delete find none; the delete is a delete-delete."""
        text = "A:i1=5@1 B:<1@11 A:d1@2 B:u1=6,d1@12 A:<12@3"
        made = setups("NDB$EPOCH()", None, tables=TABLES + MORE_TABLES)
        found = resolve(history(text), made)
        assert causes(found) == [Cause.ROW_DOES_NOT_EXIST, Cause.ROW_DOES_NOT_EXIST]
        assert counters(found, "A") == {"fn_epoch": 2, "epoch_delete_delete_count": 1}
        found = resolve(singly(text), made)
        assert causes(found) == [Cause.ROW_DOES_NOT_EXIST, Cause.ROW_IN_CONFLICT]
        assert counters(found, "A") == {"fn_epoch": 2}

    def test_a_delete_delete_makes_no_refresh(self):
        """So the insert after it is applied, whichever way."""
        text = "A:i1=5@1 B:<1@11 A:d1@2 B:d1,i1=7@12 A:<12@3"
        made = setups("NDB$EPOCH()", None, tables=TABLES + MORE_TABLES)
        for each in (history(text), singly(text)):
            found = resolve(each, made)
            assert counters(found, "A") == {"fn_epoch": 1, "epoch_delete_delete_count": 1}
            assert found.clusters["A"].rows["d.t"] == [(1, 7, None)]


def test_sequences_of_moments():
    """No operation was judged before the one before it; the first one can have been judged at moments 0 and 1."""
    trials = {(0, 0): "a", (0, 1): "b", (1, 0): "c", (1, 1): "d"}
    assert list(tried_in_turn(2, (0, 1), lambda number, moment: trials.get((number, moment)))) == [
        [()],
        [("a",), ("b",)],
        [("a", "c"), ("a", "d"), ("b", "d")],
    ]


def test_too_many_sequences():
    """Each of 14 operations can have been judged in two ways at any moment."""
    ways = tried_in_turn(14, range(14), lambda number, moment: moment % 2)
    with pytest.raises(TooManyWaysError):
        list(ways)


@pytest.mark.parametrize("one_by_one", [False, True])
def test_a_row_that_goes_between_two_operations(one_by_one: bool):
    """
    B's updates of row 1 are older than A's, which A deletes while its applier works on their epoch.

    In a batch, both updates meet the row, or both meet none. One by one, the first one can meet it and the second none.
    """
    text = "A:i1=90@1 B:<1@11 B:i9=1@12 A:<12@2 B:u1=90>6,u1=6>7@13 A:d1=90@3 A:<13@4"
    made = singly(text) if one_by_one else history(text)
    recorded = {"A": {(2, 0): {("d.t", key(9)): Effect.CHANGED}, (4, 0): {}}, "B": {}}
    tables = setups("NDB$MAX(x)", None, tables=TABLES + MORE_TABLES)
    _, _, moments = resolve_settled(made, tables, recorded)
    (epoch,) = moments.open_epochs
    (row,) = epoch.rows
    found = {tuple(each.decision.cause for each in answer.operations) for answer in row.answers}
    missing, older = Cause.ROW_DOES_NOT_EXIST, Cause.ROW_IN_CONFLICT
    assert found == {(missing, missing), (older, older)} | ({(older, missing)} if one_by_one else set())
