"""The option `--unpacked-mib`: what a compressed transaction may unpack to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conflict.cli.app import app
from conflict.cli.refusals import ExitCode
from ndb_formats.cursor import UNPACKED_OPTION, allow_unpacked
from tests.corpora import DEMO
from tests.fuzz.raw_log import PAYLOAD, RawEvent, RawLog
from tests.ndb_formats.building import description_body, packed

TWO_MIB = 2 << 20


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget what was allowed."""
    monkeypatch.setenv(UNPACKED_OPTION, "256")
    yield
    allow_unpacked(None)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return a binlog with a transaction that says that it unpacks to 2 MiB, and is none."""
    told = ((2, 0), (3, TWO_MIB))
    fields = b"".join(packed(kind) + packed(len(packed(value))) + packed(value) for kind, value in told)
    payload = RawEvent(PAYLOAD, fields + packed(0) + b"\x28\xb5\x2f\xfd")
    path = tmp_path / "A.000001"
    path.write_bytes(RawLog([RawEvent(15, description_body()), payload], checksum=True, own_checksum=True).put())
    return path


@pytest.mark.parametrize(
    ("command", "code"),
    [("decode", ExitCode.REFUSED), ("ingest", ExitCode.CUT_SHORT), ("resolve", ExitCode.CUT_SHORT)],
)
def test_more_than_is_allowed(command: str, code: ExitCode, log: Path, tmp_path: Path) -> None:
    """The commands that read whole binlogs have the option; what comes before the transaction is kept."""
    words = [command, str(log), "--unpacked-mib", "1"]
    if command != "decode":
        other = str(DEMO / "B.binlog.000001")
        words += [other, "--schema", str(DEMO / "schema.sql"), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, words, env={"COLUMNS": "500"})
    assert done.exit_code == code, done.output
    assert "it unpacks to 2,097,152 bytes, more than 1 MiB" in " ".join(done.output.split())


def test_as_much_as_is_allowed(log: Path) -> None:
    """The size is no longer what is wrong with it."""
    done = CliRunner().invoke(app, ["decode", str(log), "--unpacked-mib", "2"])
    assert done.exit_code == ExitCode.REFUSED
    assert "unpacks to" not in done.output
