"""
The parts that `definition_texts` makes statements of: types, attributes, keys, options, comments, sessions.

In a part, ``{n}`` stands for a name, ``{c}`` for one of a column, ``{w}`` for a word in the client's letters, quoted,
and ``{m}`` for members.
"""

# Words in letters of each character set of a client; the second bytes of many are a backslash.
WORDS = {
    "utf8mb4": ("größe", "名前", "имя", "a", "Straße"),
    "utf8mb3": ("größe", "表", "имя", "b"),
    "latin1": ("tä", "größe", "ñandú", "c"),
    "latin2": ("łódź", "żółć", "d"),
    "cp1251": ("имя", "цена", "e"),
    "koi8r": ("имя", "цена", "f"),
    "greek": ("όνομα", "τιμή", "g"),
    "gbk": ("誠", "名", "表許", "h"),
    "gb2312": ("名", "表", "i"),
    "big5": ("功", "許", "名蓋", "j"),
    "sjis": ("表", "ソ能", "名", "k"),
    "cp932": ("表", "予", "名", "l"),
    "euckr": ("이름", "가격", "m"),
    "ujis": ("名前", "表", "n"),
    "latin5": ("ağaç", "o"),
    "cp866": ("имя", "цена", "p"),
}
NAMES = (
    "id",
    "a",
    "b",
    "C",
    "d_1",
    "key",
    "order",
    "x y",
    "select",
    "date",
    "comment",
    "if",
    "e$",
    "1st",
    "q`q",
    'q"q',
)
COMMENTS = (
    "", "", "", "/* c */", "/* ; ' */", "-- c ' \n", "# c \" `\n", "/*! */", "/*!50100 */", "/*!99999 no, such */",
    "\n\t", "/*M! */", "/*M!100000 */", "/*!40101 */", "/**/", "/*!999999 no */",
)  # fmt: skip

INTEGERS = (
    "TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT", "INTEGER", "INT1", "INT2", "INT3", "INT4", "INT8", "MIDDLEINT",
    "INT(5)", "TINYINT(1)", "TINYINT(4)", "BIGINT(20)", "BOOL", "BOOLEAN",
)  # fmt: skip
NUMBERS = (
    "DECIMAL", "DECIMAL(0)", "DECIMAL(19.5)", "DECIMAL(10)", "DECIMAL(10,0)", "DECIMAL(5,5)", "DECIMAL(65,30)", "DEC(7,2)",
    "DEC", "NUMERIC", "NUMERIC(8,3)", "FIXED", "FIXED(6,1)", "FLOAT", "FLOAT(0)", "FLOAT(10)", "FLOAT(24)", "FLOAT(25)",
    "FLOAT(53)", "FLOAT(7,3)", "FLOAT4", "FLOAT8", "DOUBLE", "DOUBLE PRECISION", "DOUBLE(9,4)", "DOUBLE PRECISION(8,2)",
    "REAL", "REAL(6,2)", "DECIMAL(0,0)", "FLOAT(255,30)",
)  # fmt: skip
TIMES = (
    "DATE", "TIME", "TIME(6)", "TIME(0)", "DATETIME", "DATETIME(3)", "TIMESTAMP", "TIMESTAMP(6)", "YEAR", "YEAR(4)",
    "TIMESTAMP(0)",
)  # fmt: skip
TEXTS = (
    "CHAR", "CHAR(0)", "CHAR(10)", "CHARACTER(5)", "VARCHAR(20)", "VARCHAR(0)", "CHARACTER VARYING(30)", "CHAR VARYING(8)",
    "VARCHARACTER(9)", "TEXT", "TEXT(30)", "TEXT(63)", "TEXT(64)", "TEXT(255)", "TEXT(256)", "TEXT(16383)", "TEXT(16384)",
    "TEXT(65535)", "TEXT(65536)", "TEXT(16777215)", "TEXT(16777216)", "TINYTEXT", "MEDIUMTEXT", "LONGTEXT", "LONG",
    "LONG VARCHAR", "LONG CHAR VARYING", "LONG CHARACTER VARYING", "TEXT(0)", "VARCHAR(16384)", "VARCHAR(70000)", "CHAR(300)",
    "ENUM({m})", "SET({m})", "ENUM({m})", "SET({m})",
)  # fmt: skip
NATIONAL = (
    "NCHAR", "NCHAR(5)", "NATIONAL CHAR(6)", "NATIONAL CHARACTER(6)", "NVARCHAR(7)", "NATIONAL VARCHAR(8)",
    "NATIONAL CHAR VARYING(9)", "NCHAR VARCHAR(9)", "NCHAR VARYING(4)", "NATIONAL CHARACTER VARYING(10)",
    "NATIONAL VARCHARACTER(3)", "NCHAR VARCHARACTER(3)",
)  # fmt: skip
BYTES = (
    "BINARY", "BINARY(8)", "VARBINARY(16)", "VARBINARY(70000)", "BLOB", "BLOB(10)", "BLOB(255)", "BLOB(256)", "BLOB(65536)",
    "BLOB(16777216)", "TINYBLOB", "MEDIUMBLOB", "LONGBLOB", "LONG VARBINARY", "LONG BYTE", "CHAR(5) BYTE",
    "VARCHAR(10) BYTE", "TEXT BYTE", "BIT", "BIT(1)", "BIT(9)", "BIT(64)", "BINARY(0)", "VARBINARY(0)", "TEXT(40) BYTE",
    "BLOB(0)", "BINARY(300)", "LONG CHARACTER SET binary", "CHAR(6) CHARACTER SET binary", "TEXT CHARACTER SET binary",
    "ENUM('a','b') CHARACTER SET binary", "VARCHAR(5) CHARSET binary",
)  # fmt: skip
OTHERS = ("JSON", "GEOMETRY", "POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON",
          "GEOMETRYCOLLECTION", "SERIAL")  # fmt: skip
