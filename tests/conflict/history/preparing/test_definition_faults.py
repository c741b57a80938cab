"""
Seeded faults of the schema and of definitions in a log: each is noticed, and says what contradicts what.

The recordings are those of `tests/recordings/everyday`; every fault is one edit of what belongs to them.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import attrs
import pytest

from conflict.config.configuration import Configuration, Span
from conflict.errors import ConfigurationError
from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.reading.readings import cut_readings, history_of, read_cluster
from conflict.judge.case import ConflictCase
from ndb_formats.errors import SchemaError
from ndb_formats.schema.create_table import parse_create_table
from ndb_formats.schema.tables import Schema
from tests.conflict.faults import with_files
from tests.corpora import RECORDINGS
from tests.ndb_formats.rewritten import rewritten

EVERYDAY = RECORDINGS / "everyday"
ADDED, DROPPED, WIDENED = "epoch2/ddl_add_column_type8", "max/ddl_drop_column_type7", "max_ins/ddl_widen_column_type7"
RECREATED, RENAMED, CREATED = (
    "max/ddl_drop_and_create_type7",
    "epoch/ddl_rename_and_back_type8",
    "epoch/ddl_create_another_type8",
)
COPIED = "epoch/ddl_add_column_copy_type8"


def load(name: str) -> ConflictCase:
    """Return a case."""
    return ConflictCase.load(EVERYDAY / name)


def with_create(case: ConflictCase, edit: Callable[[str], str]) -> Configuration:
    """Return the run of a case with its first table defined otherwise."""
    configuration = case.configuration()
    create = edit(case.scenario["tables"][0]["create"])
    others = tuple(table for table in configuration.schema.tables if table.name != "t1")
    table = parse_create_table(create, database="day")
    return attrs.evolve(configuration, schema=Schema((table, *others)))


def said(configuration: Configuration) -> list[str]:
    """Return everything that is said about the definitions of a run, and where its binlogs stop."""
    followed = make_run(configuration)
    errors = [str(read_cluster(cluster, followed).error or "") for cluster in followed.clusters]
    remarks = [remark.sentence for remark in followed.remarks]
    return [*remarks, *followed.notes, *(error for error in errors if error)]


SCHEMA_FAULTS: list[tuple[str, str, Sequence[tuple[str, str]], str]] = [
    (
        "signed column declared UNSIGNED",
        ADDED,
        [("v INT NOT", "v INT UNSIGNED NOT")],
        "says UNSIGNED, the binlog signed",
    ),
    ("UNSIGNED column declared signed", ADDED, [("x INT UNSIGNED", "x INT")], "says signed, the binlog UNSIGNED"),
    ("shorter type", ADDED, [("v INT", "v SMALLINT")], "says smallint, the binlog LONG"),
    ("other type", ADDED, [("s VARCHAR(20)", "s DATE")], "says date, the binlog VARCHAR"),
    (
        "other length",
        ADDED,
        [("VARCHAR(20)", "VARCHAR(30)")],
        "the binlog VARCHAR of length 80; this changes no answer",
    ),
    ("NULL for NOT NULL", ADDED, [("v INT NOT NULL DEFAULT 42", "v INT")], "says NULL, the binlog NOT NULL"),
    (
        "NOT NULL for NULL",
        ADDED,
        [("s VARCHAR(20) DEFAULT", "s VARCHAR(20) NOT NULL DEFAULT")],
        "NOT NULL, the binlog NULL",
    ),
    (
        "other collation",
        ADDED,
        [("s VARCHAR(20)", "s VARCHAR(20) COLLATE utf8mb4_bin")],
        "says collation utf8mb4_bin, the binlog collation utf8mb4_0900_ai_ci",
    ),
    (
        "other character set",
        ADDED,
        [("s VARCHAR(20)", "s VARCHAR(20) CHARACTER SET latin1")],
        "says collation latin1_swedish_ci, the binlog collation utf8mb4_0900_ai_ci",
    ),
    ("a column left out", ADDED, [("  v INT NOT NULL DEFAULT 42,\n", "")], "says 3 columns, the binlog 4 columns"),
    ("a column too many", ADDED, [("  v INT", "  w INT,\n  v INT")], "says 5 columns, the binlog 4 columns"),
    (
        "two columns in another order",
        ADDED,
        [
            (
                "x INT UNSIGNED NOT NULL,\n  v INT NOT NULL DEFAULT 42",
                "v INT NOT NULL DEFAULT 42,\n  x INT UNSIGNED NOT NULL",
            )
        ],
        "says signed, the binlog UNSIGNED",
    ),
    (
        "a primary key on a nullable column",
        ADDED,
        [("PRIMARY KEY (k)", "PRIMARY KEY (s)")],
        "NOT NULL, the binlog NULL",
    ),
    (
        "a definition from after ADD COLUMN",
        ADDED,
        [("DEFAULT 'none'", "DEFAULT 'none', n1 INT")],
        "5 columns, the binlog 4",
    ),
    (
        "a definition from after DROP COLUMN",
        DROPPED,
        [("  s VARCHAR(20) DEFAULT 'none',\n", "")],
        "3 columns, the binlog 4",
    ),
    ("a definition from after MODIFY", WIDENED, [("v INT", "v BIGINT")], "says bigint, the binlog LONG"),
]


@pytest.mark.parametrize(
    ("name", "edits", "expected"), [fault[1:] for fault in SCHEMA_FAULTS], ids=[f[0] for f in SCHEMA_FAULTS]
)
def test_a_wrong_definition_is_named_with_both_sides(name: str, edits: Sequence[tuple[str, str]], expected: str):
    """Before any row is decided by it."""

    def edit(create: str) -> str:
        for old, new in edits:
            assert old in create
            create = create.replace(old, new)
        return create

    found = said(with_create(load(name), edit))
    assert found
    assert expected in found[0], found[0]
    assert "table day.t1" in found[0]
    assert "position " in found[0]


def test_a_table_left_out_is_named():
    """With the place where the binlog has it first, and what follows."""
    configuration = load(ADDED).configuration()
    kept = tuple(table for table in configuration.schema.tables if table.name != "t2")
    found = said(attrs.evolve(configuration, schema=Schema(kept)))
    assert "table day.t2 is not in the schema" in found[0]
    assert "transactions that touch it are judged without them" in found[0]


def edited_statements(case: ConflictCase, tmp_path: Path, edit: Callable[[str], str | None]) -> Configuration:
    """Return the run of a case with the statements that change definitions edited in both binlogs; None removes one."""
    configuration = case.configuration()
    clusters = []
    for cluster in configuration.clusters:
        path = tmp_path / f"{cluster.name}.000001"
        path.write_bytes(rewritten(cluster.log.files[0], edit))
        clusters.append(with_files(cluster, path))
    return attrs.evolve(configuration, clusters=tuple(clusters))


LOG_FAULTS: list[tuple[str, str, Callable[[str], str | None], str]] = [
    ("ADD COLUMN removed", ADDED, lambda text: None if text.startswith("ALTER") else text, "4 columns, the binlog 5"),
    (
        "DROP COLUMN removed",
        DROPPED,
        lambda text: None if text.startswith("ALTER") else text,
        "4 columns, the binlog 3",
    ),
    (
        "MODIFY removed",
        WIDENED,
        lambda text: None if text.startswith("ALTER") else text,
        "says int, the binlog LONGLONG",
    ),
    (
        "CREATE removed",
        CREATED,
        lambda text: None if text.startswith("CREATE") else text,
        "day.t7 is not in the schema",
    ),
    (
        "DROP removed, CREATE of another table",
        RECREATED,
        lambda text: None if text.startswith("DROP") else text.replace("v INT", "v BIGINT"),
        "creates a table that is there already",
    ),
    (
        "RENAME back removed",
        RENAMED,
        lambda text: None if "t9 TO" in text else text,
        "day.t1 is not in the schema",
    ),
    (
        "another column added",
        COPIED,
        lambda text: text.replace("INT NOT", "BIGINT NOT"),
        "says bigint, the binlog LONG",
    ),
    ("a column added twice", ADDED, lambda text: text.replace("n1", "v"), "which the table has already"),
    (
        "another column dropped",
        DROPPED,
        lambda text: text.replace("COLUMN s", "COLUMN v"),
        "says varchar(20), the binlog LONG",
    ),
    (
        "a statement that cannot be followed",
        ADDED,
        lambda text: text.replace("ADD COLUMN", "DROP gone, ADD COLUMN"),
        "names column gone",
    ),
    (
        "another primary key",
        ADDED,
        lambda text: "ALTER TABLE t1 DROP PRIMARY KEY, ADD PRIMARY KEY (x)",
        "its primary key changes",
    ),
]


@pytest.mark.parametrize(
    ("name", "edit", "expected"), [fault[1:] for fault in LOG_FAULTS], ids=[f[0] for f in LOG_FAULTS]
)
def test_a_wrong_statement_is_noticed(name: str, edit: Callable[[str], str | None], expected: str, tmp_path: Path):
    """By the Table_map events after it, or by itself; with its place."""
    found = said(edited_statements(load(name), tmp_path, edit))
    assert found
    assert expected in found[0], found[0]
    assert "position " in found[0]


def test_nothing_is_said_of_the_recordings():
    """Whose definitions are right."""
    for path in sorted(EVERYDAY.glob("*/*")):
        assert said(ConflictCase.load(path).configuration()) == [], path


def test_an_unfollowed_statement_concerns_its_table_alone(tmp_path: Path):
    """Every epoch is read, and every change before it; of the table none after it, and of the others all."""
    configuration = edited_statements(
        load(ADDED), tmp_path, lambda text: text.replace("ADD COLUMN", "DROP gone, ADD COLUMN")
    )
    followed = make_run(configuration)
    whole = make_run(load(ADDED).configuration())
    mine, full = (read_cluster(each.clusters[0], each) for each in (followed, whole))
    assert mine.error is None
    assert [epoch.number for epoch in mine.epochs] == [epoch.number for epoch in full.epochs]
    counts = [
        {name: sum(c.table == name for e in each.epochs for t in e.transactions for c in t.changes) for name in NAMES}
        for each in (mine, full)
    ]
    assert 0 < counts[0]["day.t1"] < counts[1]["day.t1"]
    assert counts[0]["day.t2"] == counts[1]["day.t2"] > 0
    (remark,) = followed.remarks[:1]
    assert remark.contradicts
    assert "table day.t1" in remark.sentence


NAMES = ("day.t1", "day.t2")


def test_a_schema_of_the_end_is_taken_back():
    """An added column is dropped again."""
    case = load(ADDED)
    configuration = with_create(case, lambda create: create.replace("DEFAULT 'none'", "DEFAULT 'none', n1 INT"))
    assert said(attrs.evolve(configuration, schema_at_end=True)) == []


def test_what_a_statement_removed_cannot_be_taken_back():
    """The message says what to give instead."""
    configuration = load(DROPPED).configuration()
    with pytest.raises(SchemaError, match="give the definition at the start of the binlogs"):
        make_run(attrs.evolve(configuration, schema_at_end=True))


@pytest.mark.parametrize("span", [Span(first={"A": 5}), Span(last={"B": 5}), Span(stop_time=0), Span(empty=False)])
def test_a_part_of_a_log_is_refused_where_definitions_change(span: Span) -> None:
    """It is refused by name, and not resolved as if they were the same all along."""
    followed = attrs.evolve(make_run(load(ADDED).configuration()), span=span)
    readings = {cluster.name: read_cluster(cluster, followed) for cluster in followed.clusters}
    with pytest.raises(ConfigurationError, match="definitions of tables change in the binlogs"):
        history_of(followed, cut_readings(followed, readings))


def with_function(configuration: Configuration, text: str) -> Configuration:
    """Return a run in which t1 alone has a function, this one."""
    rows = tuple(
        attrs.evolve(row, conflict_fn=text if row.table_name == "t1" else None) for row in configuration.replication
    )
    return attrs.evolve(configuration, replication=rows)


@pytest.mark.parametrize(
    ("function", "complaint"),
    [
        ("NDB$MAX(version)", "Could not find resolve column version; columns that it can compare are x, of k, x, v, s"),
        ("NDB$MAX(X)", r"Could not find resolve column X \(did you mean x\?\); columns"),
        ("NDB$MAX(v)", "Column 'v' has wrong datatype; columns that it can compare are x, of k, x, v, s"),
        ("NDB$MAXX(x)", r"missing '\(' at 'X\(x\)' \(did you mean NDB\$MAX\?\)"),
        ("NDB(x)", "a shell takes .* use single quotes"),
    ],
)
def test_a_function_that_no_server_takes_is_refused(function: str, complaint: str) -> None:
    """The table is in the binlog of its server, which would not have created it."""
    with pytest.raises(ConfigurationError, match=f"of day.t1: .*{complaint}.*the binlog of A changes it"):
        make_run(with_function(load(WIDENED).configuration(), function))


def test_a_column_that_is_added_later_is_no_error(tmp_path: Path) -> None:
    """The function is in force from then on; before that the server had none."""
    unsigned = edited_statements(load(ADDED), tmp_path, lambda text: text.replace("n1 INT", "n1 INT UNSIGNED"))
    run = make_run(with_function(unsigned, "NDB$MAX(n1)"))
    assert {str(setup.function) for setup in run.setups.over_time["A"]["day.t1"]} == {"None", "NDB$MAX(n1)"}


def test_a_table_that_its_server_did_not_create_is_none_of_its_binlog() -> None:
    """The server refused the table with the same words: that is what happened, and no mistake of the user."""
    run = make_run(ConflictCase.load(RECORDINGS / "conflict/parse/spec_01").configuration())
    refusal = run.setups.at_end["A"]["cft.t1"].refusal
    assert refusal is not None
    assert refusal.message == "Could not find resolve column X."
