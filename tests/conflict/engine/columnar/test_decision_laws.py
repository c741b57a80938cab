"""The decision on one operation: in both engines the same, in every case; and what it is, by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import attrs
import numpy as np
import pytest

from conflict.config.configuration import ClusterConfiguration, Configuration, LoggingServer
from conflict.engine.columnar.setups import ClusterSetup, masks_of, rules_of
from conflict.engine.kernels.rules import marks_transaction as compiled_marks
from conflict.engine.kernels.rules import needs_refresh
from conflict.history.model import Start
from conflict.history.run import Run
from conflict.history.tasks import in_process
from conflict.rules.decision import Cause, Decision, Verdict, marks_transaction
from conflict.rules.functions import FUNCTIONS, Argument, FunctionSpec, parse_conflict_function
from conflict.rules.replication_table import ReplicationRow, Role
from conflict.rules.table_setup import TableSetup
from ndb_formats.columnar.kernel_mode import Mode
from ndb_formats.events.rows_event import Operation
from ndb_formats.rules.update_format import effective_format
from ndb_formats.schema.create_table import parse_schema
from tests.conflict.engine.columnar.both_decisions import (
    ABSENT,
    NO_FUNCTION,
    OWN_FUNCTIONS,
    TABLE,
    Case,
    Met,
    Value,
    by_kernel,
    by_reference,
    refreshes,
)
from tests.conflict.engine.columnar.both_engines import by_kernels
from tests.conflict.engine.columnar.both_engines import by_reference as by_reference_engine
from tests.conflict.histories import NO_ROLES, TABLES, history
from tests.conflict.rules.test_deployed import IN_ROLES

WRITE, UPDATE, DELETE = Operation.WRITE_ROW, Operation.UPDATE_ROW, Operation.DELETE_ROW
# 1 is the default of the column, which a row has to which no operation wrote it.
VALUES: list[Value] = [ABSENT, None, 0, 1, 2, 2**63 - 1, 2**63, 2**64 - 1]
FEW_VALUES: list[Value] = [ABSENT, 1, 2]
BITS = (0, 1, 6, 31)
EVERY = [None, *FUNCTIONS, *OWN_FUNCTIONS]


def arrivals(values: list[Value]) -> list[tuple[Operation, Value, Value, bool]]:
    """Return every operation: its kind, the values in its images, whether a new row could be made of it."""
    return [
        *((WRITE, ABSENT, after, complete) for after, complete in product(values, (True, False))),
        *((UPDATE, before, after, True) for before, after in product(values, repeat=2)),
        *((DELETE, before, ABSENT, True) for before in values),
    ]


def lows(bits: int) -> list[int]:
    """Return low words of epochs on both sides of where a row that stores so many extra bits loses precision."""
    found = {0, 1, 2**bits - 2, 2**bits - 1, 2**bits, 2**32 - 2, 2**32 - 1}
    return [low for low in sorted(found) if low >= 0]


def every_case(spec: FunctionSpec | None) -> Iterator[Case]:
    """Yield every case of a function, of none if it is None."""
    by_bits = spec is not None and spec.argument is Argument.GCI_BITS
    dated = spec is not None and not spec.compares_alone
    values: list[Value] = [ABSENT] if spec is None or by_bits else FEW_VALUES if dated else VALUES
    arguments: Sequence[int | str] = BITS if by_bits else ["x"]
    for argument in arguments:
        name = NO_FUNCTION if spec is None else f"{spec.name}({argument})"
        epochs, known = [7 << 32], [7 << 32]
        if dated:
            epochs = [7 << 32 | low for low in (lows(argument) if isinstance(argument, int) else (61, 62, 63))]
            known = [*epochs, 6 << 32 | 2**32 - 1, 8 << 32] if by_bits else epochs
        rows = [None, *(Met(*each) for each in product(values, (False, True), epochs))]
        for (operation, before, after, complete), met in product(arrivals(values), rows):
            for known_epoch, role, reflected, skips in product(known, Role, (False, True), (False, True)):
                yield Case(name, operation, met, before, after, known_epoch, role, reflected, complete, skips)


@pytest.mark.parametrize("spec", EVERY, ids=lambda spec: spec.name if spec else NO_FUNCTION)
def test_both_engines_decide_alike(spec: FunctionSpec | None) -> None:
    """In every role, on every operation, whatever its images carry, on every row, in every order of the values."""
    cases = list(every_case(spec))
    expected, found = list(by_reference(cases)), by_kernel(cases)
    stopped = sum(each is None for each in expected)
    assert stopped < len(cases) / 2
    pairs = zip(cases, expected, found, strict=True)
    assert [each for each in pairs if each[1] is not None and each[1] != each[2]] == []
    some = slice(None, None, 11)  # which divides the number of no kind of choice above
    assert by_kernel(cases[some], Mode.INTERPRETED) == found[some]


@pytest.mark.parametrize("spec", FUNCTIONS, ids=lambda spec: spec.name)
def test_both_engines_refresh_alike(spec: FunctionSpec) -> None:
    """After a rejection, for any cause; TRANS_IN_CONFLICT refreshes whatever the function of the table is."""
    for operation, cause in product(Operation, Cause):
        if cause is Cause.NONE:
            continue
        by_kernels = needs_refresh.form(Mode.INTERPRETED)(spec.refreshes, operation, cause)
        assert by_kernels == refreshes(spec, operation, Decision(Verdict.REJECTED, cause))


@pytest.mark.parametrize("text", IN_ROLES)
def test_kernels_read_what_a_role_makes_of_a_function(text: str) -> None:
    """Their rules say what the table says that was written by hand; of a function that does not judge, no cell is."""
    for role, letters in zip(Role, IN_ROLES[text].split(), strict=True):
        for number in (7, 1):  # 1 logs nothing
            setup = TableSetup(TABLE, parse_conflict_function(text), format=effective_format(number))
            clusters = [ClusterSetup("A", 1, (setup,), role), ClusterSetup("B", 2, (setup,))]
            rules, masks = rules_of(clusters), masks_of(clusters)
            rule = rules.tables[0, 0]
            assert (rule["refreshes"], rule["secondary"]) == ("R" in letters, "S" in letters)
            reflects = "M" in letters and number == 7
            assert (rule["reflects"], masks.reflects[0, 0]) == (reflects, reflects)
            assert rules.cells[0, 0].any() == ("J" in letters)


# Whether a function rejects transactions, whether the operation is a delete of no row, whether that counts.
MARKS = {
    (False, False, False): False,
    (False, True, True): False,
    (True, False, False): True,
    (True, False, True): True,
    (True, True, False): False,  # NDB$EPOCH_TRANS
    (True, True, True): True,  # NDB$EPOCH2_TRANS
}


def test_what_puts_a_transaction_in_conflict() -> None:
    """Alike for one operation, for arrays of them, and in compiled kernels."""
    assert {case: marks_transaction(*case) for case in MARKS} == MARKS
    columns = [np.array(column) for column in zip(*MARKS, strict=True)]
    assert marks_transaction(*columns).tolist() == [*MARKS.values()]
    compiled = compiled_marks.form(Mode.COMPILED)
    assert {case: compiled(*case) for case in MARKS} == MARKS


# What follows is worked out by hand: from the manual, "Conflict Detection Functions" and "NDB$EPOCH()"; and from
# recordings, where they say more.
LETTERS = {
    "A": (Verdict.APPLIED, Cause.NONE),
    "I": (Verdict.IGNORED, Cause.NONE),
    "D": (Verdict.DISCARDED, Cause.NONE),
    "S": (Verdict.SKIPPED, Cause.NONE),
    "M": (Verdict.REJECTED, Cause.ROW_DOES_NOT_EXIST),
    "E": (Verdict.REJECTED, Cause.ROW_ALREADY_EXISTS),
    "C": (Verdict.REJECTED, Cause.ROW_IN_CONFLICT),
    "!": None,  # the applier stops
}


def assert_decided(cases: Sequence[Case], letters: str) -> None:
    """Check verdict and cause of each case in both engines; where the applier stops, the kernel is not asked."""
    expected = [LETTERS[letter] for letter in letters.replace(" ", "")]
    answers = list(by_reference(cases))
    assert [None if each is None else (each[0], each[1]) for each in answers] == expected
    going = [case for case, each in zip(cases, expected, strict=True) if each is not None]
    for mode in Mode:
        assert [each[:2] for each in by_kernel(going, mode)] == [each for each in expected if each is not None]


STORED = Met(5)
# No row: a write, one that lacks a column which must be given, an update, a delete. A row with 5: a write of 4, 5, 6;
# an update that was made on 5, to 4, 5, 6; one that was made on 3; a delete of 5, of 3.
BY_COLUMN = {
    "NDB$OLD": "AAMM EEE AAA CCC AC",
    "NDB$MAX": "AAMM EEE CCA CCA AC",
    "NDB$MAX_DELETE_WIN": "AAMM EEE CCA CCA AA",
    # Their write is conditional. The data node refuses one that lacks a column, as if the row were there (recorded).
    "NDB$MAX_INS": "AEMM CCA CCA CCA AC",
    "NDB$MAX_DEL_WIN_INS": "AEMM CCA CCA CCA AA",
    # Cells that no function of the server has. A write under `apply` overwrites, and refuses nothing.
    "APPLIES": "AIMI AAA ACC ACC AA",
    "AT_LEAST": "AEMM CAA CAA CAA AC",
    "LESS": "AEMM ACC ACC ACC CA",
}


def cases_by_column(function: str) -> list[Case]:
    """Return the cases of the table above."""
    return [
        *(Case(function, WRITE, None, after=6, complete=complete) for complete in (True, False)),
        *(Case(function, operation, None, 5, 6 if operation is UPDATE else ABSENT) for operation in (UPDATE, DELETE)),
        *(Case(function, WRITE, STORED, after=after) for after in (4, 5, 6)),
        *(Case(function, UPDATE, STORED, before, after) for before in (5, 3) for after in (4, 5, 6)),
        *(Case(function, DELETE, STORED, before) for before in (5, 3)),
    ]


@pytest.mark.parametrize("name", BY_COLUMN)
def test_functions_that_compare_a_column(name: str) -> None:
    """Of two values, a row's existence and its columns; who changed it last and when, a role and M do not matter."""
    cases = cases_by_column(f"{name}(x)")
    assert_decided(cases, BY_COLUMN[name])
    for role in Role:
        rows = [None if each.met is None else Met(5, local=True, epoch=99) for each in cases]
        others = [
            each._replace(met=row, role=role, known=known)
            for each, row in zip(cases, rows, strict=True)
            for known in (0, 99)
        ]
        assert_decided(others, "".join(2 * letter for letter in BY_COLUMN[name].replace(" ", "")))


