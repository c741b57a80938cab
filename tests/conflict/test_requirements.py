"""Which function works with which binlog type: every cell of the table, every refusal, what would work instead."""

from typing import Any

import pytest

from conflict.compatibility.arriving_changes import Change, Fate
from conflict.compatibility.pairing import Pairing, Policy, TableLogging
from conflict.compatibility.reasons import Concern
from conflict.compatibility.requirements import (
    TABLE_TYPES,
    Answer,
    Status,
    example_function,
    example_table,
    mark,
    requirements,
    requirements_table,
)
from conflict.rules.conflict_fn_text import parse_conflict_function
from conflict.rules.functions import FUNCTIONS
from conflict.rules.roles import Role
from ndb_formats.rules.update_format import ServerOptions
from ndb_formats.schema.create_table import parse_create_table

TYPE_7, TYPE_9 = "binlog_type = 7 FULL_USE_UPDATE", "binlog_type = 9 FULL_USE_UPDATE_MINIMAL"
T = "k INT PRIMARY KEY, x INT UNSIGNED NOT NULL, v INT"

# What each pair can judge, worked out by hand from what each type logs. Beside W! a delete that lacks the before
# value is marked, too: recorded, the appliers of OLD and MAX stop at it under type 2.
BY_HAND = {
    #                        2            3          6            7     8            9
    "NDB$OLD": ["W! D!", "W!", "U? D!", "ok", "refused", "refused"],
    "NDB$MAX": ["W! D!", "W!", "U? D!", "ok", "U? D!", "ok"],
    "NDB$MAX_DELETE_WIN": ["W!", "W!", "U?", "ok", "U?", "ok"],
    "NDB$MAX_INS": ["U? D!", "ok", "U? D!", "ok", "U? D!", "ok"],
    "NDB$MAX_DEL_WIN_INS": ["U?", "ok", "U?", "ok", "U?", "ok"],
    "NDB$EPOCH": ["W!", "W!", "ok", "ok", "ok", "ok"],
    "NDB$EPOCH_TRANS": ["W!", "W!", "ok", "ok", "ok", "ok"],
    "NDB$EPOCH2": ["refused", "refused", "ok", "ok", "ok", "ok"],
    "NDB$EPOCH2_TRANS": ["refused", "refused", "ok", "ok", "ok", "ok"],
}
TYPES = (2, 3, 6, 7, 8, 9)
CELLS = [(name, number, cell) for name, row in BY_HAND.items() for number, cell in zip(TYPES, row, strict=True)]
EPOCHS = [spec.name for spec in FUNCTIONS if not spec.needs]
BY_COLUMN = [spec.name for spec in FUNCTIONS if spec.needs]


def ask(
    function: str, number: int, columns: str = T, *, policy: Policy = Policy.NEEDS, own: int | None = None, **more: Any
) -> Answer:
    """Return the answer for a function on table `d.t`; `options` and `transaction_ids` go to the logging."""
    logged = {name: more.pop(name) for name in ("options", "transaction_ids") if name in more}
    table = parse_create_table(f"CREATE TABLE t ({columns}) ENGINE=NDB", database="d")
    pairing = Pairing(
        parse_conflict_function(function),
        table,
        TableLogging(number, **logged),
        own=None if own is None else TableLogging(own, **logged),
        **more,
    )
    return requirements(pairing, policy)


def concerns(answer: Answer) -> list[Concern]:
    """Return what the reasons of an answer are about."""
    return [reason.concern for reason in answer.reasons]


def cell(name: str, number: int, policy: Policy, options: ServerOptions | None = None) -> str:
    """Return a cell of the table."""
    spec = next(spec for spec in FUNCTIONS if spec.name == name)
    logging = TableLogging(number, options or ServerOptions())
    return mark(requirements(Pairing(example_function(spec), example_table(), logging), policy))


def offered(answer: Answer) -> list[str]:
    """Return what would work, as text."""
    return [str(setting) for setting in answer.nearest]


