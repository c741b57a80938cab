"""Why an applier stops is said once: `check` says in the same words what `resolve` says when it happened."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import conflict
from conflict.checking.check import check_configuration
from conflict.checking.findings import Code
from conflict.config.arguments import DeploymentPolicy
from conflict.config.run_file import GivenSchedule, RunFile
from conflict.judge.case import ConflictCase, RecordingKind, find_recordings
from conflict.rules.stops import ServerStop
from tests.corpora import RECORDINGS, SHARED

SAMPLE = (
    "conflict/old/probe_type8",
    "conflict/epoch/unique_key_type7",
    "conflict/epoch/table_with_text_type7",
    "conflict/epoch2/role_none_type7",
    "conflict/epoch_trans/no_transaction_ids_type7",
    "conflict/epoch_trans/spanning_text_table_type7",
    "everyday/epoch2_trans/foreign_key_restrict_type8",
    "everyday/max/schema_other_order_type7",
    "everyday/none/no_primary_key_type2",
)


def stopped(folder: Path) -> Iterator[Path]:
    """Yield the recordings below a folder in which an applier stopped."""
    for each in find_recordings(folder):
        if each.kind is RecordingKind.CONFLICT:
            case = ConflictCase.load(each.path)
            if any(own["applier"].get("errno") for own in case.recorded.values()):
                yield each.path


def pattern(stop: ServerStop) -> re.Pattern[str]:
    """Return what says why, whatever the names are."""
    parts = re.split(r"\{[^}]*\}", stop.why)
    return re.compile(".+".join(map(re.escape, parts)), re.IGNORECASE)


def judge(path: Path) -> int:
    """Compare the words for each stop of a recording; return how many there were."""
    configuration = ConflictCase.load(path).configuration()
    result = conflict.resolve(
        RunFile(path / "run.toml", configuration, GivenSchedule(), ()), engine="reference", policy="needs"
    )
    report = check_configuration(configuration, DeploymentPolicy.NEEDS)
    for cluster, each in result.run["stops"].items():
        (stop,) = [kind for kind in ServerStop if kind.error == each["error"] and pattern(kind).match(each["message"])]
        found = [
            finding
            for finding in report.findings
            if cluster in {place.cluster for place in finding.places} and pattern(stop).search(finding.sentence)
        ]
        assert found, (path.name, cluster, each["message"])
        if stop.words is not None:
            said = {finding.server for finding in found}
            assert said <= {stop.words_of_any, each["server"]}, path.name
    return len(result.run["stops"])


@pytest.mark.parametrize("name", SAMPLE)
def test_the_same_words(name: str):
    assert judge(RECORDINGS / name) > 0


@pytest.mark.slow
@pytest.mark.corpus("conformance")
@pytest.mark.parametrize("part", ["conflict", "everyday"])
def test_the_same_words_for_all_recorded_stops(part: str):
    assert sum(map(judge, stopped(SHARED / "conformance" / part))) > 10


def test_no_finding_has_words_of_its_own():
    """The server's words are those of the table of stops, with dots for what depends on the stop."""
    of_stops = [code for code in Code if code.stop is not None]
    assert len(of_stops) > 10
    for code in of_stops:
        assert code.words == code.stop.words_of_any
        assert "{" not in (code.words or "")
