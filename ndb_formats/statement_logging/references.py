"""
The tables, functions and system variables that the words of a statement name, and which of them make it unsafe.

Source of the lists: the manual, "Determination of Safe and Unsafe Statements in Binary Logging" and "Replication and
System Functions"; MySQL's `set_stmt_unsafe` calls and `is_written_to_binlog`. Each was tried on a MySQL 9.7 server.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from ndb_formats.schema.lexer import WordKind, Words

_QUERY_STARTS = frozenset({"SELECT", "WITH", "VALUES", "TABLE"})


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_LIST_ENDS = _words("""
    WHERE GROUP HAVING WINDOW ORDER LIMIT FOR LOCK INTO UNION EXCEPT INTERSECT SET PROCEDURE SELECT VALUES
""")
_JOINS = frozenset({"JOIN", "STRAIGHT_JOIN"})
_NO_ALIAS = _LIST_ENDS | _JOINS | _words("ON USING NATURAL INNER CROSS LEFT RIGHT OUTER USE FORCE IGNORE PARTITION AS")
_LITERALS = frozenset({WordKind.STRING, WordKind.NUMBER})


@attrs.frozen
class Reference:
    """
    A table that a statement names.

    Attributes:
        database: Its database; empty for the default one.
        name: Its name.
        alias: The name that it has in the statement.
    """

    database: str
    name: str
    alias: str


def with_names(words: Words) -> frozenset[str]:
    """Return the names of the common table expressions of a statement, in lower case."""
    found: set[str] = set()
    content = words.words
    for position, (word, kind) in enumerate(content):
        # WITH name [(columns)] AS ( ... ), name AS ( ...
        following = content[position + 1][1] if position + 1 < len(content) else None
        if kind in _LITERALS or word.upper() != "AS" or following is not WordKind.L_PAREN or position == 0:
            continue
        start = position - 1
        if content[start][1] is WordKind.R_PAREN:
            while start > 0 and content[start][1] is not WordKind.L_PAREN:
                start -= 1
            start -= 1
        if start > 0 and content[start - 1][0].upper() in ("WITH", "RECURSIVE", ","):
            found.add(content[start][0].lower())
    return frozenset(found)


def table_references(words: Words, *, in_list: bool = False) -> Iterator[Reference]:
    """
    Yield the tables in the FROM clauses of the words, those of subqueries among them.

    Args:
        words: The words of a statement or of a part of it.
        in_list: Whether they begin with a list of tables, as after UPDATE.
    """
    query = in_list or words.upper in _QUERY_STARTS | {"DELETE"} or words.kind is WordKind.L_PAREN
    expected = in_list
    while words.word or words.kind is not None:
        upper = words.upper
        if words.kind is WordKind.L_PAREN:
            group = words.group()
            nested_list = expected and group.upper not in _QUERY_STARTS
            yield from table_references(group, in_list=nested_list)
            expected = False
        elif expected and upper == "LATERAL":
            words.step()
        elif expected and words.kind not in (WordKind.COMMA, WordKind.DOT):
            yield from _reference(words)
            expected = False
        else:
            words.step()
            if query and (upper in ("FROM", "TABLE") or (upper in _JOINS and in_list)):
                in_list = expected = True
            elif words.words[words.position - 1][1] is WordKind.COMMA and in_list:
                expected = True
            elif upper in _LIST_ENDS:
                in_list = False
            query = query or upper in _QUERY_STARTS


def _reference(words: Words) -> Iterator[Reference]:
    """Step over a table and its alias, and yield it; a table function, such as JSON_TABLE, is none."""
    database, name = "", words.step()
    if words.kind is WordKind.DOT:
        words.step()
        database, name = name, words.step()
    if words.kind is WordKind.L_PAREN:
        yield from table_references(words.group())
        return
    if words.accept("PARTITION"):
        words.group()
    words.accept("AS")
    named = words.kind is not None and words.kind not in (WordKind.COMMA, WordKind.L_PAREN, WordKind.R_PAREN)
    alias = words.step() if named and words.upper not in _NO_ALIAS else name
    if name.upper() != "DUAL" or database:
        yield Reference(database, name, alias)


def called_functions(words: Words) -> Iterator[tuple[str, str]]:
    """Yield database (empty for none) and name of everything that the words call or could call."""
    content = words.words
    for position, (word, kind) in enumerate(content):
        following = content[position + 1][1] if position + 1 < len(content) else None
        before = content[position - 1] if position else ("", None)
        if word.upper() == "CURRENT_USER" and kind not in (WordKind.STRING, WordKind.IDENTIFIER):
            yield "", word
        elif following is WordKind.L_PAREN and _can_be_called(word, kind) and not _names_columns(before):
            qualified = before[1] is WordKind.DOT and position > 1
            yield (content[position - 2][0] if qualified else ""), word


def _names_columns(before: tuple[str, WordKind | None]) -> bool:
    """Return whether the word after `before` is a variable, or an alias with a list of columns."""
    return before[1] in (WordKind.PARAMETER, WordKind.R_PAREN) or before[0].upper() == "AS"


def _can_be_called(word: str, kind: WordKind) -> bool:
    return kind not in _LITERALS and (word[:1].isalpha() or word[:1] in "_$") and word.upper() not in _NO_FUNCTIONS


# Words before a parenthesis that are no function.
_NO_FUNCTIONS = _words("""
    ALL AND ANY AS BETWEEN BY CASE CHECK COLUMNS CUBE DISTINCT DIV ELSE ESCAPE EXCEPT EXISTS FIELDS FOR FROM HAVING
    IN INDEX INTERSECT INTO JOIN KEY LATERAL LIKE LIMIT LINES MEMBER NOT OF ON OR OVER PARTITION PRIMARY REFERENCES
    REGEXP RETURN RLIKE ROLLUP SELECT SET SOME STRAIGHT_JOIN TABLE THEN UNION UNIQUE UPDATE USING VALUE VALUES WHEN
    WHERE WITH WITHIN XOR AGAINST WINDOW ORDER GROUP DO IS ROWS RANGE NESTED
    BINARY BIT BLOB DATETIME DEC DECIMAL DOUBLE FLOAT INT INTEGER NCHAR NUMERIC REAL SIGNED TEXT TINYINT
    SMALLINT BIGINT UNSIGNED VARBINARY VARCHAR VECTOR ARRAY MEDIUMINT ENUM
