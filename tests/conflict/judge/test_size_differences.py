"""Recorded sizes: the bundled ones agree, and a difference is seen."""

import json
from pathlib import Path

import pytest

from conflict.errors import NotBuiltError
from conflict.judge.case import find_recordings
from conflict.judge.judge import CaseStatus, judge_recording
from conflict.judge.size_differences import StatementRow, StatementRunner, size_differences
from ndb_formats.schema.create_table import parse_create_table
from ndb_formats.schema.tables import Schema
from tests.corpora import RECORDINGS, SHARED

SIZES = RECORDINGS / "formats" / "sizes"


def changed_copy(folder: Path, name: str, value: object) -> Path:
    """Return a copy of the sizes of one table and format, with one thing changed in its second statement."""
    document = json.loads((SIZES / "sizes.json").read_text("utf-8"))
    results = [each for each in document["results"] if (each["format"], each["table"]) == ("type8", "narrow")]
    results[1][name] = value
    copy = folder / "sizes.json"
    copy.write_text(json.dumps({**document, "results": results}))
    return copy


def test_bundled_sizes_agree() -> None:
    """Every statement, under every format: bytes and events by type, and sizes from the logs with all columns."""
    (recording,) = find_recordings(SIZES)
    verdict = judge_recording(recording, "reference")
    assert (verdict.status, verdict.detail) == (CaseStatus.PASS, "")


def test_a_difference_is_seen(tmp_path: Path) -> None:
    """The message names format, statement and bytes."""
    by_type = {"Table_map": {"events": 2, "bytes": 133}, "Update_rows": {"events": 1, "bytes": 1850}}
    first, second, *_ = size_differences(changed_copy(tmp_path, "by_type", by_type))
    assert "narrow" in first
    assert "Write_rows" in first
    assert "1849 bytes in 1 Update_rows events, recorded: 1850" in second


def test_a_statement_that_cannot_be_worked_out_is_not_judged(tmp_path: Path) -> None:
    """It is no difference."""
    with pytest.raises(NotBuiltError, match="1 of 1 tables and formats"):
        list(size_differences(changed_copy(tmp_path, "sql", "UPDATE narrow SET c = SOUNDS(c)")))


def test_rows_of_statements() -> None:
    """Rows before and after, in order; an update that keeps a value is one."""
    table = parse_create_table("CREATE TABLE t (k INT PRIMARY KEY, v VARCHAR(9) DEFAULT 'x', n BIGINT UNSIGNED)")
    runner = StatementRunner(Schema((table,)))
    inserted = runner.run("INSERT INTO t (k, n) VALUES (1, 18446744073709551), (2, NULL)")
    assert inserted == [
        StatementRow(None, {0: 1, 1: "x", 2: 18446744073709551}),
        StatementRow(None, {0: 2, 1: "x", 2: None}),
    ]
    assert runner.run("UPDATE t SET v = REPEAT('x', 1) WHERE k = 1") == [
        StatementRow({0: 1, 1: "x", 2: 18446744073709551}, {0: 1, 1: "x", 2: 18446744073709551})
    ]
    assert runner.run("DELETE FROM t WHERE n IS NULL") == [StatementRow({0: 2, 1: "x", 2: None}, None)]


@pytest.mark.slow
@pytest.mark.corpus("conformance/formats")
def test_all_recorded_sizes_agree() -> None:
    """Those of the corpus."""
    assert list(size_differences(SHARED / "conformance" / "formats" / "sizes.json")) == []