OTHERS_OF_MYSQL = ("VECTOR", "VECTOR(3)", "VECTOR(16383)", "GEOMCOLLECTION", "POINT SRID 4326", "POINT NOT NULL SRID 0")
OTHERS_OF_MARIADB = (
    "INET6",
    "INET4",
    "UUID",
    "VARCHAR(20) COMPRESSED",
    "TEXT COMPRESSED",
    "BLOB COMPRESSED",
    "POINT REF_SYSTEM_ID=4326",
)
OF_ORACLE = (
    "VARCHAR2(10)",
    "NUMBER",
    "NUMBER(8)",
    "NUMBER(8,2)",
    "RAW(16)",
    "CLOB",
    "BLOB",
    "DATE",
    "VARCHAR2(5) CHARACTER SET latin1",
)

MEMBERS = (
    "'a','b'", "'a ','b  '", "'it''s','b'", "'x,y','(z)'", "'','a'", "'a\\'b','c'", "'a\\\\b','c'", "'A','b','C'", '"p","q"',
    "'\\n','b'", "{w},'z'", "{w}, {w}", "'0','1','2'", "x'6162','b'", "0x6364,'e'", "b'1100001','z'", "'a' , 'b' ", "'a\\%b','\\_c'",
)  # fmt: skip
CHARSETS = (
    "CHARACTER SET latin1", "CHARSET utf8mb4", "CHAR SET cp1251", "CHARACTER SET utf8", "CHARSET utf8mb3", "CHARACTER SET sjis",
    "CHARACTER SET 'gbk'", "CHARACTER SET ucs2", "CHARSET utf16", "CHARACTER SET latin1 BINARY", "BINARY CHARACTER SET cp1251",
    "ASCII", "UNICODE", "ASCII BINARY", "BINARY ASCII", "UNICODE BINARY", "BINARY UNICODE", "BINARY", "COLLATE utf8mb4_bin", "COLLATE latin1_german1_ci",
    "CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci", "COLLATE utf8_bin", "CHARSET utf8 COLLATE utf8_general_ci",
    "CHARACTER SET big5 COLLATE big5_bin", "CHARACTER SET utf16 COLLATE 'utf16_bin'", "COLLATE utf8mb3_unicode_ci",
    "CHARACTER SET latin1 NOT NULL COLLATE latin1_bin", "NOT NULL COLLATE utf8mb4_bin", "CHARACTER SET DEFAULT",
)  # fmt: skip
CHARSETS_OF_MARIADB = ("COLLATE uca1400_ai_ci", "CHARACTER SET utf8mb3 COLLATE uca1400_as_cs", "COLLATE utf8mb4_uca1400_swedish_ai_ci",
                       "COLLATE utf8mb4_nopad_bin", "CHARACTER SET utf8mb4 COLLATE uca1400_nopad_ai_ci", "COLLATE utf8mb4_general_nopad_ci")  # fmt: skip
