"""What is compiled is never used after the code that it was compiled from has changed, and does not pile up."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ndb_formats.compiled_cache import KernelFiles
from tests.layers import ROOT

RULES = """
from ndb_formats.columnar.kernel import inlined

@inlined
def wins(brought, stored):
    return brought > stored
"""
COUNTING = """
from ndb_formats.columnar.kernel import kernel
from rules import wins

@kernel
def count(stored):
    return sum([wins(brought, stored) for brought in range(4)])
"""
CALL = """
import sys
from counting import count
found = count(2)
print(found, sum(count._compiled_entry.stats.cache_hits.values()))
"""


def install(folder: Path, rule: str) -> None:
    """Put a release of two modules in the place of another: with the same sizes, and times of files as in a wheel."""
    folder.mkdir(exist_ok=True)
    for name, text in (("rules", RULES.replace("brought > stored", rule)), ("counting", COUNTING)):
        (folder / f"{name}.py").write_text(text)
        os.utime(folder / f"{name}.py", (1e9, 1e9))


def called(folder: Path, code: str = CALL, cache: Path | None = None) -> list[str]:
    """Run code with the modules in a new process; return the words that it prints."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{folder}", "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("NUMBA_CACHE_DIR", None)
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = str(cache)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize("given", [False, True])
def test_an_upgrade_in_place_and_the_way_back(given: bool, tmp_path: Path) -> None:
    """A function that is inlined from another module changes; what was compiled of the older release is found again."""
    cache = tmp_path / "cache" if given else None
    found = []
    for rule in ("brought > stored", "brought < stored", "brought > stored"):
        install(tmp_path / "installed", rule)
        found.append(called(tmp_path / "installed", cache=cache))
    assert found == [["1", "0"], ["2", "0"], ["1", "1"]]


def test_an_upgrade_under_a_process(tmp_path: Path) -> None:
    """A process that has loaded the older release compiles it after the upgrade: the new one is not taken for it."""
    install(tmp_path, "brought > stored")
    new = tmp_path / "rules.py"
    late = CALL.replace("found =", f"open({str(new)!r}, 'w').write({RULES.replace('>', '<')!r})\nfound =")
    assert called(tmp_path, late) == ["1", "0"]
    assert called(tmp_path) == ["2", "0"]


def test_a_file_that_cannot_be_read_is_compiled_anew(tmp_path: Path) -> None:
    """As after a power failure, or after an upgrade in which a class that it names has moved."""
    install(tmp_path, "brought > stored")
    for damage in (b"", b"cmodule_that_was_renamed\nRows\n."):
        assert called(tmp_path) == ["1", "0"]
        assert called(tmp_path) == ["1", "1"]
        (kept,) = tmp_path.rglob("*.nbc")
        kept.write_bytes(damage)
    assert called(tmp_path) == ["1", "0"]


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a source beside which compiled kernels are kept."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    return tmp_path / "counting.py"


def test_old_ones_do_not_pile_up(source: Path) -> None:
    """Two stamps besides the present one are left; other kernels, other Pythons, and what the present one has, stay."""
    folder = source.parent / "__pycache__"
    folder.mkdir()
    others = ["counting.count_all-0.key.py311.nbc", "counting.count-0.key.py399.nbc", "counting.cpython-311.pyc"]
    for name in (*others, f"counting.count-12.{KernelFiles(source, 'n', 's')._end[1:-4]}.nbi"):
        (folder / name).write_bytes(b"")
        os.utime(folder / name, (1, 1))
    for number in range(5):
        files = KernelFiles(source, "counting.count", f"{number}")
        assert not files.are_there()
        files.write("first", b"1")
        files.write("second", b"2")
        for path in folder.glob(f"counting.count-{number}.*"):
            os.utime(path, (number + 2, number + 2))
    left = {path.name.partition(".py")[0] for path in folder.iterdir() if path.name not in others}
    assert left == {f"counting.count-{number}.{key}" for number in (2, 3, 4) for key in ("first", "second")}
    assert all((folder / name).exists() for name in others)
    assert KernelFiles(source, "counting.count", "3").are_there()
    assert KernelFiles(source, "counting.count", "4").read("second") == b"2"


def test_what_cannot_be_kept_is_not(source: Path) -> None:
    """The work goes on, with what is in memory."""
    (source.parent / "__pycache__").write_bytes(b"no folder")
    files = KernelFiles(source, "counting.count", "0")
    files.write("key", b"1")
    assert files.read("key") is None
    assert not files.are_there()
