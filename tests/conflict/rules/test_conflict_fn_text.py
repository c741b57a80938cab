"""How `conflict_fn` is parsed."""

import ctypes

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from conflict.errors import ConfigurationError
from conflict.rules.functions import FUNCTIONS, Argument, parse_conflict_function, typed_function


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


class TestTyped:
    """What a message says of a function that a user typed."""

    @pytest.mark.parametrize(
        ("text", "advice"),
        [
            ("NDB(x)", "; a shell takes $... out of double quotes: use single quotes, as in 'NDB$MAX(x)'"),
            ("NDB()", "; a shell takes $... out of double quotes: use single quotes, as in 'NDB$EPOCH()'"),
            (r"NDB\$MAX(x)", r" (did you mean NDB$MAX?); inside single quotes no \ stands before $"),
            ("NDB$MAXX(x)", " (did you mean NDB$MAX?)"),
            ("MAXX(x)", " (did you mean NDB$MAX?)"),
            ("MAX(x)", " (did you mean NDB$MAX?)"),
            ("ndb$epoch2_trans()", " (did you mean NDB$EPOCH2_TRANS?)"),
            ("EPOCHTRANS()", " (did you mean NDB$EPOCH_TRANS?)"),
            ("NDB$FOO(x)", ""),
            ("", "; for no function leave it out, or give NULL in mysql.ndb_replication"),
            ("NDB$MAX(x", ""),  # the name is right
        ],
    )
    def test_what_was_meant(self, text: str, advice: str):
        """It follows what the server says."""
        with pytest.raises(ConfigurationError) as of_server:
            parse_conflict_function(text)
        with pytest.raises(ConfigurationError) as typed:
            typed_function(text)
        assert str(typed.value) == f"{of_server.value}{advice}"

    def test_a_function_that_is_right(self):
        """Nothing is said."""
        assert typed_function("NDB$MAX(x)") == parse_conflict_function("NDB$MAX(x)")
