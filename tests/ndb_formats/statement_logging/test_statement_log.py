"""How statements of a text are logged: each, and in a session; the recordings judge the rest."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndb_formats.statement_logging.decision import BinlogFormat, LoggedAs
from ndb_formats.statement_logging.messages import UnsafeReason
from ndb_formats.statement_logging.questions import Questions, explore, questions_that_matter
from ndb_formats.statement_logging.references import UNSAFE_FUNCTIONS
from ndb_formats.statement_logging.session import LoggingSession
from ndb_formats.statement_logging.settings import Settings
from ndb_formats.statement_logging.sql_text import split_statements
from ndb_formats.statement_logging.statement_log import LoggedStatement, catalog_of, log_statements

SCHEMA = """
CREATE TABLE t (a INT PRIMARY KEY, b INT) ENGINE=InnoDB;
CREATE TABLE n (a INT PRIMARY KEY) ENGINE=NDBCLUSTER;
CREATE TABLE m (a INT PRIMARY KEY) ENGINE=MyISAM;
CREATE PROCEDURE p() BEGIN
  INSERT INTO t VALUES (1, 1); INSERT INTO t VALUES (2, UUID()); INSERT INTO t VALUES (3, 3);
END;
CREATE PROCEDURE again() CALL again();
"""


def logged(sql: str, binlog_format: BinlogFormat = BinlogFormat.MIXED) -> list[LoggedStatement]:
    """Return how the statements of a text are logged."""
    return log_statements(split_statements(sql), LoggingSession(Settings(binlog_format), catalog_of(SCHEMA)))


def words(statement: LoggedStatement) -> str:
    """Return what is logged of a statement, the outcomes separated by ``|``."""
    return "|".join("+".join(each.value for each in outcome.logged) or "nothing" for outcome in statement.outcomes)


# The manual's list, "Determination of Safe and Unsafe Statements in Binary Logging".
@pytest.mark.parametrize(
    "expression",
    [
        *("FOUND_ROWS()", "GET_LOCK('a', 1)", "IS_FREE_LOCK('a')", "IS_USED_LOCK('a')", "LOAD_FILE('f')", "RAND()"),
        *("RELEASE_LOCK('a')", "ROW_COUNT()", "SESSION_USER()", "SLEEP(1)", "SOURCE_POS_WAIT('f', 4)", "SYSDATE()"),
        *("SYSTEM_USER()", "USER()", "UUID()", "UUID_SHORT()", "CURRENT_USER", "VERSION()", "@@server_id"),
    ],
)
def test_what_the_manual_calls_unsafe_is_logged_as_rows(expression: str) -> None:
    """In MIXED, and with a note in STATEMENT."""
    (mixed,) = logged(f"INSERT INTO t VALUES (1, {expression})")
    (statement,) = logged(f"INSERT INTO t VALUES (1, {expression})", BinlogFormat.STATEMENT)
    assert (words(mixed), words(statement)) == ("row", "statement")
    assert [int(message.message) for message in statement.outcomes[0].messages] == [1592]


@pytest.mark.parametrize(
    "expression",
    [
        *("CONNECTION_ID()", "CURDATE()", "CURRENT_DATE()", "CURRENT_TIME()", "CURRENT_TIMESTAMP()", "CURTIME()"),
        *("LAST_INSERT_ID()", "LOCALTIME()", "LOCALTIMESTAMP()", "NOW()", "UNIX_TIMESTAMP()", "UTC_DATE()"),
        *("UTC_TIME()", "UTC_TIMESTAMP()", "@v", "@@time_zone"),
    ],
)
def test_what_the_manual_calls_safe_is_logged_as_a_statement(expression: str) -> None:
    """It is nondeterministic, and written to the log with the statement."""
    (mixed,) = logged(f"INSERT INTO t VALUES (1, {expression})")
    assert words(mixed) == "statement"


@given(st.sampled_from(sorted(UNSAFE_FUNCTIONS)), st.lists(st.booleans(), min_size=30, max_size=30))
def test_the_letter_case_of_a_function_does_not_matter(name: str, upper: list[bool]) -> None:
    """Nor do blanks before its parenthesis."""
    spelled = "".join(letter.upper() if high else letter.lower() for letter, high in zip(name, upper, strict=False))
    (mixed,) = logged(f"UPDATE t SET b = {spelled} (1) WHERE a = 1")
    assert LoggedAs.STATEMENT not in {each for outcome in mixed.outcomes for each in outcome.logged}


def test_unknown_is_said() -> None:
    """Whether rows change, a table without a definition, a function that is not built in, a missing procedure."""
    change, table, function, call = logged("DELETE FROM t; INSERT INTO x VALUES (1); DO g(1); CALL q()")
    assert (words(change), change.unknown) == ("statement", ())
    assert words(table) == "statement|row"
    assert [question.split("?")[0] for question in table.unknown] == ["is x an NDB table"]
    assert words(function) == "nothing"
    assert (call.outcomes, call.unknown) == ((), ("the procedure q is not in the schema",))
    (change,) = logged("DELETE FROM t", BinlogFormat.ROW)
    assert (words(change), change.unknown) == ("row|nothing", ("do rows change?",))
    (function,) = logged("INSERT INTO t VALUES (1, g(1))")
    assert words(function) == "row|statement"


def test_recursion_is_said() -> None:
    """A procedure that calls itself is not followed for ever."""
    (call,) = logged("CALL again()")
    assert call.unknown == ("the procedure again calls itself too deeply",)


def test_a_call_keeps_rows_to_its_end() -> None:
    """In MIXED, after a statement that was logged as rows."""
    (mixed,) = logged("CALL p()")
    (statement,) = logged("CALL p()", BinlogFormat.STATEMENT)
    assert (words(mixed), words(statement)) == ("statement+row", "statement")


def test_the_session_is_followed() -> None:
    """SET, temporary tables and what a definition changes."""
    found = logged(
        "SET SESSION binlog_format = 'ROW'; INSERT INTO t VALUES (1, 1); SET @@session.binlog_format = STATEMENT;"
        "CREATE TEMPORARY TABLE t (a INT, b INT); INSERT INTO t VALUES (1, 1); DROP TABLE t;"
        "SET sql_log_bin = 0; INSERT INTO t VALUES (2, 2); SET sql_log_bin = 1, binlog_format = MIXED;"
        "ALTER TABLE t ENGINE = NDB; INSERT INTO t VALUES (3, 3)"
    )
    assert [words(each) for each in found][1::2] == ["row", "statement", "statement", "nothing", "statement"]
    assert words(found[-1]) == "row"


def test_a_rolled_back_transaction_leaves_nothing_but_other_engines() -> None:
    """The statement on MyISAM is in the log when ROLLBACK comes."""
    found = logged("BEGIN; INSERT INTO m VALUES (1); INSERT INTO t VALUES (1, 1); INSERT INTO n VALUES (1); ROLLBACK")
    assert [each.rolled_back for each in found] == [False, False, True, True, False]


def test_an_open_transaction_is_rolled_back_at_the_end() -> None:
    """As the server does when a session ends."""
    found = logged("START TRANSACTION; INSERT INTO t VALUES (1, 1)")
    assert found[1].rolled_back


def test_ndb_logs_after_the_commit() -> None:
    """Its rows come after the statement of InnoDB, whatever the order of the statements."""
    session = LoggingSession(Settings(BinlogFormat.MIXED), catalog_of(SCHEMA))
    log_statements(split_statements("BEGIN; INSERT INTO n VALUES (1); INSERT INTO t VALUES (1, 1); COMMIT"), session)
    assert [(entry.logged, entry.source) for entry in session.transactions.log] == [
        (LoggedAs.STATEMENT, 2),
        (LoggedAs.ROW, 1),
    ]


def test_reading_ndb_makes_rows_of_a_change_of_another_engine() -> None:
    """In MIXED: NDB logs itself there."""
    (mixed,) = logged("INSERT INTO t SELECT a, a FROM n WHERE a = 1")
    assert words(mixed) == "row|nothing"
    (statement,) = logged("INSERT INTO t SELECT a, a FROM n WHERE a = 1", BinlogFormat.STATEMENT)
    assert statement.outcomes[0].messages == ()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("ADD c CHAR(36) DEFAULT (UUID())", [1674]),
        ("ADD (c CHAR(36) DEFAULT (UUID()), d INT)", [1674]),
        ("ADD c INT, ADD d DOUBLE DEFAULT (RAND())", [1674]),
        ("ADD c DATETIME DEFAULT (NOW())", []),
        ("MODIFY b CHAR(36) DEFAULT (UUID())", []),
        ("ALTER b SET DEFAULT (UUID())", []),
    ],
)
def test_an_unsafe_default_cannot_be_added(change: str, expected: list[int]) -> None:
    """Error 1674, and under STATEMENT a warning; an existing column may get one. Tried on a MySQL 9.7 server."""
    (mixed,) = logged(f"ALTER TABLE t {change}")
    assert [int(message.message) for message in mixed.outcomes[0].messages] == expected
    assert words(mixed) == ("nothing" if expected else "statement")
    (statement,) = logged(f"ALTER TABLE t {change}", BinlogFormat.STATEMENT)
    assert words(statement) == "statement"


def test_savepoints_and_ndb() -> None:
    """Error 1178 as soon as the transaction has read NDB, and then there is no savepoint to roll back to."""
    found = logged("BEGIN; SELECT * FROM n; SAVEPOINT s; ROLLBACK TO s; COMMIT; BEGIN; SAVEPOINT s; ROLLBACK TO s")
    numbers = [[int(message.message) for message in each.outcomes[0].messages] for each in found]
    assert numbers == [[], [], [1178], [1305], [], [], [], []]


def test_a_local_table_cannot_be_written_with_others_under_statement() -> None:
    """Error 1844; under ROW only the rows of the other table are logged, and of a local table alone nothing."""
    both = "UPDATE t JOIN performance_schema.setup_actors AS s SET t.b = 1, s.enabled = 'YES'"
    (statement,) = logged(both, BinlogFormat.STATEMENT)
    assert [int(message.message) for message in statement.outcomes[0].messages] == [1844]
    (row,) = logged(both, BinlogFormat.ROW)
    assert words(row) == "row|nothing"
    (local,) = logged("UPDATE performance_schema.setup_actors SET enabled = 'YES'", BinlogFormat.STATEMENT)
    assert words(local) == "nothing"


def test_a_row_event_is_refused_under_statement() -> None:
    """BINLOG '...': error 1666."""
    (statement,) = logged("BINLOG 'x'", BinlogFormat.STATEMENT)
    assert [int(message.message) for message in statement.outcomes[0].messages] == [1666]


STATEMENTS = st.sampled_from(
    [
        *("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT s", "ROLLBACK TO s", "SET autocommit = 0", "SET autocommit = 1"),
        *("INSERT INTO t VALUES (1, 1)", "INSERT INTO m VALUES (UUID())", "INSERT INTO n VALUES (2)", "DELETE FROM m"),
        *("CREATE TEMPORARY TABLE x (a INT)", "INSERT INTO x VALUES (1)", "DROP TABLE x", "CALL p()", "TRUNCATE t"),
        *("UPDATE t JOIN m ON t.a = m.a SET t.b = 1, m.a = 2", "INSERT INTO m SELECT a FROM t", "XA START 'x'"),
    ]
)


@given(st.lists(STATEMENTS, max_size=8), st.sampled_from(BinlogFormat))
def test_any_sequence_can_be_followed(texts: list[str], binlog_format: BinlogFormat) -> None:
    """Every statement has an outcome; what is dropped is not in the log; under ROW no change of rows is a statement."""
    session = LoggingSession(Settings(binlog_format), catalog_of(SCHEMA))
    found = log_statements(split_statements(";".join(texts)), session)
    assert [each.text for each in found] == texts
    assert all(each.outcomes for each in found)
    assert not session.transactions.dropped & {entry.source for entry in session.transactions.log}
    for text, each in zip(texts, found, strict=True):
        if binlog_format is BinlogFormat.ROW and text.split()[0] in ("INSERT", "UPDATE", "DELETE", "CALL"):
            assert all(LoggedAs.STATEMENT not in outcome.logged for outcome in each.outcomes)


@pytest.mark.parametrize("text", ["XA", "SAVEPOINT", "USE", "PREPARE p", "EXECUTE", "CALL", "ROLLBACK TO", "UPDATE"])
def test_a_statement_that_is_cut_short_is_unknown(text: str) -> None:
    """And says so."""
    (statement,) = logged(text)
    assert (statement.outcomes, statement.unknown) == ((), ("the statement cannot be read",))


WORDS = st.sampled_from(
    [
        *("CREATE", "TABLE", "TRIGGER", "t", "(", ")", "a", ",", "INT", "BEGIN", "END", "IF", "SELECT", "FROM", "WITH"),
        *("AS", "SET", "XA", "CALL", "DROP", "@", "=", "1", "UPDATE", "DELETE", "INSERT", "INTO", "VALUES", "."),
    ]
)


@given(st.lists(WORDS, max_size=12))
def test_any_words_have_an_answer(words: list[str]) -> None:
    """No sequence of words makes it fail."""
    for each in logged(" ".join(words)):
        assert each.outcomes or each.unknown


@given(st.text(string.ascii_letters + string.digits + " ().,;=@", max_size=60))
def test_any_text_without_quotes_has_an_answer(text: str) -> None:
    """No text makes it fail."""
    for each in logged(text):
        assert each.outcomes or each.unknown


def test_questions_are_explored() -> None:
    """Every combination of answers once, the defaults first; a question that changes nothing does not matter."""

    def look(questions: Questions) -> str:
        if questions.ask("first?", default=True):
            return "yes, " + ("b" if questions.ask("second?", default=False) else "a")
        questions.ask("third?", default=True)
        return "no"

    found = list(explore(look))
    assert found[0].outcome == "yes, a"
    assert sorted(each.outcome for each in found) == ["no", "no", "yes, a", "yes, b"]
    assert questions_that_matter(found) == ("first?", "second?")


def test_reasons_have_their_numbers() -> None:
    """Two from the manual's list of server errors."""
    assert (int(UnsafeReason.LIMIT), int(UnsafeReason.INSERT_TWO_KEYS)) == (1668, 1724)
