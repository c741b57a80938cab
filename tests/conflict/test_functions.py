"""The conflict functions: how their texts are read, and what they decide."""

import ctypes

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from conflict.errors import ConfigurationError
from conflict.rules.conflict_fn_text import parse_conflict_function
from conflict.rules.decision import Cause, Decision, IncomingOperation, RowState, Verdict
from conflict.rules.functions import FUNCTIONS, Argument, FunctionSpec, Image
from ndb_formats.events.rows_event import Operation

WRITE, UPDATE, DELETE = Operation.WRITE_ROW, Operation.UPDATE_ROW, Operation.DELETE_ROW
APPLIED = Decision(Verdict.APPLIED)
MISSING = Decision(Verdict.REJECTED, Cause.ROW_DOES_NOT_EXIST)
EXISTS = Decision(Verdict.REJECTED, Cause.ROW_ALREADY_EXISTS)


def function(name: str) -> FunctionSpec:
    """Return a function by its name."""
    return next(spec for spec in FUNCTIONS if spec.name == name)


def loses(incoming: int | None, stored: int) -> Decision:
    """Return the decision that an operation loses a comparison."""
    return Decision(Verdict.REJECTED, Cause.ROW_IN_CONFLICT, incoming, stored)


class TestTable:
    """The table of functions."""

    def test_names(self):
        """There are nine functions, spelled as the server spells them."""
        assert [spec.name for spec in FUNCTIONS] == [
            "NDB$OLD",
            "NDB$MAX",
            "NDB$MAX_DELETE_WIN",
            "NDB$MAX_INS",
            "NDB$MAX_DEL_WIN_INS",
            "NDB$EPOCH",
            "NDB$EPOCH_TRANS",
            "NDB$EPOCH2",
            "NDB$EPOCH2_TRANS",
        ]

    def test_counters(self):
        """Each counts in a status variable of its own."""
        assert [spec.counter.removeprefix("Ndb_conflict_fn_") for spec in FUNCTIONS] == [
            "old",
            "max",
            "max_del_win",
            "max_ins",
            "max_del_win_ins",
            "epoch",
            "epoch_trans",
            "epoch2",
            "epoch2_trans",
        ]

    def test_arguments(self):
        """OLD and MAX* compare a column; EPOCH* take extra bits and send rejected rows again."""
        for spec in FUNCTIONS:
            of_epochs = "EPOCH" in spec.name
            assert (spec.argument is Argument.GCI_BITS, spec.refreshes) == (of_epochs, of_epochs), spec.name

    @pytest.mark.parametrize(
        ("name", "needs"),
        [
            ("NDB$OLD", {UPDATE: Image.BEFORE, DELETE: Image.BEFORE}),
            ("NDB$MAX", {UPDATE: Image.AFTER, DELETE: Image.BEFORE}),
            ("NDB$MAX_INS", {WRITE: Image.AFTER, UPDATE: Image.AFTER, DELETE: Image.BEFORE}),
            ("NDB$MAX_DELETE_WIN", {UPDATE: Image.AFTER}),
            ("NDB$MAX_DEL_WIN_INS", {WRITE: Image.AFTER, UPDATE: Image.AFTER}),
            ("NDB$EPOCH", {}),
            ("NDB$EPOCH2_TRANS", {}),
        ],
    )
    def test_needs(self, name: str, needs: dict[Operation, Image]):
        """OLD needs before values, MAX the after value or that of the row it deletes, INS that of inserts too."""
        (spec,) = (spec for spec in FUNCTIONS if spec.name == name)
        assert dict(spec.needs) == needs

    def test_transactions_and_roles(self):
        """The names say which functions judge transactions, and which have roles."""
        for spec in FUNCTIONS:
            assert spec.transactional == spec.name.endswith("_TRANS"), spec.name
            assert spec.uses_role == spec.reflects == ("EPOCH2" in spec.name), spec.name
            assert spec.delete_delete_conflicts == (spec.name == "NDB$EPOCH2_TRANS"), spec.name
            assert spec.conditional_write == spec.name.endswith("_INS"), spec.name


