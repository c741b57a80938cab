"""Decisions as data and in words."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conflict.rules.decision import (
    Cause,
    Compared,
    Decision,
    Verdict,
    explain,
    extreme_values,
    in_node_order,
    next_value,
    operation_word,
    stored_precision,
)
from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.create_table import parse_schema

ONES = 0xFFFFFFFF
HIGH = 7 << 32
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
            Decision(Verdict.REJECTED, Cause.ROW_IN_CONFLICT, 2**63, 1),
            UPDATE,
            (
                "the update was rejected: it brings 9223372036854775808 (-9223372036854775808 to data nodes, whose "
                "numbers are signed), which does not win over the row's 1"
            ),
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
    assert explain(decision, operation_word(operation)) == sentence


def test_explain_by_epoch():
    """Where epochs were compared, they are named as such."""
    decision = Decision(Verdict.REJECTED, Cause.ROW_IN_CONFLICT, 4, 5)
    assert explain(decision, operation_word(DELETE), Compared(by_epoch=True)) == (
        "the delete was rejected: the row was changed here in epoch 5, and only epochs up to 4 had come back"
    )


@pytest.mark.parametrize(
    ("heard", "words"),
    [
        (0, "no epoch had come back yet"),
        (None, "it is not known which epochs had come back: none in this part of the log"),
    ],
)
def test_explain_by_epoch_where_none_came_back(heard: int | None, words: str):
    """No number stands for what had not come back, or is not known."""
    decision = Decision(Verdict.REJECTED, Cause.ROW_IN_CONFLICT, heard, 5)
    sentence = explain(decision, operation_word(DELETE), Compared(by_epoch=True))
    assert sentence == f"the delete was rejected: the row was changed here in epoch 5, and {words}"


class TestPrecision:
    """How exactly a row knows the epoch of its last change."""

    @pytest.mark.parametrize(
        ("low", "bits", "expected"),
        [
            (0, 0, ONES),
            (1, 0, ONES),
            (ONES, 0, ONES),
            (0, 1, 0),
            (1, 1, ONES),
            (0, 3, 0),
            (6, 3, 6),
            (7, 3, ONES),
            (8, 3, ONES),
            (62, 6, 62),
            (63, 6, ONES),
            (64, 6, ONES),
            (2**31 - 2, 31, 2**31 - 2),
            (2**31 - 1, 31, ONES),
            (2**31, 31, ONES),
            (ONES, 31, ONES),
        ],
    )
    def test_low_word(self, low: int, bits: int, expected: int):
        """The low word is kept below 2^bits - 1, and reads as all ones from there on."""
        assert stored_precision(HIGH | low, bits) == HIGH | expected

    @pytest.mark.parametrize(
        ("epoch", "expected"),
        [
            (2**64 - 1, 2**64 - 1),
            (2**63, 2**63),
            (2**63 + 100, 2**63 + ONES),
        ],
    )
    def test_high_epochs(self, epoch: int, expected: int):
        """Epochs are unsigned 64-bit numbers."""
        assert stored_precision(epoch, 6) == expected

    @settings(deadline=None)
    @given(epoch=st.integers(0, 2**64 - 1), bits=st.integers(0, 31))
    def test_never_earlier(self, epoch: int, bits: int):
        """What is read is never before the true epoch, and always in the same global checkpoint."""
        stored = stored_precision(epoch, bits)
        assert stored >= epoch
        assert stored >> 32 == epoch >> 32

    @settings(deadline=None)
    @given(epoch=st.integers(0, 2**64 - 1), bits=st.integers(0, 30))
    def test_more_bits_are_no_less_exact(self, epoch: int, bits: int):
        """A further bit never makes the epoch that is read later."""
        assert stored_precision(epoch, bits + 1) <= stored_precision(epoch, bits)


def test_the_least_and_the_greatest_value_of_a_column():
    """In the order of data nodes, which extend an INT UNSIGNED with zeros and read a BIGINT UNSIGNED with a sign."""
    table = parse_schema("CREATE TABLE t (i INT UNSIGNED, b BIGINT UNSIGNED)", database="d").tables[0]
    assert [extreme_values(column) for column in table.columns] == [(0, 2**32 - 1), (2**63, 2**63 - 1)]
    number, large = table.columns
    assert [next_value(each, number) for each in (0, 2**32 - 2, 2**32 - 1)] == [1, 2**32 - 1, None]
    assert [next_value(each, large) for each in (2**63, 2**64 - 1, 0, 2**63 - 1)] == [2**63 + 1, 0, 1, None]
    assert sorted([0, 2**63, 1, 2**64 - 1, 2**63 - 1], key=in_node_order) == [2**63, 2**64 - 1, 0, 1, 2**63 - 1]
