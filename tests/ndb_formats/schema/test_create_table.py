"""CREATE TABLE: many spellings of the same thing, and errors for what cannot be read."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndb_formats.errors import SchemaError
from ndb_formats.schema.create_table import parse_create_table, parse_schema
from ndb_formats.schema.tables import Column
from ndb_formats.types.values import ABSENT


def column(definition: str) -> Column:
    """Return the column that a definition makes in a table of latin1."""
    return parse_create_table(f"CREATE TABLE t (c {definition}) DEFAULT CHARSET=latin1").columns[0]


def facts(definition: str, *names: str) -> tuple[Any, ...]:
    """Return some attributes of the column that a definition makes."""
    made = column(definition)
    return tuple(getattr(made, name) for name in names)


class TestTypes:
    """Types and their synonyms."""

    @pytest.mark.parametrize(
        ("definition", "type_", "length", "scale", "unsigned"),
        [
            ("INT", "int", None, None, False),
            ("int(11)", "int", None, None, False),
            ("INTEGER UNSIGNED", "int", None, None, True),
            ("INT4", "int", None, None, False),
            ("TINYINT(1)", "tinyint", None, None, False),
            ("BOOL", "tinyint", None, None, False),
            ("BOOLEAN", "tinyint", None, None, False),
            ("SMALLINT UNSIGNED ZEROFILL", "smallint", None, None, True),
            ("INT ZEROFILL", "int", None, None, True),
            ("MEDIUMINT", "mediumint", None, None, False),
            ("MIDDLEINT", "mediumint", None, None, False),
            ("BIGINT(20) UNSIGNED", "bigint", None, None, True),
            ("INT8", "bigint", None, None, False),
            ("DECIMAL", "decimal", 10, 0, False),
            ("DEC(5)", "decimal", 5, 0, False),
            ("NUMERIC(65,30) UNSIGNED", "decimal", 65, 30, True),
            ("FIXED (7, 2)", "decimal", 7, 2, False),
            ("FLOAT", "float", None, None, False),
            ("FLOAT UNSIGNED", "float", None, None, True),
            ("FLOAT(7,3) UNSIGNED", "float", 7, 3, True),
            ("FLOAT(24)", "float", None, None, False),
            ("FLOAT(25)", "double", None, None, False),
            ("DECIMAL(0)", "decimal", 10, 0, False),
            ("DECIMAL(19.5)", "decimal", 19, 0, False),
            ("TEXT(255)", "tinytext", None, None, False),
            ("TEXT(256)", "text", None, None, False),
            ("BLOB(70000)", "mediumblob", None, None, False),
            ("TEXT(64) CHARACTER SET utf8mb4", "text", None, None, False),
            ("VARCHAR(70000)", "mediumtext", None, None, False),
            ("CHAR(3) BYTE", "binary", 3, None, False),
            ("TEXT BYTE", "blob", None, None, False),
            ("LONG BYTE", "mediumblob", None, None, False),
            ("LONG VARCHAR BINARY", "mediumtext", None, None, False),
            ("NCHAR VARCHAR(5)", "varchar", 5, None, False),
            ("VARCHARACTER(5)", "varchar", 5, None, False),
            ("VECTOR", "vector", 2048, None, False),
            ("TIME(0)", "time", None, None, False),
            ("DOUBLE", "double", None, None, False),
            ("DOUBLE PRECISION UNSIGNED", "double", None, None, True),
            ("REAL(10,2)", "double", 10, 2, False),
            ("BIT", "bit", 1, None, False),
            ("BIT(64)", "bit", 64, None, False),
            ("YEAR", "year", None, None, False),
            ("YEAR(4)", "year", None, None, False),
            ("DATE", "date", None, None, False),
            ("TIME(3)", "time", 3, None, False),
            ("DATETIME", "datetime", None, None, False),
            ("TIMESTAMP(6)", "timestamp", 6, None, False),
            ("CHAR", "char", 1, None, False),
            ("CHARACTER(9)", "char", 9, None, False),
            ("CHAR VARYING(9)", "varchar", 9, None, False),
            ("CHARACTER VARYING (9)", "varchar", 9, None, False),
            ("VARCHAR(300)", "varchar", 300, None, False),
            ("NATIONAL VARCHAR(9)", "varchar", 9, None, False),
            ("NCHAR VARYING(9)", "varchar", 9, None, False),
            ("NVARCHAR(9)", "varchar", 9, None, False),
            ("NCHAR(9)", "char", 9, None, False),
            ("BINARY", "binary", 1, None, False),
            ("VARBINARY(40)", "varbinary", 40, None, False),
            ("TINYBLOB", "tinyblob", None, None, False),
            ("LONGBLOB", "longblob", None, None, False),
            ("MEDIUMTEXT", "mediumtext", None, None, False),
            ("LONG", "mediumtext", None, None, False),
            ("LONG NOT NULL", "mediumtext", None, None, False),
            ("LONG VARCHAR", "mediumtext", None, None, False),
            ("LONG VARBINARY", "mediumblob", None, None, False),
            ("JSON", "json", None, None, False),
            ("VECTOR(3)", "vector", 3, None, False),
            ("POINT NOT NULL SRID 4326", "geometry", None, None, False),
            ("GEOMETRYCOLLECTION", "geometry", None, None, False),
        ],
    )
    def test_type(self, definition: str, type_: str, length: int | None, scale: int | None, unsigned: bool):
        """Every spelling of a type gives the canonical one, its length, scale and sign."""
        assert facts(definition, "type", "length", "scale", "unsigned") == (type_, length, scale, unsigned)

    def test_long_not_null_is_not_null(self):
        """LONG alone is a type and does not swallow the next word."""
        assert facts("LONG NOT NULL", "nullable") == (False,)

    @pytest.mark.parametrize(
        "definition", ["NATIONAL CHAR(3)", "NCHAR(3)", "NVARCHAR(3)", "NATIONAL CHARACTER VARYING(3)"]
    )
    def test_national_is_utf8mb3(self, definition: str):
        """NATIONAL and its short forms are of character set utf8mb3."""
        assert facts(definition, "charset", "collation") == ("utf8mb3", "utf8mb3_general_ci")

    def test_a_literal_member_of_wide_characters_is_filled_up(self):
        """As MariaDB 10.11 has it: zeros at the left make whole characters."""
        assert facts("ENUM(b'1100001','z') CHARSET ucs2", "members") == (("a", "z"),)

    def test_serial(self):
        """SERIAL is BIGINT UNSIGNED NOT NULL AUTO_INCREMENT UNIQUE."""
        table = parse_create_table("CREATE TABLE t (id SERIAL, a INT)")
        assert table.columns[0] == Column("id", "bigint", unsigned=True, nullable=False, auto_increment=True)
        assert (table.serving, table.primary_key) == ("id", ("id",))

    @pytest.mark.parametrize(
        ("definition", "members"),
        [
            ("ENUM('red','green','blue')", ("red", "green", "blue")),
            ("SET('a')", ("a",)),
            ("ENUM('it''s', 'b\\'c', 'd\\\\e')", ("it's", "b'c", "d\\e")),
            ("ENUM ( 'a,b' , ')(' )", ("a,b", ")(")),
            ('ENUM("x","y")', ("x", "y")),
            ("ENUM('', 'ä', '表ö')", ("", "ä", "?ö")),
        ],
    )
    def test_members(self, definition: str, members: tuple[str, ...]):
        """Members of ENUM and SET are unquoted; what latin1 lacks is a question mark, as in MySQL 9.7."""
        assert facts(definition, "members", "charset") == (members, "latin1")


class TestAttributes:
    """What follows a type."""

    @pytest.mark.parametrize(
        ("definition", "nullable"),
        [
            ("INT", True),
            ("INT NULL", True),
            ("INT NOT NULL", False),
            ("INT DEFAULT NULL", True),
            ("INT COMMENT 'NOT NULL'", True),
            ("INT /*!80023 INVISIBLE */ NOT NULL", False),
            ("INT DEFAULT 5 NOT NULL COMMENT 'a, b'", False),
            ("TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP", False),
            ("INT AUTO_INCREMENT NOT NULL COLUMN_FORMAT FIXED STORAGE MEMORY", False),
            ("INT NOT NULL CHECK (c > 0 AND c IS NOT NULL)", False),
            ("INT CONSTRAINT positive CHECK (c IS NOT NULL) ENFORCED", True),
            ("INT REFERENCES p (x) ON DELETE CASCADE", True),
        ],
    )
    def test_nullable(self, definition: str, nullable: bool):
        """NOT NULL counts where it is an attribute, and nowhere else."""
        assert facts(definition, "nullable") == (nullable,)

    @pytest.mark.parametrize(
        ("definition", "default"),
        [
            ("INT", ABSENT),
            ("INT NOT NULL", ABSENT),
            ("INT DEFAULT NULL", None),
            ("INT DEFAULT 5", "5"),
            ("INT DEFAULT -5", "-5"),
            ("INT DEFAULT +5", "5"),
            ("INT DEFAULT '5'", "5"),
            ("DECIMAL(4,2) DEFAULT 1.50", "1.50"),
            ("DOUBLE DEFAULT -1e3", "-1e3"),
            ("INT DEFAULT TRUE", "1"),
            ("INT DEFAULT FALSE", "0"),
            ("BIT(3) DEFAULT b'101'", "5"),
            ("BIT(3) DEFAULT 0b101", "5"),
            ("VARBINARY(4) DEFAULT 0x4142", b"AB"),
            ("VARBINARY(4) DEFAULT X'00ff'", b"\x00\xff"),
            ("VARBINARY(4) DEFAULT 0x141", b"\x01\x41"),
            ("VARCHAR(9) DEFAULT ''", ""),
            ("VARCHAR(9) DEFAULT 'NULL'", "NULL"),
            ("VARCHAR(9) DEFAULT 'it''s'", "it's"),
            ("VARCHAR(9) DEFAULT 'a\\nb'", "a\nb"),
            ('VARCHAR(9) DEFAULT "dq" NOT NULL', "dq"),
            ("VARCHAR(9) DEFAULT _utf8mb4'abc'", "abc"),
            ("ENUM('a','b') DEFAULT 'b'", "b"),
            ("DATETIME DEFAULT '2024-01-01 00:00:00'", "2024-01-01 00:00:00"),
            ("TIMESTAMP DEFAULT CURRENT_TIMESTAMP", ABSENT),
            ("TIMESTAMP(6) DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6)", ABSENT),
            ("DATETIME DEFAULT NOW()", ABSENT),
            ("INT DEFAULT (1 + 2)", ABSENT),
            ("VARCHAR(9) DEFAULT (CONCAT('a', ')')) NOT NULL", ABSENT),
        ],
    )
    def test_default(self, definition: str, default: Any):
        """Constant defaults are text or bytes, DEFAULT NULL is None, expressions and nothing are ABSENT."""
        made = column(definition).default
        assert (type(made), made) == (type(default), default)

    @pytest.mark.parametrize(
        ("definition", "generated"),
        [
            ("INT", None),
            ("INT GENERATED ALWAYS AS (a + b) STORED", "stored"),
            ("INT GENERATED ALWAYS AS (a * 2) VIRTUAL NOT NULL", "virtual"),
            ("INT AS (a)", "virtual"),
            ("VARCHAR(30) GENERATED ALWAYS AS (CONCAT(t, '-', ')', id)) STORED COMMENT 'x'", "stored"),
        ],
    )
    def test_generated(self, definition: str, generated: str | None):
        """A generated column is virtual unless it is stored."""
        assert facts(definition, "generated") == (generated,)

    def test_generated_from(self):
        """A generated column depends on the columns its expression names, in any case, also ones declared later."""
        table = parse_create_table(
            """CREATE TABLE t (id INT, concat INT, `left` INT, D DATE, e INT,
            g VARCHAR(9) AS (CONCAT(t.ID, 'e', `left`, d)) STORED, h INT AS (g + i) VIRTUAL, i INT AS (2) STORED)"""
        )
        assert [column.depends_on for column in table.columns] == [
            *[()] * 5, ("id", "left", "D"), ("g", "i"), (),
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("definition", "auto_increment", "computed_default", "on_update"),
        [
            ("INT DEFAULT 7", False, False, False),
            ("INT NOT NULL AUTO_INCREMENT PRIMARY KEY", True, False, False),
            ("SERIAL", True, False, False),
            ("INT DEFAULT (7)", False, True, False),
            ("TIMESTAMP DEFAULT CURRENT_TIMESTAMP", False, True, False),
            ("DATETIME(3) ON UPDATE NOW(3) DEFAULT NOW(3)", False, True, True),
            ("DATETIME DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP", False, False, True),
            ("INT REFERENCES p (x) ON DELETE SET NULL ON UPDATE CASCADE", False, False, False),
        ],
    )
    def test_values_that_the_server_provides(
        self, definition: str, auto_increment: bool, computed_default: bool, on_update: bool
    ):
        """AUTO_INCREMENT, defaults that are no constants and ON UPDATE are known; ON UPDATE CASCADE is none."""
        expected = (auto_increment, computed_default, on_update)
        assert facts(definition, "auto_increment", "computed_default", "on_update") == expected


class TestCharacterSets:
    """What a column declares, what it inherits."""

    @pytest.mark.parametrize(
        ("definition", "charset", "collation"),
        [
            ("VARCHAR(5)", "latin1", "latin1_german1_ci"),
            ("VARCHAR(5) CHARACTER SET utf8mb4", "utf8mb4", "utf8mb4_0900_ai_ci"),
            ("VARCHAR(5) CHARSET latin1", "latin1", "latin1_swedish_ci"),
            ("VARCHAR(5) CHARACTER SET utf8 COLLATE utf8_bin", "utf8mb3", "utf8mb3_bin"),
            ("VARCHAR(5) COLLATE utf8mb4_bin", "utf8mb4", "utf8mb4_bin"),
            ("TEXT COLLATE 'latin1_bin' NOT NULL", "latin1", "latin1_bin"),
            ("ENUM('a') CHARACTER SET utf8mb4", "utf8mb4", "utf8mb4_0900_ai_ci"),
            ("SET('a')", "latin1", "latin1_german1_ci"),
            ("INT", None, None),
            ("VARBINARY(5)", None, None),
            ("JSON", None, None),
        ],
    )
    def test_column(self, definition: str, charset: str | None, collation: str | None):
        """A column's own word counts, then what its character set implies, then the table's."""
        sql = f"CREATE TABLE t (c {definition}) CHARSET=latin1 COLLATE=latin1_german1_ci"
        made = parse_create_table(sql).columns[0]
        assert (made.charset, made.collation) == (charset, collation)

    @pytest.mark.parametrize(
        ("options", "charset", "collation"),
        [
            ("", "ascii", "ascii_general_ci"),  # the server's
            ("DEFAULT CHARSET=latin1", "latin1", "latin1_swedish_ci"),
            ("CHARACTER SET = utf8mb4", "utf8mb4", "utf8mb4_0900_ai_ci"),
            ("DEFAULT CHARACTER SET utf8", "utf8mb3", "utf8mb3_general_ci"),
            ("COLLATE latin1_bin", "latin1", "latin1_bin"),
            ("COLLATE=utf8mb4_bin CHARSET=utf8mb4", "utf8mb4", "utf8mb4_bin"),
            ("ENGINE=NDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_as_cs COMMENT='CHARSET=latin1'",
             "utf8mb4", "utf8mb4_0900_as_cs"),
        ],
    )  # fmt: skip
    def test_table(self, options: str, charset: str, collation: str):
        """Table options decide for columns that say nothing; without them the server's default."""
        made = parse_create_table(f"CREATE TABLE t (c CHAR(3)) {options}", charset="ascii").columns[0]
        assert (made.charset, made.collation) == (charset, collation)

    @pytest.mark.parametrize(
        ("definition", "type_"),
        [
            ("CHAR(4) CHARACTER SET binary", "binary"),
            ("VARCHAR(4) CHARACTER SET binary", "varbinary"),
            ("TEXT CHARACTER SET binary", "blob"),
            ("MEDIUMTEXT COLLATE binary", "mediumblob"),
        ],
    )
    def test_character_set_binary_makes_a_binary_type(self, definition: str, type_: str):
        """Text of character set binary is the binary type of the same size."""
        assert facts(definition, "type", "charset", "collation") == (type_, None, None)


