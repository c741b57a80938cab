"""How a result differs from a recording, in words."""

import copy
from decimal import Decimal
from typing import Any

import pytest

from conflict.engine.ledger.resolution import ClusterResult, Stop
from conflict.judge.result_differences import result_differences
from conflict.rules.stops import ServerStop
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.value_conversions import NOT_KNOWN
from ndb_formats.types.json_binary import JsonDocument
from ndb_formats.types.values import Geometry, Vector
from tests.conflict.histories import setups

MAX = "Ndb_conflict_fn_max"
SIDE: dict[str, Any] = {
    "setup_messages": [],
    "applier": {"errno": 0},
    "status_difference": {MAX: 2},
    "tables": {
        "t": {
            "columns": ["k", "x", "v"],
            "types": ["int", "bigint unsigned", "int"],
            "primary_key": ["k"],
            "rows": [[1, 5, None]],
        }
    },
    "exceptions": {"t$EX": {"columns": ["count", "k"], "types": ["int", "int"], "rows": [[1, 7], [2, 7]]}},
}


def recorded(**changed: Any) -> dict[str, Any]:
    """Return what was recorded of side A, with some of it changed."""
    return {"A": {**copy.deepcopy(SIDE), **changed}}


def result(**changed: Any) -> ClusterResult:
    """Return the result that agrees with the recording, with some of it changed."""
    found = ClusterResult(
        rows={"d.t": [(1, 5, None)]},
        exceptions={"d.t$EX": [(1, 7), (2, 7)]},
    )
    found.counters[MAX] = 2
    for name, value in changed.items():
        setattr(found, name, value)
    return found


def found(expected: dict[str, Any], actual: ClusterResult, function: str | None = "NDB$MAX(x)") -> list[str]:
    """Return all differences of side A."""
    tables: dict[str, dict[str, TableSetup]] = setups(function)
    return list(result_differences(expected, {"A": "d"}, {"A": actual}, tables))


STOP = Stop(ServerStop.MISSING_INFORMATION, 77, "d.t", "x", Operation.UPDATE_ROW, None, "what to do")


def test_a_result_that_agrees_has_no_differences():
    """Rows, counters, stops and refusals are those recorded."""
    assert found(recorded(), result()) == []