NATIONAL_ATTRIBUTES = ("", "BINARY", "COLLATE utf8_bin", "COLLATE utf8mb3_bin")
NUMBER_ATTRIBUTES = ("", "", "UNSIGNED", "SIGNED", "ZEROFILL", "UNSIGNED ZEROFILL", "ZEROFILL UNSIGNED")

NULLS = ("", "", "", "NULL", "NOT NULL", "NOT NULL")
ANY_ATTRIBUTES = (
    "COMMENT {w}", "COMMENT 'it''s; /* no */ -- no'", "COMMENT ', b INT'", "UNIQUE", "UNIQUE KEY", "COLUMN_FORMAT FIXED", "COLUMN_FORMAT DYNAMIC",
    "STORAGE DISK", "STORAGE MEMORY", "STORAGE DEFAULT", "INVISIBLE", "CHECK (1 = 1)", "CONSTRAINT CHECK (1)", "PRIMARY KEY", "KEY", "COLUMN_FORMAT DEFAULT",
    "UNIQUE COMMENT 'u'", "DEFAULT NULL", "CHECK ({c} IS NULL OR 1) NOT ENFORCED", "VISIBLE", "REFERENCES r (id)",
)  # fmt: skip
INTEGER_DEFAULTS = ("DEFAULT 0", "DEFAULT 1", "DEFAULT '7'", "DEFAULT -3", "DEFAULT +4", "DEFAULT TRUE", "DEFAULT FALSE", "DEFAULT (1 + 2)",
                    "DEFAULT 0x41", "DEFAULT b'11'", "DEFAULT x'42'", "DEFAULT 1.6", "DEFAULT 1e1", "AUTO_INCREMENT KEY", "AUTO_INCREMENT UNIQUE",
                    "AUTO_INCREMENT PRIMARY KEY", "SERIAL DEFAULT VALUE", "DEFAULT (ABS(-1))", "DEFAULT ' 5'")  # fmt: skip
NUMBER_DEFAULTS = (
    "DEFAULT 0",
    "DEFAULT '1.5'",
    "DEFAULT -2.25",
    "DEFAULT (1 + 2)",
    "DEFAULT 1e1",
    "DEFAULT .5",
    "DEFAULT 3.",
    "DEFAULT (PI())",
)
TEXT_DEFAULTS = ("DEFAULT 'a'", "DEFAULT ''", "DEFAULT {w}", "DEFAULT 'it''s'", "DEFAULT 'a\\nb'", "DEFAULT 'a\\\\'", 'DEFAULT "q"', "DEFAULT (UUID())",
                 "DEFAULT x'61'", "DEFAULT 0x62", "DEFAULT _latin1'x'", "DEFAULT N'x'", "DEFAULT 'a' 'b'", "DEFAULT ('z')", "DEFAULT (CONCAT('(', ')'))",
                 "DEFAULT _utf8mb4 x'c3a4'", "DEFAULT '\\''", "DEFAULT 1", "DEFAULT 'a\\%'", "DEFAULT b'1100001'")  # fmt: skip