# An update whose before image alone has the value, whose after image alone has it, a delete without it, a write
# without it; on a row with 5, each time to 6.
@pytest.mark.parametrize(
    ("name", "letters"),
    [
        ("NDB$OLD", "A!!E"),
        ("NDB$MAX", "!A!E"),
        ("NDB$MAX_DELETE_WIN", "!AAE"),
        ("NDB$MAX_INS", "!A!!"),
        ("NDB$MAX_DEL_WIN_INS", "!AA!"),
    ],
)
def test_operations_that_lack_the_value(name: str, letters: str) -> None:
    """They stop the applier, or are skipped where that is asked for; only the image that is compared must have it."""
    function = f"{name}(x)"
    cases = [
        Case(function, UPDATE, STORED, before=5),
        Case(function, UPDATE, STORED, after=6),
        Case(function, DELETE, STORED),
        Case(function, WRITE, STORED),
    ]
    assert_decided(cases, letters)
    assert_decided([each._replace(skips=True) for each in cases], letters.replace("!", "S"))


@pytest.mark.parametrize("name", ["NDB$OLD", "NDB$MAX", "NDB$MAX_DELETE_WIN", "NDB$MAX_INS", "NDB$MAX_DEL_WIN_INS"])
def test_null_compares_as_0(name: str) -> None:
    """In the row and in the event; a row to which no operation wrote the column has its default, 1."""
    function = f"{name}(x)"
    equal = [(None, None), (0, None), (None, 0), (1, ABSENT)]
    cases = [Case(function, UPDATE, Met(stored), value, value) for value, stored in equal]
    assert_decided(cases, "AAAA" if name == "NDB$OLD" else "CCCC")
    greater = [(1, None), (2, ABSENT)]
    cases = [Case(function, UPDATE, Met(stored), value, value) for value, stored in greater]
    assert_decided(cases, "CC" if name == "NDB$OLD" else "AA")


