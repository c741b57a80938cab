"""Decisions as data and in words."""

import pytest

from conflict.rules.decision import Cause, Decision, Verdict, explain
from ndb_formats.events.rows_event import Operation

WRITE, UPDATE, DELETE = Operation.WRITE_ROW, Operation.UPDATE_ROW, Operation.DELETE_ROW


def test_causes_have_the_numbers_of_an_exceptions_table():
    """``NDB$CFT_CAUSE`` counts from 1."""
    assert {cause.name: int(cause) for cause in Cause} == {
        "NONE": 0,
        "ROW_DOES_NOT_EXIST": 1,
        "ROW_ALREADY_EXISTS": 2,
        "ROW_IN_CONFLICT": 3,
        "TRANS_IN_CONFLICT": 4,
    }


def test_operations_have_the_numbers_of_an_exceptions_table():
    """``NDB$OP_TYPE`` counts from 1."""
    assert {each.name: int(each) for each in Operation} == {"WRITE_ROW": 1, "UPDATE_ROW": 2, "DELETE_ROW": 3}


@pytest.mark.parametrize(
    ("decision", "operation", "sentence"),
    [
        (Decision(Verdict.APPLIED), WRITE, "the write was applied"),
        (Decision(Verdict.APPLIED), UPDATE, "the update was applied"),
        (Decision(Verdict.IGNORED), DELETE, "the delete found no row and was ignored"),
        (
            Decision(Verdict.REJECTED, Cause.ROW_DOES_NOT_EXIST),
            DELETE,
            "the delete was rejected: the row does not exist here",
        ),
        (
            Decision(Verdict.REJECTED, Cause.ROW_ALREADY_EXISTS),
            WRITE,
            "the write was rejected: the row already exists here",
        ),
        (
            Decision(Verdict.REJECTED, Cause.ROW_IN_CONFLICT, 4, 5),
            UPDATE,
            "the update was rejected: it brings 4, which does not win over the row's 5",
        ),
        (
            Decision(Verdict.REJECTED, Cause.TRANS_IN_CONFLICT),
            UPDATE,
            "the update was rejected: its transaction is in conflict",
        ),
    ],
)
def test_explain(decision: Decision, operation: Operation, sentence: str):
    """Every decision is one clause that names the operation and the reason."""
    assert explain(decision, operation) == sentence


def test_explain_by_epoch():
    """Where epochs were compared, they are named as such."""
    decision = Decision(Verdict.REJECTED, Cause.ROW_IN_CONFLICT, 4, 5)
    assert explain(decision, DELETE, by_epoch=True) == (
        "the delete was rejected: the row was changed here in epoch 5, and only epochs up to 4 had come back"
    )
