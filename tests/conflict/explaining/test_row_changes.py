"""Changes that are found in columns: the same as those of the scalar reader from end to end."""

from pathlib import Path

import pytest

from conflict.config.configuration import Configuration
from conflict.config.run_file import load_run_file
from conflict.explaining import row_changes
from conflict.explaining.row_changes import RowLog, WantedChanges, read_logs
from conflict.history.preparing.definitions_over_time import make_run
from conflict.judge.case import ConflictCase
from tests.corpora import DEMO, RECORDINGS


def both(
    run: Configuration, wanted: WantedChanges, monkeypatch: pytest.MonkeyPatch
) -> tuple[dict[str, RowLog], dict[str, RowLog]]:
    """Read logs in columns, and row by row."""
    configuration = make_run(run)
    found = read_logs(configuration, wanted)
    with monkeypatch.context() as patched:
        patched.setattr(row_changes, "wanted_epochs", lambda *_: None)
        return found, read_logs(configuration, wanted)


def of(number: int, text: str | None = None) -> bytes:
    """Return the identity of a row whose key is an INT, or an INT and a VARCHAR that compares by its bytes."""
    whole = [number.to_bytes(4, "little"), *([] if text is None else [text.encode()])]
    return b"".join(b"\1" + len(each).to_bytes(4, "little") + each for each in whole)


@pytest.mark.parametrize(
    ("wanted", "changes"),
    [
        (WantedChanges(frozenset({("cft.t1", of(3))})), {"A", "B"}),
        (WantedChanges(frozenset({("cft.t1", of(3)), ("cft.t2", of(2, "z2")), ("cft.plain", of(3))})), {"A", "B"}),
        (WantedChanges(frozenset({("cft.t1", of(77))})), set()),
        (WantedChanges(transactions=frozenset({13889933684992})), {"A", "B"}),
    ],
)
def test_the_demo(wanted: WantedChanges, changes: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows with one key column and with two, a row that is not there, a transaction."""
    found, expected = both(load_run_file(DEMO / "run.toml").configuration, wanted, monkeypatch)
    assert found == expected
    assert {name for name, log in found.items() if log.changes} <= changes
    assert bool(changes) is any(log.changes for log in found.values())
    assert all(log.times for log in found.values())


def test_a_live_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that both clusters change all the time."""
    case = ConflictCase.load(RECORDINGS / "lives" / "live_3_epoch2_trans_type7")
    table = case.configuration().schema.tables[0].full_name
    keys = [of(number) for number in range(3)]
    wanted = WantedChanges(frozenset((table, key) for key in keys))
    found, expected = both(case.configuration(), wanted, monkeypatch)
    assert found == expected
    assert all(log.changes for log in found.values())


@pytest.mark.parametrize("size", [9000, 9001])
def test_a_log_that_is_cut_short(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands before the cut, and the same error."""
    for file in DEMO.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes()[: size if file.name.startswith("B.") else None])
    run = load_run_file(tmp_path / "run.toml").configuration
    found, expected = both(run, WantedChanges(frozenset({("cft.t1", of(3))})), monkeypatch)
    assert found == expected
    assert found["B"].error is not None