def test_the_order_of_values() -> None:
    """Data nodes compare signed numbers, as recorded: 2^63 loses against 2^64 - 1 and against 1, and 1 wins over it."""
    values = [2**63, 2**63 + 1, 2**64 - 1, 0, 1, 2**32 - 1, 2**32, 2**63 - 1]
    pairs = list(product(enumerate(values), repeat=2))
    for name in ("NDB$MAX", "NDB$MAX_DELETE_WIN", "NDB$MAX_INS", "NDB$MAX_DEL_WIN_INS", "AT_LEAST", "LESS", "UNSEEN"):
        wins = {"AT_LEAST": int.__ge__, "LESS": int.__lt__, "UNSEEN": int.__lt__}.get(name, int.__gt__)
        letters = "".join("A" if wins(mine, theirs) else "C" for (mine, _), (theirs, _) in pairs)
        kinds = [UPDATE, WRITE] if name.endswith("INS") else [UPDATE]
        for kind in kinds:
            met = [Met(stored, local=True, epoch=9) for _, (_, stored) in pairs]
            images = [(ABSENT if kind is WRITE else 7, value) for (_, value), _ in pairs]
            cases = [Case(f"{name}(x)", kind, row, *image) for row, image in zip(met, images, strict=True)]
            assert_decided(cases, letters)
    for name, kind in product(("NDB$OLD", "NDB$MAX", "NDB$MAX_INS"), (UPDATE, DELETE)):
        if kind is DELETE or name == "NDB$OLD":  # equality has no sign
            cases = [Case(f"{name}(x)", kind, Met(stored), value, 7) for (_, value), (_, stored) in pairs]
            assert_decided(cases, "".join("A" if value == stored else "C" for (_, value), (_, stored) in pairs))