""")


def unsafe_variables(words: Words, logged: frozenset[str]) -> Iterator[str]:
    """
    Yield the system variables that the words read and that are not written to the log with the statement.

    Args:
        words: The words of a statement.
        logged: Names of the session variables that are.
    """
    content = words.words
    for position, (word, kind) in enumerate(content):
        if kind is not WordKind.SESSION_PARAMETER or word != "@@":
            continue
        names = [text for text, _ in content[position + 1 : position + 4]]
        scope, name = "", names[0] if names else ""
        if len(names) == 3 and names[1] == ".":
            scope, name = names[0].lower(), names[2]
        if scope not in ("", "session", "local") or name.lower() not in logged:
            yield f"{scope}.{name}" if scope else name


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# UnsafeReason.SYSTEM_FUNCTION.
UNSAFE_FUNCTIONS = _names("""
    AES_DECRYPT AES_ENCRYPT CURRENT_USER FOUND_ROWS GET_LOCK ICU_VERSION IS_FREE_LOCK IS_USED_LOCK LOAD_FILE
    MASTER_POS_WAIT RAND RANDOM_BYTES RELEASE_ALL_LOCKS RELEASE_LOCK ROW_COUNT SESSION_USER SLEEP SOURCE_POS_WAIT
    SYSDATE SYSTEM_USER USER UUID UUID_SHORT VERSION WAIT_FOR_EXECUTED_GTID_SET
