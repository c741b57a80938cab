"""A user's own conflict functions: rows of cells and rules in Python."""

import json
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conflict.cli import app as cli
from conflict.cli.refusals import ExitCode
from conflict.errors import ConfigurationError
from conflict.resolvers import user_policies
from conflict.resolvers.user_policies import add_functions, load_functions, policies_of_tables, python_function
from conflict.rules.counters import COUNTERS, add_counters, zero_counters
from conflict.rules.decision import Cause, Decision, IncomingOperation, RowState, Verdict
from conflict.rules.functions import FUNCTIONS, Argument, Cell, parse_conflict_function
from conflict.rules.own_rule import Image
from conflict.rules.replication_table import ReplicationRow
from conflict.rules.table_setup import RefusalKind, set_up
from docs.examples.at_least import at_least
from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.create_table import parse_schema

ROOT = Path(__file__).parents[3]
DEMO = ROOT / "conflict" / "demo"
WRITE, UPDATE, DELETE = Operation.WRITE_ROW, Operation.UPDATE_ROW, Operation.DELETE_ROW
HERE, GONE = RowState(exists=True, value=5), RowState(exists=False)
APPLIED = Decision(Verdict.APPLIED)
ROW = {"write": "reject if present", "update": "at least", "delete": "equal"}


def always(answer: object) -> Callable[[RowState, IncomingOperation], object]:
    """Return a rule that returns this, whatever it is asked."""
    return lambda row, incoming: answer


def message_of(action: Callable[[], object]) -> str:
    """Return what is refused."""
    with pytest.raises(ConfigurationError) as caught:
        action()
    return str(caught.value)


class TestLoading:
    """From a name to a function."""

    def test_a_function(self):
        """A plain function takes a column, and counts in a counter of its own."""
        spec = load_functions(["docs.examples.at_least:at_least"])[-1]
        assert (spec.name, spec.counter, spec.argument) == (
            "at_least",
            "Ndb_conflict_fn_at_least",
            Argument.COLUMN,
        )
        assert (dict(spec.needs), spec.refreshes, spec.transactional) == ({}, False, False)
        assert spec.decide(HERE, IncomingOperation(UPDATE, after=5)) == APPLIED

    def test_the_functions_of_the_server_stay(self):
        """They come first."""
        assert load_functions([]) == FUNCTIONS
        assert load_functions(["docs.examples.at_least:at_least"])[:-1] == FUNCTIONS

    def test_a_module_of_the_working_directory(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        """It need not be installed; names with dots are followed."""
        (tmp_path / "own_rules.py").write_text("class Rules:\n    @staticmethod\n    def late(row, incoming): ...\n")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "path", list(sys.path))
        assert load_functions(["own_rules:Rules.late"])[-1].name == "late"

    def test_an_entry_point(self, monkeypatch: pytest.MonkeyPatch):
        """A name without a colon is one of the group."""
        points = EntryPoints([EntryPoint("mine", "docs.examples.at_least:at_least", user_policies.ENTRY_POINTS)])
        monkeypatch.setattr(user_policies, "entry_points", points.select)
        assert load_functions(["mine"])[-1].name == "at_least"
        assert message_of(lambda: load_functions(["other"])) == (
            "function other: use module:name, last_writer, first_writer, sum_of_deltas, certification, pgactive, "
            "spock, or an entry point of the group ndb_conflict.functions; of these there are mine"
        )

    @pytest.mark.parametrize(
        ("reference", "complaint"),
        [
            ("no_such_module:f", "module no_such_module cannot be imported (ModuleNotFoundError: No module named"),
            ("docs.examples.at_least:nothing", "docs.examples.at_least has no nothing"),
            ("docs.examples.at_least:", "docs.examples.at_least has no "),
            ("conflict.rules.functions:DEFAULT_GCI_BITS", "DEFAULT_GCI_BITS is int; a function of a RowState and an"),
            ("conflict.rules.functions:judge.__name__", "'__name__' is str"),
            ("math:sqrt", "sqrt must take two values, a RowState and an IncomingOperation"),
            ("nothing", "or an entry point of the group ndb_conflict.functions; of these there are none"),
        ],
    )
    def test_not_usable(self, reference: str, complaint: str):
        """What is wrong is said, with the name that was given."""
        message = message_of(lambda: load_functions([reference]))
        assert message.startswith(f"function {reference}: ")
        assert complaint.replace("'", "") in message.replace("'", "")

    @pytest.mark.parametrize("name", ["", "a b", "a(b", "<lambda>", "1a"])
    def test_names_that_cannot_be_called(self, name: str):
        """A name has to stand before a parenthesis."""
        assert "is no name for conflict_fn" in message_of(lambda: python_function(name, at_least))

    def test_names_that_clash(self):
        """With the server's functions, or with each other."""
        twice = ["docs.examples.at_least:at_least"] * 2
        assert message_of(lambda: load_functions(twice)) == (
            "function docs.examples.at_least:at_least: at_least (counter Ndb_conflict_fn_at_least) is a function given "
            "before; give at_least another name"
        )

    @pytest.mark.parametrize("name", ["NDB$MAX", "max"])
    def test_a_row_named_as_a_function_of_the_server(self, name: str):
        """Neither its name nor its counter can be had."""
        policies = policies_of_tables([{"name": name, **ROW}])
        message = message_of(lambda: add_functions(FUNCTIONS, policies))
        expected = "NDB$MAX (counter Ndb_conflict_fn_max) is a function of the server; give {} another name"
        assert message == expected.format(name)


