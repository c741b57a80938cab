"""Rewritten files: each comes back in its own format, and in others it has the events that the real server wrote."""

import contextlib
import io
import json
from collections import Counter
from pathlib import Path

import pytest

from ndb_formats.binlog_reader import read_events
from ndb_formats.constants import EventType
from ndb_formats.errors import CutFileError, FormatError
from ndb_formats.events.gtid_event import decode_gtid
from ndb_formats.events.query_event import QueryEvent
from ndb_formats.events.rows_event import Operation
from ndb_formats.row_reader import read_rows
from ndb_formats.rules.relogging import Basis, Obstacle
from ndb_formats.rules.row_image_rules import EventColumns
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.tables import Schema
from ndb_formats.writing.rewriting import Rewriter
from ndb_formats.writing.rewriting_plans import NO_DEFINITION, OTHER_ENGINE, Plans, Target
from tests.corpora import RECORDINGS as BUNDLED
from tests.corpora import SHARED
from tests.ndb_formats.recordings import BINLOGS, CORPUS, RECORDINGS, name_of
from tests.ndb_formats.writing.relogged_files import (
    by_statement,
    rewritten,
    schema_of,
    target_of,
    transaction_starts,
    unseen_columns,
)

FORMATS = SHARED / "conformance" / "formats"


def scenario_schema(case: Path) -> Schema:
    """Return the tables of a conflict scenario."""
    scenario = json.loads((case / "scenario.json").read_text("utf-8"))
    texts = [text for table in scenario["tables"] for text in (table["create"], table.get("ex")) if text]
    return parse_schema(";\n".join(texts), database=scenario["database"])


def check_own_format(case: Path) -> int:
    """Check that both binlogs of a conflict scenario of type 7 come back byte for byte; return the row changes."""
    schema, changes = scenario_schema(case), 0
    for path in sorted(case.glob("*.binlog.*")):
        data, _ = rewritten(path, schema, 7)
        assert data == path.read_bytes(), path
        for number in (8, 9):
            _, counts = rewritten(path, schema, number)
            changes += sum(counts.rows.values())
    return changes


@pytest.mark.parametrize("name", ["charkey_type7", "composite_type7", "gencols_type7"])
def test_a_file_of_type_7_comes_back(name: str):
    """Sizes, positions, checksums and the division into events too."""
    binlog = RECORDINGS / name / "binlog.000001"
    assert rewritten(binlog, schema_of(binlog.parent), 7)[0] == binlog.read_bytes()


@pytest.mark.parametrize(
    ("name", "setting"),
    [("composite_type8", 8), ("charkey_type9", 9), *((f"defaults_{image}", image) for image in ("full", "minimal"))],
)
def test_a_file_of_a_known_format_comes_back(name: str, setting: int | str):
    """What the format hides does not matter if it is known."""
    binlog = RECORDINGS / name / "binlog.000001"
    data, counts = rewritten(binlog, schema_of(binlog.parent), setting, logged_as=setting)
    assert data == binlog.read_bytes()
    assert {outcome.result for outcome in counts.rows} <= {Basis.EXACT, Basis.CHANGED_VALUES}


def test_conflict_scenarios_of_type_7_come_back():
    """Both binlogs of each bundled one."""
    cases = [path.parent for path in BUNDLED.glob("conflict/*/*type7/scenario.json")]
    assert len(cases) >= 5
    assert sum(map(check_own_format, cases)) > 100


@pytest.mark.parametrize(
    ("table", "number", "differing"),
    [
        ("charkey", 9, {}),
        ("composite", 9, {}),
        ("gencols", 9, {}),
        ("charkey", 8, {}),
        ("composite", 8, {"UPDATE composite SET v = v + 1, t = t": {"v", "t"}}),
        ("gencols", 8, {}),
    ],
)
def test_row_events_are_those_of_the_server(table: str, number: int, differing: dict[str, set[str]], tmp_path: Path):
    """Byte for byte; a statement differs only if it set columns to the value that they had."""
    source, server = (RECORDINGS / f"{table}_type{each}" for each in (7, number))
    found = list(by_statement(source, server, number, tmp_path))
    assert {each.sql for each in found if each.mine != each.server} == set(differing)
    for each in found:
        if each.sql in differing:
            assert unseen_columns(each, schema_of(source)) == differing[each.sql]
    assert sum(len(each.server) for each in found) > 5


@pytest.mark.slow
@pytest.mark.corpus("conformance/formats")
@pytest.mark.parametrize(("number", "equal"), [(7, 81), (3, 81), (9, 81), (2, 75), (6, 75), (8, 75)])
def test_every_type_7_recording_in_every_type(number: int, equal: int, tmp_path: Path):
    """Of 81 row events of 77 statements; the others set columns to the value that they had."""
    events: Counter[bool] = Counter()
    for source in sorted((FORMATS / "ndb" / "type7").iterdir()):
        for each in by_statement(source, FORMATS / "ndb" / f"type{number}" / source.name, number, tmp_path):
            same = each.mine == each.server
            assert same or unseen_columns(each, schema_of(source)), each.sql
            events[same] += len(each.server)
    assert (events[True], events.total()) == (equal, 81)