@pytest.mark.parametrize("brought", [0, 1, 2**63 - 1, 2**63, 2**64 - 1])
def test_a_row_that_is_older_than_the_log_can_have_any_value(brought: int) -> None:
    """In both engines: an update wins or loses against some value; 2^63, the least one, wins against none."""
    made = history(f"A:u1=5>{brought}@5 B:<5@15", NO_ROLES)
    starts = (attrs.evolve(each, start=Start(epoch)) for each, epoch in zip(made.clusters, (5, 15), strict=True))
    made = attrs.evolve(made, clusters=tuple(starts))
    clusters = tuple(ClusterConfiguration(name, (LoggingServer(number),)) for number, name in enumerate("AB", start=1))
    row = ReplicationRow("d", "t", 0, 7, "NDB$MAX(x)")
    run = Run(Configuration(clusters, parse_schema(TABLES, database="d"), (row,)))
    found = by_reference_engine(made, run)
    assert by_kernels(made, run, in_process, buckets=1, epochs_per_segment=9) == found
    (undecided,) = found["undecided/applier B"]
    assert ("APPLIED" in undecided, "ROW_IN_CONFLICT" in undecided) == (brought != 2**63, True)


BY_EPOCH = ["NDB$EPOCH", "NDB$EPOCH_TRANS", "NDB$EPOCH2", "NDB$EPOCH2_TRANS"]
KINDS = (WRITE, UPDATE, DELETE)


def judged(function: str, met: Met | None, known: int, **how: Any) -> list[Case]:
    """Return a write, an update and a delete that meet a row on the primary."""
    return [Case(function, kind, met, known=known, role=Role.PRIMARY)._replace(**how) for kind in KINDS]


