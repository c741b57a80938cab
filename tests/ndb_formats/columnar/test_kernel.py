"""Kernels give the same compiled and interpreted, and run interpreted while the work is small and none is compiled."""

import importlib.util
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from types import FunctionType, ModuleType

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndb_formats.columnar.kernel import (
    Kernel,
    interpreted_by,
    kernel,
    unsigned,
    with_python_values,
    wrapping_difference,
    wrapping_product,
)
from ndb_formats.columnar.kernel_mode import (
    LOADING_SECONDS,
    SMALL_BYTES,
    TINY_BYTES,
    Mode,
    Process,
    are_interpreted,
    expect_files,
    expect_work,
    set_mode,
)
from ndb_formats.columnar.kernels import words
from ndb_formats.columnar.kernels.texts import add_sizes, integer_text, put_pieces
from ndb_formats.columnar.kernels.words import crc32
from tests.corpora import RECORDINGS

ROOT = Path(__file__).parents[3]
NUMBERS = st.integers(0, 2**64 - 1)


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """Leave the mode of this process as it was."""
    before = (Process.mode if Process.fixed else None), Process.overflow
    set_mode(None)
    yield
    set_mode(before[0], overflow=before[1])


def test_small_work_is_interpreted_until_it_has_grown():
    """Work adds up over a process; what is read again does not count twice."""
    assert not are_interpreted()  # nobody has said anything
    expect_work(SMALL_BYTES, of="a log")
    expect_work(SMALL_BYTES, of="a log")
    assert are_interpreted()
    expect_work(1)
    assert not are_interpreted()


def test_tiny_work_does_not_load_what_is_compiled(monkeypatch: pytest.MonkeyPatch):
    """It does when interpreted kernels have taken as long as that, or work has grown; what is loaded stays."""

    monkeypatch.setattr(Kernel, "is_kept", lambda _: True)
    monkeypatch.setattr(Kernel, "form", lambda _, mode: mode.name.lower)
    first, second, third = (kernel(lambda: None) for _ in range(3))
    expect_work(TINY_BYTES, of="a log")
    assert first() == "interpreted"
    assert 0 < Process.seconds < LOADING_SECONDS
    Process.seconds = LOADING_SECONDS
    assert first() == "compiled"
    Process.seconds = 0.0
    assert (first(), second()) == ("compiled", "interpreted")
    expect_work(1)
    assert are_interpreted()  # what is not compiled
    assert third() == "compiled"


def test_files_count_with_their_size(tmp_path: Path):
    """Those that are not there are left to whoever reads them."""
    log = tmp_path / "log"
    log.write_bytes(bytes(10))
    expect_files([log, tmp_path / "none"])
    assert are_interpreted()
    with log.open("r+b") as file:
        file.truncate(SMALL_BYTES + 1)
    expect_files([log])
    assert not are_interpreted()


def test_results_are_numbers_of_python():
    """As numba gives them; a caller must not see how a kernel ran."""
    set_mode(Mode.INTERPRETED)

    @kernel
    def largest(values: npt.NDArray[np.uint64]) -> tuple[int, bool]:
        return values.max(), values.max() > 3

    assert [type(each) for each in largest(np.array([2**63 + 1], np.uint64))] == [int, bool]


def test_what_runs_instead_is_not_compiled():
    """The function itself is."""

    def one(_: int) -> int:
        return 1

    @interpreted_by(one)
    @kernel
    def two(_: int) -> int:
        return 2

    set_mode(Mode.INTERPRETED)
    assert two(0) == 1
    assert isinstance(two, Kernel)
    assert two.function(0) == 2


RECORD = np.dtype([("there", "?"), ("number", "u8"), ("side", "i1")])


def _count_on(kept: tuple[npt.NDArray[np.void], npt.NDArray[np.uint64]], read: npt.NDArray[np.void]) -> int:
    """Count records that are there, and change them."""
    records, numbers = kept
    found = 0
    for row in range(len(records)):
        for side in range(records.shape[1]):
            one = records[row, side]
            if one["there"]:
                found += read[row]["side"]
                one["number"] = one["number"] + unsigned(numbers[row, side])
                numbers[row, side] = one["number"] + unsigned(1)
    return found


@pytest.mark.parametrize("mode", Mode)
def test_records_as_dicts_and_numbers_of_python(mode: Mode):
    """A kernel changes the same elements of its arrays in both modes, and no others; some may be read-only."""
    records, numbers = np.zeros((2, 2), RECORD), np.arange(4, dtype=np.uint64).reshape(2, 2)
    records[1, 1], records[0, 1] = (True, 2**64 - 9, 0), (True, 7, 1)
    read = np.array([(True, 0, 20), (True, 0, -3)], RECORD)
    read.flags.writeable = False
    set_mode(mode, overflow="raise")
    assert with_python_values(kernel(_count_on))((records, numbers), read) == 17
    assert records.tolist() == [[(False, 0, 0), (True, 8, 1)], [(False, 0, 0), (True, 2**64 - 6, 0)]]
    assert numbers.tolist() == [[0, 9], [2, 2**64 - 5]]


def test_numbers_of_python_that_do_not_fit_are_refused():
    """Compiled, they wrap."""
    set_mode(Mode.INTERPRETED)
    records, numbers = np.array([[(True, 2**64 - 1, 0)]], RECORD), np.ones((1, 1), np.uint64)
    with pytest.raises(ValueError, match="invalid value"):
        with_python_values(kernel(_count_on))((records, numbers), records[0])