@pytest.mark.slow
@pytest.mark.corpus("conformance/formats")
def test_every_recording_comes_back_in_its_own_format():
    """Compressed, without checksums, with the statements' texts, with partial JSON."""
    for case in sorted([*FORMATS.glob("ndb/*/*"), *FORMATS.glob("innodb/*/*")]):
        settings = json.loads((case / "settings.json").read_text("utf-8"))
        setting: int | str = settings["binlog_row_image"].lower()
        if case.parts[-3] == "ndb":
            rows = settings.get("ndb_replication")
            if not rows or rows[0][3] in (0, 1):
                continue
            setting = int(rows[0][3])
        binlog = case / "binlog.000001"
        data, counts = rewritten(binlog, schema_of(case), setting, logged_as=setting)
        assert data == binlog.read_bytes(), case
        assert all(outcome.rewritten for outcome in counts.rows), case


@pytest.mark.parametrize("path", BINLOGS, ids=name_of)
def test_files_whose_tables_are_not_known_come_back(path: Path):
    """Of all versions, with and without checksums; every event passes through."""
    assert unchanged(path) == path.read_bytes()


def test_a_log_comes_back_up_to_its_fault():
    """Without the statement whose rows cannot be read."""
    data = (RECORDINGS.parent / "reports/25-mariadb-old-temporal.binlog").read_bytes()
    assert unchanged(RECORDINGS.parent / "reports/25-mariadb-old-temporal.binlog") == data[:1019]


@pytest.mark.slow
@pytest.mark.corpus(".")
def test_every_file_of_the_corpus_comes_back():
    """Relay logs too, and a damaged file up to its fault, without a transaction that is not complete."""
    whole = 0
    for path in CORPUS:
        data, out = path.read_bytes(), unchanged(path)
        assert data.startswith(out), path
        whole += data == out
    assert len(CORPUS) - whole < 20 < whole


def unchanged(path: Path) -> bytes:
    """Return a file rewritten without any definition, as far as it can be read."""
    out = io.BytesIO()
    with contextlib.suppress(FormatError):
        Rewriter(out, Plans(target_of(7))).rewrite(read_events(path))
    return out.getvalue()


@pytest.mark.slow
@pytest.mark.corpus("conformance/conflict")
def test_every_conflict_scenario_of_type_7_comes_back():
    """All of them."""
    cases = [path.parent for path in SHARED.glob("conformance/conflict/*/*type7/scenario.json")]
    assert len(cases) > 100
    assert sum(map(check_own_format, cases)) > 10_000


def test_a_gtid_event_has_the_length_of_its_transaction(tmp_path: Path):
    """Also after the transaction has become shorter, and also if it is compressed."""
    for source in (RECORDINGS / "composite_type7", RECORDINGS / "composite_type8"):
        path = tmp_path / "binlog"
        path.write_bytes(rewritten(source / "binlog.000001", schema_of(source), 2)[0])
        assert path.stat().st_size < (source / "binlog.000001").stat().st_size
        starts = transaction_starts(path)
        lengths = [
            decode_gtid(event.body).length
            for event in read_events(path)
            if event.type is EventType.ANONYMOUS_GTID_LOG_EVENT
        ]
        ends = [
            *starts[1:],
            next(event.position for event in read_events(path) if event.type is EventType.ROTATE_EVENT),
        ]
        assert lengths == [end - start for start, end in zip(starts, ends, strict=True)]


def test_what_cannot_be_told_is_kept_and_counted(tmp_path: Path):
    """Upward, only changes whose columns are there: of type 8 the inserts, in type 7."""
    source = RECORDINGS / "composite_type8"
    data, counts = rewritten(source / "binlog.000001", schema_of(source), 7)
    kept = {(outcome.table, outcome.operation): outcome.result for outcome in counts.rows if not outcome.rewritten}
    assert kept == {
        ("fmt.composite", Operation.UPDATE_ROW): Obstacle.OLD_VALUES,
        ("fmt.composite", Operation.DELETE_ROW): Obstacle.OLD_VALUES,
        ("fmt.second", Operation.UPDATE_ROW): Obstacle.OLD_VALUES,
    }
    lacking = {(outcome.table, outcome.operation): names for outcome, names in counts.lacking.items()}
    assert lacking["fmt.composite", Operation.DELETE_ROW] == {"v", "n", "t"}
    path = tmp_path / "binlog"
    path.write_bytes(data)
    assert [row.after for row in read_rows(path)] == [row.after for row in read_rows(source / "binlog.000001")]


