"""Bare binlogs: which files belong to which server, and in which order."""

import bz2
import gzip
import io
import shutil
import tarfile
from pathlib import Path

import pytest

from conflict.discovery.logs import files_of, find_logs
from conflict.errors import ConfigurationError
from ndb_formats.errors import CutFileError, UnsupportedError
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


def test_a_folder_stands_for_the_binlogs_below_it(tmp_path: Path) -> None:
    """A folder of folders is that of its servers; a pattern may match folders."""
    folders(tmp_path)
    for given in (tmp_path, tmp_path / "*", tmp_path / "*/binlog.*[0-9]"):
        assert [(log.name, len(log.files)) for log in find_logs([given])] == [("london", 2), ("paris", 1)]


def test_copies_below_a_folder_are_refused(tmp_path: Path) -> None:
    """A binlog and its backup would count twice."""
    london, _ = folders(tmp_path)
    (london / "backup").mkdir()
    shutil.copy(A, london / "backup/binlog.999999")
    with pytest.raises(
        ConfigurationError,
        match=r"backup.* and .*london.* are both given as binlog\.999999 of server 1: they are copies; give one",
    ):
        find_logs([london])


def test_two_binlogs_of_one_name_and_server_are_refused(tmp_path: Path) -> None:
    """They are of two times, or of two servers with one id; to read them one after the other would be no log."""
    london, _ = folders(tmp_path)
    other = tmp_path / "other/binlog.999999"
    other.parent.mkdir()
    other.write_bytes(A.read_bytes() + bytes(1))
    said = r"london/binlog\.999999 and .*other/binlog\.999999 are both given as binlog\.999999 of server 1: they differ"
    with pytest.raises(ConfigurationError, match=said):
        find_logs([london, other])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("relay", "is a relay log: what its server received from another one; give the binlogs of the servers"),
        ("relay.gz", "is a relay log: what its server received"),
        ("other.gz", "is compressed, and holds no binlog"),
        ("logs.tar.gz", "is no binlog but compressed: a tar archive; unpack it first"),
        ("logs.tar", "is no binlog but a tar archive; unpack it first"),
        ("log.bz2", "is no binlog but a bzip2 file; unpack it first"),
        ("log.txt", "is no binlog but text of mysqlbinlog; give the binlog that it was made of"),
        ("magic", "is no binlog with events in it"),
    ],
)
def test_what_is_no_binlog_is_said(name: str, said: str, tmp_path: Path) -> None:
    """By what it is: a relay log, an archive, a file of another kind."""
    data = bytearray((DEMO / "A.binlog.000001").read_bytes())
    data[21] |= 0x40  # the flag of relay logs, in the header of the first event
    relay = bytes(data)
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.add(DEMO / "A.binlog.000001", "A.binlog.000001")
    path = tmp_path / name
    path.write_bytes(
        {
            "relay": relay,
            "relay.gz": gzip.compress(relay),
            "other.gz": gzip.compress(b"something else"),
            "logs.tar.gz": gzip.compress(archive.getvalue()),
            "logs.tar": archive.getvalue(),
            "log.bz2": bz2.compress(relay),
            "log.txt": b"# at 4\n#261129",
            "magic": relay[:4],
        }[name]
    )
    with pytest.raises(ConfigurationError) as caught:
        find_logs([path], unpacks=True)
    assert said in str(caught.value)


def test_encrypted_binlogs_in_a_folder_are_said(tmp_path: Path) -> None:
    """To leave them out would leave their changes out; a file that has just been begun has none."""
    london, _ = folders(tmp_path)
    (london / "binlog.1000001").write_bytes(A.read_bytes()[:30])
    assert len(find_logs([london])[0].files) == 2
    (london / "binlog.1000002").write_bytes(b"\xfdbin" + bytes(600))
    with pytest.raises(UnsupportedError, match="is encrypted"):
        find_logs([london])


@pytest.mark.parametrize("size", [0, 3, 60])
def test_a_file_cut_in_its_first_event(size: int, tmp_path: Path) -> None:
    """A server can just have begun the last one; one that others follow has lost its changes, and is refused."""
    for number in (1, 2, 3):
        shutil.copy(A, tmp_path / f"binlog.{number:06}")
    (tmp_path / "binlog.000003").write_bytes(A.read_bytes()[:size])
    assert [file.name for file in files_of([tmp_path])] == ["binlog.000001", "binlog.000002"]
    (tmp_path / "binlog.000002").write_bytes(A.read_bytes()[:size])
    shutil.copy(A, tmp_path / "binlog.000003")
    with pytest.raises(CutFileError, match=r"binlog\.000002, position"):
        find_logs([tmp_path])


def test_single_files_stay_as_they_are(tmp_path: Path) -> None:
    """They may be compressed, pipes or standard input, or be named twice; all else stands for its binlogs."""
    london, paris = folders(tmp_path)
    packed = tmp_path / "binlog.gz"
    packed.write_bytes(b"")
    assert [*files_of([packed, Path("-"), packed])] == [packed, Path("-"), packed]
    assert [file.name for file in files_of([london, paris / "binlog.0*"])] == [
        *("binlog.999999", "binlog.1000000"),
        "binlog.000001",
    ]
