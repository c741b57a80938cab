"""`check` on the configurations of recordings against what the servers reported: refusals, stops, warnings."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conflict.checking.check import check_configuration
from conflict.checking.findings import Code, Finding, Severity
from conflict.checking.read_logs import read_logs
from conflict.config.arguments import DeploymentPolicy
from conflict.judge.case import ConflictCase
from tests.conflict.recorded_arrivals import Arrival, arrivals
from tests.corpora import RECORDINGS, SHARED

PARTS = ("conflict", "everyday", "live", "lives")
CREATION = {f"NDB-E00{number}" for number in range(1, 6)}
# Lines of the error log that warn of a table's set-up, and the code of each.
WARNINGS = {
    "NDB-E006": re.compile(r"Ambiguous matches in mysql\.ndb_replication for (\S+) "),
    "NDB-E050": re.compile(r"exceptions table (\S+)\$(?:EX|ex) has wrong definition"),
    "NDB-E051": re.compile(r"exceptions table (\S+)\$(?:EX|ex) has suspicious definition"),
}


def cases(folder: Path) -> list[Path]:
    """Return all recordings of two clusters below a folder."""
    return sorted(file.parent for part in PARTS for file in (folder / part).rglob("scenario.json"))


def tables(finding: Finding, side: str) -> set[str]:
    """Return the tables of a side that a finding holds for, without the database."""
    return {place.table.rpartition(".")[2] for place in finding.places if place.cluster == side}


def disagreements(case: ConflictCase, counts: Counter[str]) -> Iterator[str]:
    """Yield every way in which a recording is not what its configuration was found to do."""
    findings = check_configuration(case.configuration(), DeploymentPolicy.NEEDS).findings
    seen = arrivals(case)
    for side, want in case.expected.items():
        refused = recorded_refusals(want)
        counts["refused tables"] += len(refused)
        here = [finding for finding in findings if tables(finding, side)]
        found = {name: each.kind.error for each in here if each.code in CREATION for name in tables(each, side)}
        if refused != found:
            yield f"{side}: CREATE TABLE fails for {refused}, found is {found}"
        for code, line in WARNINGS.items():
            warned = {match[1].rpartition(".")[2] for text in want["error_log"] if (match := line.search(text))}
            counts["warnings"] += len(warned)
            expected = {name for each in here if each.code == code for name in tables(each, side)}
            if warned != expected and not (expected < warned and changes_definitions(case)):
                yield f"{side}: the server warns of {warned}, and {code} is found otherwise"
        error = want["applier"]["errno"]
        counts["stops"] += bool(error)
        if error and error not in {finding.kind.error for finding in here}:
            yield f"{side}: the applier stopped with {error}, and no finding says so"
        if not error:
            counts["running"] += not refused
            for finding in here:
                refuses = finding.severity is Severity.REFUSED and finding.code not in CREATION
                if refuses and (is_live(case) or meets(finding, tables(finding, side), seen[side])):
                    yield f"{side}: {finding.code} is found, and the applier ran"


def recorded_refusals(want: dict[str, Any]) -> dict[str, int]:
    """Return the tables that a server did not create, and its errors."""
    return {
        name[1]: message["error"][0]
        for message in want.get("setup_messages", ())
        if "error" in message and (name := re.search(r"CREATE TABLE `?([\w$]+)", message["sql"]))
    }


def is_live(case: ConflictCase) -> bool:
    """Whether its transactions are not among its steps; all tables were changed on both sides then."""
    return (case.path / "transactions.jsonl").exists()


def changes_definitions(case: ConflictCase) -> bool:
    """Whether statements change tables on the way, so that servers warn of what is not in the configuration."""
    statements = [text for step in case.steps if "autocommit" in step for text in step["sql"]]
    return any(text.startswith(("ALTER", "RENAME", "DROP")) for text in statements)


def meets(finding: Finding, names: set[str], seen: list[Arrival]) -> bool:
    """Whether a change arrived that the finding says stops the applier."""
    verbs = {"UPDATE"} if finding.code == "NDB-E011" else {"INSERT INTO", "REPLACE INTO", "UPDATE", "DELETE FROM"}
    return any(arrival.table in names and arrival.verb in verbs for arrival in seen)


# What is wrong with the settings of recordings, by the beginning of their names: looked up in each scenario.json.
SETTINGS = {
    "filter_ignore_table_max": {"061", "062"},  # B ignores ops.t2, where it has a function
    "filter_ignore_table_epoch": {"062"},  # the function is on A alone, where B's changes arrive
    "filter_wild_do": {"061", "062"},  # A takes ops.t1% alone
    "filter_ignore_db_both": {"061"},  # both ignore ops.t2%
    "rewrite_db": {"064"},
    "live_6_epoch_trans_type8": {"068"},  # four workers
    "live_9_max_ins_type7": {"068"},
    "live_workers": {"068"},
    "live_compressed_workers": {"068"},  # eight workers
    "live_no_batching": {"071"},
    "option_empty_epochs": {"075"},
    "mixed_3": {"108"},  # NDB$MAX on A, NDB$OLD on B
    "server_id_first": {"108"},  # NDB$MAX for server 1, NDB$OLD for all others
    "bad_binlog_type": {"109"},  # types 5 and 10
    "ex_without_key": {"110"},
}


def wrong_settings(path: Path) -> Iterator[str]:
    """Yield where the findings on the settings of a recording are not those of the table, or not what was recorded."""
    case = ConflictCase.load(path)
    configuration = case.configuration(binlogs=False)
    report = check_configuration(configuration, logs=read_logs(configuration))
    findings = [each for each in report.findings if each.code >= "NDB-E060"]
    findings = [each for each in findings if each.code.startswith("NDB-E")]
    expected = next((codes for name, codes in SETTINGS.items() if path.name.startswith(name)), set())
    codes = {each.code.removeprefix("NDB-E") for each in findings}
    if codes != expected:
        yield f"found are {codes}, and wrong is {expected}"
    ends = case.expected.get("clusters", case.expected)
    one_way = [each for each in findings if each.kind is Code.ONE_WAY_FILTER]
    names = {name for each in one_way for name in tables(each, "A") | tables(each, "B")}
    if one_way and all(ends["A"]["tables"][name]["rows"] == ends["B"]["tables"][name]["rows"] for name in names):
        yield f"{names} go one way, and end the same on both clusters"


def test_findings_on_settings_of_bundled_recordings() -> None:
    """
    None is false, none is missing: each that appears was looked at; tables that go one way did end different.

    All operations are judged, and every sixth of the others, which have few settings of their own.
    """
    paths = sorted(file.parent for file in RECORDINGS.rglob("scenario.json"))
    operations = [path for path in paths if "operations" in path.parts]
    paths = [*operations, *[path for path in paths if path not in operations][::6]]
    assert {path.name: found for path in paths if (found := [*wrong_settings(path)])} == {}
    assert len(paths) > 20


@pytest.mark.slow
def test_findings_on_settings_of_all_bundled_recordings() -> None:
    """The same of all of them."""
    paths = sorted(file.parent for file in RECORDINGS.rglob("scenario.json"))
    assert {path.name: found for path in paths if (found := [*wrong_settings(path)])} == {}
    assert len(paths) > 30


@pytest.mark.slow
@pytest.mark.corpus("conformance")
def test_findings_on_settings_of_every_recording() -> None:
    """The same on the whole corpus."""
    paths = sorted(file.parent for file in (SHARED / "conformance").rglob("scenario.json"))
    assert {path.name: found for path in paths if (found := [*wrong_settings(path)])} == {}
    assert len(paths) > 500


@pytest.mark.parametrize("path", cases(RECORDINGS), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_a_bundled_recording_s_servers_reported_is_found(path: Path) -> None:
    """Refused tables, stopped appliers and warnings are found, and what worked is not refused."""
    assert list(disagreements(ConflictCase.load(path), Counter())) == []


@pytest.mark.slow
@pytest.mark.corpus("conformance")
def test_what_the_servers_of_every_recording_reported_is_found() -> None:
    """Every refused table, stopped applier and warning of the corpus."""
    counts = Counter[str]()
    paths = cases(SHARED / "conformance")
    assert {str(path): found for path in paths if (found := [*disagreements(ConflictCase.load(path), counts)])} == {}
    assert len(paths) >= 559
    assert (counts["refused tables"], counts["stops"]) >= (84, 74)
    assert counts["warnings"] >= 12
    assert counts["running"] >= 900
