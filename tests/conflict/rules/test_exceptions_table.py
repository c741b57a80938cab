"""Exceptions tables: which definitions are usable, and what a row says."""

import pytest

from conflict.rules.decision import Cause
from conflict.rules.exceptions_table import (
    UNKNOWN_TRANSACTION_ID,
    ConflictRecord,
    ExceptionsTable,
    find_exceptions_table,
)
from ndb_formats.constants import ColumnCode
from ndb_formats.events.row_image import RowImage, layout_of_types
from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.types.column_types import WireType

WRITE, UPDATE, DELETE = Operation.WRITE_ROW, Operation.UPDATE_ROW, Operation.DELETE_ROW
MAIN = """
CREATE TABLE t (
    k INT NOT NULL, x INT UNSIGNED NOT NULL, v INT, w VARCHAR(10) CHARACTER SET latin1 NOT NULL, PRIMARY KEY (k)
);
"""
TYPES = (
    WireType(ColumnCode.LONG),
    WireType(ColumnCode.LONG),
    WireType(ColumnCode.LONG),
    WireType(ColumnCode.VARCHAR, 10),
)
(TABLE,) = parse_schema(MAIN, database="d").tables
LAYOUT = layout_of_types(TABLE, TYPES)

BASIC = "a INT UNSIGNED, b INT UNSIGNED, c BIGINT UNSIGNED, d INT UNSIGNED, PRIMARY KEY (a, b, c, d)"
EXTENDED = (
    "NDB$server_id INT UNSIGNED, NDB$source_server_id INT UNSIGNED, NDB$source_epoch BIGINT UNSIGNED, "
    "NDB$count INT UNSIGNED, "
    "PRIMARY KEY (NDB$server_id, NDB$source_server_id, NDB$source_epoch, NDB$count)"
)
OP_TYPES = "ENUM('WRITE_ROW','UPDATE_ROW','DELETE_ROW','REFRESH_ROW','READ_ROW') NOT NULL"
CAUSES = "ENUM('ROW_DOES_NOT_EXIST','ROW_ALREADY_EXISTS','DATA_IN_CONFLICT','TRANS_IN_CONFLICT') NOT NULL"


def find(columns: str, fixed: str = EXTENDED, name: str = "t$EX") -> tuple[ExceptionsTable | None, str | None]:
    """Return the exceptions table with these columns after the first four, and the warning."""
    definition = f"CREATE TABLE `{name}` ({columns + ', ' if columns else ''}{fixed})"
    if columns:
        head, _, key = fixed.partition(", PRIMARY KEY")
        definition = f"CREATE TABLE `{name}` ({head}, {columns}, PRIMARY KEY{key})"
    return find_exceptions_table(parse_schema(MAIN + definition, database="d"), TABLE)


def image(**values: int | str | None) -> RowImage:
    """Return an image that holds these columns."""
    present = tuple(sorted(LAYOUT.names.index(name) for name in values))
    payloads = []
    for place in present:
        value = values[LAYOUT.names[place]]
        payloads.append(None if value is None else LAYOUT.codecs[place].encode(value))
    return RowImage(LAYOUT, present, tuple(payloads))


def record(
    operation: Operation,
    before: RowImage | None,
    after: RowImage | None,
    *,
    cause: Cause = Cause.ROW_IN_CONFLICT,
    transaction_id: int = UNKNOWN_TRANSACTION_ID,
    read: bool = False,
) -> ConflictRecord:
    """Return a record of server 1 on epoch 77 of server 2, the fifth one."""
    return ConflictRecord(1, 2, 77, 5, operation, cause, transaction_id, before, after, read)


def filled(columns: str, what: ConflictRecord) -> tuple[object, ...]:
    """Return what stands in these columns of an extended table."""
    table, warning = find(columns)
    assert table is not None, warning
    return table.row(what)[4:]


