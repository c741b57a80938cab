"""Bare binlogs: which files belong to which server, and in which order."""

import shutil
from pathlib import Path

import pytest

from conflict.discovery.logs import find_logs
from conflict.errors import ConfigurationError
from tests.corpora import DEMO

A, B = DEMO / "A.binlog.000001", DEMO / "B.binlog.000001"


def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Return a folder per cluster: two files of one, in an order that texts do not have, and one of the other."""
    london, paris = tmp_path / "london", tmp_path / "paris"
    london.mkdir()
    paris.mkdir()
    shutil.copy(A, london / "binlog.1000000")
    shutil.copy(A, london / "binlog.999999")
    (london / "binlog.index").write_text("./binlog.999999\n/elsewhere/binlog.1000000\n")
    shutil.copy(B, paris / "binlog.000001")
    return london, paris


def test_folders_are_grouped_by_server_and_ordered_by_number(tmp_path: Path) -> None:
    """Each server is a cluster with the name of its folder; number 999999 comes before 1000000."""
    logs = find_logs(folders(tmp_path))
    assert [(log.name, log.server_id) for log in logs] == [("london", 1), ("paris", 2)]
    assert [[file.name for file in log.files] for log in logs] == [
        ["binlog.999999", "binlog.1000000"],
        ["binlog.000001"],
    ]


def test_one_folder_with_files_of_both_servers(tmp_path: Path) -> None:
    """The server ids in the files tell them apart; then they name the clusters."""
    (tmp_path / "notes.txt").write_text("no binlog")
    for file in (A, B):
        shutil.copy(file, tmp_path)
    logs = find_logs([tmp_path])
    assert [(log.name, [file.name for file in log.files]) for log in logs] == [
        ("server1", [A.name]),
        ("server2", [B.name]),
    ]


def test_index_files_and_patterns_name_files(tmp_path: Path) -> None:
    """An index file lists them; one that is not where it says is looked for beside the index."""
    london, paris = folders(tmp_path)
    first, second = find_logs([london / "binlog.index", paris / "binlog.0*"])
    assert [file.name for file in first.files] == ["binlog.999999", "binlog.1000000"]
    assert [file.name for file in second.files] == ["binlog.000001"]


def test_a_file_that_is_named_twice_is_read_once(tmp_path: Path) -> None:
    """By its folder and by itself."""
    london, _ = folders(tmp_path)
    (log,) = find_logs([london, london / "binlog.999999"])
    assert len(log.files) == 2


def test_relay_logs_are_no_binlogs(tmp_path: Path) -> None:
    """A data folder may hold relay logs of the applier, whose first event has a flag of its own."""
    london, _ = folders(tmp_path)
    relay = bytearray(B.read_bytes())
    relay[4 + 17] |= 0x40  # the flags are the last two bytes of the 19 of the first event's header
    (london / "relay.000001").write_bytes(relay)
    assert [log.server_id for log in find_logs([london])] == [1]


@pytest.mark.parametrize(
    ("name", "what"),
    [("missing", "no such file or folder"), ("empty", "holds no binlog"), ("text", "is no binlog")],
)
def test_what_is_no_binlog_is_named(name: str, what: str, tmp_path: Path) -> None:
    """A missing path, a folder without binlogs, and another file."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").write_text("SELECT 1")
    with pytest.raises(ConfigurationError, match=what) as caught:
        find_logs([tmp_path / name])
    assert str(tmp_path / name) in str(caught.value)
