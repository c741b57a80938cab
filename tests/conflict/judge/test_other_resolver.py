"""A resolver, and other functions of the server, on the recordings of real clusters."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

import conflict
from conflict.errors import ConfigurationError
from conflict.judge.bundled import ARCHIVE, write_cases
from conflict.judge.judge import CaseStatus
from tests.corpora import RECORDINGS
from tools.bundled_cases import SOURCE, TARGET

MAX = RECORDINGS / "conflict" / "max"


# Recorded with another argument or other roles than the function has in their place here, or on both clusters.
OTHERWISE = ("extra_gci_bits", "role_", "symmetric")


@pytest.mark.parametrize("function", ["NDB$OLD", "NDB$EPOCH2"])
def test_the_recorded_function(function: str) -> None:
    """It decides as the clusters did: no change differs, and rows differ as they did."""
    found = conflict.conformance(RECORDINGS / "conflict" / function.removeprefix("NDB$").lower(), resolver=function)
    tried = [(each, each.other) for each in found.verdicts if each.other is not None]
    same = [(each, other) for each, other in tried if not each.case.startswith(OTHERWISE)]
    assert sum(other.decisions for _, other in same) > 100
    assert {each.status for each, _ in same} == {CaseStatus.PASS}
    assert all(other.rows_differ == other.rows_differ_with for _, other in same)


def test_another_resolver() -> None:
    """What it decides otherwise is counted, with the first difference, and function, format and anomaly of the case."""
    found = conflict.conformance(MAX / "delete_of_updated_type7", resolver="last_writer")
    figures = found.to_pandas().set_index("case").loc["delete_of_updated_type7"]
    about = figures[["function", "binlog_type", "anomaly", "status", "decisions", "differing"]].tolist()
    assert about == ["NDB$MAX", 7, "delete of updated", CaseStatus.DIFFERS, 14, 4]
    # A's update is older than B's delete, which NDB$MAX compares by x: see the steps of the recording.
    assert "A: delete of cft.t1 k=3, epoch 2173253451785 of B: ROW_IN_CONFLICT there, APPLIED" in figures["detail"]
    assert "last_writer decides otherwise than the clusters did on 4 of 14 changes." in repr(found)
    assert found.to_json()["resolver"] == "last_writer"


def test_a_value() -> None:
    """A resolver as a value; a case that it cannot have is left out, and says why."""
    found = conflict.conformance(
        MAX / "delete_of_updated_type7",
        resolver=conflict.Resolver.row("LOWEST", write="reject if present", update="less", delete="equal"),
    )
    (verdict,) = found.verdicts
    assert verdict.status is CaseStatus.DIFFERS
    nothing = conflict.conformance(RECORDINGS / "conflict" / "epoch" / "ex_basic_type7", resolver="NDB$MAX")
    assert nothing.verdicts[0].detail == "NDB$MAX takes a column, and the function of the case compares none"


def test_one_that_is_not_there() -> None:
    """It is refused before a case is judged, and what was meant is named."""
    with pytest.raises(ConfigurationError, match=r"'last_writr' is no resolver \(did you mean last_writer\?\)"):
        conflict.conformance(MAX, resolver="last_writr")
    with pytest.raises(ConfigurationError, match=r"last_writer takes no column; give last_writer\(\)"):
        conflict.conformance(MAX, resolver="last_writer(x)")


def test_one_that_fails() -> None:
    """Its error is the verdict: the tables of the recording have no column nothing."""
    broken = conflict.resolver(name="broken")(lambda row, change: change.new["nothing"])
    (verdict,) = conflict.conformance(MAX / "delete_of_updated_type7", resolver=broken).verdicts
    assert verdict.status is CaseStatus.FAIL
    assert "function broken" in verdict.detail


def test_as_an_engine_is_judged() -> None:
    """Without a resolver, by recordings as before; what is not known is refused."""
    found = conflict.conformance(MAX / "probe_type8", engine="reference")
    (verdict,) = found.verdicts
    assert (verdict.status, verdict.function, verdict.binlog_type) == (CaseStatus.PASS, "NDB$MAX", 8)
    assert not found.failed
    with pytest.raises(ConfigurationError, match="engine fast is not known; use reference, local or spark"):
        conflict.conformance(MAX, engine="fast")
    with pytest.raises(ConfigurationError, match="ndb-conflict demo --cases DIR writes some"):
        conflict.conformance("no-such-folder")


def test_the_recordings_in_the_wheel(tmp_path: Path) -> None:
    """They are those of the tests, byte for byte, in less than 2 MB."""
    assert TARGET.name == ARCHIVE
    assert TARGET.stat().st_size < 2_000_000
    with tarfile.open(TARGET) as archive:
        names = {each.name for each in archive.getmembers()}
    assert names == {each.relative_to(SOURCE).as_posix() for each in SOURCE.rglob("*") if each.is_file()}
    count = write_cases(tmp_path / "cases")
    assert count == len(list(SOURCE.rglob("scenario.json")))
    for name in names:
        assert (tmp_path / "cases" / name).read_bytes() == (SOURCE / name).read_bytes()
    with pytest.raises(ConfigurationError, match="exists already; give a new folder"):
        write_cases(tmp_path / "cases")