class TestForms:
    """Usable definitions."""

    def test_none(self):
        """Without a table of that name there is none, and no warning."""
        assert find_exceptions_table(parse_schema(MAIN, database="d"), TABLE) == (None, None)

    def test_basic(self):
        """Server, source server, epoch, count, and the key; the names of the first four do not matter."""
        table, warning = find("k INT NOT NULL", BASIC)
        assert table is not None
        assert warning is None
        assert table.row(record(DELETE, image(k=-9), None)) == (1, 2, 77, 5, -9)

    def test_extended(self):
        """The first four with a prefix, and any of the others."""
        columns = f"NDB$OP_TYPE {OP_TYPES}, k INT NOT NULL, NDB$CFT_CAUSE {CAUSES}, v INT, x$NEW INT UNSIGNED"
        table, warning = find(columns)
        assert table is not None
        assert warning is None
        row = table.row(record(UPDATE, image(k=3), image(k=3, x=8, v=-1), cause=Cause.ROW_DOES_NOT_EXIST))
        assert row == (1, 2, 77, 5, "UPDATE_ROW", 3, "ROW_DOES_NOT_EXIST", -1, 8)

    @pytest.mark.parametrize("columns", ["v INT, k INT NOT NULL", "k INT NOT NULL, v INT", "v INT"])
    def test_columns_in_any_order(self, columns: str):
        """With the prefixes, the key can stand anywhere, or nowhere."""
        table, warning = find(columns)
        assert table is not None
        assert warning is None
        names = [column.name for column in table.table.columns[4:]]
        row = table.row(record(WRITE, None, image(k=3, v=8)))
        assert row[4:] == tuple({"k": 3, "v": 8}[name] for name in names)

    def test_a_longer_text_is_the_same_type(self):
        """Lengths do not count in the extended form."""
        table, warning = find("w VARCHAR(255) CHARACTER SET latin1")
        assert table is not None
        assert warning is None

    def test_any_names_for_the_first_four(self):
        """Only the prefix counts, in any case."""
        fixed = EXTENDED.replace("NDB$server_id", "ndb$a").replace("NDB$source_epoch", "Ndb$x")
        table, warning = find("k INT NOT NULL", fixed)
        assert table is not None
        assert warning is None

    def test_the_key_in_another_order(self):
        """The order of the four in the key does not matter."""
        table, warning = find("k INT NOT NULL", BASIC.replace("(a, b, c, d)", "(d, c, b, a)"))
        assert table is not None
        assert warning is None

    def test_a_malformed_one_in_capitals_hides_the_other(self):
        """The server takes the first that there is, and looks no further."""
        both = f"CREATE TABLE `t$EX` (a INT PRIMARY KEY); CREATE TABLE `t$ex` (k INT NOT NULL, {BASIC});"
        assert find_exceptions_table(parse_schema(MAIN + both, database="d"), TABLE) == (
            None,
            "exceptions table t$EX has wrong definition (initial 4 columns)",
        )

    def test_former_names(self):
        """Tables of older versions say master for source."""
        table, warning = find("k INT NOT NULL", EXTENDED.replace("source", "master"))
        assert table is not None
        assert warning is None
        assert table.table.columns[1].name == "NDB$master_server_id"

    def test_without_key_columns(self):
        """The key of the main table need not be there."""
        table, warning = find(f"NDB$OP_TYPE {OP_TYPES}")
        assert table is not None
        assert warning is None
        assert table.row(record(WRITE, None, image(k=1))) == (1, 2, 77, 5, "WRITE_ROW")

    @pytest.mark.parametrize(("name", "replicated"), [("t$EX", False), ("t$ex", True)])
    def test_lower_case_name(self, name: str, replicated: bool):
        """A table named in lower case collects exceptions, but is itself replicated."""
        table, warning = find("k INT NOT NULL", name=name)
        assert table is not None
        assert (table.replicated, warning) == (replicated, None)

    def test_capitals_come_first(self):
        """If both exist, the one in capitals is used."""
        basic = BASIC.replace(", PRIMARY", ", k INT NOT NULL, PRIMARY")
        both = "".join(f"CREATE TABLE `{name}` ({basic});" for name in ("t$ex", "t$EX"))
        table, _ = find_exceptions_table(parse_schema(MAIN + both, database="d"), TABLE)
        assert table is not None
        assert (table.table.name, table.replicated) == ("t$EX", False)

    def test_another_database(self):
        """The table must be in the same database."""
        sql = MAIN + f"CREATE TABLE other.`t$EX` ({BASIC})"
        assert find_exceptions_table(parse_schema(sql, database="d"), TABLE) == (None, None)