@pytest.mark.parametrize("name", BY_EPOCH)
@pytest.mark.parametrize(
    ("local", "epoch", "known", "letters"),
    [
        (True, 8, 7, "ECC"),  # changed here, and not known to have come back
        (True, 7, 7, "EAA"),  # known to have come back
        (True, 7, 8, "EAA"),
        (True, 1, 0, "ECC"),
        (False, 8, 7, "EAA"),  # written by the applier
        (False, 2**63, 0, "EAA"),
    ],
)
def test_functions_by_epoch(name: str, local: bool, epoch: int, known: int, letters: str) -> None:
    """A row that was changed here after M is in conflict; a write of a row that is there always fails."""
    function = f"{name}(31)"
    assert_decided(judged(function, Met(local=local, epoch=epoch), known), letters)
    assert_decided(judged(function, None, known), "AMM")
    assert_decided(judged(function, None, known, complete=False)[:1], "A")


EPOCH = 7 << 32


@pytest.mark.parametrize(
    ("bits", "low", "known", "letter"),
    [
        (6, 62, EPOCH + 61, "C"),  # 62 is below the most that six bits hold: it is exact
        (6, 62, EPOCH + 62, "A"),
        (6, 63, EPOCH + 63, "C"),  # 63 is the most, which reads as all ones
        (6, 63, EPOCH + 2**32 - 2, "C"),
        (6, 63, EPOCH + 2**32 - 1, "A"),
        (6, 64, EPOCH + 64, "C"),
        (0, 0, EPOCH, "C"),  # no bits: always all ones
        (0, 0, EPOCH + 2**32 - 2, "C"),
        (0, 0, EPOCH + 2**32 - 1, "A"),
        (1, 0, EPOCH, "A"),
        (1, 1, EPOCH + 1, "C"),
        (31, 2**31 - 2, EPOCH + 2**31 - 2, "A"),
        (31, 2**31 - 1, EPOCH + 2**31 - 1, "C"),
    ],
)
def test_few_extra_bits_make_more_conflicts(bits: int, low: int, known: int, letter: str) -> None:
    """The low word of a row's epoch is stored as at most 2^bits - 1, and reads as all ones at that."""
    for name in BY_EPOCH:
        cases = judged(f"{name}({bits})", Met(local=True, epoch=EPOCH + low), known)
        assert_decided(cases[1:], 2 * letter)


@pytest.mark.parametrize("name", ["NDB$EPOCH2", "NDB$EPOCH2_TRANS"])
def test_roles(name: str) -> None:
    """The secondary follows the primary, and takes back only what it did not change since; PASS judges nothing."""
    function, here, theirs = f"{name}()", Met(local=True, epoch=9), Met(epoch=9)

    def decided(met: Met | None, letters: str, **how: Any) -> None:
        assert_decided(judged(function, met, 0, **how), letters)

    for role in (Role.SECONDARY, Role.PASS):
        decided(None, "AII", role=role)
        decided(here, "AAA", role=role)
        decided(None, "III", role=role, complete=False)
    for complete in (True, False):
        decided(None, "ADD", role=Role.SECONDARY, reflected=True, complete=complete)
    decided(here, "DDD", role=Role.SECONDARY, reflected=True)
    decided(theirs, "DAA", role=Role.SECONDARY, reflected=True)
    decided(None, "ADD", role=Role.PRIMARY, reflected=True)  # a second primary: no conflict, but not applied
    decided(here, "DDD", role=Role.PRIMARY, reflected=True)
    decided(theirs, "DAA", role=Role.PRIMARY, reflected=True)
    decided(here, "!!!", role=Role.NONE)


def test_without_a_function() -> None:
    """A write inserts or overwrites, unless a new row lacks a column; an update or delete of no row is ignored."""
    assert_decided(judged(NO_FUNCTION, None, 0), "AII")
    assert_decided(judged(NO_FUNCTION, STORED, 0), "AAA")
    assert_decided(judged(NO_FUNCTION, None, 0, complete=False), "III")


def test_the_first_of_two_changes_that_have_not_seen_each_other() -> None:
    """A lower value wins over a change of this cluster after M; over any other row, every value does."""
    cases = [
        Case("UNSEEN(x)", UPDATE, Met(5, True, epoch), after=after, known=7) for epoch in (8, 7) for after in (4, 5, 6)
    ]
    assert_decided(cases, "ACC AAA")
    assert_decided([each._replace(met=Met(5, False, 8)) for each in cases], "AAA AAA")