class TestRows:
    """Rows of tables and of exceptions tables."""

    def test_the_order_of_rows_does_not_matter(self):
        """Tables have none."""
        assert found(recorded(), result(exceptions={"d.t$EX": [(2, 7), (1, 7)]})) == []

    def test_a_missing_row_differs(self):
        """It is shown with its columns."""
        assert found(recorded(), result(rows={"d.t": []})) == ["A: t lacks the recorded row (k=1, x=5, v=None)"]

    def test_an_additional_row_differs(self):
        """It is shown with its columns."""
        more = [(1, 5, None), (2, 2**64 - 1, 3)]
        assert found(recorded(), result(rows={"d.t": more})) == [
            "A: t has a row that is not recorded: (k=2, x=18446744073709551615, v=3)"
        ]

    def test_a_duplicate_row_differs(self):
        """Every occurrence counts."""
        assert found(recorded(), result(exceptions={"d.t$EX": [(1, 7), (2, 7), (2, 7)]})) == [
            "A: t$EX has a row that is not recorded: (count=2, k=7)"
        ]

    def test_null_is_not_zero(self):
        """A NULL and a 0 differ."""
        assert found(recorded(), result(rows={"d.t": [(1, 5, 0)]})) == ["A: t row (k=1): v is 0, recorded: None"]

    def test_several_values_of_a_row_differ(self):
        """All are said at once, as found and as recorded; other rows stay rows."""
        rows = [(2, 5, None), (1, 6, 2**63)]
        assert found(recorded(), result(rows={"d.t": rows})) == [
            "A: t row (k=1): x is 6, recorded: 5; v is 9223372036854775808, recorded: None",
            "A: t has a row that is not recorded: (k=2, x=5, v=None)",
        ]

    def test_a_row_that_is_known_in_part(self):
        """What is known of it has to be recorded; what is not agrees with any value."""
        partly = result(rows={"d.t": []}, rows_in_part={"d.t": [(1, 5, NOT_KNOWN)]})
        assert found(recorded(), partly) == []
        other = result(rows={"d.t": []}, rows_in_part={"d.t": [(1, 6, NOT_KNOWN)]})
        assert found(recorded(), other) == [
            "A: t has a row that is not recorded: (k=1, x=6, v=not known)",
            "A: t lacks the recorded row (k=1, x=5, v=None)",
        ]

    def test_a_missing_table_differs(self):
        """With the number of its recorded rows."""
        assert found(recorded(), result(exceptions={})) == ["A: table t$EX does not exist, recorded: 2 rows"]

    @pytest.mark.parametrize(
        ("kind", "written", "value"),
        [
            ("decimal(9,2)", "1.50", Decimal("1.50")),
            ("varbinary(9)", "00FF", b"\x00\xff"),
            ("float", 0.1, 0.10000000149011612),
            ("float", 1, 1.0),
            ("double", 3, 3.0),
            ("varchar(9)", "é", "é"),
            ("date", "0000-00-00", "0000-00-00"),
            ("bigint unsigned", 2**64 - 1, 2**64 - 1),
            ("int", None, None),
            ("json", "[]", JsonDocument(bytes.fromhex("0200000400"))),
            ("json", "null", JsonDocument(b"")),
            ("json", '{"a": 2}', '{"a": 2}'),  # as it comes back from a file
            ("geometry", "0000000001", Geometry(b"\0\0\0\0\x01")),
            ("vector(1)", "0000C07F", Vector(b"\0\0\xc0\x7f")),
        ],
    )
    def test_values_equal_their_recorded_spelling(self, kind: str, written: object, value: Any):
        """Recordings have decimals as text, bytes in hex, and six digits of a float."""
        table = {"t": {"columns": ["c"], "types": [kind], "rows": [[written]]}}
        assert found(recorded(tables=table), result(rows={"d.t": [(value,)]})) == []

    def test_decimals_keep_their_digits(self):
        """1.5 is not 1.50."""
        table = {"t": {"columns": ["c"], "types": ["decimal(9,2)"], "rows": [["1.50"]]}}
        assert found(recorded(tables=table), result(rows={"d.t": [(Decimal("1.5"),)]})) == [
            "A: t lacks the recorded row (c=1.50)",
            "A: t has a row that is not recorded: (c=1.5)",
        ]


class TestCounters:
    """CaseStatus counters."""

    def test_another_value_differs(self):
        """Both are shown."""
        expected = recorded(status_difference={MAX: 3, "Ndb_conflict_fn_old": 0})
        assert found(expected, result()) == ["A: Ndb_conflict_fn_max is 2, recorded: 3"]

    def test_a_counter_without_a_result_is_0(self):
        """The recorded value decides."""
        expected = recorded(status_difference={MAX: 2, "Ndb_api_something": 4, "Ndb_api_other": 0})
        assert found(expected, result()) == ["A: Ndb_api_something is 0, recorded: 4"]


class TestStops:
    """Appliers that stopped."""

    def test_the_same_error_does_not_differ(self):
        """Its message is ours."""
        assert found(recorded(applier={"errno": 1296}), result(stop=STOP)) == []

    def test_a_missing_stop_differs(self):
        """The recorded error is shown."""
        assert found(recorded(applier={"errno": 1296}), result()) == ["A: the applier did not stop, recorded: 1296"]

    def test_an_additional_stop_differs(self):
        """With its error and message."""
        assert found(recorded(), result(stop=STOP)) == [
            "A: the applier stopped with 1296 (what to do), recorded: no stop"
        ]

    def test_another_error_differs(self):
        """Both are shown."""
        assert found(recorded(applier={"errno": 1146}), result(stop=STOP)) == [
            "A: the applier stopped with 1296 (what to do), recorded: 1146"
        ]

    @pytest.mark.parametrize(
        ("line", "differs"),
        [
            ("[ERROR] handler error on table d.t; event's source log", False),
            ("[ERROR] handler error on table d.u; event's source log", True),
            ("[ERROR] Table 'd.u' does not exist", True),
            ("[ERROR] on table ./d/u", True),
            ("[Warning] on table d.u", False),
            ("[ERROR] something else", False),
        ],
    )
    def test_another_table_differs(self, line: str, differs: bool):
        """If the error log names one."""
        expected = recorded(applier={"errno": 1296}, error_log=[line])
        words = ["A: the applier stopped on table d.t, recorded: d.u"]
        assert found(expected, result(stop=STOP)) == (words if differs else [])


