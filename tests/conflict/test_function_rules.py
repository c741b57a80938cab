"""What each of the nine functions decides, in one table."""

import pytest

from conflict.rules.conflict_fn_text import parse_conflict_function
from conflict.rules.decision import Cause, Decision, IncomingOperation, RowState, Verdict
from conflict.rules.functions import FUNCTIONS
from ndb_formats.events.rows_event import Operation

WRITE, UPDATE, DELETE = Operation.WRITE_ROW, Operation.UPDATE_ROW, Operation.DELETE_ROW
ABSENT = RowState(False)
# The row that is there holds 5; M is 7, so a local row of epoch 8 is defended and one of epoch 7 is not.
STORED, KNOWN = 5, 7
LETTERS = {
    "A": (Verdict.APPLIED, Cause.NONE),
    "M": (Verdict.REJECTED, Cause.ROW_DOES_NOT_EXIST),
    "E": (Verdict.REJECTED, Cause.ROW_ALREADY_EXISTS),
    "C": (Verdict.REJECTED, Cause.ROW_IN_CONFLICT),
}

# insert of 6, 5, 4 on the row | update to 6, 5, 4 that saw 5 | update to 6, 5, 4 that saw 3 | delete that saw 5, 3
BY_VALUE = {
    "NDB$OLD": "EEE AAA CCC AC",
    "NDB$MAX": "EEE ACC ACC AC",
    "NDB$MAX_DELETE_WIN": "EEE ACC ACC AA",
    "NDB$MAX_INS": "ACC ACC ACC AC",
    "NDB$MAX_DEL_WIN_INS": "ACC ACC ACC AA",
}
OPERATIONS = (
    [(WRITE, None, after) for after in (6, 5, 4)]
    + [(UPDATE, before, after) for before in (5, 3) for after in (6, 5, 4)]
    + [(DELETE, before, None) for before in (5, 3)]
)
BY_EPOCH = ["NDB$EPOCH", "NDB$EPOCH_TRANS", "NDB$EPOCH2", "NDB$EPOCH2_TRANS"]


def decide(name: str, row: RowState, operation: Operation, before: int | None, after: int | None) -> Decision:
    """Ask a function."""
    spec = parse_conflict_function(f"{name}(x)").spec
    return spec.decide(row, IncomingOperation(operation, before, after, KNOWN))


def test_every_function_is_here():
    """The tables below name the nine functions."""
    assert sorted([*BY_VALUE, *BY_EPOCH]) == sorted(spec.name for spec in FUNCTIONS)


@pytest.mark.parametrize("name", [spec.name for spec in FUNCTIONS])
def test_a_row_that_is_not_there(name: str):
    """An insert is applied; an update and a delete find no row, for every function."""
    found = [decide(name, ABSENT, operation, 5, 6) for operation in (WRITE, UPDATE, DELETE)]
    assert [(each.verdict, each.cause) for each in found] == [LETTERS["A"], LETTERS["M"], LETTERS["M"]]


@pytest.mark.parametrize("name", BY_VALUE)
def test_functions_of_a_column(name: str):
    """OLD asks what the source saw, MAX whether the value is greater; DELETE_WIN and INS widen MAX."""
    found = [decide(name, RowState(True, value=STORED), *operation) for operation in OPERATIONS]
    assert [(each.verdict, each.cause) for each in found] == [
        LETTERS[letter] for letter in BY_VALUE[name].replace(" ", "")
    ]


@pytest.mark.parametrize("name", BY_VALUE)
def test_a_row_that_was_changed_here_just_now(name: str):
    """Author and epoch do not matter to a function of a column."""
    row, fresh = RowState(True, value=STORED), RowState(True, local=True, epoch=KNOWN + 9, value=STORED)
    for operation in OPERATIONS:
        assert decide(name, row, *operation) == decide(name, fresh, *operation)


@pytest.mark.parametrize("name", BY_VALUE)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_was_compared(name: str, operation: tuple[Operation, int | None, int | None]):
    """A conflict of values names the value that came and the one that is stored."""
    found = decide(name, RowState(True, value=STORED), *operation)
    if found.cause is Cause.ROW_IN_CONFLICT:
        by_before = name == "NDB$OLD" or operation[0] is DELETE
        assert (found.incoming, found.stored) == (operation[1] if by_before else operation[2], STORED)
    else:
        assert (found.incoming, found.stored) == (None, None)


@pytest.mark.parametrize("name", ["NDB$MAX", "NDB$MAX_DELETE_WIN", "NDB$MAX_INS", "NDB$MAX_DEL_WIN_INS"])
def test_values_are_unsigned(name: str):
    """2^63 is greater than 2^63 - 1."""
    row = RowState(True, value=2**63 - 1)
    assert decide(name, row, UPDATE, None, 2**63).verdict is Verdict.APPLIED
    assert decide(name, RowState(True, value=2**63), UPDATE, None, 2**63 - 1).verdict is Verdict.REJECTED


@pytest.mark.parametrize("name", BY_EPOCH)
@pytest.mark.parametrize(
    ("local", "epoch", "letters"),
    [
        (True, KNOWN + 1, "ECC"),  # changed here, and not known to have arrived
        (True, KNOWN, "EAA"),  # known to have arrived
        (False, KNOWN + 1, "EAA"),  # written by the applier
    ],
)
def test_functions_of_epochs(name: str, local: bool, epoch: int, letters: str):
    """A row is defended if it was changed here in an epoch later than M; an insert of a row that is there never is."""
    row = RowState(True, local, epoch)
    found = [decide(name, row, operation, None, None) for operation in (WRITE, UPDATE, DELETE)]
    assert [(each.verdict, each.cause) for each in found] == [LETTERS[letter] for letter in letters]