class TestMalformed:
    """Unusable definitions."""

    @pytest.mark.parametrize(
        "fixed",
        [
            BASIC.replace("a INT UNSIGNED", "a INT"),
            BASIC.replace("b INT UNSIGNED", "b BIGINT UNSIGNED"),
            BASIC.replace("c BIGINT UNSIGNED", "c INT UNSIGNED"),
            BASIC.replace("c BIGINT UNSIGNED", "c BIGINT"),
            BASIC.replace("d INT UNSIGNED", "d SMALLINT UNSIGNED"),
            BASIC.replace("(a, b, c, d)", "(a, b, c)"),
            "a INT UNSIGNED, b INT UNSIGNED, c BIGINT UNSIGNED, PRIMARY KEY (a, b, c)",
        ],
    )
    def test_first_four_columns(self, fixed: str):
        """The first four have fixed types, and are the key."""
        assert find("", fixed) == (None, "exceptions table t$EX has wrong definition (initial 4 columns)")

    def test_a_longer_key(self):
        """A fifth column in the key is one too many."""
        table, warning = find("k INT NOT NULL", BASIC.replace("(a, b, c, d)", "(a, b, c, d, k)"))
        assert (table, warning) == (None, "exceptions table t$EX has wrong definition (initial 4 columns)")

    @pytest.mark.parametrize(
        ("columns", "place", "fault"),
        [
            (
                "k$OLD INT, k$NEW INT",
                5,
                (
                    "Old or new values of primary key columns cannot be referenced since primary keys cannot be "
                    "updated, column k$NEW in table t$EX"
                ),
            ),
            (
                "k INT NOT NULL, v$OLD INT NOT NULL",
                5,
                "Old or new column reference v$OLD in table t$EX is not nullable and doesn't have a default value",
            ),
            (
                "v$NEW INT NOT NULL",
                4,
                "Old or new column reference v$NEW in table t$EX is not nullable and doesn't have a default value",
            ),
            (
                "other$NEW INT NOT NULL",
                4,
                "Old or new column reference other$NEW in table t$EX is not nullable and doesn't have a default value",
            ),
            ("v INT NOT NULL", 4, "Data column v in table t$EX is not nullable and doesn't have a default value"),
            (
                "other INT NOT NULL, k INT NOT NULL",
                4,
                "Extra column other in table t$EX is not nullable and doesn't have a default value",
            ),
            (
                "$OLD INT NOT NULL",
                4,
                "Extra column $OLD in table t$EX is not nullable and doesn't have a default value",
            ),
            (
                "w TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP",
                4,
                "Column w has matching name to column w for table t, but wrong type, 33 versus 15",
            ),
            ("k BIGINT NOT NULL", 4, "Column k has matching name to column k for table t, but wrong type, 9 versus 7"),
            (
                "K INT UNSIGNED NOT NULL",
                4,
                "Column K has matching name to column k for table t, but wrong type, 8 versus 7",
            ),
            ("v$OLD BIGINT", 4, "Column v$OLD has matching name to column v for table t, but wrong type, 9 versus 7"),
            (
                "w VARCHAR(256) CHARACTER SET latin1",
                4,
                "Column w has matching name to column w for table t, but wrong type, 23 versus 15",
            ),
            (
                "w VARCHAR(64) CHARACTER SET utf8mb4",
                4,
                "Column w has matching name to column w for table t, but wrong type, 23 versus 15",
            ),
            ("k INT", 4, "Pk column k not declared not null in both tables"),
            # Of several faults the last column's is named.
            (
                "k INT, v INT NOT NULL",
                5,
                "Data column v in table t$EX is not nullable and doesn't have a default value",
            ),
            ("NDB$OP_TYPE VARCHAR(20)", 4, "Table t$EX has incorrect type 15 for NDB$OP_TYPE"),
            ("NDB$OP_TYPE INT", 4, "Table t$EX has incorrect type 7 for NDB$OP_TYPE"),
            ("NDB$OP_TYPE BINARY(1)", 4, "Table t$EX has incorrect type 16 for NDB$OP_TYPE"),
            ("NDB$CFT_CAUSE BIGINT UNSIGNED", 4, "Table t$EX has incorrect type 10 for NDB$CFT_CAUSE"),
            ("NDB$CFT_CAUSE TINYINT UNSIGNED", 4, "Table t$EX has incorrect type 2 for NDB$CFT_CAUSE"),
            ("ndb$orig_transid INT UNSIGNED", 4, "Table t$EX has incorrect type 8 for NDB$ORIG_TRANSID"),
            ("NDB$ORIG_TRANSID BIGINT", 4, "Table t$EX has incorrect type 9 for NDB$ORIG_TRANSID"),
        ],
    )
    def test_other_columns(self, columns: str, place: int, fault: str):
        """The last column at fault is named, counted from 0, with the reason."""
        assert find(columns) == (None, f"exceptions table t$EX has wrong definition (column {place}): {fault}")

    def test_a_prefix_that_is_missing(self):
        """If one column has the prefix, the first four must have it."""
        table, warning = find(f"NDB$OP_TYPE {OP_TYPES}", EXTENDED.replace("NDB$count", "count"))
        fault = "(column 4): mandatory column count doesn't have the 'NDB$' prefix"
        assert (table, warning) == (None, f"exceptions table t$EX has wrong definition {fault}")

    def test_an_unknown_column_is_only_suspicious(self):
        """One that can be left at its default is kept there, and warned of."""
        table, warning = find("other INT, more INT NOT NULL DEFAULT 7")
        assert table is not None
        fault = "Column other in extension table t$EX not found in t"
        assert warning == f"exceptions table t$EX has suspicious definition ((column 4): {fault}"
        assert table.row(record(WRITE, None, image(k=1)))[4:] == (None, 7)

    @pytest.mark.parametrize("place", range(4))
    def test_every_one_of_the_first_four_needs_the_prefix(self, place: int):
        """The server names the column after the one that lacks it."""
        name = ["NDB$server_id", "NDB$source_server_id", "NDB$source_epoch", "NDB$count"][place]
        plain = EXTENDED.replace(name, name.removeprefix("NDB$"))
        table, warning = find(f"k INT NOT NULL, NDB$OP_TYPE {OP_TYPES}", plain)
        assert table is None
        fault = f"mandatory column {name.removeprefix('NDB$')} doesn't have the 'NDB$' prefix"
        assert warning == f"exceptions table t$EX has wrong definition (column {place + 1}): {fault}"

    def test_a_prefix_that_nothing_asks_for(self):
        """The server goes from the last column to the first: it has met no prefix when it comes to the fourth."""
        table, warning = find("k INT NOT NULL", EXTENDED.replace("NDB$count", "count"))
        assert table is not None
        assert warning is None