class TestRows:
    """Rows of cells in a run file."""

    def test_a_row(self):
        """Its cells say which images it needs; its counter goes by its name."""
        (spec,) = policies_of_tables([{"name": "NEWEST", **ROW}])
        assert (spec.write, spec.update, spec.delete) == (Cell.REJECT_IF_PRESENT, Cell.AT_LEAST, Cell.EQUAL)
        assert (spec.counter, dict(spec.needs)) == (
            "Ndb_conflict_fn_newest",
            {UPDATE: Image.AFTER, DELETE: Image.BEFORE},
        )
        assert str(parse_conflict_function("NEWEST(version)", [spec])) == "NEWEST(version)"

    def test_a_row_by_epoch(self):
        """It takes extra GCI bits, and rejected rows are refreshed."""
        (spec,) = policies_of_tables(
            [{"name": "KEEP", "write": "reject if present", "update": "by epoch", "delete": "by epoch"}]
        )
        assert (spec.refreshes, str(parse_conflict_function("KEEP(3)", [spec]))) == (True, "KEEP(3)")

    @pytest.mark.parametrize(
        ("changed", "complaint"),
        [
            ({"name": None}, ".name is None; it must be a name for conflict_fn: letters"),
            ({"name": "a b"}, ".name is 'a b'; it must be a name for conflict_fn: letters"),
            (
                {"write": "equal"},
                ".write is 'equal'; it must be one of apply, reject if present, greater, at least, less, by",
            ),
            ({"update": "bigger"}, ".update is 'bigger'; it must be one of apply, reject if missing, equal, greater,"),
            (
                {"delete": "reject if present"},
                ".delete is 'reject if present'; it must be one of apply, reject if missing,",
            ),
            ({"delete": None}, ".delete is None; it must be one of"),
            ({"delete": "by epoch"}, ": NEWEST compares a column for one operation and epochs for another"),
            ({"insert": "apply"}, " has unknown entries insert; known are delete, name, update, write"),
        ],
    )
    def test_refused(self, changed: dict[str, object], complaint: str):
        """The row and the entry are named, with what it can be."""
        message = message_of(lambda: policies_of_tables([{"name": "NEWEST", **ROW, **changed}]))
        assert message.startswith(f"conflict_function#1{complaint}")


