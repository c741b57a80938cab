"""What a server makes of a table: its function, a refusal, or a warning."""

import pytest

from conflict.rules.replication_table import ReplicationRow
from conflict.rules.table_setup import Refusal, RefusalKind, TableSetup, is_exceptions_table, set_up
from ndb_formats.schema.create_table import parse_schema

EXCEPTIONS = """
CREATE TABLE `t$EX` (
    server_id INT UNSIGNED, source_server_id INT UNSIGNED, source_epoch BIGINT UNSIGNED, count INT UNSIGNED,
    k INT NOT NULL, PRIMARY KEY ({})
);
"""
KEY = "server_id, source_server_id, source_epoch, count"


def set_up_t(columns: str, *rows: ReplicationRow, exceptions: str = "", server_id: int = 1) -> TableSetup:
    """Return how a server sets up table `d.t` with these columns."""
    schema = parse_schema(f"CREATE TABLE t (k INT NOT NULL PRIMARY KEY, {columns});" + exceptions, database="d")
    setups = set_up(schema, rows, server_id)
    assert list(setups) == ["d.t"]
    return setups["d.t"]


def with_function(text: str) -> ReplicationRow:
    """Return the row that gives every table of database d a function."""
    return ReplicationRow("d", "%", 0, 7, text)


class TestFunction:
    """Which function a table has."""

    def test_none(self):
        """Without a row a table has no function."""
        setup = set_up_t("x INT UNSIGNED")
        assert (setup.function, setup.exceptions, setup.refusal, setup.warnings) == (None, None, None, ())

    def test_null(self):
        """A NULL `conflict_fn` is none."""
        setup = set_up_t("x INT UNSIGNED", ReplicationRow("d", "t", 0, 7, None))
        assert (setup.function, setup.refusal) == (None, None)

    @pytest.mark.parametrize("column", ["x INT UNSIGNED", "x BIGINT UNSIGNED NOT NULL", "x INTEGER UNSIGNED"])
    @pytest.mark.parametrize("name", ["NDB$MAX", "NDB$OLD", "NDB$MAX_INS", "NDB$MAX_DELETE_WIN"])
    def test_column_types(self, column: str, name: str):
        """INT UNSIGNED and BIGINT UNSIGNED columns can be compared."""
        setup = set_up_t(column, with_function(f"{name}(x)"))
        assert (str(setup.function), setup.refusal) == (f"{name}(x)", None)

    def test_a_row_for_another_server(self):
        """NDB$EPOCH holds only where the row says: that cluster is the primary."""
        row = ReplicationRow("d", "t", 1, 7, "NDB$EPOCH()")
        assert str(set_up_t("x INT", row, server_id=1).function) == "NDB$EPOCH(6)"
        assert set_up_t("x INT", row, server_id=2).function is None

    def test_exceptions_table(self):
        """The exceptions table comes with the function."""
        setup = set_up_t("x INT UNSIGNED", with_function("NDB$MAX(x)"), exceptions=EXCEPTIONS.format(KEY))
        assert setup.exceptions is not None
        assert (setup.exceptions.table.full_name, setup.warnings) == ("d.t$EX", ())

    def test_exceptions_table_without_function(self):
        """Without a function nothing is ever written to it."""
        assert set_up_t("x INT UNSIGNED", exceptions=EXCEPTIONS.format(KEY)).exceptions is None