MAIN_OF_TWO = "CREATE TABLE t (v INT, b INT NOT NULL, a INT NOT NULL, c INT NOT NULL, PRIMARY KEY (a, b));"
BASIC_4 = "wrong definition (column 4): mandatory column d doesn't have the 'NDB$' prefix"


class TestBasicForm:
    """Without prefixes the key has to follow in the order of the table, and nothing else is filled in."""

    def find(self, columns: str, fixed: str = BASIC) -> tuple[ExceptionsTable | None, str | None]:
        """Return the exceptions table of a table with the key (a, b), which stand in the order b, a."""
        head, _, key = fixed.replace("a INT", "s INT").replace("b INT", "t INT").partition(", PRIMARY KEY")
        key = key.replace("(a, b,", "(s, t,")
        definition = f"CREATE TABLE `t$EX` ({head}, {columns}, PRIMARY KEY{key})"
        schema = parse_schema(MAIN_OF_TWO + definition, database="d")
        return find_exceptions_table(schema, schema.tables[0])

    @pytest.mark.parametrize("columns", ["b INT NOT NULL, a INT NOT NULL", "B INT NOT NULL, A INT NOT NULL, v INT"])
    def test_usable(self, columns: str):
        """In the order of the table's columns, not of its key."""
        table, warning = self.find(columns)
        assert table is not None
        assert warning is None

    @pytest.mark.parametrize(
        "columns",
        [
            "a INT NOT NULL, b INT NOT NULL",
            "b INT NOT NULL",
            "b INT NOT NULL, v INT, a INT NOT NULL",
            "b INT NOT NULL, v INT",
            "v INT, b INT NOT NULL, a INT NOT NULL",
            "other INT, b INT NOT NULL, a INT NOT NULL",
        ],
        ids=["order of the key", "half a key", "one between", "another instead", "data first", "unknown first"],
    )
    def test_anything_else_is_the_extended_form(self, columns: str):
        """And the extended form needs its prefixes."""
        assert self.find(columns) == (None, f"exceptions table t$EX has {BASIC_4}")

    def test_without_key(self):
        """Not even the first key column."""
        assert find("", BASIC) == (None, f"exceptions table t$EX has {BASIC_4}")

    def test_other_columns_keep_their_defaults(self):
        """A column of the main table, or one that nobody knows, is neither filled in nor warned of."""
        table, warning = find("k INT NOT NULL, v INT, x$OLD INT UNSIGNED DEFAULT 4, other INT", BASIC)
        assert table is not None
        assert warning is None
        row = table.row(record(UPDATE, image(k=3, x=1, v=1), image(k=3, x=2, v=2)))
        assert row == (1, 2, 77, 5, 3, None, 4, None)

    def test_a_reference_before_the_key(self):
        """The server has two messages for one fault: it looks for a key column on the way to the column."""
        fault = "column v$NEW in table t$EX is not nullable and doesn't have a default value"
        fixed = "b INT NOT NULL, a INT NOT NULL, v$NEW INT NOT NULL"
        assert self.find(fixed) == (None, f"exceptions table t$EX has wrong definition (column 6): Data {fault}")
        fixed = "b INT NOT NULL, a INT NOT NULL, c$NEW INT NOT NULL"
        reference = fault.replace("column v$NEW", "Old or new column reference c$NEW")
        assert self.find(fixed) == (None, f"exceptions table t$EX has wrong definition (column 6): {reference}")