TIME_DEFAULTS = ("DEFAULT CURRENT_TIMESTAMP", "DEFAULT NOW()", "DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP", "DEFAULT '2020-01-02'",
                 "ON UPDATE NOW()", "DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6)", "DEFAULT LOCALTIME", "DEFAULT (CURRENT_DATE)",
                 "DEFAULT '2020-01-02 03:04:05'", "DEFAULT NOW(3)", "DEFAULT LOCALTIMESTAMP()", "DEFAULT 0", "DEFAULT TIMESTAMP'2020-01-02 03:04:05'",
                 "DEFAULT DATE '2020-01-02'", "DEFAULT 20200102030405", "DEFAULT (NOW()) ON UPDATE NOW()", "DEFAULT (CURDATE())")  # fmt: skip
GENERATED = ("AS (1)", "AS ({c})", "GENERATED ALWAYS AS ({c}) VIRTUAL", "AS (CONCAT({c}, ')', {w})) STORED", "GENERATED ALWAYS AS (1 + 1) STORED",
             "AS (1) VIRTUAL NOT NULL", "AS ({c}) STORED UNIQUE", "AS (1) PERSISTENT", "AS ({c} IN (1, 2)) COMMENT 'c'", "AS (LENGTH({c}))")  # fmt: skip

KEYS = (
    "PRIMARY KEY ({c})", "PRIMARY KEY ({c}, {c})", "PRIMARY KEY ({c}(2))", "PRIMARY KEY USING BTREE ({c})", "PRIMARY KEY ({c} DESC)", "CONSTRAINT {n} PRIMARY KEY ({c})",
    "CONSTRAINT PRIMARY KEY ({c})", "PRIMARY KEY {n} ({c})", "UNIQUE ({c})", "UNIQUE KEY {n} ({c})", "UNIQUE INDEX ({c}, {c})", "UNIQUE KEY {n} ({c}(3), {c} ASC)", "CONSTRAINT {n} UNIQUE ({c})",
    "CONSTRAINT {n} UNIQUE KEY {n} ({c})", "UNIQUE {n} USING HASH ({c})", "UNIQUE {n} ({c}) USING BTREE COMMENT 'k'", "UNIQUE KEY {n} TYPE BTREE ({c})", "KEY ({c})", "INDEX {n} ({c})", "KEY {n} ({c} DESC)",
    "KEY {n} (({c} + 1))", "UNIQUE KEY {n} ((LOWER({c})))", "UNIQUE {n} ({c}, (1 + 1))", "FULLTEXT ({c})", "FULLTEXT KEY {n} ({c})", "SPATIAL INDEX ({c})",
    "CHECK (1 = 1)", "CONSTRAINT {n} CHECK ({c} > 0)", "CONSTRAINT CHECK (1)", "INDEX {n} ({c}) INVISIBLE", "INDEX ({c}) KEY_BLOCK_SIZE = 4", "KEY {n} ({c}) COMMENT {w}", "UNIQUE ({c}) VISIBLE",
    "CONSTRAINT {n} FOREIGN KEY ({c}) REFERENCES r (id)", "FOREIGN KEY ({c}) REFERENCES r (id) ON DELETE CASCADE ON UPDATE SET NULL", "UNIQUE KEY ((CAST({c} AS CHAR(5))))",
)  # fmt: skip
OPTIONS = (
    "ENGINE=InnoDB", "ENGINE MyISAM", "ENGINE = MEMORY", "ENGINE=NOSUCH", "DEFAULT CHARSET=latin1", "CHARSET utf8", "CHARACTER SET = utf8mb4", "DEFAULT CHAR SET cp1251", "CHAR SET = koi8r",
    "COLLATE utf8mb4_bin", "DEFAULT COLLATE = utf8_bin", "CHARSET=utf8mb3 COLLATE=utf8mb3_unicode_ci", "COLLATE latin1_bin CHARSET latin1", "CHARSET binary", "DEFAULT CHARACTER SET = DEFAULT", "CHARSET 'gbk'",
    "AUTO_INCREMENT=10", "AUTO_INCREMENT 5", "COMMENT={w}", "COMMENT 'CHARSET=latin1'", "ROW_FORMAT=DYNAMIC", "ROW_FORMAT COMPACT", "KEY_BLOCK_SIZE=8", "MAX_ROWS=100", "MIN_ROWS 1", "AVG_ROW_LENGTH=10",
    "STATS_PERSISTENT=0", "STATS_AUTO_RECALC=DEFAULT", "STATS_SAMPLE_PAGES=10", "PACK_KEYS=1", "CHECKSUM=1", "DELAY_KEY_WRITE=1", "INSERT_METHOD=LAST", "TABLESPACE innodb_file_per_table",
    "COMPRESSION='zlib'", "ENCRYPTION='N'", "CONNECTION='x'", "PASSWORD='x'", "DATA DIRECTORY='/tmp'", "ENGINE_ATTRIBUTE='{{}}'", "SECONDARY_ENGINE=NULL", "SECONDARY_ENGINE x", "UNION=()", "ENGINE 'InnoDB'", "TYPE=InnoDB",
)  # fmt: skip
OPTIONS_OF_MARIADB = (
    "PAGE_CHECKSUM=1",
    "TRANSACTIONAL=1",
    "ENGINE=Aria",
    "WITH SYSTEM VERSIONING",
    "PAGE_COMPRESSED=1",
    "ENCRYPTED=NO",
    "nosuch=1",
    "`nosuch`='x'",
    "SEQUENCE=0",
    "COLLATE uca1400_ai_ci",
    "CHARSET utf8mb4 COLLATE uca1400_as_cs",
    "ENCRYPTION_KEY_ID=1",
    "IETF_QUOTES=NO",
)
PARTITIONS = (
    "PARTITION BY HASH ({c}) PARTITIONS 2", "PARTITION BY KEY () PARTITIONS 3", "PARTITION BY LINEAR KEY ({c})", "PARTITION BY RANGE ({c}) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN MAXVALUE)",
    "PARTITION BY LIST ({c}) (PARTITION p0 VALUES IN (1, 2) ENGINE = InnoDB COMMENT = 'p', PARTITION p1 VALUES IN (3))", "PARTITION BY RANGE COLUMNS ({c}) (PARTITION p0 VALUES LESS THAN ('x'))",
    "/*!50100 PARTITION BY KEY ALGORITHM = 2 ({c}) PARTITIONS 4 */", "/*!50100 PARTITION BY HASH (1 + {c}) */",
)  # fmt: skip