class TestParse:
    """Texts of `conflict_fn`."""

    @pytest.mark.parametrize("name", [spec.name for spec in FUNCTIONS if spec.argument is Argument.COLUMN])
    def test_functions_of_a_column(self, name: str):
        """The argument is a column."""
        function = parse_conflict_function(f"{name}(x)")
        assert (function.spec.name, function.column) == (name, "x")

    @pytest.mark.parametrize("name", [spec.name for spec in FUNCTIONS if spec.argument is Argument.GCI_BITS])
    def test_functions_of_epochs(self, name: str):
        """The argument is a number of bits, and there is no column."""
        function = parse_conflict_function(f"{name}(12)")
        assert (function.spec.name, function.column, function.gci_bits) == (name, None, 12)

    @pytest.mark.parametrize(
        "text", ["NDB$MAX(x)", " NDB$MAX ( x ) ", "  NDB$MAX(x)", "NDB$MAX(  x  )", "NDB$MAX (x)", "NDB$MAX(x)   "]
    )
    def test_blanks(self, text: str):
        """Blanks may stand between any two tokens."""
        function = parse_conflict_function(text)
        assert (function.spec.name, function.column, str(function)) == ("NDB$MAX", "x", "NDB$MAX(x)")

    def test_case_of_a_column_is_kept(self):
        """Column names are case-sensitive."""
        assert parse_conflict_function("NDB$OLD(Version)").column == "Version"

    def test_a_comma_belongs_to_the_argument(self):
        """The server looks for a column of that name, and finds none."""
        assert parse_conflict_function("NDB$MAX_INS(x,v)").column == "x,v"

    @pytest.mark.parametrize(
        ("text", "bits"),
        [
            ("NDB$EPOCH()", 6),
            ("NDB$EPOCH( )", 6),
            ("NDB$EPOCH(0)", 0),
            ("NDB$EPOCH(6)", 6),
            ("NDB$EPOCH(31)", 31),
            ("NDB$EPOCH ( 7 )", 7),
            ("NDB$EPOCH(x)", 0),
            ("NDB$EPOCH(12x)", 12),
            ("NDB$EPOCH(007)", 7),
            # What strtoul makes of it, in 32 bits.
            ("NDB$EPOCH(+7)", 7),
            ("NDB$EPOCH(010)", 8),
            ("NDB$EPOCH(08)", 0),
            ("NDB$EPOCH(0x1F)", 31),
            ("NDB$EPOCH(0x)", 0),
            ("NDB$EPOCH(--7)", 0),
            ("NDB$EPOCH(\t7)", 7),
            ("NDB$EPOCH(4294967296)", 0),
            ("NDB$EPOCH(4294967302)", 6),
            ("NDB$EPOCH(-4294967290)", 6),
            ("NDB$EPOCH(-18446744073709551615)", 1),
        ],
    )
    def test_bits(self, text: str, bits: int):
        """Six bits by default; what does not start with digits means 0."""
        assert parse_conflict_function(text).gci_bits == bits

    def test_epoch_in_words(self):
        """A function of epochs shows its bits."""
        assert str(parse_conflict_function("NDB$EPOCH2_TRANS()")) == "NDB$EPOCH2_TRANS(6)"

    @pytest.mark.parametrize(
        ("text", "complaint"),
        [
            ("NDB$MAX()", "NDB$MAX(), missing function argument at ')'"),
            ("NDB$MAX( )", "NDB$MAX( ), missing function argument at ')'"),
            ("NDB$MAX(", "NDB$MAX(, missing function argument at ''"),
            ("NDB$MAX(x", "NDB$MAX(x, missing ')' at ''"),
            ("NDB$MAX(x) y", "NDB$MAX(x) y, garbage in the end at 'y'"),
            ("NDB$MAX(x))", "NDB$MAX(x)), garbage in the end at ')'"),
            ("NDB$MAX(x y)", "NDB$MAX(x y), missing ')' at 'y)'"),
            ("NDB$MAX x", "NDB$MAX x, missing '(' at 'x'"),
            ("NDB$NOSUCH(x)", "NDB$NOSUCH(x), unknown conflict resolution function at 'NDB$NOSUCH(x)'"),
            ("ndb$max(x)", "ndb$max(x), unknown conflict resolution function at 'ndb$max(x)'"),
            ("NDB$MAXI(x)", "NDB$MAXI(x), missing '(' at 'I(x)'"),
            ("NDB$MAX_DELETE(x)", "NDB$MAX_DELETE(x), missing '(' at '_DELETE(x)'"),
            ("NDB$EPOCH2_TRANSX", "NDB$EPOCH2_TRANSX, missing '(' at 'X'"),
            ("NDB$EPOCH(-1)", "NDB$EPOCH(-1), Too many extra Gci bits at ')'"),
            ("NDB$EPOCH(0x20 )", "NDB$EPOCH(0x20 ), Too many extra Gci bits at ' )'"),
            ("NDB$EPOCH(18446744073709551616)", "NDB$EPOCH(18446744073709551616), Too many extra Gci bits at ')'"),
            ("NDB$EPOCH(-99999999999999999999)", "NDB$EPOCH(-99999999999999999999), Too many extra Gci bits at ')'"),
            ("NDB$EPOCH", "NDB$EPOCH, missing '(' at ''"),
            ("NDB$EPOCH(1 2)", "NDB$EPOCH(1 2), missing ')' at '2)'"),
            ("NDB$EPOCH(40)", "NDB$EPOCH(40), Too many extra Gci bits at ')'"),
            ("NDB$EPOCH_TRANS(32)", "NDB$EPOCH_TRANS(32), Too many extra Gci bits at ')'"),
            (" NDB$EPOCH", " NDB$EPOCH, missing '(' at ''"),
            ("  NDB$OTHER", "  NDB$OTHER, unknown conflict resolution function at 'NDB$OTHER'"),
            ("", ", unknown conflict resolution function at ''"),
        ],
    )
    def test_refused(self, text: str, complaint: str):
        """The server says what is wrong, and what is left where it is."""
        with pytest.raises(ConfigurationError) as caught:
            parse_conflict_function(text)
        assert str(caught.value) == f"Error in parsing conflict function. Message: {complaint}"