class TestExtensionColumns:
    """NDB$OP_TYPE, NDB$CFT_CAUSE, NDB$ORIG_TRANSID."""

    @pytest.mark.parametrize(
        ("operation", "number", "name"),
        [(WRITE, 1, "WRITE_ROW"), (UPDATE, 2, "UPDATE_ROW"), (DELETE, 3, "DELETE_ROW")],
    )
    def test_operations(self, operation: Operation, number: int, name: str):
        """As a member, or as a number where the column is one."""
        what = record(operation, image(k=1), image(k=1))
        assert filled(f"NDB$OP_TYPE {OP_TYPES}", what) == (name,)
        assert filled("NDB$OP_TYPE INT UNSIGNED NOT NULL", what) == (number,)

    @pytest.mark.parametrize(
        ("cause", "number", "name"),
        [
            (Cause.ROW_DOES_NOT_EXIST, 1, "ROW_DOES_NOT_EXIST"),
            (Cause.ROW_ALREADY_EXISTS, 2, "ROW_ALREADY_EXISTS"),
            (Cause.ROW_IN_CONFLICT, 3, "DATA_IN_CONFLICT"),
            (Cause.TRANS_IN_CONFLICT, 4, "TRANS_IN_CONFLICT"),
        ],
    )
    def test_causes(self, cause: Cause, number: int, name: str):
        """A member is shown as the table calls it."""
        what = record(UPDATE, image(k=1), image(k=1), cause=cause)
        assert filled(f"NDB$CFT_CAUSE {CAUSES}", what) == (name,)
        assert filled("NDB$CFT_CAUSE INT UNSIGNED", what) == (number,)

    @pytest.mark.parametrize(("kind", "expected"), [(OP_TYPES, "READ_ROW"), ("INT UNSIGNED", 5)])
    def test_a_read(self, kind: str, expected: object):
        """A read under an exclusive lock is logged as an update, and reported as a read."""
        what = record(UPDATE, image(k=1), image(k=1), read=True)
        assert filled(f"NDB$OP_TYPE {kind}", what) == (expected,)

    def test_a_long_enum(self):
        """One of more than 255 members is kept in two bytes."""
        members = ",".join(f"'m{number}'" for number in range(1, 300))
        assert filled(f"NDB$OP_TYPE ENUM({members})", record(DELETE, image(k=1), None)) == ("m3",)

    @pytest.mark.parametrize(("kind", "value"), [("CHAR(1)", "\x03"), ("SET('one','two','four')", "one,two")])
    def test_other_bytes(self, kind: str, value: str):
        """The server takes whatever NDB keeps as CHAR, and writes the number into it."""
        assert filled(f"NDB$OP_TYPE {kind} CHARACTER SET latin1", record(DELETE, image(k=1), None)) == (value,)

    def test_a_member_that_is_not_there(self):
        """An ENUM without that member shows the empty error value."""
        assert filled("NDB$OP_TYPE ENUM('WRITE_ROW')", record(DELETE, image(k=1), None)) == ("",)

    @pytest.mark.parametrize(
        ("nullable", "transaction_id", "expected"),
        [
            ("", UNKNOWN_TRANSACTION_ID, None),
            ("NOT NULL", UNKNOWN_TRANSACTION_ID, 18446744073709551615),
            ("", 2**63 + 5, 9223372036854775813),
            ("NOT NULL", 2**63 + 5, 9223372036854775813),
            ("NOT NULL", 0, 0),
        ],
    )
    def test_transaction_id(self, nullable: str, transaction_id: int, expected: int | None):
        """An id that is not known is NULL where it can be, else all ones."""
        what = record(UPDATE, image(k=1), image(k=1), transaction_id=transaction_id)
        assert filled(f"NDB$ORIG_TRANSID BIGINT UNSIGNED {nullable}", what) == (expected,)

    def test_names_in_any_case(self):
        """The names of these columns are not case-sensitive."""
        assert filled("ndb$op_type INT UNSIGNED", record(DELETE, image(k=1), None)) == (3,)


