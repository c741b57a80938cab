"""Records of recordings: as many as all other figures of a result say, as their schema says, with the images."""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import conflict
from conflict.config.run_file import GivenSchedule, RunFile
from conflict.judge.case import ConflictCase
from conflict.operating.records.layout import json_lines, json_schema
from conflict.operating.records.reading import Logs, read_records
from conflict.operating.repairing.logged_images import images_at
from conflict.operating.repairing.reading_lost import read_lost
from conflict.results.conflicts import ALL
from conflict.results.result import Result
from conflict.rules.counters import TRANSACTION_ROW_REJECTS
from tests.conflict.whatif.comparing.recorded import compared
from tests.corpora import RECORDINGS

ALL_RECORDINGS = sorted(path.parent for path in RECORDINGS.glob("conflict/*/*/scenario.json"))
QUICK = [path for path in ALL_RECORDINGS if path.name.startswith(("random", "delete_delete"))]
SLOW = [
    *(path for path in ALL_RECORDINGS if path not in QUICK),
    *sorted(path.parent for name in ("lives/*", "everyday/*/*") for path in RECORDINGS.glob(f"{name}/scenario.json")),
]
PLACE = ("file", "position", "payload_position", "row")


def assert_agree(folder: Path, out: Path, *, with_compare: bool) -> None:
    """Resolve a recording; its records agree with its summary, its counters, `lost`, `compare` and the schema."""
    case = ConflictCase.load(folder)
    configuration = case.configuration()
    run = RunFile(case.path / "run.toml", configuration, GivenSchedule(), ())
    result = conflict.resolve(run, out=out, engine="local", policy="needs")
    batches = read_records(result, ALL, Logs(configuration))
    rows = [json.loads(line) for batch in batches for line in json_lines(batch).splitlines()]
    validator = jsonschema.Draft202012Validator(json_schema(), format_checker=jsonschema.FormatChecker())
    for row in rows:
        validator.validate(row)
    assert_as_the_summary(result, rows)
    assert_as_lost(result, rows, ConflictCase.load(folder))
    if with_compare:
        assert_as_compare(case, rows)


def assert_as_the_summary(result: Result, rows: Iterable[dict[str, Any]]) -> None:
    """Conflicts by applier, table and cause are those of `run.json`, `conflicts` and the status counters."""
    conflicts = [row for row in rows if row["kind"] == "conflict"]
    by_cause = Counter((row["applier"], row["table"], row["cause"]) for row in conflicts)
    expected = Counter(
        {
            (applier, table, cause): tally[cause]
            for applier, tables in result.run["tables"].items()
            for table, tally in tables.items()
            for cause in ("ROW_DOES_NOT_EXIST", "ROW_ALREADY_EXISTS", "ROW_IN_CONFLICT", "TRANS_IN_CONFLICT")
            if tally[cause]
        }
    )
    assert by_cause == expected
    assert len(conflicts) == result.summary.conflicts == conflict.conflicts(result)["conflicts"]
    of_transactions = Counter(row["applier"] for row in conflicts if row["cause"] == "TRANS_IN_CONFLICT")
    for applier, counters in result.counters.items():
        assert counters[TRANSACTION_ROW_REJECTS] == of_transactions[applier]


def assert_as_lost(result: Result, rows: Iterable[dict[str, Any]], case: ConflictCase) -> None:
    """Lost changes are those of `lost`, once each, with the same images and winners."""
    lost = {(row["source"], *(row[name] for name in PLACE)): row for row in rows if row["lost"]}
    assert len(lost) == sum(row["lost"] for row in rows)
    changes = images_at(read_lost(result, ALL), case.configuration(), {}).to_pylist()
    assert len(changes) == len(lost)
    for change in changes:
        row = lost[change["cluster"], *(change[name] for name in PLACE)]
        assert row["lost_by"] == ("overwritten" if change["cause"] is None else "rejected")
        assert (row["kind"] == "lost") == (change["cause"] is None)
        assert row["applier"] == (change["rejected_by"] or change["cluster"])
        for name in ("table", "transaction_id", "overwritten_in", "winner_cluster", "winner_epoch", "winner_position"):
            assert row[name] == change[name], name
        for image in ("before", "after"):
            assert_same_image(row[image], change[image])


def assert_same_image(found: dict[str, Any] | None, texts: list[tuple[str, str | None]] | None) -> None:
    """The same columns; numbers are numbers, and all other values the same text."""
    if texts is None or found is None:
        assert texts is None
        assert found is None
        return
    expected = dict(texts)
    assert found.keys() == expected.keys()
    for name, value in found.items():
        text = expected[name]
        if isinstance(value, float):
            assert text is not None
            assert value == float(text)
        else:
            assert text == (str(value) if isinstance(value, int) else value)


def assert_as_compare(case: ConflictCase, rows: Iterable[dict[str, Any]]) -> None:
    """Lost changes by cluster are those that `compare` counts for what is in force: `AS_IT_IS`."""
    (used,) = [row.figures for row in compared(case, "OVERWRITE").rows if row.used]
    assert used is not None
    found = {
        name: (
            sum(row["lost_by"] == "rejected" for row in rows if row["source"] == name),
            sum(row["overwritten_in"] is not None for row in rows if row["source"] == name and row["lost"]),
            sum(row["lost"] for row in rows if row["source"] == name),
        )
        for name in used.lost
    }
    assert found == {name: tuple(figures) for name, figures in used.lost.items()}


@pytest.mark.parametrize("folder", QUICK, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_totals_agree(folder: Path, tmp_path: Path) -> None:
    """Recordings of random statements, under every function, and of deletes of gone rows."""
    assert_agree(folder, tmp_path / "result", with_compare=folder.name.startswith("random"))


@pytest.mark.slow
@pytest.mark.parametrize("folder", SLOW, ids=lambda path: f"{path.parent.parent.name}-{path.parent.name}-{path.name}")
def test_totals_agree_in_all_recordings(folder: Path, tmp_path: Path) -> None:
    """All other recordings of two clusters in conflict."""
    assert_agree(folder, tmp_path / "result", with_compare=False)
