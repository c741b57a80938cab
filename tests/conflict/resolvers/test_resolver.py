"""A resolver as a value: what it declares, what follows from that, and where it is found."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

import conflict
from conflict.checking.deployment import Deployment, TableLogging
from conflict.checking.requirements import example_table, mark, requirements
from conflict.errors import ConfigurationError
from conflict.resolvers.resolver import resolver
from conflict.resolvers.user_policies import SHIPPED, asked_function, load_functions, policies_of_tables, reference_of
from conflict.rules.decision import Cause, Decision, IncomingOperation, RowState, Verdict
from conflict.rules.functions import FUNCTIONS, Argument, ConflictFunction, typed_function
from conflict.rules.own_rule import EVERYTHING, Image, Read
from conflict.rules.seen import ColumnValues, FoundRow, IncomingChange, merge, reject
from docs.examples.highest import highest
from ndb_formats.constants import ColumnCode
from ndb_formats.events.row_image import layout_of_types
from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.create_table import parse_create_table
from ndb_formats.types.column_types import WireType
from ndb_formats.types.values import ABSENT

WRITE, UPDATE, DELETE = Operation.WRITE_ROW, Operation.UPDATE_ROW, Operation.DELETE_ROW
HERE, GONE = FoundRow(True, values={"v": 7}), FoundRow(False)


def apply(row: FoundRow, change: IncomingChange) -> Decision:  # noqa: ARG001  # a resolver takes both
    """Apply everything."""
    return conflict.APPLY


class TestDeclared:
    """From a declaration to a function that engines take."""

    def test_a_bare_decorator(self):
        """It takes no column, needs nothing, reads all."""
        made = resolver(apply)
        assert (made.name, made.spec.argument, made.spec.refreshes) == ("apply", Argument.GCI_BITS, False)
        assert made.spec.own is not None
        assert (made.spec.own.reads, dict(made.spec.needs)) == (EVERYTHING, {})
        assert str(typed_function("apply()", (*FUNCTIONS, made.spec))) == "apply()"

    def test_needs(self):
        """Words per operation; what needs the column takes one."""
        made = resolver(needs={"update": ["column after", "changed before"], "delete": "column before"})(apply)
        assert dict(made.spec.needs) == {UPDATE: Image.AFTER, DELETE: Image.BEFORE}
        assert made.spec.needs_changed == {UPDATE}
        assert made.spec.argument is Argument.COLUMN

    def test_transactions_are_refreshed(self):
        """As by the functions of the server; the resolver is on every cluster all the same."""
        made = resolver(transactional=True)(apply).spec
        assert (made.transactional, made.refreshes, made.by_epoch, made.on_primary_alone) == (True, True, False, False)

    @pytest.mark.parametrize(
        ("declared", "complaint"),
        [
            ({"needs": {"updat": "column after"}}, "needs of 'updat' (did you mean update?); the operations are write"),
            ({"needs": {"update": "before"}}, "update needs 'before'"),
            ({"needs": {"update": ["column before", "column after"]}}, "the column both before and after"),
            (
                {"reads": ["time"]},
                "reads 'time' (did you mean times?); it can read values, times, sites, epochs, unseen",
            ),
            ({"name": "a b"}, "'a b' is no name for conflict_fn"),
        ],
    )
    def test_refused(self, declared: dict[str, Any], complaint: str):
        """What is not known is named, with what is."""
        with pytest.raises(ConfigurationError) as caught:
            resolver(**declared)(apply)
        assert complaint in str(caught.value)

    def test_a_row_of_cells(self):
        """It is a function like those of the server, with no rule to call."""
        made = conflict.Resolver.row("LATER", write="reject if present", update="greater", delete="equal")
        assert (made.spec.own, dict(made.spec.needs)) == (None, {UPDATE: Image.AFTER, DELETE: Image.BEFORE})
        assert made(RowState(True, value=1), IncomingOperation(UPDATE, after=2)).verdict is Verdict.APPLIED
        with pytest.raises(ConfigurationError, match="update is 'bigger'; it must be one of"):
            conflict.Resolver.row("LATER", write="apply", update="bigger", delete="equal")

    def test_answers(self):
        """A merge names columns, a rejection a cause; other answers are refused with the function's name."""
        assert merge({"v": 1}, w=None).writes == (("v", 1), ("w", None))
        assert reject("ROW_ALREADY_EXISTS").cause is Cause.ROW_ALREADY_EXISTS
        for answer, complaint in (
            (merge(), "a merge names the columns that it writes"),
            (None, "a conflict.rules.decision.Decision is needed"),
        ):
            with pytest.raises(ConfigurationError, match=complaint):
                resolver(lambda row, change, answer=answer: answer, name="f")(HERE, IncomingChange(UPDATE))  # type: ignore[call-overload]
        with pytest.raises(ConfigurationError, match="a missing row cannot be changed"):
            resolver(name="f")(lambda row, change: merge(v=1))(GONE, IncomingChange(UPDATE))