ALL = "k INT NOT NULL, x$OLD INT UNSIGNED, x$NEW INT UNSIGNED, v$OLD INT, v$NEW INT, x INT UNSIGNED, v INT"


class TestDataColumns:
    """Columns of the main table: the key, `col`, `col$OLD` and `col$NEW`."""

    @pytest.mark.parametrize(
        ("what", "expected"),
        [
            # k, x$OLD, x$NEW, v$OLD, v$NEW, x, v
            (record(WRITE, None, image(k=1, x=5, v=6)), (1, None, 5, None, 6, 5, 6)),
            (record(WRITE, None, image(k=1, x=5, v=None)), (1, None, 5, None, None, 5, None)),
            (record(WRITE, None, image(k=1, x=5)), (1, None, 5, None, None, 5, None)),
            (record(UPDATE, image(k=1, x=3, v=7), image(k=1, x=9, v=8)), (1, 3, 9, 7, 8, 9, 8)),
            (record(UPDATE, image(k=1, x=3, v=7), image(k=1, x=9, v=None)), (1, 3, 9, 7, None, 9, None)),
            (record(UPDATE, image(k=1, x=3, v=None), image(k=1, x=9, v=8)), (1, 3, 9, None, 8, 9, 8)),
            # Before images of the key alone: what was written was NOT NULL, and is shown as zero.
            (record(UPDATE, image(k=1), image(x=9)), (1, 0, 9, None, None, 9, None)),
            (record(UPDATE, image(k=1), image(x=9, v=8)), (1, 0, 9, None, 8, 9, 8)),
            (record(UPDATE, image(k=1), image(v=8)), (1, None, None, None, 8, None, 8)),
            (record(DELETE, image(k=1, x=3, v=7), None), (1, 3, None, 7, None, 3, 7)),
            (record(DELETE, image(k=1, x=3, v=None), None), (1, 3, None, None, None, 3, None)),
            (record(DELETE, image(k=1), None), (1, 0, None, None, None, 0, None)),
        ],
        ids=[
            "insert",
            "insert of a NULL",
            "insert without a column",
            "update",
            "update to NULL",
            "update from NULL",
            "minimal update of x",
            "minimal update of both",
            "minimal update of v",
            "delete",
            "delete of a NULL",
            "minimal delete",
        ],
    )
    def test_values(self, what: ConflictRecord, expected: tuple[object, ...]):
        """Old values are NULL for inserts, new ones for deletes; `col` is the new one, for deletes the old one."""
        assert filled(ALL, what) == expected

    def test_text(self):
        """Text is text, its zero the empty one."""
        columns = "w$OLD VARCHAR(10) CHARACTER SET latin1, w$NEW VARCHAR(10) CHARACTER SET latin1"
        assert filled(columns, record(UPDATE, image(k=1, w="a"), image(w="é"))) == ("a", "é")
        assert filled(columns, record(UPDATE, image(k=1), image(w="b"))) == ("", "b")

    def test_key_of_the_before_image(self):
        """An update that has the key in its before image only still names its row."""
        assert filled("k INT NOT NULL", record(UPDATE, image(k=-7), image(x=1))) == (-7,)

    def test_key_of_the_after_image(self):
        """A key that changed its letters alone is shown as it is now; a delete shows it as it was."""
        main = "CREATE TABLE t (k VARCHAR(9) CHARACTER SET latin1 PRIMARY KEY);"
        head, _, key = EXTENDED.partition(", PRIMARY KEY")
        schema = parse_schema(
            f"{main}CREATE TABLE `t$EX` ({head}, k VARCHAR(9) CHARACTER SET latin1 NOT NULL, PRIMARY KEY{key})"
        )
        table, _ = find_exceptions_table(schema, schema.tables[0])
        assert table is not None
        layout = layout_of_types(schema.tables[0], (WireType(ColumnCode.VARCHAR, 9),))
        old, new = (RowImage(layout, (0,), (layout.codecs[0].encode(text),)) for text in ("abc", "ABC"))
        assert table.row(record(UPDATE, old, new))[4] == "ABC"
        assert table.row(record(DELETE, old, None))[4] == "abc"

    def test_new_value_of_a_delete(self):
        """It is NULL, also where the column has a default."""
        assert filled("v$NEW INT DEFAULT 9", record(DELETE, image(k=1, v=4), None)) == (None,)

    def test_new_value_at_its_default(self):
        """What an operation did not write is the default of the exceptions table's column."""
        columns = "v$NEW INT NOT NULL DEFAULT 42, v INT DEFAULT 41"
        assert filled(columns, record(UPDATE, image(k=1), image(x=9))) == (42, 41)

    def test_names_of_main_columns_in_any_case(self):
        """`V$new` refers to column v."""
        assert filled("V$new INT", record(WRITE, None, image(k=1, v=3))) == (3,)
