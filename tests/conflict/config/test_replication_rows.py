r"""Rows of mysql.ndb_replication from dumps, tables as text, and TOML."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conflict.config.replication_rows import load_replication_rows
from conflict.errors import ConfigurationError
from conflict.rules.replication_table import ReplicationRow
from tests.corpora import DEMO
from tests.examples import examples

MAX, EPOCH = "NDB$MAX(version)", "NDB$EPOCH()"

# As mysqldump 9.7 writes it.
DUMP = r"""-- MySQL dump 10.13  Distrib 9.7.4, for Linux (x86_64)
/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;
DROP TABLE IF EXISTS `ndb_replication`;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `ndb_replication` (
  `db` varbinary(63) NOT NULL,
  `table_name` varbinary(63) NOT NULL,
  `server_id` int unsigned NOT NULL,
  `binlog_type` int unsigned DEFAULT NULL,
  `conflict_fn` varbinary(128) DEFAULT NULL,
  PRIMARY KEY (`db`,`table_name`,`server_id`) USING HASH
) ENGINE=ndbcluster DEFAULT CHARSET=utf8mb4
/*!50100 PARTITION BY KEY (db,`table_name`) */;

LOCK TABLES `ndb_replication` WRITE;
/*!40000 ALTER TABLE `ndb_replication` DISABLE KEYS */;
INSERT INTO `ndb_replication` VALUES (_binary 'shop',_binary 't\\_%',0,7,_binary 'NDB$MAX(version)'),
(_binary 'it\'s; (a, \"name\")',_binary '%',2,NULL,NULL);
/*!40000 ALTER TABLE `ndb_replication` ENABLE KEYS */;
UNLOCK TABLES;
INSERT INTO `orders` VALUES (1,'x');
"""
DUMPED = (ReplicationRow("shop", r"t\_%", 0, 7, MAX), ReplicationRow('it\'s; (a, "name")', "%", 2))


def load(folder: Path, text: str, name: str = "rows.sql") -> tuple[ReplicationRow, ...]:
    """Read a text as a file of that name."""
    (folder / name).write_text(text, "utf-8")
    return load_replication_rows(folder / name)


def refusal(folder: Path, text: str, name: str = "rows.sql") -> str:
    """Return the complaint, without the folder."""
    with pytest.raises(ConfigurationError) as caught:
        load(folder, text, name)
    return str(caught.value).removeprefix(f"{folder}/")


class TestDumps:
    """INSERT and REPLACE statements."""

    def test_a_dump_of_mysqldump_is_read(self, tmp_path: Path):
        """Other statements and tables are ignored."""
        assert load(tmp_path, DUMP) == DUMPED

    @pytest.mark.parametrize(
        "statement",
        [
            "INSERT INTO mysql.ndb_replication VALUES ('d', 't', 1, 7, 'NDB$MAX(version)')",
            "insert into `mysql`.`ndb_replication` values ('d','t',1,7,'NDB$MAX(version)');",
            "INSERT IGNORE INTO NDB_REPLICATION VALUES (0x64, x'74', 1, 7, 0x4E4442244D41582876657273696F6E29)",
            "INSERT ndb_replication VALUE (_binary 'd', N't', 0x01, 0x7, 'NDB$MAX' '(version)')",
            'REPLACE INTO ndb_replication VALUES ("d", "t", 1, "FULL_USE_UPDATE", "NDB$MAX(version)")',
            (
                "INSERT INTO ndb_replication (conflict_fn, `binlog_type`, server_id, ndb_replication.table_name, DB) "
                "VALUES ('NDB$MAX(version)', 7, 1, 't', 'd')"
            ),
            (
                "SELECT 'a;b'; # INSERT\n-- INSERT INTO ndb_replication VALUES (1)\n/* INSERT INTO */ "
                "INSERT INTO ndb_replication VALUES /* row */ ('d', 't', 1, 7, 'NDB$MAX(version)') -- end"
            ),
        ],
    )
    def test_every_spelling_of_a_statement_gives_the_same_row(self, statement: str, tmp_path: Path):
        """Quotes, hex, comments, another order of columns."""
        assert load(tmp_path, statement) == (ReplicationRow("d", "t", 1, 7, MAX),)

    @pytest.mark.parametrize(
        ("values", "row"),
        [
            ("'d', 't', 1, NULL", ReplicationRow("d", "t", 1)),
            ("'d', 't', 1, NULL, NULL", ReplicationRow("d", "t", 1)),
            ("'d', 't', 1, DEFAULT, DEFAULT", ReplicationRow("d", "t", 1)),
            ("'d', 't', 1, 7, NULL, 4, 3", ReplicationRow("d", "t", 1, 7, None, 4, 3)),
            ("'d', 't', 1, 7, 'NDB$EPOCH()', 4, 3", ReplicationRow("d", "t", 1, 7, EPOCH, 4, 3)),
            ("'d', 't', 1, 7, 4, 3, 'NDB$EPOCH()'", ReplicationRow("d", "t", 1, 7, EPOCH, 4, 3)),
            ("'d', 't', 1, 7, NULL, NULL, NULL", ReplicationRow("d", "t", 1, 7)),
            ("'d', 't', 1, 5", ReplicationRow("d", "t", 1, 5)),
            ("'d', 't', 4294967295, 10", ReplicationRow("d", "t", 2**32 - 1, 10)),
        ],
    )
    def test_values_without_names_have_the_order_of_the_table(self, values: str, row: ReplicationRow, tmp_path: Path):
        """Four, five or seven values; in the manual the slices come before the function."""
        assert load(tmp_path, f"INSERT INTO ndb_replication VALUES ({values})") == (row,)

    def test_the_definition_in_a_dump_gives_the_order(self, tmp_path: Path):
        """Of values without names."""
        text = (
            "CREATE TABLE IF NOT EXISTS mysql.ndb_replication (server_id INT UNSIGNED, table_name VARBINARY(63), "
            "db VARBINARY(63), PRIMARY KEY (db, table_name, server_id), KEY x (db));"
            "INSERT INTO ndb_replication VALUES (3, 't', 'd');"
        )
        assert load(tmp_path, text) == (ReplicationRow("d", "t", 3),)

    def test_an_empty_table_has_no_rows(self, tmp_path: Path):
        """Its definition alone is a dump of it."""
        assert load(tmp_path, DUMP.split("INSERT", maxsplit=1)[0]) == ()

    def test_replace_replaces_an_earlier_row(self, tmp_path: Path):
        """As on the server."""
        into = "INTO ndb_replication VALUES"
        text = f"INSERT {into} ('d','t',0,7,NULL); REPLACE {into} ('d','t',0,9,NULL);"
        assert load(tmp_path, text) == (ReplicationRow("d", "t", 0, 9),)

    @pytest.mark.parametrize(
        ("text", "complaint"),
        [
            ("INSERT INTO t VALUES (1)", "rows.sql: it holds no INSERT INTO mysql.ndb_replication"),
            (
                "INSERT INTO ndb_replication VALUES ('d",
                "rows.sql: it cannot be read as SQL; is a quote or a comment not closed?",
            ),
            (
                "\nINSERT INTO ndb_replication SELECT * FROM x",
                "rows.sql, line 2: only VALUES (...) lists can be read, as mysqldump writes them",
            ),
            ("INSERT INTO ndb_replication VALUES (1, (2)", "rows.sql, line 1: a parenthesis is not closed"),
            (
                "INSERT INTO ndb_replication VALUES\n('d','t',0,7,NULL),\n('d','u',NOW(),7,NULL)",
                "rows.sql, line 3, row 2: 'NOW()' is not a plain value; give a number, a quoted text, 0x... or NULL",
            ),
            (
                "INSERT INTO ndb_replication VALUES ('d','t',-1,7,NULL)",
                "rows.sql, line 1, row 1: server_id is '-1'; an integer is needed",
            ),
            (
                "INSERT INTO ndb_replication VALUES ('d','t',0)",
                (
                    "rows.sql, line 1, row 1: 3 values; without a list of columns there must be 5 (db, table_name, "
                    "server_id, binlog_type, conflict_fn) or 7 (and binlog_row_slice_count, binlog_row_slice_id)"
                ),
            ),
            (
                "INSERT INTO ndb_replication (db, table_name) VALUES ('d','t'), ('d')",
                "rows.sql, line 1, row 2: 1 values for the 2 columns db, table_name",
            ),
            (
                "INSERT INTO ndb_replication VALUES ('d','t',0,7,NULL) ON DUPLICATE KEY UPDATE db = 'e'",
                "rows.sql, line 1: the statement must end after its values; ON is not understood",
            ),
            (
                "INSERT INTO ndb_replication (db, table_name, fn) VALUES ('d','t','x')",
                (
                    "rows.sql, line 1, row 1: unknown entries fn; known are binlog_row_slice_count, "
                    "binlog_row_slice_id, binlog_type, conflict_fn, db, server_id, table_name"
                ),
            ),
            (
                (
                    "INSERT INTO ndb_replication VALUES\n('d','t',0,7,NULL),\n('d','t',1,7,NULL);\n"
                    "INSERT INTO ndb_replication VALUES ('d','t',0,9,NULL)"
                ),
                (
                    "rows.sql, line 4, row 1: the same db, table_name and server_id (d, t, 0) as line 2, row 1; "
                    "they are the primary key, so remove one of the two rows"
                ),
            ),
            (
                "INSERT INTO ndb_replication VALUES (0xFF,'t',0,7,NULL)",
                "rows.sql, line 1, row 1: db is 0xff, which is not UTF-8 text",
            ),
        ],
    )
    def test_other_statements_and_values_are_refused(self, text: str, complaint: str, tmp_path: Path):
        """With file, line and row."""
        assert refusal(tmp_path, text) == complaint


class TestDelimited:
    """Tables as text."""

    @pytest.mark.parametrize(
        "text",
        [
            "db,table_name,server_id,binlog_type,conflict_fn\nshop,t\\\\_%,0,7,NDB$MAX(version)\nit's,%,2,NULL,\\N\n",
            "db\ttable_name\tserver_id\tbinlog_type\tconflict_fn\nshop\tt\\\\_%\t0\t7\tNDB$MAX(version)\nit's\t%\t2\tNULL\tNULL",
            (
                '"db","table_name","server_id","binlog_type","conflict_fn"\r\n"shop","t\\_%",0,7,"NDB$MAX(version)"\r\n'
                '"it\'s","%",2,\\N,\\N\r\n'
            ),
            (
                "conflict_fn, DB, table_name, binlog_type, server_id\n\n"
                "NDB$MAX(version), shop, t\\_%, 7, 0\n\\N,it's,%,\\N,2\n"
            ),
            (
                "\ufeffdb,table_name,server_id,conflict_fn,binlog_type\n"
                "0x73686F70,0x745C5F25,0,NDB$MAX(version),FULL_USE_UPDATE\nit's,%,2,NULL,0"
            ),
        ],
        ids=["csv", "mysql --batch", "outfile with quotes", "another order", "hex"],
    )
    def test_every_spelling_of_a_table_gives_the_same_rows(self, text: str, tmp_path: Path):
        """Of SELECT ... INTO OUTFILE, `mysql --batch`, and people."""
        first, second = load(tmp_path, text, "rows.csv")
        assert first == ReplicationRow("shop", r"t\_%", 0, 7, MAX)
        assert (second.db, second.table_name, second.server_id) == ("it's", "%", 2)
        assert (second.binlog_type or 0, second.conflict_fn) == (0, None)

    def test_quoted_fields_can_hold_anything(self, tmp_path: Path):
        """Delimiters, quotes, line ends, and the word NULL as a text."""
        text = 'db,table_name\n"a,""b""\\"c\\"\nd","NULL"\n'
        assert load(tmp_path, text, "rows.csv") == (ReplicationRow('a,"b""c"\nd', "NULL"),)

    def test_row_slices_are_read(self, tmp_path: Path):
        """The columns of newer clusters."""
        text = "db\ttable_name\tbinlog_row_slice_count\tbinlog_row_slice_id\nd\tt\t4\t0\nd\tu\t4\tNULL\n"
        assert load(tmp_path, text, "rows.tsv") == (
            ReplicationRow("d", "t", 0, None, None, 4, 0),
            ReplicationRow("d", "u", 0, None, None, 4, None),
        )

    @pytest.mark.parametrize(
        ("text", "complaint"),
        [
            ("", "rows.csv: the file is empty; a header line with the names of the columns is needed"),
            (
                "d,t,0,7,NULL\n",
                (
                    "rows.csv, line 1 must name the columns, db, table_name among them; "
                    "SELECT ... INTO OUTFILE does not write such a line, so add it"
                ),
            ),
            ("db,table_name\nd,t\nd\n", "rows.csv, line 3 has 1 fields, the header line has 2"),
            (
                'db,table_name\n"d,t\n',
                "rows.csv, line 2: a quoted field is not closed, or goes on after its quote",
            ),
            (
                "db,table_name,server_id\nd,\\N,1\n",
                "rows.csv, line 2: table_name is missing; it must be a name or a pattern",
            ),
            ("db,table_name,server_id\nd,t,one\n", "rows.csv, line 2: server_id is 'one'; an integer is needed"),
            (
                "db,table_name,server_id\nd,t,4294967296\n",
                "rows.csv, line 2: server_id is 4294967296; it can be 0 (any server) to 4294967295",
            ),
            (
                "db,table_name\nd,t\n\n\nd,t\n",
                (
                    "rows.csv, line 5: the same db, table_name and server_id (d, t, 0) as line 2; "
                    "they are the primary key, so remove one of the two rows"
                ),
            ),
        ],
    )
    def test_malformed_tables_are_refused(self, text: str, complaint: str, tmp_path: Path):
        """With file and line."""
        assert refusal(tmp_path, text, "rows.csv") == complaint


class TestToml:
    """The tables of a run file, in a file of their own."""

    def test_tables_give_rows(self, tmp_path: Path):
        """As in a run file."""
        text = '[[ndb_replication]]\ndb = "d"\ntable_name = "t"\nbinlog_type = "FULL"\nbinlog_row_slice_count = 2\n'
        assert load(tmp_path, text, "rows.toml") == (ReplicationRow("d", "t", 0, 3, None, 2),)

    @pytest.mark.parametrize(
        ("text", "complaint"),
        [
            ("x = 1", "rows.toml: the file must hold tables [[ndb_replication]], at least one, and nothing else"),
            ("[[ndb_replication]]\ndb = 1", "rows.toml, row 1 of [[ndb_replication]]: db is 1; a text is needed"),
            (
                '[[ndb_replication]]\ndb = "d"\ntable_name = "t"\nserver_id = true',
                "rows.toml, row 1 of [[ndb_replication]]: server_id is True; an integer is needed",
            ),
        ],
    )
    def test_wrong_tables_are_refused(self, text: str, complaint: str, tmp_path: Path):
        """With the number of the row."""
        assert refusal(tmp_path, text, "rows.toml") == complaint

    def test_text_that_is_not_toml_is_refused(self, tmp_path: Path):
        """With the line."""
        assert "line 1" in refusal(tmp_path, "x = \n", "rows.toml")


@pytest.mark.parametrize("name", ["rows", "rows.json"])
def test_the_suffix_must_be_known(name: str, tmp_path: Path) -> None:
    """It says how a file is read."""
    assert (
        refusal(tmp_path, "", name)
        == f"{name}: rows of mysql.ndb_replication are read from .sql, .csv, .tsv, .txt, .toml"
    )


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    """With the system's reason."""
    with pytest.raises(ConfigurationError, match=r"none\.sql: No such file"):
        load_replication_rows(tmp_path / "none.sql")