class TestFormats:
    """From what is declared follows which formats are refused."""

    @pytest.mark.parametrize(
        ("needs", "marks"),
        [
            ({}, "ok ok ok ok ok ok ok ok"),
            ({"update": "changed before"}, "W! W! W! ok ok ok refused refused"),
            ({"update": "column before"}, "W! W! W! U? U? ok refused refused"),
            ({"update": "column after"}, "ok ok ok U? U? ok U? ok"),
            ({"delete": "column before"}, "D! D! ok D! D! ok D! ok"),
        ],
    )
    def test_marks(self, needs: dict[str, str], marks: str):
        """The types 0, 2, 3, 4, 6, 7, 8, 9; 8 and 9 have the key alone before an update; see docs/formats.md."""
        function = ConflictFunction(resolver(needs=needs)(apply).spec, "version" if "column" in str(needs) else None)
        found = [
            mark(requirements(Deployment(function, example_table(), TableLogging(number))))
            for number in (0, 2, 3, 4, 6, 7, 8, 9)
        ]
        assert " ".join(found) == marks


class TestFound:
    """By name, in files, as values."""

    def test_those_that_come_with_the_program(self):
        """Each by its name alone."""
        assert [load_functions([name])[-1].name for name in SHIPPED] == list(SHIPPED)

    def test_what_a_user_asks_for(self):
        """A conflict_fn as it stands; a name with or without an argument."""
        assert asked_function("NDB$MAX(x)") == ("NDB$MAX(x)", FUNCTIONS)
        assert asked_function("last_writer")[0] == "last_writer()"
        assert asked_function("docs.examples.at_least:at_least(x)")[0] == "at_least(x)"
        assert asked_function(highest)[0] == "highest()"
        with pytest.raises(ConfigurationError, match=r"function no\.such:rule: module no\.such cannot be"):
            asked_function("no.such:rule()")

    def test_tables(self):
        """A run file has all three forms."""
        row = {"name": "N", "write": "apply", "update": "apply", "delete": "apply"}
        program = {"name": "p", "command": "cat", "needs": {"update": ["changed before"]}, "reads": ["values"]}
        found = policies_of_tables([row, {"rule": "last_writer"}, program])
        assert [each.name for each in found] == ["N", "last_writer", "p"]
        assert found[2].needs_changed == {UPDATE}
        assert found[2].own is not None
        assert found[2].own.reads == {Read.VALUES}
        for wrong, complaint in (
            ({"rule": "last_writer", "name": "x"}, "conflict_function#1"),
            ({"command": "cat"}, "conflict_function#1"),
        ):
            with pytest.raises(ConfigurationError, match=complaint):
                policies_of_tables([wrong])

    def test_a_value_is_found_again(self):
        """By its module and name, where it stands there."""
        assert reference_of(highest) == "docs.examples.highest:highest"
        assert load_functions([reference_of(highest)])[-1] == highest.spec
        assert reference_of("last_writer") == "last_writer"


