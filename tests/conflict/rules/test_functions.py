"""What each function decides. The expected decisions are worked out by hand, from the manual and from recordings."""

import pytest

from conflict.rules.decision import Cause, Decision, IncomingOperation, RowState, Verdict
from conflict.rules.functions import FUNCTIONS, Argument, Cell, FunctionSpec, judge, parse_conflict_function
from conflict.rules.own_rule import Image
from ndb_formats.events.rows_event import Operation

WRITE, UPDATE, DELETE = Operation.WRITE_ROW, Operation.UPDATE_ROW, Operation.DELETE_ROW
ABSENT = RowState(False)
# The stored value is 5. The max replicated epoch is 7: a local row of epoch 8 is in conflict, one of epoch 7 is not.
STORED, KNOWN = 5, 7
LETTERS = {
    "A": (Verdict.APPLIED, Cause.NONE),
    "I": (Verdict.IGNORED, Cause.NONE),
    "M": (Verdict.REJECTED, Cause.ROW_DOES_NOT_EXIST),
    "E": (Verdict.REJECTED, Cause.ROW_ALREADY_EXISTS),
    "C": (Verdict.REJECTED, Cause.ROW_IN_CONFLICT),
}

# insert of 6, 5, 4 | update from 5 to 6, 5, 4 | update from 3 to 6, 5, 4 | delete of 5, 3
BY_VALUE = {
    "NDB$OLD": "EEE AAA CCC AC",
    "NDB$MAX": "EEE ACC ACC AC",
    "NDB$MAX_DELETE_WIN": "EEE ACC ACC AA",
    "NDB$MAX_INS": "ACC ACC ACC AC",
    "NDB$MAX_DEL_WIN_INS": "ACC ACC ACC AA",
}
# The same operations under the cells that no function of the server has, and under one that it has for all three.
BY_CELL = {
    Cell.APPLY: "AAA AAA AAA AA",
    Cell.AT_LEAST: "AAC AAC AAC AC",
    Cell.LESS: "CCA CCA CCA CA",
}
OPERATIONS = (
    [(WRITE, None, after) for after in (6, 5, 4)]
    + [(UPDATE, before, after) for before in (5, 3) for after in (6, 5, 4)]
    + [(DELETE, before, None) for before in (5, 3)]
)
BY_EPOCH = ["NDB$EPOCH", "NDB$EPOCH_TRANS", "NDB$EPOCH2", "NDB$EPOCH2_TRANS"]


def decide(name: str, row: RowState, operation: Operation, before: int | None, after: int | None) -> Decision:
    """Return the decision of a function."""
    spec = parse_conflict_function(f"{name}(x)").spec
    return spec.decide(row, IncomingOperation(operation, before, after, KNOWN))


def assert_decided(found: list[Decision], letters: str) -> None:
    """Check verdicts and causes."""
    expected = [LETTERS[letter] for letter in letters.replace(" ", "")]
    assert [(each.verdict, each.cause) for each in found] == expected


def test_the_tables_of_this_module_name_every_function():
    """A function without expected decisions is not tested."""
    assert sorted([*BY_VALUE, *BY_EPOCH]) == sorted(spec.name for spec in FUNCTIONS)


@pytest.mark.parametrize(
    ("name", "needs"),
    [
        ("NDB$OLD", {UPDATE: Image.BEFORE, DELETE: Image.BEFORE}),
        ("NDB$MAX", {UPDATE: Image.AFTER, DELETE: Image.BEFORE}),
        ("NDB$MAX_INS", {WRITE: Image.AFTER, UPDATE: Image.AFTER, DELETE: Image.BEFORE}),
        ("NDB$MAX_DELETE_WIN", {UPDATE: Image.AFTER}),
        ("NDB$MAX_DEL_WIN_INS", {WRITE: Image.AFTER, UPDATE: Image.AFTER}),
        *((name, {}) for name in BY_EPOCH),
    ],
)
def test_the_image_that_must_carry_the_resolve_column(name: str, needs: dict[Operation, Image]):
    """It is the image whose value the function compares."""
    (spec,) = (spec for spec in FUNCTIONS if spec.name == name)
    assert dict(spec.needs) == needs


@pytest.mark.parametrize("spec", FUNCTIONS, ids=lambda spec: spec.name)
def test_properties_follow_from_the_name(spec: FunctionSpec):
    """EPOCH*: extra GCI bits and refreshes; EPOCH2*: roles; *_TRANS: transactions; *_INS: conditional writes."""
    by_epoch, second = "EPOCH" in spec.name, "EPOCH2" in spec.name
    assert (spec.argument is Argument.GCI_BITS, spec.refreshes) == (by_epoch, by_epoch)
    assert spec.uses_role == second
    assert spec.transactional == spec.name.endswith("_TRANS")
    assert spec.delete_delete_conflicts == (spec.name == "NDB$EPOCH2_TRANS")
    assert spec.conditional_write == spec.name.endswith("_INS")


@pytest.mark.parametrize("name", [spec.name for spec in FUNCTIONS])
def test_on_a_missing_row_an_insert_is_applied_and_updates_and_deletes_are_rejected(name: str):
    """That holds for every function of the server."""
    assert_decided([decide(name, ABSENT, operation, 5, 6) for operation in (WRITE, UPDATE, DELETE)], "AMM")