class TestMax:
    """NDB$MAX."""

    @pytest.mark.parametrize(
        ("exists", "operation", "expected"),
        [
            (False, WRITE, APPLIED),
            (True, WRITE, EXISTS),
            (False, UPDATE, MISSING),
            (False, DELETE, MISSING),
        ],
    )
    def test_presence(self, exists: bool, operation: Operation, expected: Decision):
        """A row that is there cannot be inserted, one that is not cannot be changed, whatever the values."""
        row = RowState(exists, value=1 if exists else None)
        assert function("NDB$MAX").decide(row, IncomingOperation(operation, before=9, after=9)) == expected

    @pytest.mark.parametrize(
        ("stored", "after", "expected"),
        [
            (5, 6, APPLIED),
            (5, 5, loses(5, 5)),
            (5, 4, loses(4, 5)),
            (0, 0, loses(0, 0)),
            (2**63 - 1, 2**63, APPLIED),
            (2**63, 2**63 - 1, loses(2**63 - 1, 2**63)),
            (2**63, 2**64 - 1, APPLIED),
            (2**64 - 1, 2**64 - 1, loses(2**64 - 1, 2**64 - 1)),
            (2**64 - 1, 0, loses(0, 2**64 - 1)),
        ],
    )
    def test_update(self, stored: int, after: int, expected: Decision):
        """The greater value wins, unsigned; an equal one loses."""
        row = RowState(True, value=stored)
        assert function("NDB$MAX").decide(row, IncomingOperation(UPDATE, before=0, after=after)) == expected

    @pytest.mark.parametrize(
        ("stored", "before", "expected"),
        [
            (5, 5, APPLIED),
            (5, 6, loses(6, 5)),
            (5, 4, loses(4, 5)),
            (2**64 - 1, 2**64 - 1, APPLIED),
            (2**63, 0, loses(0, 2**63)),
        ],
    )
    def test_delete(self, stored: int, before: int, expected: Decision):
        """A delete must have seen the stored value; a greater one does not help."""
        assert (
            function("NDB$MAX").decide(RowState(True, value=stored), IncomingOperation(DELETE, before=before))
            == expected
        )

    def test_epochs_do_not_matter(self):
        """A row that was changed here just now is judged by its value alone."""
        row = RowState(True, local=True, epoch=99, value=1)
        assert function("NDB$MAX").decide(row, IncomingOperation(UPDATE, after=2, max_replicated_epoch=1)) == APPLIED


class TestEpoch:
    """NDB$EPOCH."""

    @pytest.mark.parametrize(
        ("exists", "operation", "expected"),
        [
            (False, WRITE, APPLIED),
            (True, WRITE, EXISTS),
            (False, UPDATE, MISSING),
            (False, DELETE, MISSING),
        ],
    )
    def test_presence(self, exists: bool, operation: Operation, expected: Decision):
        """A presence anomaly is a conflict, also where the epoch came back."""
        row = RowState(exists, local=True, epoch=1)
        assert function("NDB$EPOCH").decide(row, IncomingOperation(operation, max_replicated_epoch=9)) == expected

    @pytest.mark.parametrize("operation", [UPDATE, DELETE])
    @pytest.mark.parametrize(
        ("local", "epoch", "known", "expected"),
        [
            (True, 7, 7, APPLIED),
            (True, 8, 7, loses(7, 8)),
            (True, 7, 8, APPLIED),
            (True, 1, 0, loses(0, 1)),
            (False, 8, 7, APPLIED),
            (False, 2**64 - 1, 0, APPLIED),
            (True, 2**63, 2**63 - 1, loses(2**63 - 1, 2**63)),
            (True, 2**63 - 1, 2**63, APPLIED),
            (True, 2**64 - 1, 2**64 - 2, loses(2**64 - 2, 2**64 - 1)),
            (True, 2**64 - 1, 2**64 - 1, APPLIED),
        ],
    )
    def test_epochs(self, operation: Operation, local: bool, epoch: int, known: int, expected: Decision):
        """A row changed here in an epoch later than the last one known to be there is in conflict; M itself is not."""
        row = RowState(True, local, epoch)
        assert function("NDB$EPOCH").decide(row, IncomingOperation(operation, max_replicated_epoch=known)) == expected


@given(argument=st.text("0123456789xXabfF+-\t", min_size=1, max_size=24))
@example("18446744073709551615")
@example("-18446744073709551616")
def test_extra_gci_bits_are_what_strtoul_makes_of_them(argument: str):
    """Against the C library of this machine: the low 32 bits of ``strtoul`` with base 0."""
    library = ctypes.CDLL(None)
    library.strtoul.restype = ctypes.c_ulong
    expected = library.strtoul(argument.encode(), None, 0) % 2**32
    if expected > 31:
        with pytest.raises(ConfigurationError, match="Too many extra Gci bits"):
            parse_conflict_function(f"NDB$EPOCH({argument})")
    else:
        assert parse_conflict_function(f"NDB$EPOCH({argument})").gci_bits == expected
