"""Which function works with which binlog type: the table, every refusal, what would work instead."""

from typing import Any

import pytest

from conflict.checking.deployment import Change, Deployment, Handling, TableLogging
from conflict.checking.findings import Code, ReplicaCode
from conflict.checking.reasons import rules_out
from conflict.checking.requirements import (
    Answer,
    Status,
    example_function,
    example_table,
    mark,
    requirements,
    requirements_table,
)
from conflict.config.arguments import DeploymentPolicy
from conflict.rules.functions import FUNCTIONS, parse_conflict_function
from conflict.rules.replication_table import Role
from ndb_formats.rules.update_format import ServerOptions
from ndb_formats.schema.create_table import parse_create_table

TYPE_7, TYPE_9 = "binlog_type = 7 FULL_USE_UPDATE", "binlog_type = 9 FULL_USE_UPDATE_MINIMAL"
T = "k INT PRIMARY KEY, x INT UNSIGNED NOT NULL, v INT"

# Worked out by hand from the columns that each type logs. A delete without the before value is marked beside W!, too:
# as recorded, the appliers of OLD and MAX stop at it under type 2.
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
EPOCHS = [spec.name for spec in FUNCTIONS if not spec.needs]
BY_COLUMN = [spec.name for spec in FUNCTIONS if spec.needs]


def ask(
    function: str,
    number: int,
    columns: str = T,
    *,
    policy: DeploymentPolicy = DeploymentPolicy.NEEDS,
    own: int | None = None,
    **more: Any,
) -> Answer:
    """Return the answer for a function on table `d.t`; `options` and `transaction_ids` go to the logging."""
    logged = {name: more.pop(name) for name in ("options", "transaction_ids") if name in more}
    table = parse_create_table(f"CREATE TABLE t ({columns}) ENGINE=NDB", database="d")
    deployment = Deployment(
        parse_conflict_function(function),
        table,
        TableLogging(number, **logged),
        own=None if own is None else TableLogging(own, **logged),
        **more,
    )
    return requirements(deployment, policy)


def kinds(answer: Answer) -> list[Code | ReplicaCode]:
    """Return the kinds of an answer's reasons."""
    return [reason.kind for reason in answer.reasons]


def cell(name: str, number: int, policy: DeploymentPolicy, options: ServerOptions | None = None) -> str:
    """Return a cell of the table."""
    spec = next(spec for spec in FUNCTIONS if spec.name == name)
    logging = TableLogging(number, options or ServerOptions())
    return mark(requirements(Deployment(example_function(spec), example_table(), logging), policy))


def offered(answer: Answer) -> list[str]:
    """Return what would work, as text."""
    return [str(setting) for setting in answer.nearest]


class TestTheTable:
    """Functions and types."""

    @pytest.mark.parametrize("name", BY_HAND)
    def test_each_cell_is_what_the_logged_columns_allow(self, name: str):
        """As worked out by hand; policy manual also refuses what compares a column under types 8 and 9."""
        assert [cell(name, number, DeploymentPolicy.NEEDS) for number in TYPES] == BY_HAND[name]
        strict = [*BY_HAND[name][:4], "refused", "refused"] if name in BY_COLUMN else BY_HAND[name]
        assert [cell(name, number, DeploymentPolicy.MANUAL) for number in TYPES] == strict

    @pytest.mark.parametrize("policy", DeploymentPolicy)
    @pytest.mark.parametrize("name", BY_HAND)
    def test_equivalent_types_have_equal_cells(self, name: str, policy: DeploymentPolicy):
        """Type 4 is as 6, unknown types are as 2, and type 0 is as the type that the server options amount to."""
        assert cell(name, 4, policy) == cell(name, 6, policy)
        assert {cell(name, number, policy) for number in (5, 10)} == {cell(name, 2, policy)}
        # Updated columns only, updates as writes, minimal: (True, True, False) is the default.
        same = {
            (True, True, False): 2, (True, True, True): 2, (False, True, False): 3, (False, True, True): 3,
            (True, False, False): 6, (False, False, False): 7, (True, False, True): 8, (False, False, True): 9,
        }  # fmt: skip
        for options, number in same.items():
            assert cell(name, 0, policy, ServerOptions(*options)) == cell(name, number, policy)

    @pytest.mark.parametrize("policy", DeploymentPolicy)
    def test_type_1_is_refused_for_every_function(self, policy: DeploymentPolicy):
        """Nothing is logged, so nothing arrives."""
        assert {cell(name, 1, policy) for name in BY_HAND} == {"refused"}

    def test_as_markdown_it_has_a_row_per_function_and_a_column_per_type(self):
        """The marks are the cells."""
        lines = requirements_table().splitlines()
        assert lines[0] == "| function | 0 | 2 | 3 | 4 | 6 | 7 | 8 | 9 |"
        assert lines[3] == "| `NDB$MAX` | W! D! | W! D! | W! | U? D! | U? D! | ok | U? D! | ok |"
        assert len(lines) == 2 + len(FUNCTIONS)