class TestNames:
    """Names of databases, tables and columns."""

    @pytest.mark.parametrize(
        ("name", "database", "table"),
        [
            ("t", "here", "t"),
            ("`t`", "here", "t"),
            ("db.t", "db", "t"),
            ("`d b`.`t.t`", "d b", "t.t"),
            ("`a``b`", "here", "a`b"),
            ("IF NOT EXISTS db.t", "db", "t"),
            ("t1$EX", "here", "t1$EX"),
            ("`select`", "here", "select"),
            ("`größe`", "here", "größe"),
        ],
    )
    def test_table_name(self, name: str, database: str, table: str):
        """A qualified name has its database, another one the current."""
        made = parse_create_table(f"CREATE TABLE {name} (a INT)", database="here")
        assert (made.database, made.name) == (database, table)

    def test_column_names_keep_their_case(self):
        """Words that are also keywords, `$`, digits and blanks are names like any other."""
        names = ("date", "Key2", "Type", "NDB$server_id", "x$OLD", "2nd", "größe", "timestamp", "value", "comment")
        quoted = ("primary", "key", "a b", "a`b", "index", "INT", "'")
        columns = [f"{name} INT" for name in names]
        columns += ["`" + name.replace("`", "``") + "` INT" for name in quoted]
        table = parse_create_table(f"CREATE TABLE t ({', '.join(columns)})")
        assert tuple(column.name for column in table.columns) == names + quoted
        assert table.primary_key == ()

    def test_use_sets_the_database(self):
        """Each table belongs to the database of the last USE; other statements are passed over."""
        schema = parse_schema(
            """
            -- a dump
            CREATE DATABASE one; CREATE TABLE early (a INT);
            use `one`; CREATE TABLE t (a INT); INSERT INTO t VALUES (1, 'CREATE TABLE x (a INT);');
            USE two; create table t (b INT); CREATE TABLE three.t (c INT);
            CREATE TEMPORARY TABLE tmp (d INT); CREATE INDEX i ON t (b); DROP TABLE one.t
            """,
            database="start",
        )
        assert [table.full_name for table in schema.tables] == ["start.early", "two.t", "three.t"]
        assert schema.find("two", "t").columns == (Column("b", "int"),)

    def test_no_statements_no_tables(self):
        """Empty text and comments make an empty schema."""
        assert parse_schema(" ; -- nothing\n/* at all */ ;").tables == ()