@given(first=NUMBERS, second=NUMBERS)
def test_wrapping(first: int, second: int):
    """The lowest 64 bits stay."""
    set_mode(Mode.INTERPRETED, overflow="raise")
    assert wrapping_product(np.uint64(first), np.uint64(second)) == first * second % 2**64
    assert wrapping_difference(np.uint64(first), np.uint64(second)) == (first - second) % 2**64


@given(data=st.binary(min_size=16, max_size=40), offset=st.integers(0, 8), width=st.integers(1, 8))
def test_words(data: bytes, offset: int, width: int):
    """Numbers in bytes, by what Python makes of the bytes."""
    array = np.frombuffer(data, np.uint8)
    set_mode(Mode.INTERPRETED, overflow="raise")
    for load, size in ((words.load16, 2), (words.load32, 4), (words.load64, 8)):
        assert load(array, offset) == int.from_bytes(data[offset : offset + size], "little")
    assert words.little_endian(array, offset, width) == int.from_bytes(data[offset : offset + width], "little")
    assert words.big_endian(array, offset, width) == int.from_bytes(data[offset : offset + width], "big")
    out = np.zeros(40, np.uint8)
    words.copy_eight(array, offset, out, 3)
    words.store64(out, 11, np.uint64(2**64 - 2))
    assert out.tobytes() == bytes(3) + data[offset : offset + 8] + b"\xfe" + b"\xff" * 7 + bytes(21)
    assert crc32(array, offset, len(data)) == zlib.crc32(data[offset:])


LINES = st.lists(st.tuples(st.integers(0, 4), st.binary(max_size=20), st.booleans()), unique_by=lambda each: each[0])


@given(pieces=LINES, mode=st.sampled_from(Mode), absent=st.booleans())
def test_lines(pieces: list[tuple[int, bytes, bool]], mode: Mode, absent: bool):
    """Each value stands in its line between what is before and after it, or something else stands for it."""
    set_mode(mode)
    lines = np.array([line for line, *_ in pieces], np.int64)
    offsets = np.cumsum([0, *(len(text) for _, text, _ in pieces)]).astype(np.int32)
    data = np.frombuffer(b"".join(text for _, text, _ in pieces) + bytes(16), np.uint8)
    missing = np.array([gone for *_, gone in pieces] if absent else [], np.bool_)
    expected = [b""] * 5
    for line, text, gone in pieces:
        expected[line] = b"-" if absent and gone else b"<" + text + b">>"
    sizes = np.zeros(5, np.int64)
    add_sizes(lines, offsets, missing, 3, 1, sizes)
    assert sizes.tolist() == [len(each) for each in expected]
    targets, out = np.cumsum(sizes) - sizes, np.zeros(int(sizes.sum()), np.uint8)
    before, after, instead = (np.frombuffer(each, np.uint8) for each in (b"<", b">>", b"-"))
    put_pieces((lines, offsets, data, missing), before, after, instead, targets, out)
    assert out.tobytes() == b"".join(expected)


@pytest.mark.parametrize("mode", Mode)
def test_integers_as_text(mode: Mode):
    """A negative number is followed by what it is without a sign; NULL is nothing."""
    set_mode(mode)
    data = np.frombuffer(b"\x7f\x80\xff" + bytes(16), np.uint8)
    cells, offsets, out = np.array([0, 1, 0xFFFFFFFF, 2], np.uint32), np.zeros(5, np.int32), np.zeros(176, np.uint8)
    written = integer_text(data, 0, cells, 1, True, offsets, out)
    assert out[:written].tobytes() == b"127-128 (128)-1 (255)"
    assert offsets.tolist() == [0, 3, 13, 13, 21]


def test_a_small_log_needs_no_numba(tmp_path: Path):
    """Nothing is compiled, and numba is not even imported: that alone takes half a second."""
    code = (
        "import sys; from conflict.cli.app import app; "
        f"app(['decode', '-vv', {str(RECORDINGS / 'binlogs/mysql_5_6_rows_v2.000001')!r}], standalone_mode=False); "
        "print('numba' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"NUMBA_CACHE_DIR": str(tmp_path), "PATH": "", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.splitlines()[-1] == "False"
    assert "### UPDATE" in done.stdout
    assert not list(tmp_path.iterdir())


TWO_KERNELS = """
from ndb_formats.columnar.kernel import kernel, part

@kernel
def first(number):
    return second(number)

@part
def second(number):
    return number + 1
"""


def two_kernels(folder: Path) -> ModuleType:
    """Return a module of two kernels that was loaded from a new file in a folder."""
    file = folder / "two_kernels.py"
    file.write_text(TWO_KERNELS)
    spec = importlib.util.spec_from_file_location("two_kernels", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_thread_waits_until_another_one_has_bound_all_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that is made while another thread makes it too is compiled with what it calls."""
    module = two_kernels(tmp_path)
    half_made, go_on, compiled = threading.Event(), threading.Event(), Kernel._compiled

    def slowly(self: Kernel, function: FunctionType) -> object:
        if self is module.second:
            half_made.set()
            assert go_on.wait(60)
        return compiled(self, function)

    monkeypatch.setattr(Kernel, "_compiled", slowly)
    with ThreadPoolExecutor(2) as threads:
        one = threads.submit(module.first, 1)
        assert half_made.wait(60)
        other = threads.submit(module.first, 1)
        wait([other], timeout=1)
        go_on.set()
        assert (one.result(), other.result()) == (2, 2)