class TestWhatArrives:
    """The changes of an answer."""

    def test_each_kind_of_change_has_its_event_and_handling(self):
        """Under type 8 an update carries the key before and the columns that it sets after."""
        answer = ask("NDB$MAX(x)", 8)
        assert [
            (change.name, change.event and (change.event.before, change.event.after), change.handling)
            for change in answer.changes
        ] == [
            ("insert", (None, (0, 1, 2)), Handling.JUDGED),
            ("update that sets x", ((0,), (1,)), Handling.JUDGED),
            ("update that does not set x", ((0,), (2,)), Handling.STOPS),
            ("delete", ((0,), None), Handling.STOPS),
        ]

    def test_for_functions_by_epoch_all_updates_are_alike(self):
        """They compare no column."""
        answer = ask("NDB$EPOCH()", 8)
        assert [change.change for change in answer.changes] == [Change.INSERT, Change.UPDATE, Change.DELETE]

    def test_without_other_columns_every_update_sets_the_resolve_column(self):
        """So under type 8 only deletes cannot be judged."""
        answer = ask("NDB$MAX(x)", 8, "k INT PRIMARY KEY, x INT UNSIGNED")
        assert [change.change for change in answer.changes] == [Change.INSERT, Change.UPDATE_SETTING, Change.DELETE]
        assert mark(answer) == "D!"

    def test_a_table_of_key_columns_has_no_updates(self):
        """Another key is another row, so nothing lacks a value."""
        assert mark(ask("NDB$OLD(k)", 8, "k INT UNSIGNED PRIMARY KEY")) == "ok"

    def test_a_stored_generated_column_is_set_with_the_columns_it_is_computed_from(self):
        """Other updates lack it."""
        columns = "k INT PRIMARY KEY, v INT NOT NULL, x INT UNSIGNED GENERATED ALWAYS AS (v + 1) STORED"
        assert mark(ask("NDB$MAX_DELETE_WIN(x)", 8, columns)) == "ok"
        assert mark(ask("NDB$MAX_DELETE_WIN(x)", 8, columns + ", w INT")) == "U?"

    def test_a_virtual_generated_column_is_in_no_image(self):
        """Because it is not stored."""
        columns = "k INT PRIMARY KEY, v INT NOT NULL, x INT UNSIGNED GENERATED ALWAYS AS (v + 1) VIRTUAL"
        assert kinds(ask("NDB$MAX(x)", 7, columns))[0] is Code.NO_UPDATE

    @pytest.mark.parametrize(
        ("function", "number", "policy", "expected"),
        [
            ("NDB$OLD(k)", 8, DeploymentPolicy.NEEDS, "ok"),
            ("NDB$OLD(k)", 8, DeploymentPolicy.MANUAL, "refused"),  # named by the manual
            ("NDB$OLD(k)", 6, DeploymentPolicy.MANUAL, "ok"),
            ("NDB$MAX_DELETE_WIN(k)", 6, DeploymentPolicy.NEEDS, "ok"),
            ("NDB$MAX_DELETE_WIN(k)", 9, DeploymentPolicy.NEEDS, "refused"),  # the key is not in the after image
        ],
    )
    def test_a_resolve_column_in_the_key_is_in_every_before_image(
        self, function: str, number: int, policy: DeploymentPolicy, expected: str
    ):
        """And in no after image of the minimal types."""
        answer = ask(function, number, "k INT UNSIGNED PRIMARY KEY, v INT", policy=policy)
        assert mark(answer) == expected
        assert any("the same before and after every update" in note for note in answer.notes)