class TestKeys:
    """Primary and unique keys."""

    @pytest.mark.parametrize(
        ("body", "key"),
        [
            ("a INT PRIMARY KEY, b INT", ("a",)),
            ("a INT, b INT KEY", ("b",)),
            ("a INT NOT NULL PRIMARY KEY COMMENT 'x', b INT", ("a",)),
            ("a INT, b INT, PRIMARY KEY (b, a)", ("b", "a")),
            ("a INT, b INT, PRIMARY KEY USING HASH (a)", ("a",)),
            ("a INT, b INT, PRIMARY KEY (`b`) USING BTREE COMMENT '(a)'", ("b",)),
            ("a TEXT, b INT, PRIMARY KEY (a(10), b DESC)", ("a", "b")),
            ("a INT, b INT, CONSTRAINT pk PRIMARY KEY (a)", ("a",)),
            ("a INT, b INT, CONSTRAINT PRIMARY KEY (a)", ("a",)),
            ("a INT, b INT, CONSTRAINT `primary` PRIMARY KEY (b)", ("b",)),
            ("a INT, b INT, PRIMARY KEY (B)", ("b",)),
            ("a INT UNIQUE, b INT, KEY (a), INDEX i (b), FULLTEXT f (a), SPATIAL (b)", ()),
        ],
    )
    def test_primary_key(self, body: str, key: tuple[str, ...]):
        """The primary key is found in every spelling, and its columns are NOT NULL."""
        table = parse_create_table(f"CREATE TABLE t ({body})")
        assert table.primary_key == key
        assert {column.name for column in table.columns if not column.nullable} == set(key)
        assert len(table.columns) == 2

    def test_unique_keys(self):
        """Unique keys of columns and of the table, in order; other keys and constraints are none."""
        table = parse_create_table(
            """CREATE TABLE t (a INT UNIQUE, b INT UNIQUE KEY, c INT,
            UNIQUE KEY u (A, b DESC) USING HASH, UNIQUE (c), UNIQUE INDEX x (b(4), c),
            CONSTRAINT y UNIQUE (a, c), KEY k (a), CONSTRAINT f FOREIGN KEY (a) REFERENCES p (x) ON DELETE SET NULL,
            CHECK (a > 0), CONSTRAINT n CHECK (b > 0) NOT ENFORCED)"""
        )
        assert table.unique_keys == (("a",), ("b",), ("a", "b"), ("c",), ("b", "c"), ("a", "c"))
        assert [column.name for column in table.columns] == ["a", "b", "c"]
        assert [column.nullable for column in table.columns] == [True, True, True]