# Clauses of ALTER TABLE; {d} is the definition of a column, {n} a new name.
CLAUSES = (
    "ADD {n} {d}", "ADD COLUMN {n} {d}", "ADD {n} {d} FIRST", "ADD COLUMN {n} {d} AFTER {c}", "ADD ({n} {d}, {n} {d})", "ADD COLUMN ({n} {d})", "DROP {c}", "DROP COLUMN {c}", "MODIFY {c} {d}", "MODIFY COLUMN {c} {d} FIRST",
    "MODIFY {c} {d} AFTER {c}", "CHANGE {c} {n} {d}", "CHANGE COLUMN {c} {c} {d}", "CHANGE {c} {c} {d} AFTER {c}", "CHANGE {c} {n} {d} FIRST", "RENAME COLUMN {c} TO {n}", "RENAME COLUMN {c} TO {c}", "ALTER {c} SET DEFAULT 1",
    "ALTER COLUMN {c} SET DEFAULT 'a'", "ALTER {c} DROP DEFAULT", "ALTER COLUMN {c} SET INVISIBLE", "ALTER {c} SET VISIBLE", "ALTER {c} SET DEFAULT (1 + 1)", "ALTER {c} SET DEFAULT NULL", "ALTER {c} SET DEFAULT {w}", "ADD {k}", "ADD {k}", "ADD {k}",
    "DROP PRIMARY KEY", "DROP INDEX {c}", "DROP KEY {c}", "RENAME INDEX {c} TO {n}", "RENAME KEY {c} TO {n}", "ALTER INDEX {c} INVISIBLE", "ORDER BY {c}", "ORDER BY {c} DESC, {c} ASC", "CONVERT TO CHARACTER SET latin1", "CONVERT TO CHARACTER SET DEFAULT",
    "CONVERT TO CHARACTER SET binary", "CONVERT TO CHARSET utf8mb4 COLLATE utf8mb4_bin", "CONVERT TO CHARACTER SET utf8", "CONVERT TO CHARACTER SET ucs2", "CONVERT TO CHAR SET cp1251", "CONVERT TO CHARACTER SET utf8mb3 COLLATE utf8_bin", "CONVERT TO CHARACTER SET DEFAULT COLLATE utf8mb4_bin",
    "{o}", "{o}", "{o}", "FORCE", "ALGORITHM=INPLACE", "ALGORITHM = COPY", "ALGORITHM DEFAULT", "LOCK=NONE", "LOCK SHARED", "LOCK=DEFAULT", "ENABLE KEYS", "DISABLE KEYS", "RENAME t2", "RENAME TO t2", "RENAME AS t2", "RENAME = t2", "WITHOUT VALIDATION", "WITH VALIDATION",
    "DROP CHECK {c}", "DROP CONSTRAINT {c}", "DROP CONSTRAINT `PRIMARY`", "ALTER CHECK {c} NOT ENFORCED", "DROP FOREIGN KEY {c}", "DISCARD TABLESPACE", "IMPORT TABLESPACE", "SECONDARY_LOAD", "SECONDARY_UNLOAD",
)  # fmt: skip
# Clauses that belong together.
CLAUSES_TOGETHER = (
    "RENAME COLUMN {0} TO {1}, RENAME COLUMN {1} TO {0}", "CHANGE {0} {1} {d}, CHANGE {1} {0} {d}", "ADD COLUMN {0} {d}, DROP COLUMN {0}", "DROP {0}, ADD {0} {d} FIRST", "ADD n1 {d} AFTER n2, ADD n2 {d}", "ADD n2 {d}, ADD n1 {d} AFTER n2",
    "ADD n1 {d} FIRST, ADD n2 {d} FIRST", "CHANGE {0} n1 {d}, ADD n2 {d} AFTER n1", "CHANGE {0} n1 {d}, ADD {0} {d}", "DROP PRIMARY KEY, ADD PRIMARY KEY ({0})", "DROP {0}, ADD UNIQUE u ({1})", "RENAME COLUMN {0} TO n1, ADD KEY (n1)", "RENAME COLUMN {0} TO n1, ADD UNIQUE (n1), ADD {0} INT",
    "CONVERT TO CHARACTER SET latin1, ADD n1 TEXT", "ADD n1 CHAR(5), CONVERT TO CHARACTER SET cp1251", "CHARSET latin1, ADD n1 VARCHAR(5)", "ADD n1 VARCHAR(5), DEFAULT CHARSET koi8r", "MODIFY {0} {d} AFTER {1}, MODIFY {1} {d} FIRST", "RENAME COLUMN {0} TO n1, MODIFY {1} {d} AFTER n1",
    "RENAME COLUMN {0} TO n1, ADD n2 {d} AFTER n1", "ALTER {0} SET DEFAULT 3, RENAME COLUMN {0} TO n1", "RENAME TO t2, ADD n1 {d}", "ADD UNIQUE n1 ({0}), ADD UNIQUE n2 ({0}, {1})", "ADD n1 INT AUTO_INCREMENT, ADD KEY (n1)", "DROP PRIMARY KEY, DROP {0}", "MODIFY {0} TEXT, DROP PRIMARY KEY, CHARSET binary",
    "RENAME COLUMN {0} TO n1, CHANGE {1} {0} {d}", "ADD n1 SERIAL, DROP {0}", "RENAME INDEX {0} TO n1, ADD UNIQUE {0} ({1})", "DROP INDEX {0}, ADD UNIQUE {0} ({1})",
)  # fmt: skip
PARTITION_CLAUSES = (
    "{p}",
    "REMOVE PARTITIONING",
    "COALESCE PARTITION 1",
    "ADD PARTITION PARTITIONS 1",
    "DROP PARTITION p0",
    "TRUNCATE PARTITION ALL",
    "ANALYZE PARTITION ALL",
    "REBUILD PARTITION ALL",
    "REORGANIZE PARTITION",
)
CLAUSES_OF_MARIADB = (
    "ADD COLUMN IF NOT EXISTS {n} {d}", "ADD COLUMN IF NOT EXISTS {c} {d}", "DROP COLUMN IF EXISTS {c}", "DROP COLUMN IF EXISTS nosuch", "MODIFY COLUMN IF EXISTS {c} {d}", "CHANGE IF EXISTS {c} {n} {d}", "ADD INDEX IF NOT EXISTS {n} ({c})", "ADD UNIQUE KEY IF NOT EXISTS {c} ({c})",
    "DROP INDEX IF EXISTS {c}", "DROP INDEX IF EXISTS nosuch", "ADD PRIMARY KEY IF NOT EXISTS ({c})", "RENAME COLUMN IF EXISTS {c} TO {n}", "RENAME INDEX IF EXISTS {c} TO {n}", "ADD SYSTEM VERSIONING", "DROP SYSTEM VERSIONING", "ADD PERIOD FOR p (d1, d2)", "DROP CONSTRAINT IF EXISTS {c}", "ADD CONSTRAINT IF NOT EXISTS {n} CHECK (1)",
    "ALTER COLUMN IF EXISTS {c} SET DEFAULT 2", "DROP FOREIGN KEY IF EXISTS f", "DROP PRIMARY KEY", "ALTER INDEX IF EXISTS {c} IGNORED", "ADD ({n} {d}, {n} {d})", "ADD IF NOT EXISTS ({n} {d}, {c} {d})", "CONVERT PARTITION p0 TO TABLE t3", "PAGE_CHECKSUM=1", "nosuch=2", "ALTER {c} SET DEFAULT CURRENT_TIMESTAMP", "ADD COLUMN {n} INT DEFAULT 1, ADD {k}",
)  # fmt: skip
AFTERWARDS = (
    "DROP TABLE t", "RENAME TABLE t TO t2", "RENAME TABLE t TO t2, r TO t, t2 TO r", "CREATE TABLE t3 LIKE t", "CREATE TABLE t3 (LIKE t)", "CREATE TABLE IF NOT EXISTS t (z INT)", "CREATE TABLE t3 SELECT * FROM t", "CREATE TABLE t3 (z INT) AS SELECT 1 AS y", "TRUNCATE t", "DROP TABLE IF EXISTS t, nosuch",
    "CREATE INDEX {n} ON t ({c})", "CREATE UNIQUE INDEX {n} ON t ({c})", "CREATE UNIQUE INDEX {n} USING BTREE ON t ({c}, {c}) COMMENT 'k' ALGORITHM=COPY", "DROP INDEX {c} ON t", "DROP INDEX `PRIMARY` ON t", "CREATE FULLTEXT INDEX {n} ON t ({c})", "DROP INDEX {c} ON t ALGORITHM = INPLACE LOCK = NONE",
    "CREATE PROCEDURE p1() BEGIN ALTER TABLE t ADD nope INT; DROP TABLE t; END", "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET @a = 1", "CREATE VIEW v AS SELECT 1", "CREATE TEMPORARY TABLE t (z INT)", "ALTER DATABASE CHARACTER SET latin1", "ALTER DATABASE DEFAULT COLLATE = utf8mb4_bin",
    "ALTER TABLE r ADD COLUMN t INT, RENAME TO r2", "ANALYZE TABLE t",
)  # fmt: skip
AFTERWARDS_OF_MARIADB = (
    "CREATE OR REPLACE TABLE t (z INT, y TEXT)", "CREATE OR REPLACE TABLE t LIKE r", "SET STATEMENT max_statement_time=1 FOR ALTER TABLE t ADD z INT", "ALTER TABLE IF EXISTS t ADD z INT", "ALTER TABLE t WAIT 1 ADD z INT", "ALTER TABLE t NOWAIT ADD z INT", "DROP TABLE IF EXISTS t WAIT 2", "RENAME TABLE IF EXISTS nosuch TO x1, t TO t2",
    "RENAME TABLE t WAIT 1 TO t2", "CREATE UNIQUE INDEX IF NOT EXISTS {n} ON t ({c})", "CREATE OR REPLACE UNIQUE INDEX {n} ON t ({c})", "DROP INDEX IF EXISTS nosuch ON t", "CREATE SEQUENCE s1", "CREATE OR REPLACE SEQUENCE s2 START 5 INCREMENT BY 2", "CREATE SEQUENCE IF NOT EXISTS s1", "ALTER ONLINE TABLE t ADD z INT", "ALTER IGNORE TABLE t ADD UNIQUE ({c})",
    "CREATE TABLE t3 (x INT, y INT GENERATED ALWAYS AS (x) PERSISTENT, b TIMESTAMP(6) GENERATED ALWAYS AS ROW START, e TIMESTAMP(6) GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (b, e)) WITH SYSTEM VERSIONING", "CREATE TABLE t3 (id INT, d1 DATE, d2 DATE, PERIOD FOR app (d1, d2), UNIQUE (id, app WITHOUT OVERLAPS))",
    "CREATE TABLE t3 (a INT WITHOUT SYSTEM VERSIONING, b INT) WITH SYSTEM VERSIONING", "CREATE TABLE t3 (a INT WITH SYSTEM VERSIONING, b INT)", "DROP SEQUENCE IF EXISTS s1", "TRUNCATE TABLE t NOWAIT", "BEGIN NOT ATOMIC CREATE TABLE t4 (a INT); END", "CREATE TABLE IF NOT EXISTS t3 LIKE t",
)  # fmt: skip