class TestRefusals:
    """What refuses a function, with the server's error number and words, and what is at fault."""

    @pytest.mark.parametrize("name", BY_COLUMN)
    def test_the_resolve_column_must_be_an_unsigned_integer(self, name: str):
        """And exist; both are offered."""
        for function, columns, kind, words, works in (
            (f"{name}(y)", T, Code.NO_COLUMN, "Could not find resolve column y.", "conflict_fn = {}(x)"),
            (
                f"{name}(x)",
                "k INT PRIMARY KEY, x INT",
                Code.WRONG_TYPE,
                "Column 'x' has wrong datatype",
                "column x = INT UNSIGNED",
            ),
            (
                f"{name}(x)",
                "k INT PRIMARY KEY, x DATE",
                Code.WRONG_TYPE,
                "Column 'x' has wrong datatype",
                "column x = BIGINT UNSIGNED",
            ),
        ):
            answer = ask(function, 7, columns)
            (reason,) = answer.reasons
            assert (reason.kind, reason.error, reason.server) == (kind, 1005, words)
            assert (answer.status, reason.at) == (Status.REFUSED, function[-2])
            assert offered(answer)[0] == works.format(name)

    @pytest.mark.parametrize("name", EPOCHS)
    def test_no_function_by_epoch_allows_blobs_in_its_table(self, name: str):
        """They can be moved to another table; functions by column allow them."""
        answer = ask(f"{name}()", 7, T + ", note TEXT, doc JSON")
        (reason,) = answer.reasons
        assert (reason.kind, reason.error, reason.at) == (Code.BLOB, 1005, "note")
        assert reason.server == f"Table has Blob column(s), not suitable for {name}."
        assert offered(answer) == ["note, doc = in a table of their own"]
        assert ask("NDB$MAX(x)", 7, T + ", note TEXT").status is Status.USABLE

    @pytest.mark.parametrize("name", ["NDB$EPOCH2", "NDB$EPOCH2_TRANS"])
    def test_functions_with_roles_refuse_updates_as_writes_on_their_own_cluster(self, name: str):
        """Where the table is created; from the other cluster they arrive as inserts."""
        answer = ask(f"{name}()", 3)
        assert kinds(answer) == [Code.UPDATES_AS_WRITES, Code.AS_WRITES]
        assert (answer.reasons[0].error, answer.reasons[0].at) == (1005, "binlog_type")
        assert "configured to log updates as writes" in (answer.reasons[0].server or "")
        assert offered(answer)[0] == TYPE_7
        assert kinds(ask(f"{name}()", 7, own=3)) == [Code.UPDATES_AS_WRITES]
        assert kinds(ask(f"{name}()", 3, own=7)) == [Code.AS_WRITES]

    def test_under_type_0_the_server_option_is_at_fault(self):
        """And offered the other way round."""
        answer = ask("NDB$EPOCH2()", 0)
        assert answer.reasons[0].at == "ndb_log_update_as_write"
        assert offered(answer)[:2] == ["binlog_type = 6 UPDATED_ONLY_USE_UPDATE", "ndb_log_update_as_write = OFF"]

    @pytest.mark.parametrize("name", ["NDB$EPOCH2", "NDB$EPOCH2_TRANS"])
    def test_without_a_role_the_applier_stops(self, name: str):
        """The role that the other cluster does not have is offered."""
        answer = ask(f"{name}()", 7, role=Role.NONE, peer_role=Role.SECONDARY)
        (reason,) = answer.reasons
        assert (reason.kind, reason.error, reason.at) == (Code.NO_ROLE, 1296, "ndb_applier_conflict_role")
        assert "requires ndb_applier_conflict_role variable to be set" in (reason.server or "")
        assert offered(answer)[0] == "ndb_applier_conflict_role = PRIMARY"
        assert "ndb_applier_conflict_role = SECONDARY" not in offered(answer)
        assert ask(f"{name}()", 7, role=Role.PRIMARY).status is Status.USABLE

    @pytest.mark.parametrize("name", [*BY_COLUMN, "NDB$EPOCH", "NDB$EPOCH_TRANS"])
    def test_other_functions_need_no_role(self, name: str):
        """They are usable without."""
        function = f"{name}(x)" if name in BY_COLUMN else f"{name}()"
        assert ask(function, 7, role=Role.NONE, peer_role=Role.NONE).status is Status.USABLE

    @pytest.mark.parametrize("name", ["NDB$EPOCH_TRANS", "NDB$EPOCH2_TRANS"])
    def test_functions_by_transaction_need_transaction_ids(self, name: str):
        """Ids, or the same function by row, are offered."""
        answer = ask(f"{name}()", 7, transaction_ids=False)
        (reason,) = answer.reasons
        assert (reason.kind, reason.error, reason.at) == (Code.NO_TRANSACTION_IDS, 1296, "ndb_log_transaction_id")
        assert offered(answer)[0] == "ndb_log_transaction_id = ON"
        assert f"conflict_fn = {name.removesuffix('_TRANS')}(6)" in offered(answer)
        assert ask(f"{name.removesuffix('_TRANS')}()", 7, transaction_ids=False).status is Status.USABLE

    @pytest.mark.parametrize("name", BY_COLUMN)
    def test_a_table_needs_a_primary_key(self, name: str):
        """No setting helps."""
        answer = ask(f"{name}(x)", 8, "x INT UNSIGNED, v INT")
        assert Code.NO_KEY in kinds(answer)
        assert (answer.status, answer.nearest) == (Status.REFUSED, ())

    def test_under_type_1_no_change_arrives(self):
        """Another type is offered."""
        answer = ask("NDB$MAX(x)", 1)
        assert kinds(answer) == [Code.NOT_LOGGED]
        assert {change.handling for change in answer.changes} == {Handling.NOT_LOGGED}
        assert offered(answer)[0] == TYPE_7

    @pytest.mark.parametrize("number", [8, 9])
    def test_policy_manual_refuses_what_the_manual_warns_of(self, number: int):
        """It names OLD and MAX; other functions must need key values only. Policy needs allows them all."""
        assert (
            "NDB$OLD and NDB$MAX do not work correctly"
            in ask("NDB$MAX(x)", number, policy=DeploymentPolicy.MANUAL).reasons[0].sentence
        )
        answer = ask("NDB$MAX_INS(x)", number, policy=DeploymentPolicy.MANUAL)
        assert "does not name NDB$MAX_INS" in answer.reasons[0].sentence
        assert answer.by_policy
        assert offered(answer)[0] == TYPE_7
        assert not ask("NDB$MAX_INS(x)", number).by_policy
        options = ServerOptions(number == 8, ndb_log_update_as_write=False, ndb_log_update_minimal=True)
        assert (
            ask("NDB$OLD(x)", 0, policy=DeploymentPolicy.MANUAL, options=options).reasons[0].at
            == "ndb_log_update_minimal"
        )

    def test_a_function_that_can_judge_no_update_is_refused(self):
        """NDB$OLD under type 9: updates lack the old value, deletes have it."""
        answer = ask("NDB$OLD(x)", 9)
        (reason,) = answer.reasons
        assert (reason.kind, reason.error, reason.at) == (Code.NO_UPDATE, 1296, "x")
        assert "missing info necessary for conflict detection" in (reason.server or "")

    def test_reasons_that_refuse_come_first(self):
        """Whatever rule found them."""
        answer = ask("NDB$EPOCH2_TRANS()", 2, T + ", UNIQUE (v)", role=Role.NONE, transaction_ids=False)
        refuses = [rules_out(reason) for reason in answer.reasons]
        assert refuses == sorted(refuses, reverse=True)
        assert len(answer.reasons) == 5