class TestTheTable:
    """Functions and types."""

    @pytest.mark.parametrize(("name", "number", "expected"), CELLS)
    def test_needs(self, name: str, number: int, expected: str):
        """What is derived is what was worked out by hand."""
        assert cell(name, number, Policy.NEEDS) == expected

    @pytest.mark.parametrize(("name", "number", "expected"), CELLS)
    def test_manual(self, name: str, number: int, expected: str):
        """Policy manual refuses types 8 and 9 for all that compares a column, and changes nothing else."""
        strict = "refused" if name in BY_COLUMN and number in (8, 9) else expected
        assert cell(name, number, Policy.MANUAL) == strict

    @pytest.mark.parametrize("name", BY_HAND)
    @pytest.mark.parametrize("policy", Policy)
    def test_types_that_mean_the_same(self, name: str, policy: Policy):
        """Type 4 is as 6, type 0 as 2 by default, and types that the server does not know as 2."""
        assert cell(name, 4, policy) == cell(name, 6, policy)
        assert {cell(name, number, policy) for number in (0, 5, 10)} == {cell(name, 2, policy)}

    @pytest.mark.parametrize(
        ("updated_only", "as_write", "minimal", "same"),
        [
            (True, True, False, 2), (True, True, True, 2), (False, True, False, 3), (False, True, True, 3),
            (True, False, False, 6), (False, False, False, 7), (True, False, True, 8), (False, False, True, 9),
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("name", BY_HAND)
    @pytest.mark.parametrize("policy", Policy)
    def test_type_0_is_what_the_options_make_of_it(
        self, name: str, policy: Policy, updated_only: bool, as_write: bool, minimal: bool, same: int
    ):
        """Also for policy manual: options that come to type 8 or 9 are refused as these are."""
        options = ServerOptions(updated_only, as_write, minimal)
        assert cell(name, 0, policy, options) == cell(name, same, policy)

    @pytest.mark.parametrize("name", BY_HAND)
    @pytest.mark.parametrize("policy", Policy)
    def test_nothing_is_logged_under_type_1(self, name: str, policy: Policy):
        """No function works on what never arrives."""
        assert cell(name, 1, policy) == "refused"

    def test_markdown(self):
        """One row per function, one column per type, the marks as cells."""
        lines = requirements_table().splitlines()
        assert lines[0] == "| function | 0 | 2 | 3 | 4 | 6 | 7 | 8 | 9 |"
        assert lines[3] == "| `NDB$MAX` | W! D! | W! D! | W! | U? D! | U? D! | ok | U? D! | ok |"
        assert (len(lines), len(TABLE_TYPES)) == (2 + len(FUNCTIONS), 8)


class TestWhatArrives:
    """The changes of an answer."""

    def test_each_kind_of_change(self):
        """What the event carries, what is needed of it, and what becomes of it."""
        answer = ask("NDB$MAX(x)", 8)
        assert [
            (change.name, change.event and (change.event.before, change.event.after), change.fate)
            for change in answer.changes
        ] == [
            ("insert", (None, (0, 1, 2)), Fate.JUDGED),
            ("update that sets x", ((0,), (1,)), Fate.JUDGED),
            ("update that does not set x", ((0,), (2,)), Fate.STOPS),
            ("delete", ((0,), None), Fate.STOPS),
        ]
        assert answer.not_judged == answer.changes[2:]

    def test_functions_by_epoch_know_one_kind_of_update(self):
        """They compare no column, so it does not matter which one is set."""
        answer = ask("NDB$EPOCH()", 8)
        assert [change.change for change in answer.changes] == [Change.INSERT, Change.UPDATE, Change.DELETE]

    def test_a_table_of_key_and_resolve_column(self):
        """Every update sets the column, so type 8 leaves nothing to ask for but deletes."""
        answer = ask("NDB$MAX(x)", 8, "k INT PRIMARY KEY, x INT UNSIGNED")
        assert [change.change for change in answer.changes] == [Change.INSERT, Change.UPDATE_SETTING, Change.DELETE]
        assert mark(answer) == "D!"

    def test_a_table_of_the_key_alone(self):
        """There are no updates, so none can be missed."""
        assert mark(ask("NDB$OLD(k)", 8, "k INT UNSIGNED PRIMARY KEY")) == "ok"

    def test_a_stored_generated_column(self):
        """A column that is computed again by every update is in every image."""
        columns = "k INT PRIMARY KEY, v INT NOT NULL, x INT UNSIGNED GENERATED ALWAYS AS (v + 1) STORED"
        assert mark(ask("NDB$MAX_DELETE_WIN(x)", 8, columns)) == "ok"
        assert mark(ask("NDB$MAX_DELETE_WIN(x)", 8, columns + ", w INT")) == "U?"

    def test_a_virtual_generated_column(self):
        """A column that is not stored is in no image."""
        columns = "k INT PRIMARY KEY, v INT NOT NULL, x INT UNSIGNED GENERATED ALWAYS AS (v + 1) VIRTUAL"
        assert concerns(ask("NDB$MAX(x)", 7, columns))[0] is Concern.NO_UPDATE

    @pytest.mark.parametrize(
        ("function", "number", "policy", "expected"),
        [
            ("NDB$OLD(k)", 8, Policy.NEEDS, "ok"),
            ("NDB$OLD(k)", 8, Policy.MANUAL, "refused"),  # named by the manual
            ("NDB$OLD(k)", 6, Policy.MANUAL, "ok"),
            ("NDB$MAX_DELETE_WIN(k)", 6, Policy.NEEDS, "ok"),
            ("NDB$MAX_DELETE_WIN(k)", 9, Policy.NEEDS, "refused"),  # the key is not in the after image
        ],
    )
    def test_a_resolve_column_in_the_key(self, function: str, number: int, policy: Policy, expected: str):
        """The key is in every before image and in no after image of the minimal types."""
        answer = ask(function, number, "k INT UNSIGNED PRIMARY KEY, v INT", policy=policy)
        assert mark(answer) == expected
        assert any("the same on both sides of every update" in note for note in answer.notes)


class TestRefusals:
    """What refuses a pair, with the server's number and words and what is at fault."""

    @pytest.mark.parametrize("name", BY_COLUMN)
    def test_resolve_column(self, name: str):
        """It must exist and be INT UNSIGNED or BIGINT UNSIGNED."""
        for function, columns, words, works in (
            (f"{name}(y)", T, "Could not find resolve column y.", "conflict_fn = {}(x)"),
            (f"{name}(x)", "k INT PRIMARY KEY, x INT", "Column 'x' has wrong datatype", "column x = INT UNSIGNED"),
            (f"{name}(x)", "k INT PRIMARY KEY, x DATE", "Column 'x' has wrong datatype", "column x = BIGINT UNSIGNED"),
        ):
            answer = ask(function, 7, columns)
            (reason,) = answer.reasons
            assert (reason.concern, reason.error, reason.server) == (Concern.CREATE_REFUSED, 1005, words)
            assert (answer.status, reason.at) == (Status.REFUSED, function[-2])
            assert offered(answer)[0] == works.format(name)

    @pytest.mark.parametrize("name", EPOCHS)
    def test_blobs(self, name: str):
        """No function by epoch stands on a table with blobs; they can be moved to another one."""
        answer = ask(f"{name}()", 7, T + ", note TEXT, doc JSON")
        (reason,) = answer.reasons
        assert (reason.concern, reason.error, reason.at) == (Concern.CREATE_REFUSED, 1005, "note")
        assert reason.server == f"Table has Blob column(s), not suitable for {name}."
        assert offered(answer) == ["note, doc = in a table of their own"]
        assert ask("NDB$MAX(x)", 7, T + ", note TEXT").status is Status.USABLE

    @pytest.mark.parametrize("name", ["NDB$EPOCH2", "NDB$EPOCH2_TRANS"])
    def test_updates_as_writes(self, name: str):
        """The applier's own cluster decides, since it is there that the table is created."""
        answer = ask(f"{name}()", 3)
        assert concerns(answer) == [Concern.CREATE_REFUSED, Concern.AS_WRITES]
        assert (answer.reasons[0].error, answer.reasons[0].at) == (1005, "binlog_type")
        assert "configured to log updates as writes" in (answer.reasons[0].server or "")
        assert offered(answer)[0] == TYPE_7
        assert concerns(ask(f"{name}()", 7, own=3)) == [Concern.CREATE_REFUSED]
        assert concerns(ask(f"{name}()", 3, own=7)) == [Concern.AS_WRITES]

    def test_an_option_is_at_fault_and_would_work(self):
        """Under type 0 it is an option that makes writes of updates."""
        answer = ask("NDB$EPOCH2()", 0)
        assert answer.reasons[0].at == "ndb_log_update_as_write"
        assert offered(answer)[:2] == ["binlog_type = 6 UPDATED_ONLY_USE_UPDATE", "ndb_log_update_as_write = OFF"]

    @pytest.mark.parametrize("name", ["NDB$EPOCH2", "NDB$EPOCH2_TRANS"])
    def test_no_role(self, name: str):
        """The applier stops; either role would do, the other cluster's is taken."""
        answer = ask(f"{name}()", 7, role=Role.NONE, peer_role=Role.SECONDARY)
        (reason,) = answer.reasons
        assert (reason.concern, reason.error, reason.at) == (Concern.NO_ROLE, 1296, "ndb_applier_conflict_role")
        assert "requires ndb_applier_conflict_role variable to be set" in (reason.server or "")
        assert offered(answer)[0] == "ndb_applier_conflict_role = PRIMARY"
        assert "ndb_applier_conflict_role = SECONDARY" not in offered(answer)
        assert ask(f"{name}()", 7, role=Role.PRIMARY).status is Status.USABLE

    @pytest.mark.parametrize("name", [*BY_COLUMN, "NDB$EPOCH", "NDB$EPOCH_TRANS"])
    def test_other_functions_need_no_role(self, name: str):
        """Roles are nothing to them."""
        function = f"{name}(x)" if name in BY_COLUMN else f"{name}()"
        assert ask(function, 7, role=Role.NONE, peer_role=Role.NONE).status is Status.USABLE

    @pytest.mark.parametrize("name", ["NDB$EPOCH_TRANS", "NDB$EPOCH2_TRANS"])
    def test_no_transaction_ids(self, name: str):
        """The applier stops; ids, or the function by rows, would work."""
        answer = ask(f"{name}()", 7, transaction_ids=False)
        (reason,) = answer.reasons
        assert (reason.concern, reason.error, reason.at) == (Concern.NO_TRANSACTION_IDS, 1296, "ndb_log_transaction_id")
        assert offered(answer)[0] == "ndb_log_transaction_id = ON"
        assert f"conflict_fn = {name.removesuffix('_TRANS')}(6)" in offered(answer)
        assert ask(f"{name.removesuffix('_TRANS')}()", 7, transaction_ids=False).status is Status.USABLE

    @pytest.mark.parametrize("name", BY_COLUMN)
    def test_no_primary_key(self, name: str):
        """All images are full, but no row can be found by them; nothing mends that but a key."""
        answer = ask(f"{name}(x)", 8, "x INT UNSIGNED, v INT")
        assert Concern.NO_KEY in concerns(answer)
        assert (answer.status, answer.nearest) == (Status.REFUSED, ())

    def test_nothing_logged(self):
        """Under type 1 nothing arrives, whatever the own cluster logs."""
        answer = ask("NDB$MAX(x)", 1)
        assert concerns(answer) == [Concern.NOT_LOGGED]
        assert {change.fate for change in answer.changes} == {Fate.NOT_LOGGED}
        assert offered(answer)[0] == TYPE_7

    @pytest.mark.parametrize("number", [8, 9])
    def test_by_policy(self, number: int):
        """The manual names OLD and MAX; others must need key values alone. The server goes on with all of them."""
        assert (
            "NDB$OLD and NDB$MAX do not work correctly"
            in ask("NDB$MAX(x)", number, policy=Policy.MANUAL).reasons[0].message
        )
        answer = ask("NDB$MAX_INS(x)", number, policy=Policy.MANUAL)
        assert "does not name NDB$MAX_INS" in answer.reasons[0].message
        assert answer.by_policy
        assert offered(answer)[0] == TYPE_7
        assert not ask("NDB$MAX_INS(x)", number).by_policy
        options = ServerOptions(number == 8, ndb_log_update_as_write=False, ndb_log_update_minimal=True)
        assert ask("NDB$OLD(x)", 0, policy=Policy.MANUAL, options=options).reasons[0].at == "ndb_log_update_minimal"

    def test_no_update_can_be_judged(self):
        """NDB$OLD under type 9: updates lack the old value, deletes have it."""
        answer = ask("NDB$OLD(x)", 9)
        (reason,) = answer.reasons
        assert (reason.concern, reason.error, reason.at) == (Concern.NO_UPDATE, 1296, "x")
        assert "missing info necessary for conflict detection" in (reason.server or "")

    def test_what_refuses_comes_first(self):
        """The reasons are in order, whatever found them."""
        answer = ask("NDB$EPOCH2_TRANS()", 2, T + ", UNIQUE (v)", role=Role.NONE, transaction_ids=False)
        refuses = [reason.concern.refuses for reason in answer.reasons]
        assert refuses == sorted(refuses, reverse=True)
        assert len(answer.reasons) == 5


class TestLimits:
    """What is usable, but."""

    def test_role_pass(self):
        """The function is ignored."""
        answer = ask("NDB$EPOCH2()", 7, role=Role.PASS, peer_role=Role.PRIMARY)
        assert (concerns(answer), answer.status) == ([Concern.ROLE_PASS], Status.USABLE_BUT)
        assert offered(answer)[0] == "ndb_applier_conflict_role = SECONDARY"

    @pytest.mark.parametrize("role", [Role.PRIMARY, Role.SECONDARY])
    def test_same_roles(self, role: Role):
        """One of each kind is needed."""
        answer = ask("NDB$EPOCH2()", 7, role=role, peer_role=role)
        assert (concerns(answer), answer.status) == ([Concern.SAME_ROLES], Status.USABLE_BUT)

    @pytest.mark.parametrize("name", ["NDB$EPOCH", "NDB$EPOCH_TRANS"])
    def test_both_primary(self, name: str):
        """It never settles; functions with roles may stand on both."""
        answer = ask(f"{name}()", 7, on_both=True)
        assert (concerns(answer), answer.status) == ([Concern.BOTH_PRIMARY], Status.USABLE_BUT)
        assert offered(answer)[0] == "conflict_fn of one cluster only = NULL"
        assert ask("NDB$EPOCH2()", 7, on_both=True).status is Status.USABLE
        assert ask("NDB$MAX(x)", 7, on_both=True).status is Status.USABLE

    def test_refreshes_that_are_not_logged(self):
        """Rows are sent again through the own binlog."""
        assert concerns(ask("NDB$EPOCH()", 7, own=1)) == [Concern.NO_REFRESH]
        assert concerns(ask("NDB$MAX(x)", 7, own=1)) == []

    @pytest.mark.parametrize("name", ["NDB$EPOCH_TRANS", "NDB$EPOCH2_TRANS"])
    def test_blobs_in_reach(self, name: str):
        """A transaction in conflict that touched blobs stops the applier."""
        notes = parse_create_table("CREATE TABLE notes (k INT PRIMARY KEY, n TEXT) ENGINE=NDB", database="d")
        answer = ask(f"{name}()", 7, others=(notes,))
        (reason,) = answer.reasons
        assert (reason.concern, reason.error, reason.at) == (Concern.BLOBS_IN_REACH, 1296, "d.notes")
        assert "1627" in reason.message
        assert ask(f"{name.removesuffix('_TRANS')}()", 7, others=(notes,)).status is Status.USABLE
        assert offered(ask(f"{name}()", 3, others=(notes,)))[0] == TYPE_7

    @pytest.mark.parametrize("spec", FUNCTIONS, ids=lambda spec: spec.name)
    def test_unique_keys(self, spec: Any):
        """They stop the applier under every function, and no setting mends that."""
        answer = ask(str(example_function(spec, "x")), 7, T + ", UNIQUE (v)")
        (reason,) = answer.reasons
        assert (reason.concern, reason.error, reason.at) == (Concern.UNIQUE_KEYS, 1022, "v")
        assert (answer.status, answer.nearest) == (Status.USABLE_BUT, ())

    def test_only_the_other_cluster_s_logging_counts(self):
        """What arrives is logged there."""
        assert mark(ask("NDB$MAX(x)", 7, own=2)) == "ok"
        assert mark(ask("NDB$MAX(x)", 2, own=7)) == "W! D!"


class TestNearest:
    """What would work, the smallest change first."""

    @pytest.mark.parametrize(
        ("function", "number", "policy", "expected"),
        [
            ("NDB$MAX(x)", 8, Policy.NEEDS, [TYPE_9, TYPE_7]),
            ("NDB$MAX(x)", 8, Policy.MANUAL, [TYPE_7]),
            ("NDB$MAX(x)", 6, Policy.NEEDS, [TYPE_7, TYPE_9]),
            ("NDB$OLD(x)", 6, Policy.NEEDS, [TYPE_7]),
            ("NDB$EPOCH()", 3, Policy.MANUAL, [
                TYPE_7, "binlog_type = 6 UPDATED_ONLY_USE_UPDATE",
                TYPE_9, "binlog_type = 8 UPDATED_ONLY_USE_UPDATE_MINIMAL",
            ]),
            ("NDB$MAX(x)", 3, Policy.MANUAL, [
                TYPE_7, "conflict_fn = NDB$MAX_INS(x)", "conflict_fn = NDB$MAX_DEL_WIN_INS(x)",
            ]),
        ],
    )  # fmt: skip
    def test_types_and_functions(self, function: str, number: int, policy: Policy, expected: list[str]):
        """The type with the fewest differences comes first, then functions of the same family."""
        assert offered(ask(function, number, policy=policy)) == expected

    def test_two_changes_where_one_is_not_enough(self):
        """A role and a type are both wrong."""
        answer = ask("NDB$EPOCH2()", 3, role=Role.NONE, peer_role=Role.PRIMARY)
        assert offered(answer)[0] == "binlog_type = 7 FULL_USE_UPDATE and ndb_applier_conflict_role = SECONDARY"

    def test_nothing_new_is_brought_in(self):
        """The function by transactions would need no role, but could meet blobs."""
        notes = parse_create_table("CREATE TABLE notes (k INT PRIMARY KEY, n TEXT) ENGINE=NDB", database="d")
        answer = ask("NDB$EPOCH2()", 7, role=Role.NONE, others=(notes,))
        assert "conflict_fn = NDB$EPOCH(6)" in offered(answer)
        assert "conflict_fn = NDB$EPOCH_TRANS(6)" not in offered(answer)

    def test_nothing_is_offered_for_what_works(self):
        """There is nothing to mend."""
        assert ask("NDB$MAX(x)", 7).nearest == ()


class TestNotes:
    """What the settings do not show."""

    @pytest.mark.parametrize(
        ("function", "number", "columns", "words"),
        [
            ("NDB$MAX(x)", 7, "k INT PRIMARY KEY, x INT UNSIGNED", "can be NULL, which compares as 0"),
            ("NDB$EPOCH()", 7, T, "cluster whose server id the function's row names"),
            ("NDB$EPOCH()", 7, T, "ndb_log_apply_status=ON"),
            ("NDB$EPOCH2()", 7, T, "one PRIMARY, the other SECONDARY"),
            ("NDB$EPOCH_TRANS()", 7, T, "ndb_log_transaction_id=ON"),
            ("NDB$EPOCH_TRANS()", 8, T, "have no effect"),
            ("NDB$EPOCH(0)", 7, T, "more conflicts are found than there are"),
        ],
    )
    def test_notes(self, function: str, number: int, columns: str, words: str):
        """They do not change the verdict."""
        answer = ask(function, number, columns)
        assert any(words in note for note in answer.notes)
        assert answer.status is Status.USABLE

    def test_none(self):
        """A function by column on a NOT NULL column needs no words."""
        assert ask("NDB$MAX(x)", 7, on_both=True).notes == ()
        assert len(ask("NDB$MAX(x)", 7, on_both=False).notes) == 1