def test_columns_by_name():
    """Absent is not NULL, and a column that the table does not have is neither."""
    table = parse_create_table("CREATE TABLE t (k INT PRIMARY KEY, v INT, w INT) ENGINE=NDB")
    layout = layout_of_types(table, (WireType(ColumnCode.LONG),) * 3)
    columns = ColumnValues(table, layout, {0: b"\1\0\0\0", 1: None})
    assert (dict(columns), "w" in columns, columns["w"]) == ({"k": 1, "v": None}, False, ABSENT)
    with pytest.raises(KeyError, match="has no column x; it has k, v, w"):
        columns["x"]


def test_a_change_says_its_kind():
    """As a word."""
    assert [IncomingChange(each).kind for each in (WRITE, UPDATE, DELETE)] == ["write", "update", "delete"]


class TestPrograms:
    """A program answers lines of JSON."""

    @staticmethod
    def program(folder: Path, text: str) -> conflict.Resolver:
        """Return a resolver that asks a program in Python."""
        (folder / "rule.py").write_text(text)
        return conflict.Resolver.command(["python", str(folder / "rule.py")], name="mine")

    def test_it_answers(self):
        """As the same rule in Python; two processes do not mix."""
        first, second = (
            conflict.Resolver.command("python docs/examples/highest_lines.py", name="highest") for _ in range(2)
        )
        for new in (9, 3, 8):
            change = IncomingChange(UPDATE, new={"v": new})
            assert first(HERE, change).verdict == second(HERE, change).verdict == highest(HERE, change).verdict
        assert first(GONE, IncomingChange(UPDATE)).verdict is Verdict.IGNORED

    def test_what_it_reads_and_writes(self, tmp_path: Path):
        """Bytes are told from text both ways; a rejection can say what was compared."""
        said = self.program(
            tmp_path,
            "import sys, json\n"
            "for line in sys.stdin:\n"
            "    asked = json.loads(line)\n"
            "    old = asked['change']['old']\n"
            "    said = {'merge': old} if old else {'reject': 'ROW_IN_CONFLICT', 'stored': 5}\n"
            "    print(json.dumps(said), flush=True)\n",
        )
        old = {"b": b"\0\xff", "n": None}
        assert dict(said(HERE, IncomingChange(UPDATE, old=old)).writes) == old
        assert said(HERE, IncomingChange(UPDATE)) == reject(stored=5)

    @pytest.mark.parametrize(
        ("text", "complaint"),
        [
            ("raise SystemExit('no licence')", "ended with 1 before it answered: no licence"),
            ("input(); print('perhaps', flush=True)", "answered 'perhaps'; it must be"),
            ('input(); print(\'{"reject": "TODAY"}\', flush=True)', "it must be"),
            ("input(); print('[1]', flush=True)", "it must be"),
        ],
    )
    def test_nonsense(self, text: str, complaint: str, tmp_path: Path):
        """The error names the function and the program, and shows what it said."""
        with pytest.raises(ConfigurationError) as caught:
            self.program(tmp_path, text)(HERE, IncomingChange(UPDATE))
        assert complaint in str(caught.value)
        assert "function mine, update of a row that exists" in str(caught.value)
        assert "rule.py" in str(caught.value)

    def test_one_that_is_not_there(self):
        """It cannot be started."""
        with pytest.raises(ConfigurationError, match="no-such-program cannot be started"):
            conflict.Resolver.command("no-such-program", name="f")(HERE, IncomingChange(UPDATE))
        with pytest.raises(ConfigurationError, match="the command of a resolver is empty"):
            conflict.Resolver.command("", name="f")

    def test_it_goes_to_other_processes(self):
        """Pickled, it is the command, and starts a process of its own."""
        rule = conflict.Resolver.command("python docs/examples/highest_lines.py", name="highest").rule
        assert rule is not None
        rule(HERE, IncomingChange(UPDATE, new={"v": 9}))
        assert pickle.loads(pickle.dumps(rule))(HERE, IncomingChange(UPDATE, new={"v": 3})) == reject()