class TestLimits:
    """What limits a usable function."""

    def test_under_role_pass_the_function_is_ignored(self):
        """Another role is offered."""
        answer = ask("NDB$EPOCH2()", 7, role=Role.PASS, peer_role=Role.PRIMARY)
        assert (kinds(answer), answer.status) == ([Code.ROLE_PASS], Status.USABLE_BUT)
        assert offered(answer)[0] == "ndb_applier_conflict_role = SECONDARY"

    @pytest.mark.parametrize("role", [Role.PRIMARY, Role.SECONDARY])
    def test_two_clusters_of_the_same_role_have_a_limit(self, role: Role):
        """One PRIMARY and one SECONDARY are needed."""
        answer = ask("NDB$EPOCH2()", 7, role=role, peer_role=role)
        assert (kinds(answer), answer.status) == ([Code.SAME_ROLES], Status.USABLE_BUT)

    @pytest.mark.parametrize("name", ["NDB$EPOCH", "NDB$EPOCH_TRANS"])
    def test_functions_without_roles_refresh_without_end_on_both_clusters(self, name: str):
        """Functions with roles, and by column, can be set on both."""
        answer = ask(f"{name}()", 7, on_both=True)
        assert (kinds(answer), answer.status) == ([Code.BOTH_PRIMARY], Status.USABLE_BUT)
        assert offered(answer)[0] == "conflict_fn of one cluster only = NULL"
        assert ask("NDB$EPOCH2()", 7, on_both=True).status is Status.USABLE
        assert ask("NDB$MAX(x)", 7, on_both=True).status is Status.USABLE

    def test_refreshes_need_the_own_binlog(self):
        """Functions that refresh nothing do not."""
        assert kinds(ask("NDB$EPOCH()", 7, own=1)) == [Code.NO_REFRESH]
        assert kinds(ask("NDB$MAX(x)", 7, own=1)) == []

    @pytest.mark.parametrize("name", ["NDB$EPOCH_TRANS", "NDB$EPOCH2_TRANS"])
    def test_a_transaction_may_reach_blobs_of_other_tables(self, name: str):
        """Which stops the applier if the transaction is in conflict."""
        notes = parse_create_table("CREATE TABLE notes (k INT PRIMARY KEY, n TEXT) ENGINE=NDB", database="d")
        answer = ask(f"{name}()", 7, others=(notes,))
        (reason,) = answer.reasons
        assert (reason.kind, reason.error, reason.at) == (Code.BLOBS_IN_REACH, 1296, "d.notes")
        assert "1627" in reason.sentence
        assert ask(f"{name.removesuffix('_TRANS')}()", 7, others=(notes,)).status is Status.USABLE
        assert offered(ask(f"{name}()", 3, others=(notes,)))[0] == TYPE_7

    @pytest.mark.parametrize("spec", FUNCTIONS, ids=lambda spec: spec.name)
    def test_unique_keys_limit_every_function(self, spec: Any):
        """No setting helps."""
        answer = ask(str(example_function(spec, "x")), 7, T + ", UNIQUE (v)")
        (reason,) = answer.reasons
        assert (reason.kind, reason.error, reason.at) == (Code.UNIQUE_KEYS, 1022, "v")
        assert (answer.status, answer.nearest) == (Status.USABLE_BUT, ())

    @pytest.mark.parametrize("spec", FUNCTIONS, ids=lambda spec: spec.name)
    def test_foreign_keys_limit_every_function(self, spec: Any):
        """No setting helps."""
        answer = ask(str(example_function(spec, "x")), 7, T + ", FOREIGN KEY (v) REFERENCES p (k)")
        (reason,) = answer.reasons
        assert (reason.kind, reason.error, reason.at) == (Code.FOREIGN_KEYS, 1452, "v")
        assert (answer.status, answer.nearest) == (Status.USABLE_BUT, ())

    def test_the_other_cluster_s_logging_decides_what_can_be_judged(self):
        """Not the logging of the own cluster."""
        assert mark(ask("NDB$MAX(x)", 7, own=2)) == "ok"
        assert mark(ask("NDB$MAX(x)", 2, own=7)) == "W! D!"


