"""The requirements of recorded runs against what the clusters did: refusals, stops, updates applied as inserts."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conflict.checking.deployment import Change, Handling
from conflict.checking.findings import Code
from conflict.checking.reasons import CREATION
from conflict.checking.subject import Arrival as Deployed
from conflict.checking.subject import subject_of
from conflict.config.arguments import DeploymentPolicy
from conflict.judge.case import ConflictCase
from tests.conflict.recorded_arrivals import Arrival, arrivals
from tests.corpora import RECORDINGS, SHARED

BUNDLED = RECORDINGS / "conflict"
# The same short sequence under every type, and under server options; neither side inserts a row of the other.
PROBES = ("probe_", "options_")
NO_SUCH_TABLE, FROM_NDB = 1146, 1296


def cases(folder: Path) -> list[Path]:
    """Return all cases below a folder."""
    return sorted(file.parent for file in folder.rglob("scenario.json"))


def handlings(checked: Deployed, arrival: Arrival) -> set[Handling]:
    """Return what is predicted for a statement's changes."""
    column = checked.function.column
    kinds = {Change.INSERT} if "INTO" in arrival.verb else {Change.DELETE}
    if arrival.verb == "UPDATE":
        kinds = {Change.UPDATE, Change.UPDATE_SETTING if column in arrival.columns else Change.UPDATE_LEAVING}
    return {change.handling for change in checked.changes if change.change in kinds}


def predicted_stop(checked: list[Deployed], seen: list[Arrival]) -> int:
    """Return the error with which the applier is predicted to stop; 0 for none."""
    for arrival in seen:
        for each in checked:
            if each.here.table.name != arrival.table:
                continue
            kinds = {reason.kind for reason in each.reasons}
            if kinds & CREATION:
                return NO_SUCH_TABLE
            if kinds & {Code.NO_ROLE, Code.NO_TRANSACTION_IDS} or Handling.STOPS in handlings(each, arrival):
                return FROM_NDB
    return 0


def disagreements(path: Path) -> list[str]:
    """Return every way in which a recording is not what was predicted from its configuration."""
    case = ConflictCase.load(path)
    subject = subject_of(case.configuration(), DeploymentPolicy.NEEDS)
    seen = arrivals(case)
    found = []
    for side, want in case.expected.items():
        here = [each for each in subject.arrivals if each.here.cluster.name == side]
        refused = {
            name.group(1): message["error"][0]
            for message in want.get("setup_messages", ())
            if "error" in message and (name := re.search(r"CREATE TABLE `?([\w$]+)", message["sql"]))
        }
        predicted = {each.here.table.name: error for each in here if (error := create_error(each)) is not None}
        for placed in subject.tables:
            if placed.cluster.name == side and placed.function is None and placed.setup.refusal is not None:
                predicted[placed.table.name] = placed.setup.refusal.error
        if refused != predicted:
            found.append(f"{side}: CREATE TABLE fails for {refused}, predicted is {predicted}")
        stop = predicted_stop(here, seen[side])
        if want["applier"]["errno"] not in {stop, *possible_stops(here)}:
            found.append(f"{side}: the applier stopped with {want['applier']['errno']}, predicted is {stop}")
        for each in here if path.name.startswith(PROBES) else ():
            found += as_inserts(each, want, seen[side])
    return found


def create_error(each: Deployed) -> int | None:
    """Return the error with which CREATE TABLE is predicted to fail."""
    reasons = [reason for reason in each.reasons if reason.kind in CREATION]
    return reasons[0].error if reasons else None


def possible_stops(checked: list[Deployed]) -> set[int | None]:
    """Return the errors that depend on the rows that meet, and that the answers warn of."""
    may_stop = (Code.UNIQUE_KEYS, Code.FOREIGN_KEYS, Code.BLOBS_IN_REACH)
    return {reason.error for each in checked for reason in each.reasons if reason.kind in may_stop}


def as_inserts(each: Deployed, want: dict[str, Any], seen: list[Arrival]) -> Iterator[str]:
    """Compare, for one table, whether updates were rejected as inserts of rows that exist."""
    name = each.here.table.name
    recorded = want["exceptions"].get(f"{name}$EX")
    if recorded is None or "NDB$CFT_CAUSE" not in recorded["columns"]:
        return
    rows = [dict(zip(recorded["columns"], row, strict=True)) for row in recorded["rows"]]
    # A transactional function gives every rejected row the same cause.
    causes = {"ROW_ALREADY_EXISTS", "TRANS_IN_CONFLICT"}
    writes = [row for row in rows if row["NDB$OP_TYPE"] == "WRITE_ROW" and row["NDB$CFT_CAUSE"] in causes]
    predicted = any(
        Handling.AS_INSERT in handlings(each, arrival)
        for arrival in seen
        if arrival.table == name and arrival.verb == "UPDATE"
    )
    if bool(writes) != predicted:
        side = each.here.cluster.name
        yield f"{side}: {len(writes)} writes of {name} were rejected as existing, predicted is {predicted}"


@pytest.mark.parametrize("path", cases(BUNDLED), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_the_requirements_predict_a_bundled_recording(path: Path) -> None:
    """Its refused tables, stopped appliers, and updates rejected as inserts."""
    assert disagreements(path) == []


@pytest.mark.slow
@pytest.mark.corpus("conformance/conflict")
def test_the_requirements_predict_every_recording_of_the_corpus() -> None:
    """Every function under every type."""
    paths = cases(SHARED / "conformance" / "conflict")
    assert sum(path.name.startswith(PROBES) for path in paths) >= 92
    assert {str(path): found for path in paths if (found := disagreements(path))} == {}