@pytest.mark.parametrize("name", BY_VALUE)
def test_functions_that_compare_a_column(name: str):
    """Every operation on a row that exists, by hand."""
    assert_decided([decide(name, RowState(True, value=STORED), *operation) for operation in OPERATIONS], BY_VALUE[name])


@pytest.mark.parametrize("cell", BY_CELL)
def test_cells_that_only_policies_use(cell: Cell):
    """The same operations, with one cell for all three kinds."""
    incoming = [IncomingOperation(*operation) for operation in OPERATIONS]
    assert_decided([judge(cell, RowState(True, value=STORED), each) for each in incoming], BY_CELL[cell])
    missing = "AII" if cell is Cell.APPLY else "AMM"
    assert_decided([judge(cell, ABSENT, IncomingOperation(kind, 5, 6)) for kind in (WRITE, UPDATE, DELETE)], missing)


def test_the_first_of_two_changes_that_have_not_seen_each_other():
    """A lower value wins over a change of this cluster that had not come back; over any other row, every value does."""
    incoming = [IncomingOperation(*operation, max_replicated_epoch=KNOWN) for operation in OPERATIONS]
    for row, expected in (
        (RowState(True, local=True, epoch=KNOWN + 1, value=STORED), BY_CELL[Cell.LESS]),
        (RowState(True, local=True, epoch=KNOWN, value=STORED), BY_CELL[Cell.APPLY]),
        (RowState(True, value=STORED), BY_CELL[Cell.APPLY]),
    ):
        assert_decided([judge(Cell.LESS_IF_UNSEEN, row, each) for each in incoming], expected)


@pytest.mark.parametrize("name", BY_VALUE)
def test_author_and_epoch_do_not_matter_to_functions_that_compare_a_column(name: str):
    """A local row of a late epoch is judged like any other."""
    row, fresh = RowState(True, value=STORED), RowState(True, local=True, epoch=KNOWN + 9, value=STORED)
    for operation in OPERATIONS:
        assert decide(name, row, *operation) == decide(name, fresh, *operation)


@pytest.mark.parametrize("name", BY_VALUE)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_conflict_names_the_values_that_were_compared(name: str, operation: tuple[Operation, int | None, int | None]):
    """Incoming and stored; other decisions name none."""
    found = decide(name, RowState(True, value=STORED), *operation)
    if found.cause is Cause.ROW_IN_CONFLICT:
        by_before = name == "NDB$OLD" or operation[0] is DELETE
        assert (found.incoming, found.stored) == (operation[1] if by_before else operation[2], STORED)
    else:
        assert (found.incoming, found.stored) == (None, None)


@pytest.mark.parametrize("name", ["NDB$MAX", "NDB$MAX_DELETE_WIN", "NDB$MAX_INS", "NDB$MAX_DEL_WIN_INS"])
@pytest.mark.parametrize(
    ("stored", "after", "letter"),
    [
        (0, 0, "C"),
        (2**32 - 2, 2**32 - 1, "A"),
        (2**63, 2**64 - 1, "A"),
        (2**63, 2**63, "C"),
        (2**63, 1, "A"),
        (1, 2**63, "C"),
        (2**63 - 1, 2**63, "C"),
        (2**63, 2**63 - 1, "A"),
        (2**64 - 1, 2**64 - 1, "C"),
        (2**64 - 1, 0, "A"),
        (0, 2**64 - 1, "C"),
    ],
)
def test_values_compare_as_signed_64_bit_numbers(name: str, stored: int, after: int, letter: str):
    """As recorded: 2^63 loses against 1 and against 2^64 - 1."""
    assert_decided([decide(name, RowState(True, value=stored), UPDATE, None, after)], letter)


@pytest.mark.parametrize("name", BY_EPOCH)
@pytest.mark.parametrize(
    ("local", "epoch", "known", "letters"),
    [
        (True, 8, 7, "ECC"),  # changed here, and not known to have come back
        (True, 7, 7, "EAA"),  # known to have come back
        (True, 7, 8, "EAA"),
        (True, 1, 0, "ECC"),
        (False, 8, 7, "EAA"),  # written by the applier
        (False, 2**64 - 1, 0, "EAA"),
        (True, 2**63, 2**63 - 1, "ECC"),
        (True, 2**63 - 1, 2**63, "EAA"),
        (True, 2**64 - 1, 2**64 - 2, "ECC"),
        (True, 2**64 - 1, 2**64 - 1, "EAA"),
    ],
)
def test_functions_by_epoch(name: str, local: bool, epoch: int, known: int, letters: str):
    """A local row of an epoch after the max replicated one is in conflict; an insert of a present row always fails."""
    spec = parse_conflict_function(f"{name}()").spec
    row = RowState(True, local, epoch)
    found = [spec.decide(row, IncomingOperation(kind, max_replicated_epoch=known)) for kind in (WRITE, UPDATE, DELETE)]
    assert_decided(found, letters)
    for decision in found[1:]:
        compared = (known, epoch) if decision.verdict is Verdict.REJECTED else (None, None)
        assert (decision.incoming, decision.stored) == compared