""")

# What is nondeterministic, but logged with the statement: time, connection, LAST_INSERT_ID; and what is deterministic.
SAFE_FUNCTIONS = _names("""
    ABS ACOS ADDDATE ADDTIME ANY_VALUE ASCII ASIN ATAN ATAN2 AVG BENCHMARK BIN BIN_TO_UUID BIT_AND BIT_COUNT BIT_LENGTH
    BIT_OR BIT_XOR CEIL CEILING CHAR_LENGTH CHARACTER_LENGTH CHARSET COALESCE COERCIBILITY COLLATION COMPRESS CONCAT
    CONCAT_WS CONNECTION_ID CONV CONVERT CONVERT_TZ COS COT COUNT CRC32 CUME_DIST CURDATE CURRENT_DATE CURRENT_ROLE
    CURRENT_TIME CURRENT_TIMESTAMP CURTIME DATABASE DATE DATEDIFF DATE_ADD DATE_FORMAT DATE_SUB DAY DAYNAME DAYOFMONTH
    DAYOFWEEK DAYOFYEAR DEFAULT DEGREES DENSE_RANK ELT EXP EXPORT_SET EXTRACT EXTRACTVALUE FIELD FIND_IN_SET
    FIRST_VALUE FLOOR FORMAT FORMAT_BYTES FORMAT_PICO_TIME FROM_BASE64 FROM_DAYS FROM_UNIXTIME FROM_VECTOR
    GEOMCOLLECTION GEOMETRYCOLLECTION GET_FORMAT GREATEST GROUPING GROUP_CONCAT GTID_SUBSET GTID_SUBTRACT HEX HOUR IF
    IFNULL INET6_ATON INET6_NTOA INET_ATON INET_NTOA INSERT INSTR INTERVAL ISNULL IS_IPV4 IS_IPV4_COMPAT
    IS_IPV4_MAPPED IS_IPV6 IS_UUID JSON_ARRAY JSON_ARRAYAGG JSON_ARRAY_APPEND JSON_ARRAY_INSERT JSON_CONTAINS
    JSON_CONTAINS_PATH JSON_DEPTH JSON_EXTRACT JSON_INSERT JSON_KEYS JSON_LENGTH JSON_MERGE JSON_MERGE_PATCH
    JSON_MERGE_PRESERVE JSON_OBJECT JSON_OBJECTAGG JSON_OVERLAPS JSON_PRETTY JSON_QUOTE JSON_REMOVE JSON_REPLACE
    JSON_SCHEMA_VALID JSON_SCHEMA_VALIDATION_REPORT JSON_SEARCH JSON_SET JSON_STORAGE_FREE JSON_STORAGE_SIZE JSON_TABLE
    JSON_TYPE JSON_UNQUOTE JSON_VALID JSON_VALUE LAG LAST_DAY LAST_INSERT_ID LAST_VALUE LCASE LEAD LEAST LEFT LENGTH
    LINESTRING LN LOCALTIME LOCALTIMESTAMP LOCATE LOG LOG10 LOG2 LOWER LPAD LTRIM MAKEDATE MAKETIME MAKE_SET MATCH MAX
    MBRCONTAINS MBRCOVEREDBY MBRCOVERS MBRDISJOINT MBREQUALS MBRINTERSECTS MBROVERLAPS MBRTOUCHES MBRWITHIN
    MICROSECOND MID MIN MINUTE MOD MONTH MONTHNAME MULTILINESTRING MULTIPOINT MULTIPOLYGON NAME_CONST NOW NTH_VALUE
    NTILE NULLIF OCT OCTET_LENGTH ORD PERCENT_RANK PERIOD_ADD PERIOD_DIFF PI POINT POLYGON POSITION POW POWER
    PS_CURRENT_THREAD_ID PS_THREAD_ID QUARTER QUOTE RADIANS RANK REGEXP_INSTR REGEXP_LIKE REGEXP_REPLACE REGEXP_SUBSTR
    REPEAT REPLACE REVERSE RIGHT ROLES_GRAPHML ROUND ROW ROW_NUMBER RPAD RTRIM SCHEMA SECOND SEC_TO_TIME SHA2
    SIGN SIN SOUNDEX SPACE SQRT STATEMENT_DIGEST STATEMENT_DIGEST_TEXT STD STDDEV STDDEV_POP STDDEV_SAMP STRCMP
    STRING_TO_VECTOR STR_TO_DATE SUBDATE SUBSTR SUBSTRING SUBSTRING_INDEX SUBTIME SUM TAN TIME TIMEDIFF TIMESTAMP
    TIMESTAMPADD TIMESTAMPDIFF TIME_FORMAT TIME_TO_SEC TO_BASE64 TO_DAYS TO_SECONDS TO_VECTOR TRIM TRUNCATE UCASE
    UNCOMPRESS UNCOMPRESSED_LENGTH UNHEX UNIX_TIMESTAMP UPDATEXML UPPER UTC_DATE UTC_TIME UTC_TIMESTAMP UUID_TO_BIN
    VALIDATE_PASSWORD_STRENGTH VALUES VARIANCE VAR_POP VAR_SAMP VECTOR_DIM VECTOR_TO_STRING WEEK
    WEEKDAY WEEKOFYEAR WEIGHT_STRING YEAR YEARWEEK CAST CHAR
    ST_AREA ST_ASBINARY ST_ASGEOJSON ST_ASTEXT ST_ASWKB ST_ASWKT ST_BUFFER ST_BUFFER_STRATEGY ST_CENTROID ST_COLLECT
    ST_CONTAINS ST_CONVEXHULL ST_CROSSES ST_DIFFERENCE ST_DIMENSION ST_DISJOINT ST_DISTANCE ST_DISTANCE_SPHERE
    ST_ENDPOINT ST_ENVELOPE ST_EQUALS ST_EXTERIORRING ST_FRECHETDISTANCE ST_GEOHASH ST_GEOMCOLLFROMTEXT
    ST_GEOMCOLLFROMWKB ST_GEOMETRYN ST_GEOMETRYTYPE ST_GEOMFROMGEOJSON ST_GEOMFROMTEXT ST_GEOMFROMWKB
    ST_HAUSDORFFDISTANCE ST_INTERIORRINGN ST_INTERSECTION ST_INTERSECTS ST_ISCLOSED ST_ISEMPTY ST_ISSIMPLE ST_ISVALID
    ST_LATFROMGEOHASH ST_LATITUDE ST_LENGTH ST_LINEFROMTEXT ST_LINEFROMWKB ST_LINEINTERPOLATEPOINT
    ST_LINEINTERPOLATEPOINTS ST_LONGFROMGEOHASH ST_LONGITUDE ST_MAKEENVELOPE ST_MLINEFROMTEXT ST_MLINEFROMWKB
    ST_MPOINTFROMTEXT ST_MPOINTFROMWKB ST_MPOLYFROMTEXT ST_MPOLYFROMWKB ST_NUMGEOMETRIES ST_NUMINTERIORRINGS
    ST_NUMPOINTS ST_OVERLAPS ST_POINTATDISTANCE ST_POINTFROMGEOHASH ST_POINTFROMTEXT ST_POINTFROMWKB ST_POINTN
    ST_POLYFROMTEXT ST_POLYFROMWKB ST_SIMPLIFY ST_SRID ST_STARTPOINT ST_SWAPXY ST_SYMDIFFERENCE ST_TOUCHES ST_TRANSFORM
    ST_UNION ST_VALIDATE ST_WITHIN ST_X ST_Y