@pytest.mark.parametrize("kind", ["-1", "11", "NINE"])
def test_unknown_binlog_types_are_refused(kind: str, tmp_path: Path) -> None:
    """The message lists the known ones."""
    message = refusal(tmp_path, f"db,table_name,binlog_type\nd,t,{kind}", "rows.csv")
    assert message.startswith(
        f"rows.csv, line 2: binlog_type '{kind}' is not known; there are 0 DEFAULT, 1 NO_LOGGING, "
    )


@pytest.mark.parametrize(
    ("count", "number", "complaint"),
    [
        (0, None, "binlog_row_slice_count is 0; a server can log every row (1) or one slice of 2 to 256"),
        (257, None, "binlog_row_slice_count is 257; a server can log every row (1) or one slice of 2 to 256"),
        (
            None,
            0,
            (
                "binlog_row_slice_id is 0 without a binlog_row_slice_count; the server logs that slice of so many, "
                "so give both or neither"
            ),
        ),
        (4, 4, "binlog_row_slice_id is 4; of 4 slices a server can log 0 to 3"),
        (4, -1, "binlog_row_slice_id is -1; of 4 slices a server can log 0 to 3"),
    ],
)
def test_impossible_row_slices_are_refused(count: int | None, number: int | None, complaint: str) -> None:
    """Count 1 to 256, id below it, and no id without a count."""
    with pytest.raises(ConfigurationError) as caught:
        ReplicationRow("d", "t", binlog_row_slice_count=count, binlog_row_slice_id=number)
    assert str(caught.value) == complaint