WARNING = "Error in parsing conflict function. Message: "


def refused(error: int, reason: str) -> list[dict[str, Any]]:
    """Return the messages of a CREATE TABLE t that failed."""
    return [
        {
            "sql": "CREATE TABLE t (\n k INT",
            "error": [error, "Can't create table 't'"],
            "warnings": [["Warning", 1626, f"{WARNING}{reason}"]],
        }
    ]


class TestRefusals:
    """CREATE TABLE statements that failed."""

    @pytest.mark.parametrize(
        ("function", "error", "reason"),
        [
            ("NDB$MAX(nosuch)", 1005, "Could not find resolve column nosuch."),
            ("NDB$MAX(v)", 1005, "Column 'v' has wrong datatype"),
            ("NDB$MAX(x", 1626, "NDB$MAX(x, missing ')' at ''"),
            ("NDB$NO()", 1626, "NDB$NO(), unknown conflict resolution function at 'NDB$NO()'"),
            ("NDB$EPOCH(40)", 1626, "NDB$EPOCH(40), Too many extra Gci bits at ')'"),
            ("NDB$MAX(x) y", 1626, "NDB$MAX(x) y, garbage in the end at 'y'"),
        ],
    )
    def test_the_same_refusal_does_not_differ(self, function: str, error: int, reason: str):
        """Error number, reason and column are equal."""
        assert found(recorded(setup_messages=refused(error, reason)), result(), function) == []

    def test_a_missing_refusal_differs(self):
        """The recorded one is shown, in the server's words."""
        expected = recorded(setup_messages=refused(1005, "Could not find resolve column nosuch."))
        assert found(expected, result()) == [
            f"A: CREATE TABLE d.t gave no error, recorded: error 1005 ({WARNING}Could not find resolve column nosuch.)"
        ]

    def test_an_additional_refusal_differs(self):
        """With its error, and the words that the server would have for it."""
        assert found(recorded(), result(), "NDB$MAX(v)") == [
            f"A: CREATE TABLE d.t gave error 1005 ({WARNING}Column 'v' has wrong datatype), recorded: no error"
        ]

    def test_another_column_differs(self):
        """The one at fault."""
        expected = recorded(setup_messages=refused(1005, "Column 'w' has wrong datatype"))
        assert found(expected, result(), "NDB$MAX(v)") == [
            (
                f"A: CREATE TABLE d.t gave error 1005 ({WARNING}Column 'v' has wrong datatype), "
                f"recorded: error 1005 ({WARNING}Column 'w' has wrong datatype)"
            )
        ]

    def test_an_unknown_reason_differs(self):
        """A refusal that is not modelled."""
        expected = recorded(setup_messages=refused(1005, "No extra row author bits in table."))
        assert found(expected, result()) == [
            f"A: CREATE TABLE d.t gave no error, recorded: error 1005 ({WARNING}No extra row author bits in table.)"
        ]

    def test_a_warning_is_no_refusal(self):
        """The statement succeeded."""
        messages = [{"sql": "CREATE TABLE t (k INT)", "warnings": [["Warning", 1625, "Ambiguous matches"]]}]
        assert found(recorded(setup_messages=messages), result()) == []


def test_refusals_and_stops_come_first():
    """Then counters, then rows: earlier differences explain later ones."""
    expected = recorded(
        setup_messages=refused(1005, "Could not find resolve column y."),
        applier={"errno": 1146},
        status_difference={MAX: 0},
    )
    words = [line.split()[1] for line in found(expected, result(rows={"d.t": []}))]
    assert words == ["CREATE", "the", MAX, "t"]
