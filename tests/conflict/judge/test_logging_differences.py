"""How statements are logged, against recordings of a real cluster and a real server."""

import json
from pathlib import Path

import pytest

from conflict.judge.case import find_recordings
from conflict.judge.judge import CaseStatus, judge_recording
from conflict.judge.logging_differences import judge_decisions, judge_logging
from tests.corpora import RECORDINGS, SHARED

BUNDLED = RECORDINGS / "logging"
COUNTS = {"cluster_9_7": 666, "mysql_9_7_innodb": 378, "mysql_9_7_myisam": 948}


@pytest.mark.parametrize("folder", COUNTS)
def test_every_recorded_decision_is_made(folder: str) -> None:
    """From given properties and from SQL text; the text leaves open only what is not in it."""
    verdicts = judge_decisions(BUNDLED / folder)
    assert len(verdicts) == COUNTS[folder]
    assert [(each.case, each.properties, each.text) for each in verdicts if each.properties or each.text] == []
    questions = {question.split(": ", 1)[1].split(" ")[0] for each in verdicts for question in each.unknown}
    assert questions <= {"do", "does"}


@pytest.mark.corpus("conformance")
def test_the_whole_recording_is_judged() -> None:
    """Nothing is left for later, and the verdict counts."""
    (found,) = find_recordings(SHARED / "conformance" / "formats" / "logging")
    verdict = judge_recording(found, "reference")
    assert (verdict.part, verdict.status) == ("formats/logging", CaseStatus.PASS)
    assert verdict.detail.startswith("666 decisions agree from given properties")


def test_a_contradiction_is_found(tmp_path: Path) -> None:
    """In what is logged, and in what the server says."""
    document = json.loads((BUNDLED / "cluster_9_7" / "decisions.json").read_text("utf-8"))
    cases = [case for case in document["cases"] if case["name"] == "insert_uuid" and case["engine"] == "InnoDB"]
    statement, row, mixed = cases
    statement["statements"][0]["warnings"] = []
    row["logged"] = ["statement"]
    (tmp_path / "decisions.json").write_text(json.dumps({"setup": document["setup"], "cases": cases}))
    said, logged, agreed = judge_logging(json.loads((tmp_path / "decisions.json").read_text("utf-8")))
    assert "it says" in said.properties
    assert (logged.properties, logged.text) == ("row instead of statement",) * 2
    assert mixed["logged"] == ["row"]
    assert not agreed.properties
    verdict = judge_recording(find_recordings(tmp_path)[0], "reference")
    assert verdict.status is CaseStatus.FAIL
    assert verdict.detail.startswith("InnoDB STATEMENT insert_uuid, from properties: it says")