class TestText:
    """Comments, options, and what SHOW CREATE TABLE prints."""

    def test_show_create_table(self):
        """The text that a server prints gives back everything that matters."""
        table = parse_create_table(
            """CREATE TABLE `order items` (
  `Order` int unsigned NOT NULL AUTO_INCREMENT,
  `item` varchar(20) CHARACTER SET latin1 COLLATE latin1_bin NOT NULL DEFAULT 'none',
  `price` decimal(10,2) DEFAULT NULL COMMENT 'net, in €',
  `flags` set('a','b') CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci DEFAULT 'a,b',
  `seen` timestamp(3) NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3),
  `hidden` int DEFAULT '3' /*!80023 INVISIBLE */,
  `total` decimal(12,2) GENERATED ALWAYS AS ((`price` * 2)) VIRTUAL,
  `doc` json DEFAULT NULL,
  PRIMARY KEY (`Order`,`item`) USING HASH,
  UNIQUE KEY `u` (`price`),
  KEY `k` (`seen`),
  CONSTRAINT `c` CHECK ((`price` > 0)) /*!80016 NOT ENFORCED */
) /*!50100 TABLESPACE `ts` STORAGE DISK */ ENGINE=ndbcluster AUTO_INCREMENT=7 DEFAULT CHARSET=utf8mb4 \
COLLATE=utf8mb4_0900_ai_ci COMMENT='NDB_TABLE=READ_BACKUP=1, ENGINE=x'
/*!50100 PARTITION BY KEY (`Order`)
PARTITIONS 2 */""",
            database="shop",
        )
        assert (table.full_name, table.engine) == ("shop.order items", "NDBCLUSTER")
        assert (table.primary_key, table.unique_keys) == (("Order", "item"), (("price",),))
        assert table.columns == (
            Column("Order", "int", unsigned=True, nullable=False, auto_increment=True),
            Column("item", "varchar", 20, charset="latin1", collation="latin1_bin", nullable=False, default="none"),
            Column("price", "decimal", 10, 2, default=None),
            Column(
                "flags", "set", charset="utf8mb4", collation="utf8mb4_0900_ai_ci", members=("a", "b"), default="a,b"
            ),
            Column("seen", "timestamp", 3, computed_default=True, on_update=True, expression="current_timestamp"),
            Column("hidden", "int", default="3", invisible=True),
            Column("total", "decimal", 12, 2, generated="virtual", depends_on=("price",), expression="( `price` * 2 )"),
            Column("doc", "json", default=None),
        )

    def test_comments_are_no_text(self):
        """Comments of all four kinds are passed over, version comments are read."""
        table = parse_create_table(
            """/* one */ CREATE /* two */ TABLE t ( -- three, INT
            a INT, # four ( )
            b /*!40000 VARCHAR(5) */ /* ) */ NOT NULL /*!80023 INVISIBLE */)"""
        )
        assert [(column.name, column.type, column.nullable) for column in table.columns] == [
            ("a", "int", True),
            ("b", "varchar", False),
        ]

    @pytest.mark.parametrize(
        ("options", "engine"),
        [
            ("", None),
            ("ENGINE=NDB", "NDB"),
            ("engine ndbcluster", "NDBCLUSTER"),
            ("COMMENT='ENGINE=x' ENGINE = InnoDB", "INNODB"),
        ],
    )
    def test_engine(self, options: str, engine: str | None):
        """The engine is as declared, upper case."""
        assert parse_create_table(f"CREATE TABLE t (a INT) {options}").engine == engine