""")
BUILT_IN_FUNCTIONS = SAFE_FUNCTIONS | UNSAFE_FUNCTIONS

# Session variables that the server writes to the log with the statement; all others, and all of GLOBAL, are unsafe.
LOGGED_VARIABLES = _names("""
    auto_increment_increment auto_increment_offset character_set_client character_set_connection
    character_set_database character_set_server collation_connection collation_database collation_server
    default_collation_for_utf8mb4 default_table_encryption enable_cascade_triggers foreign_key_checks
    generated_random_password_length identity immediate_server_version last_insert_id lc_time_names
    original_commit_timestamp original_server_version pseudo_thread_id rand_seed1 rand_seed2 sql_auto_is_null
    sql_require_primary_key time_zone timestamp unique_checks xa_detach_on_prepare
""")

# Tables that belong to one server: never logged, and unsafe to read (UnsafeReason.SYSTEM_TABLE).
LOCAL_DATABASES = frozenset({"performance_schema"})
LOCAL_TABLES = frozenset(
    f"mysql.{name}"
    for name in (
        *("general_log", "slow_log", "gtid_executed"),
        *("slave_relay_log_info", "slave_master_info", "slave_worker_info"),
    )
)

# Tables of accounts and privileges, which are read without row locks (UnsafeReason.ACL_TABLE_READ_IN_DML_DDL).
ACL_TABLES = frozenset(
    f"mysql.{name}"
    for name in (
        *("user", "db", "tables_priv", "columns_priv", "procs_priv", "proxies_priv"),
        *("role_edges", "default_roles", "global_grants", "password_history"),
    )
)