def test_tables_of_another_engine_and_unknown_ones_are_kept():
    """The file comes back, and the counts say why."""
    source = RECORDINGS / "composite_type7"
    for schema, target, why in (
        (schema_of(source), "minimal", OTHER_ENGINE),
        (Schema(), 8, NO_DEFINITION),
    ):
        data, counts = rewritten(source / "binlog.000001", schema, target)
        assert data == (source / "binlog.000001").read_bytes()
        assert {outcome.result for outcome in counts.rows} == {why}
        assert sum(counts.rows.values()) == sum(1 for _ in read_rows(source / "binlog.000001"))


def test_full_metadata_stand_for_a_definition():
    """Table_map events that name columns and keys need no schema."""
    source = RECORDINGS / "metadata_full"
    with_schema, _ = rewritten(source / "binlog.000001", schema_of(source), "minimal")
    data, counts = rewritten(source / "binlog.000001", Schema(), "minimal")
    assert data == with_schema != (source / "binlog.000001").read_bytes()
    assert all(outcome.rewritten for outcome in counts.rows)


def test_nothing_is_logged_under_type_1(tmp_path: Path):
    """Neither rows nor Table_map events of the tables; the rest of the file stays."""
    source = RECORDINGS / "composite_type7"
    path = tmp_path / "binlog"
    path.write_bytes(rewritten(source / "binlog.000001", schema_of(source), 1)[0])
    assert list(read_rows(path)) == []
    assert len(transaction_starts(path)) == len(transaction_starts(source / "binlog.000001"))


def test_a_definition_in_the_log_is_used():
    """CREATE TABLE statements among the events give the columns; their keys are those of the statement."""
    source = RECORDINGS / "composite_type7"
    create = (source / "schema.sql").read_text("utf-8")
    plans = Plans(Target())
    for statement in create.split(";"):
        plans.note_statement(QueryEvent("fmt", statement.strip()))
    assert [table.full_name for table in plans.known.schema.tables] == ["fmt.composite", "fmt.second"]
    assert plans.known.schema.tables[0].primary_key == ("b", "w", "c")


@pytest.mark.parametrize("cut", [1, 30, 200])
def test_a_file_that_is_cut_short_gives_whole_transactions(cut: int, tmp_path: Path):
    """The error names the place, and what was written is the start of the whole file, up to a transaction's end."""
    source = RECORDINGS / "composite_type7"
    whole, schema = (source / "binlog.000001").read_bytes(), schema_of(source)
    path = tmp_path / "binlog"
    path.write_bytes(whole[:-cut])
    out = io.BytesIO()
    with pytest.raises(CutFileError):
        Rewriter(out, Plans(target_of(7), schema)).rewrite(read_events(path))
    assert whole.startswith(out.getvalue())
    assert len(out.getvalue()) in {*transaction_starts(source / "binlog.000001"), len(whole) - _rotate_size(source)}


def _rotate_size(case: Path) -> int:
    return next(
        event.header.size for event in read_events(case / "binlog.000001") if event.type is EventType.ROTATE_EVENT
    )


@pytest.mark.slow
@pytest.mark.corpus("conformance/conflict")
@pytest.mark.parametrize(("number", "equal"), [(8, 108), (9, 126)])
def test_probes_have_the_columns_of_the_server(number: int, equal: int, tmp_path: Path):
    """
    The same statements with other values under each type: operations and columns of both clusters' own changes.

    The other 18 are updates of three columns, one of which got the value that it had.
    """
    path, same, changes = tmp_path / "binlog", 0, 0
    for source in sorted(SHARED.glob("conformance/conflict/*/probe_type7")):
        schema = scenario_schema(source)
        for side, server_id in (("A", 1), ("B", 2)):
            binlog = source / f"{side}.binlog.000001"
            path.write_bytes(rewritten(binlog, schema, number)[0])
            recorded = source.parent / f"probe_type{number}" / binlog.name
            mine, theirs = (own_columns(each, server_id) for each in (path, recorded))
            differing = {columns for _, columns in (mine - theirs)}
            assert differing <= {EventColumns(Operation.UPDATE_ROW, (0,), (1, 2))}
            same, changes = same + (mine & theirs).total(), changes + theirs.total()
    assert (same, changes) == (equal, 126)


def own_columns(path: Path, server_id: int) -> Counter[tuple[str, EventColumns]]:
    """Return the columns of a server's own changes, without those that conflict resolution made."""
    return Counter(
        (row.table, EventColumns(row.operation, *(None if i is None else i.present for i in (row.before, row.after))))
        for row in read_rows(path)
        if row.server_id == server_id and not row.table.upper().endswith("$EX") and not (row.extra and row.extra.flags)
    )