class TestAnswers:
    """What a rule returns."""

    @pytest.mark.parametrize(
        ("row", "operation", "answer"),
        [
            (HERE, WRITE, APPLIED),
            (GONE, WRITE, APPLIED),
            (HERE, UPDATE, Decision(Verdict.REJECTED, Cause.ROW_IN_CONFLICT, 2**64 - 1, 0)),
            (GONE, DELETE, Decision(Verdict.IGNORED)),
            (GONE, UPDATE, Decision(Verdict.REJECTED, Cause.ROW_DOES_NOT_EXIST)),
        ],
    )
    def test_usable(self, row: RowState, operation: Operation, answer: Decision):
        """It is passed on as it is."""
        assert python_function("f", always(answer)).decide(row, IncomingOperation(operation)) is answer

    @pytest.mark.parametrize(
        ("row", "operation", "answer", "complaint"),
        [
            (
                HERE,
                UPDATE,
                None,
                "function f, update of a row that exists: it returned None; a conflict.rules.decision.",
            ),
            (HERE, WRITE, 1, "function f, write of a row that exists: it returned 1"),
            (HERE, UPDATE, Decision(Verdict.SKIPPED), "the verdict must be APPLIED, REJECTED, IGNORED or MERGED"),
            (HERE, UPDATE, Decision(Verdict.DISCARDED), "the verdict must be"),
            (HERE, UPDATE, Decision(Verdict.REJECTED), "a rejected operation needs a cause, and no other has one"),
            (
                HERE,
                UPDATE,
                Decision(Verdict.APPLIED, Cause.ROW_IN_CONFLICT),
                "a rejected operation needs a cause, and no other has one",
            ),
            (GONE, UPDATE, APPLIED, "function f, update of a row that does not exist"),
            (GONE, DELETE, APPLIED, "a missing row cannot be changed"),
            (HERE, UPDATE, Decision(Verdict.REJECTED, Cause.ROW_IN_CONFLICT, -1, 0), "whole numbers from 0 to 2^64"),
            (HERE, UPDATE, Decision(Verdict.REJECTED, Cause.ROW_IN_CONFLICT, 0, 2**64), "whole numbers"),
        ],
    )
    def test_refused(self, row: RowState, operation: Operation, answer: object, complaint: str):
        """Function, operation and the answer are named."""
        spec = python_function("f", always(answer))
        assert complaint in message_of(lambda: spec.decide(row, IncomingOperation(operation)))

    def test_a_rule_that_fails(self):
        """Its error is named, with the operation."""

        def divide(row: RowState, incoming: IncomingOperation) -> Decision:
            return Decision(Verdict.APPLIED, stored=(incoming.after or 1) // (row.value or 0))

        spec = python_function("divide", divide)
        assert message_of(lambda: spec.decide(GONE, IncomingOperation(DELETE))) == (
            "function divide, delete of a row that does not exist: it failed with ZeroDivisionError: "
            "integer division or modulo by zero"
        )


class TestSetUp:
    """Where such a function is used."""

    def set_up(self, text: str):
        """Return the set-up of a table with this conflict_fn."""
        schema = parse_schema("CREATE TABLE t (k INT PRIMARY KEY, x INT UNSIGNED, y DATETIME)", database="d")
        functions = load_functions(["docs.examples.at_least:at_least"])
        return set_up(schema, [ReplicationRow("d", "t", 0, 7, text)], 1, None, functions)["d.t"]

    def test_found(self):
        """By its name, with its column."""
        function = self.set_up(" at_least ( x ) ").function
        assert str(function) == "at_least(x)"

    @pytest.mark.parametrize(
        ("text", "kind"),
        [
            ("at_least(z)", RefusalKind.NO_COLUMN),
            ("at_least(y)", RefusalKind.WRONG_TYPE),
            ("at_least()", RefusalKind.PARSE),
            ("AT_LEAST(x)", RefusalKind.PARSE),
        ],
    )
    def test_refused(self, text: str, kind: RefusalKind):
        """As any function of a column."""
        refusal = self.set_up(text).refusal
        assert refusal is not None
        assert refusal.kind is kind

    def test_the_longest_name_counts(self):
        """One name may begin another."""
        specs = [python_function(name, at_least) for name in ("late", "later")]
        assert parse_conflict_function("later(x)", specs).spec.name == "later"
        assert parse_conflict_function("late(x)", specs).spec.name == "late"

    def test_counters(self):
        """Those of the server first; a counter that nobody announced is counted from 0."""
        counters = zero_counters(load_functions(["docs.examples.at_least:at_least"]))
        assert list(counters) == [*COUNTERS, "Ndb_conflict_fn_at_least"]
        assert set(counters.values()) == {0}
        assert add_counters([{"mine": 2}, {"mine": 3}])["mine"] == 5


def test_a_rule_in_python_runs_in_the_reference_engine_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other engines refuse it by its name, before anything is read."""
    monkeypatch.chdir(ROOT)
    for file in DEMO.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    run = tmp_path / "run.toml"
    run.write_text(run.read_text().replace("NDB$EPOCH()", "at_least(x)"))
    arguments = ["resolve", str(run), "--function", "docs.examples.at_least:at_least", "--engine"]
    done = CliRunner().invoke(cli.app, [*arguments, "reference", "--out", str(tmp_path / "reference")])
    assert done.exit_code == ExitCode.CONTRADICTED  # the binlogs were written under another function
    found = json.loads((tmp_path / "reference" / "counters.json").read_text())
    assert {name: each["Ndb_conflict_fn_at_least"] for name, each in found.items()} == {"A": 22, "B": 0}
    for engine in ("spark", "local"):
        done = CliRunner().invoke(cli.app, [*arguments, engine, "--out", str(tmp_path / engine)])
        assert done.exit_code == 2
        assert "at_least is a rule in Python, which only --engine reference runs" in " ".join(done.output.split())
        assert not (tmp_path / engine).exists()