class TestNearest:
    """What would work, the smallest change first."""

    @pytest.mark.parametrize(
        ("function", "number", "policy", "expected"),
        [
            ("NDB$MAX(x)", 8, DeploymentPolicy.NEEDS, [TYPE_9, TYPE_7]),
            ("NDB$MAX(x)", 8, DeploymentPolicy.MANUAL, [TYPE_7]),
            ("NDB$MAX(x)", 6, DeploymentPolicy.NEEDS, [TYPE_7, TYPE_9]),
            ("NDB$OLD(x)", 6, DeploymentPolicy.NEEDS, [TYPE_7]),
            ("NDB$EPOCH()", 3, DeploymentPolicy.MANUAL, [
                TYPE_7, "binlog_type = 6 UPDATED_ONLY_USE_UPDATE",
                TYPE_9, "binlog_type = 8 UPDATED_ONLY_USE_UPDATE_MINIMAL",
            ]),
            ("NDB$MAX(x)", 3, DeploymentPolicy.MANUAL, [
                TYPE_7, "conflict_fn = NDB$MAX_INS(x)", "conflict_fn = NDB$MAX_DEL_WIN_INS(x)",
            ]),
        ],
    )  # fmt: skip
    def test_the_type_with_the_fewest_differences_comes_first(
        self, function: str, number: int, policy: DeploymentPolicy, expected: list[str]
    ):
        """Then functions of the same family."""
        assert offered(ask(function, number, policy=policy)) == expected

    def test_two_settings_are_offered_where_one_is_not_enough(self):
        """A role and a type are both wrong."""
        answer = ask("NDB$EPOCH2()", 3, role=Role.NONE, peer_role=Role.PRIMARY)
        assert offered(answer)[0] == "binlog_type = 7 FULL_USE_UPDATE and ndb_applier_conflict_role = SECONDARY"

    def test_an_offer_brings_no_new_reason(self):
        """The function by transaction would need no role, but could reach blobs."""
        notes = parse_create_table("CREATE TABLE notes (k INT PRIMARY KEY, n TEXT) ENGINE=NDB", database="d")
        answer = ask("NDB$EPOCH2()", 7, role=Role.NONE, others=(notes,))
        assert "conflict_fn = NDB$EPOCH(6)" in offered(answer)
        assert "conflict_fn = NDB$EPOCH_TRANS(6)" not in offered(answer)

    def test_nothing_is_offered_for_what_works(self):
        """Nothing needs to change."""
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
    def test_notes_do_not_change_the_status(self, function: str, number: int, columns: str, words: str):
        """They say what the settings do not show."""
        answer = ask(function, number, columns)
        assert any(words in note for note in answer.notes)
        assert answer.status is Status.USABLE

    def test_a_complete_setting_has_no_notes(self):
        """A function by column, on both clusters, on a NOT NULL column."""
        assert ask("NDB$MAX(x)", 7, on_both=True).notes == ()
        assert len(ask("NDB$MAX(x)", 7, on_both=False).notes) == 1