@pytest.mark.parametrize(("count", "number"), [(None, None), (1, None), (1, 0), (256, 255)])
def test_the_ends_of_both_slice_ranges_are_allowed(count: int | None, number: int | None) -> None:
    """Count and id."""
    assert ReplicationRow("d", "t", binlog_row_slice_count=count, binlog_row_slice_id=number).server_id == 0


def test_the_bundled_dump_has_the_rows_of_the_demo() -> None:
    """And so has the CSV file."""
    assert load_replication_rows(DEMO / "ndb_replication.sql") == load_replication_rows(DEMO / "ndb_replication.csv")
    tables = tomllib.loads((DEMO / "run.toml").read_text())["ndb_replication"]
    assert load_replication_rows(DEMO / "ndb_replication.sql") == tuple(ReplicationRow(**table) for table in tables)


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufeff\r"), min_size=1, max_size=8)
ROWS = st.lists(
    st.builds(
        ReplicationRow,
        st.one_of(TEXTS, st.text("\\'\"%_\n\t,;nN0", min_size=1, max_size=6)),
        TEXTS,
        st.integers(0, 2**32 - 1),
        st.one_of(st.none(), st.integers(0, 10)),
        st.one_of(st.none(), TEXTS),
        st.integers(4, 256),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda row: (row.db, row.table_name, row.server_id),
)
NAMES = ("db", "table_name", "server_id", "binlog_type", "conflict_fn", "binlog_row_slice_count", "binlog_row_slice_id")
# What mysql_real_escape_string, and INTO OUTFILE, write for a character.
SQL_ESCAPES = str.maketrans({"\0": "\\0", "\n": "\\n", "\\": "\\\\", "'": "\\'", '"': '\\"', "\x1a": "\\Z"})
OUTFILE_ESCAPES = str.maketrans({"\0": "\\0", "\n": "\\\n", "\\": "\\\\", '"': '\\"'})


def literal(value: object, how: str) -> str:
    """Write a value as a dump does."""
    if value is None:
        return "NULL"
    if isinstance(value, int):
        return str(value)
    text = str(value)
    return f"0x{text.encode().hex()}" if how == "hex" else f"{how}'{text.translate(SQL_ESCAPES)}'"


@examples(37, long=150)
@given(rows=ROWS, how=st.sampled_from(["", "_binary ", "hex"]))
def test_what_a_dump_writes_is_read_back(
    rows: list[ReplicationRow], how: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """For any values."""
    lines = ["(" + ",".join(literal(getattr(row, name), how) for name in NAMES) + ")" for row in rows]
    text = f"INSERT INTO `ndb_replication` ({', '.join(NAMES)}) VALUES {','.join(lines)};\n"
    assert load(tmp_path_factory.getbasetemp(), text) == tuple(rows)


@examples(37, long=150)
@given(rows=ROWS, delimiter=st.sampled_from([",", "\t"]))
def test_what_into_outfile_writes_is_read_back(
    rows: list[ReplicationRow], delimiter: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Enclosed in quotes, with the escapes of the server."""

    def field(value: object) -> str:
        if value is None:
            return r"\N"
        return f'"{value.translate(OUTFILE_ESCAPES)}"' if isinstance(value, str) else str(value)

    lines = [delimiter.join(NAMES), *(delimiter.join(field(getattr(row, name)) for name in NAMES) for row in rows)]
    assert load(tmp_path_factory.getbasetemp(), "\n".join(lines) + "\n", "rows.csv") == tuple(rows)