class TestRefusal:
    """Tables that cannot be created."""

    @pytest.mark.parametrize(
        ("columns", "text", "refusal"),
        [
            (
                "x INT UNSIGNED",
                "NDB$MAX(nosuch)",
                Refusal(RefusalKind.NO_COLUMN, 1005, "nosuch", "Could not find resolve column nosuch."),
            ),
            (
                "x INT UNSIGNED",
                "NDB$MAX(X)",
                Refusal(RefusalKind.NO_COLUMN, 1005, "X", "Could not find resolve column X."),
            ),
            (
                "x INT UNSIGNED",
                "NDB$MAX_INS(x,v)",
                Refusal(RefusalKind.NO_COLUMN, 1005, "x,v", "Could not find resolve column x,v."),
            ),
            (
                "x INT UNSIGNED",
                "NDB$OLD(k)",
                Refusal(RefusalKind.WRONG_TYPE, 1005, "k", "Column 'k' has wrong datatype"),
            ),
            *(
                (
                    f"x {kind}",
                    "NDB$MAX(x)",
                    Refusal(RefusalKind.WRONG_TYPE, 1005, "x", "Column 'x' has wrong datatype"),
                )
                for kind in (
                    "INT",
                    "BIGINT",
                    "MEDIUMINT UNSIGNED",
                    "SMALLINT UNSIGNED",
                    "TINYINT UNSIGNED",
                    "DATETIME",
                    "DECIMAL(10,0) UNSIGNED",
                    "FLOAT UNSIGNED",
                    "VARCHAR(10)",
                )
            ),
            (
                "c TEXT",
                "NDB$EPOCH()",
                Refusal(RefusalKind.BLOB, 1005, None, "Table has Blob column(s), not suitable for NDB$EPOCH."),
            ),
            (
                "c JSON",
                "NDB$EPOCH2_TRANS()",
                Refusal(RefusalKind.BLOB, 1005, None, "Table has Blob column(s), not suitable for NDB$EPOCH2_TRANS."),
            ),
            (
                "x INT UNSIGNED",
                "NDB$MAX()",
                Refusal(
                    RefusalKind.PARSE,
                    1626,
                    None,
                    "NDB$MAX(), missing function argument at ')'",
                ),
            ),
        ],
    )
    def test_refused(self, columns: str, text: str, refusal: Refusal):
        """The table does not exist, for the server's reason and with its error number."""
        setup = set_up_t(columns, with_function(text), exceptions=EXCEPTIONS.format(KEY))
        assert (setup.refusal, setup.function, setup.exceptions) == (refusal, None, None)

    def test_updates_as_writes(self):
        """EPOCH2 cannot judge updates that arrive as writes; that comes before a look at the columns."""
        refusal = set_up_t("c TEXT", ReplicationRow("d", "t", 0, 2, "NDB$EPOCH2()")).refusal
        message = "Table d.t configured to log updates as writes.  Not suitable for NDB$EPOCH2."
        assert refusal == Refusal(RefusalKind.UPDATES_AS_WRITES, 1005, None, message)

    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("NDB$MAX(nosuch)", "Could not find resolve column nosuch."),
            ("NDB$MAX()", "NDB$MAX(), missing function argument at ')'"),
            ("NDB$NOSUCH(x)", "NDB$NOSUCH(x), unknown conflict resolution function at 'NDB$NOSU"),
        ],
    )
    def test_what_show_warnings_gives(self, text: str, shown: str):
        """Recorded: 64 characters of the message and no more."""
        refusal = set_up_t("x INT UNSIGNED", with_function(text)).refusal
        assert refusal is not None
        assert refusal.warning == f"Error in parsing conflict function. Message: {shown}"

    def test_blobs_do_not_disturb_functions_of_a_column(self):
        """Only EPOCH* refresh rows, which blobs cannot be."""
        assert set_up_t("x INT UNSIGNED, c TEXT", with_function("NDB$MAX(x)")).refusal is None

    def test_epoch_takes_any_columns(self):
        """EPOCH compares no column, so no column can have a wrong type."""
        assert set_up_t("x DATETIME, s VARCHAR(9)", with_function("NDB$EPOCH()")).refusal is None


class TestWarnings:
    """What is only warned of."""

    def test_ambiguous_rows(self):
        """Two rows that match equally well leave the table without a function."""
        rows = [ReplicationRow("d", "t%", 0, 7, "NDB$MAX(x)"), ReplicationRow("d", "%t", 0, 7, "NDB$OLD(x)")]
        setup = set_up_t("x INT UNSIGNED", *rows)
        assert (setup.function, setup.refusal) == (None, None)
        (warning,) = setup.warnings
        assert warning == (
            "Bad schema for mysql.ndb_replication table. Message: Ambiguous matches in mysql.ndb_replication for "
            "d.t (1).Candidates : d.t% (0), d.%t (0)."
        )

    def test_malformed_exceptions_table(self):
        """The function works all the same, and nothing is written down."""
        exceptions = EXCEPTIONS.format("server_id, source_server_id, source_epoch")
        setup = set_up_t("x INT UNSIGNED", with_function("NDB$MAX(x)"), exceptions=exceptions)
        assert (str(setup.function), setup.exceptions, setup.refusal) == ("NDB$MAX(x)", None, None)
        assert setup.warnings == ("exceptions table t$EX has wrong definition (initial 4 columns)",)


@pytest.mark.parametrize(("name", "is_one"), [("t$EX", True), ("t$ex", True), ("t$Ex", False), ("ex", False)])
def test_names_of_exceptions_tables(name: str, is_one: bool):
    """Only all capitals or all small letters make one."""
    (table,) = parse_schema(f"CREATE TABLE `{name}` (k INT)", database="d").tables
    assert is_exceptions_table(table) is is_one
