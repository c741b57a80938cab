"""The decision table: total, unambiguous, the server's own, and the page's."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from ndb_formats.statement_logging.decision import (
    DECISIONS,
    BinlogFormat,
    Capability,
    LoggedAs,
    Properties,
    Safety,
    StatementSort,
    Tables,
    decide,
    decision_markdown,
    matching_rows,
    reasons_markdown,
)
from ndb_formats.statement_logging.messages import Level, ServerMessage, UnsafeReason

DOCS = Path(__file__).parents[3] / "docs" / "logging.md"
SAFE = (Safety.SAFE, Safety.ROWS_IN_MIXED)


def combinations(**fixed: object) -> Iterator[Properties]:
    """Yield every combination of properties, with some of them fixed."""
    values = {
        "binlog_format": tuple(BinlogFormat),
        "kind": tuple(StatementSort),
        "binary_log": (True, False),
        "tables": tuple(Tables),
        "capability": tuple(Capability),
        "safety": tuple(Safety),
        "rows": (True, False),
        "ndb_cascade": (True, False),
    }
    values |= {name: (value,) for name, value in fixed.items()}
    for each in itertools.product(*values.values()):
        yield Properties(*each)


def test_exactly_one_row_holds_for_every_combination() -> None:
    """The table is total and unambiguous, and every row is needed."""
    found = [matching_rows(properties) for properties in combinations()]
    assert all(len(rows) == 1 for rows in found)
    assert {rows[0] for rows in found} == set(range(1, len(DECISIONS) + 1))


# "Decision table for logging format" of THD::decide_logging_format, by capability: for safe and unsafe statements and
# row events, under STATEMENT, MIXED and ROW, the format that is logged (- for none) and the number of the message.
SERVER_TABLE = {
    Capability.STATEMENT: ("SS-S-----", "--2732444"),
    Capability.ROW: ("-RR-RR-RR", "5--5--6--"),
    Capability.BOTH: ("SRRSRR-RR", "---7--6--"),
}
SERVER_MESSAGES = {
    "-": None,
    "2": ServerMessage.ER_BINLOG_ROW_MODE_AND_STMT_ENGINE,
    "3": ServerMessage.ER_BINLOG_UNSAFE_AND_STMT_ENGINE,
    "4": ServerMessage.ER_BINLOG_ROW_INJECTION_AND_STMT_ENGINE,
    "5": ServerMessage.ER_BINLOG_STMT_MODE_AND_ROW_ENGINE,
    "6": ServerMessage.ER_BINLOG_ROW_INJECTION_AND_STMT_MODE,
    "7": ServerMessage.ER_BINLOG_UNSAFE_STATEMENT,
}
SERVER_LOGGED = {"-": (), "S": (LoggedAs.STATEMENT,), "R": (LoggedAs.ROW,)}
COLUMNS = list(
    itertools.product(
        (Safety.SAFE, Safety.UNSAFE, Safety.ROW_INJECTION),
        (BinlogFormat.STATEMENT, BinlogFormat.MIXED, BinlogFormat.ROW),
    )
)


@pytest.mark.parametrize("capability", SERVER_TABLE)
@pytest.mark.parametrize("column", range(9))
def test_changes_are_decided_as_in_the_servers_table(capability: Capability, column: int) -> None:
    """But for what is safe under MIXED: there the server's table says R, and its code logs S, as recorded."""
    formats, messages = SERVER_TABLE[capability]
    safety, binlog_format = COLUMNS[column]
    decision = decide(Properties(binlog_format, capability=capability, safety=safety), [UnsafeReason.LIMIT])
    logged = "S" if (capability, column) == (Capability.BOTH, 1) else formats[column]
    expected = SERVER_MESSAGES[messages[column]]
    assert decision.logged == SERVER_LOGGED[logged]
    assert [message.message for message in decision.messages] == ([] if expected is None else [expected])


def test_engines_without_a_common_format_are_refused() -> None:
    """Error 1661, in every format."""
    for properties in combinations(kind=StatementSort.CHANGE, binary_log=True, tables=Tables.REPLICATED):
        if properties.capability is Capability.NEITHER:
            (message,) = decide(properties).messages
            assert (message.level, int(message.message)) == (Level.ERROR, 1661)


def test_row_format_never_logs_a_change_as_a_statement() -> None:
    """Rows, nothing or an error."""
    for properties in combinations(binlog_format=BinlogFormat.ROW, kind=StatementSort.CHANGE):
        assert LoggedAs.STATEMENT not in decide(properties).logged


def test_statement_format_logs_rows_only_for_cascades_of_ndb() -> None:
    """Behind the statement."""
    for properties in combinations(binlog_format=BinlogFormat.STATEMENT):
        logged = decide(properties).logged
        assert LoggedAs.ROW not in logged or (properties.ndb_cascade and logged == (LoggedAs.STATEMENT, LoggedAs.ROW))


def test_mixed_is_statement_for_what_is_safe_and_row_for_what_is_not() -> None:
    """Where the engines can log both; a cascade of NDB, which cannot, is left out."""
    for properties in combinations(capability=Capability.BOTH, ndb_cascade=False, binlog_format=BinlogFormat.MIXED):
        safe = properties.safety is Safety.SAFE and properties.tables is Tables.REPLICATED
        if properties.kind in (StatementSort.CHANGE, StatementSort.CREATE_SELECT) and (
            safe or properties.safety is not Safety.SAFE
        ):
            same = attrs.evolve(properties, binlog_format=BinlogFormat.STATEMENT if safe else BinlogFormat.ROW)
            assert decide(properties).logged == decide(same).logged


def test_row_format_does_not_ask_whether_a_statement_is_safe() -> None:
    """Safe, unsafe: the same rows."""
    for properties in combinations(binlog_format=BinlogFormat.ROW, safety=Safety.SAFE):
        assert decide(properties) == decide(attrs.evolve(properties, safety=Safety.UNSAFE))


def test_what_is_refused_logs_nothing_and_says_so() -> None:
    """An error comes with an empty log; a note or warning never."""
    for properties in combinations():
        decision = decide(properties, [UnsafeReason.UDF])
        assert not (decision.refused and decision.logged)
        assert decision.refused or not decision.messages or decision.logged[0] is LoggedAs.STATEMENT


def test_nothing_is_logged_without_a_binary_log() -> None:
    """`sql_log_bin` = OFF, whatever the statement."""
    for properties in combinations(binary_log=False):
        assert decide(properties, [UnsafeReason.LIMIT]).logged == decide(properties).messages == ()


def test_every_reason_makes_its_own_note_in_the_servers_order() -> None:
    """The numbers are not in order."""
    reasons = [UnsafeReason.REPLACE_SELECT, UnsafeReason.WRITE_AUTOINC_SELECT, UnsafeReason.LIMIT]
    messages = decide(Properties(BinlogFormat.STATEMENT, safety=Safety.UNSAFE), reasons).messages
    assert [message.reason for message in messages] == reasons[::-1]
    assert {int(message.message) for message in messages} == {1592}


def test_the_page_has_the_table_and_the_reasons() -> None:
    """docs/logging.md is printed from the code."""
    page = DOCS.read_text("utf-8")
    assert decision_markdown() in page
    assert reasons_markdown() in page