class TestErrors:
    """What cannot be read is a SchemaError."""

    @pytest.mark.parametrize(
        ("sql", "message"),
        [
            ("", "expected one CREATE TABLE, found 0"),
            ("DROP TABLE t", "expected one CREATE TABLE, found 0"),
            ("CREATE TABLE a (x INT); CREATE TABLE b (x INT)", "expected one CREATE TABLE, found 2"),
            ("CREATE TABLE", "ends too early"),
            ("CREATE TABLE d.", "ends too early"),
            ("CREATE TABLE t", "only CREATE TABLE with a column list"),
            ("CREATE TABLE t LIKE u", "makes a table like u, whose definition is not known"),
            ("CREATE TABLE t (LIKE u)", "makes a table like u, whose definition is not known"),
            ("CREATE TABLE t SELECT 1", "only CREATE TABLE with a column list"),
            ("CREATE TABLE t AS SELECT 1", "only CREATE TABLE with a column list"),
            ("CREATE TABLE t (a INT) SELECT 1 AS b", "CREATE TABLE ... SELECT cannot be read"),
            ("CREATE TABLE t (a INT) ENGINE=NDB AS SELECT 1 AS b", "CREATE TABLE ... SELECT cannot be read"),
            ("CREATE TABLE t ()", "ends too early"),
            ("CREATE TABLE t (a)", "ends too early"),
            ("CREATE TABLE t (a INT,)", "ends too early"),
            ("CREATE TABLE t (a INT, PRIMARY KEY)", "ends too early"),
            ("CREATE TABLE t (a INT DEFAULT)", "ends too early"),
            ("CREATE TABLE t (a DECIMAL())", "ends too early"),
            ("CREATE TABLE t (a DECIMAL(5,))", "ends too early"),
            ("CREATE TABLE t (a ENUM())", "ends too early"),
            ("CREATE TABLE t (a INT, b INT AS ())", "ends too early"),
            ("CREATE TABLE t (a VARCHAR(MAX))", r"varchar\(MAX\) is not a type"),
            ("CREATE TABLE t (a DECIMAL(x))", r"decimal\(x\) is not a type"),
            ("CREATE TABLE t (a INT) ENGINE=", "ends too early"),
            ("CREATE TABLE t (a INT DEFAULT 'x)", "cannot be read as SQL"),
            ("CREATE TABLE t (`a INT)", "cannot be read as SQL"),
        ],
    )
    def test_error(self, sql: str, message: str):
        """The error says what is wrong."""
        with pytest.raises(SchemaError, match=message):
            parse_create_table(sql)

    def test_the_error_names_the_table(self):
        """Among many tables the faulty one is named."""
        with pytest.raises(SchemaError) as caught:
            parse_schema("CREATE TABLE a (x INT); USE d; CREATE TABLE b (x")
        assert caught.value.table == "d.b"

    SQL = (
        "CREATE TABLE IF NOT EXISTS `d`.`t` (a INT UNSIGNED NOT NULL DEFAULT '5' COMMENT 'x''y', b ENUM('p','q'), "
        "c DECIMAL(5,2) AS (a + 1) STORED, PRIMARY KEY (a, b(3)), UNIQUE KEY u (b)) ENGINE=NDB CHARSET=latin1"
    )

    def test_cut_text_is_a_schema_error_until_the_column_list_ends(self):
        """Every prefix is refused until the list is closed; what is cut in the options has the columns."""
        columns = parse_create_table(self.SQL).columns
        end = self.SQL.index(" ENGINE") + 1
        for length in range(end - 1):
            with pytest.raises(SchemaError):
                parse_create_table(self.SQL[:length])
        for length in range(end - 1, len(self.SQL)):
            try:
                table = parse_create_table(self.SQL[:length])
            except SchemaError:
                continue
            assert [column.name for column in table.columns] == [column.name for column in columns]

    @given(st.data())
    def test_damaged_text_is_a_table_or_a_schema_error(self, data: st.DataObject):
        """No other exception leaves when words are lost."""
        words = self.SQL.replace("(", " ( ").replace(")", " ) ").replace(",", " , ").split(" ")
        kept = data.draw(st.lists(st.booleans(), min_size=len(words), max_size=len(words)))
        text = " ".join(word for word, keep in zip(words, kept, strict=True) if keep)
        try:
            schema = parse_schema(text)
        except SchemaError:
            return
        assert len(schema.tables) <= 1