MODES = (
    "",
    "STRICT_ALL_TABLES",
    "ANSI_QUOTES",
    "NO_BACKSLASH_ESCAPES",
    "REAL_AS_FLOAT",
    "ANSI",
    "PAD_CHAR_TO_FULL_LENGTH",
    "NO_ENGINE_SUBSTITUTION",
    "STRICT_TRANS_TABLES,ANSI_QUOTES,NO_BACKSLASH_ESCAPES",
)
MODES_OF_MARIADB = ("ORACLE", "ORACLE,NO_BACKSLASH_ESCAPES", "MSSQL", "STRICT_TRANS_TABLES", "ANSI", "")
SETTINGS = (
    "",
    "",
    "SET default_collation_for_utf8mb4 = utf8mb4_general_ci",
    "SET sql_generate_invisible_primary_key = ON",
    "SET explicit_defaults_for_timestamp = OFF",
    "SET collation_server = latin1_swedish_ci",
    "SET character_set_server = utf8mb4",
    "SET sql_generate_invisible_primary_key = ON, default_collation_for_utf8mb4 = utf8mb4_general_ci",
    "SET lower_case_table_names = 0",
    "SET time_zone = '+03:00'",
)
SETTINGS_OF_MARIADB = (
    "",
    "",
    "SET explicit_defaults_for_timestamp = OFF",
    "SET collation_server = latin1_swedish_ci",
    "SET collation_server = uca1400_ai_ci",
    "SET character_set_collations = 'utf8mb4=uca1400_ai_ci'",
    "SET system_versioning_alter_history = KEEP",
)
# Databases and what they are created with.
DATABASES = {
    "sweep_plain": "", "sweep_latin1": "CHARACTER SET latin1", "sweep_utf8": "COLLATE utf8mb3_bin", "sweep_general": "COLLATE utf8mb4_general_ci", "sweep_gbk": "CHARACTER SET gbk", "sweep_binary": "CHARACTER SET binary",
}  # fmt: skip
