"""Values that tasks share: this process has them, others map the file in which they are."""

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from conflict.errors import HistoryError
from conflict.history.grid.folder import Folder
from conflict.history.tasks import Shared, in_threads, process_runner

_APPLY = np.dtype([("epoch", "u8"), ("group", "i4"), ("traced", "?")], align=True)


@attrs.frozen(eq=False)
class Values:
    """Arrays of several types, and what is none."""

    records: np.ndarray[Any, Any]
    empty: np.ndarray[Any, Any]
    every_second: np.ndarray[Any, Any]
    text: str


def values() -> Values:
    """Return such values."""
    records = np.zeros(1000, _APPLY)
    records["epoch"] = np.arange(1000, dtype=np.uint64) + np.uint64(2**64 - 1000)
    return Values(records, np.zeros(0, np.int8), np.arange(20)[::2], "absent is not NULL")


def sent(shared: Shared[Values]) -> Any:
    """Return a shared value as a task in another process has it."""
    return pickle.loads(pickle.dumps(shared))


def test_tasks_of_this_process_have_the_value_itself(tmp_path: Path) -> None:
    """Nothing is written for them."""
    given = values()
    assert Shared(Folder(str(tmp_path)), given).load() is given
    assert not list(tmp_path.iterdir())


def test_other_processes_read_one_file_once(tmp_path: Path) -> None:
    """However many tasks they get."""
    shared = Shared(Folder(str(tmp_path)), values())
    loaded = [sent(shared).load() for _ in range(3)]
    assert len(list(tmp_path.iterdir())) == 1
    assert loaded[0] is loaded[1] is loaded[2]
    for name in ("records", "empty", "every_second"):
        found, expected = getattr(loaded[0], name), getattr(values(), name)
        assert (found.dtype, found.tolist()) == (expected.dtype, expected.tolist())
    assert (loaded[0].text, loaded[0].records.flags.aligned) == (values().text, True)


def test_a_large_value_is_mapped_by_the_process_that_made_it_too(tmp_path: Path) -> None:
    """There is one copy of it on the machine; where all tasks run in this process, it stays what it is."""
    given = values()
    assert Shared.large(Folder(str(tmp_path)), given, in_threads).load() is given
    assert not list(tmp_path.iterdir())
    shared = Shared.large(Folder(str(tmp_path)), given, process_runner(2))
    mapped = shared.load()
    assert mapped is shared.load()
    assert not mapped.records.flags.owndata
    assert mapped.records.tolist() == sent(shared).load().records.tolist() == given.records.tolist()
    assert len(list(tmp_path.iterdir())) == 1


def test_an_array_of_one_value_stays_that_value(tmp_path: Path) -> None:
    """It takes as little room in a file, and in other processes, as here."""
    shared = Shared(Folder(str(tmp_path)), np.broadcast_to(np.uint32(7), 1_000_000))
    found = sent(shared).load()
    assert (found.dtype, found.strides, found.tolist()) == (np.uint32, (0,), [7] * 1_000_000)
    (file,) = tmp_path.iterdir()
    assert file.stat().st_size < 1000


def test_what_a_process_changes_is_not_changed_for_others(tmp_path: Path) -> None:
    """The file is mapped, and its pages are copied when they are written to."""
    shared = Shared(Folder(str(tmp_path)), values())
    sent(shared).load().records["epoch"][:] = 0
    (tmp_path / "task").write_bytes(pickle.dumps(shared))
    told = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb')).load().records['epoch'][-1])"
    command = [sys.executable, "-c", told, str(tmp_path / "task")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() == [str(2**64 - 1)]


def test_a_file_that_somebody_else_wrote_is_not_loaded(tmp_path: Path) -> None:
    """Its digest came with the task."""
    received = sent(Shared(Folder(str(tmp_path)), values()))
    (file,) = tmp_path.iterdir()
    data = bytearray(file.read_bytes())
    data[-100] ^= 1
    file.write_bytes(data)
    with pytest.raises(HistoryError, match="is not what this run wrote"):
        received.load()
