"""Compiled kernels are kept where this user, and nobody else, can write; what the owner compiled is used there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core.event import start_event

from conflict.cli import common
from ndb_formats import compiled_cache

KERNEL = (
    "from ndb_formats.columnar.kernel import kernel\n\n@kernel\ndef next_of(number):\n    return number + 1\n"
    "def hits():\n    return sum(next_of._compiled_entry.stats.cache_hits.values())\n"
)
ROOT = Path(__file__).parents[2]


@pytest.fixture
def unset(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """Leave the cache of this process as it is; no folder of the machine is one."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", "set")
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setattr(compiled_cache, "_packages", [])
    monkeypatch.setattr(compiled_cache, "_state", {"lasting": True, "place": None})
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(compiled_cache.tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir(mode=0o777)
    (tmp_path / "tmp").chmod(0o1777)
    return monkeypatch


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Return an installed package with one kernel."""
    folder = tmp_path / "installed" / "part" / "kernels"
    folder.mkdir(parents=True)
    (folder / "counting.py").write_text(KERNEL)
    return tmp_path / "installed"


def not_writable(unset: pytest.MonkeyPatch, *folders: Path) -> None:
    """Make folders look to this process, which may be root's, as those of another user."""
    can = os.access
    inside = [str(each) for each in folders]
    unset.setattr(
        os,
        "access",
        lambda path, mode: not (mode & os.W_OK and str(path).startswith(tuple(inside))) and can(path, mode),
    )


def called(package: Path, cache: str | None) -> str:
    """Call the kernel in a new process; return what numba says of its cache."""
    code = "import counting; print(counting.next_of(1), counting.hits())"
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{package / 'part' / 'kernels'}"}
    environment.pop("NUMBA_CACHE_DIR", None)
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = cache
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_folder_that_is_given(unset: pytest.MonkeyPatch, package: Path, tmp_path: Path):
    """Nothing is set."""
    unset.setenv("NUMBA_CACHE_DIR", str(tmp_path / "new" / "folder"))
    not_writable(unset, package)
    compiled_cache.provide_cache(package)
    assert compiled_cache.is_lasting()
    assert os.environ["NUMBA_CACHE_DIR"] == str(tmp_path / "new" / "folder")


def test_an_installation_of_this_user(unset: pytest.MonkeyPatch, package: Path):
    """They are beside their source."""
    compiled_cache.provide_cache(package)
    assert compiled_cache.kernels_place() is None
    assert compiled_cache.is_lasting()
    unset.undo()


def test_every_package_counts(unset: pytest.MonkeyPatch, package: Path, tmp_path: Path):
    """Where the second one cannot be written, there is a folder for both."""
    other = tmp_path / "other"
    (other / "part" / "kernels").mkdir(parents=True)
    not_writable(unset, other)
    compiled_cache.provide_cache(package)
    assert compiled_cache.kernels_place() is None
    compiled_cache.provide_cache(other)
    assert compiled_cache.kernels_place().parent == tmp_path / "cache" / "ndb-conflict-kernels"


def test_an_installation_of_another_user(unset: pytest.MonkeyPatch, package: Path):
    """What its owner compiled is loaded, and what this user compiles is found again; more of it begins anew."""
    not_writable(unset, package)
    compiled_cache.provide_cache(package)
    before = os.environ["NUMBA_CACHE_DIR"]
    assert called(package, before) == "2 0"
    assert called(package, before) == "2 1"
    assert called(package, None) == "2 0"
    compiled_cache.provide_cache(package)
    after = os.environ["NUMBA_CACHE_DIR"]
    assert after != before
    assert not Path(before).exists()
    assert called(package, after) == "2 1"


@pytest.mark.parametrize("home", ["writable by others", "below a folder of others", "a link", "no home"])
def test_a_cache_that_others_can_write(home: str, unset: pytest.MonkeyPatch, package: Path, tmp_path: Path):
    """It is not used; the folder for temporary files is, where nobody can exchange the folder of another."""
    place = tmp_path / "cache" / "ndb-conflict-kernels"
    if home == "a link":
        place.parent.mkdir()
        place.symlink_to(tmp_path / "tmp")
    elif home == "no home":
        unset.setenv("XDG_CACHE_HOME", "~/.cache")
        unset.setattr(os.path, "expanduser", lambda path: path)
    else:
        place.mkdir(parents=True)
        (place if home == "writable by others" else place.parent).chmod(0o777)
    not_writable(unset, package)
    compiled_cache.provide_cache(package)
    used = compiled_cache.kernels_place().parent
    assert used == tmp_path / "tmp" / f"ndb-conflict-kernels-{os.geteuid()}"
    assert used.stat().st_mode & 0o777 == 0o700
    assert compiled_cache.is_lasting()


def test_no_folder_of_this_user(
    unset: pytest.MonkeyPatch, package: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """Another user has taken the name: a new folder is made for this process, and the sentence says so."""
    unset.setenv("XDG_CACHE_HOME", "")
    unset.setattr(os.path, "expanduser", lambda path: path)
    taken = tmp_path / "tmp" / f"ndb-conflict-kernels-{os.geteuid()}"
    taken.mkdir()
    taken.chmod(0o777)
    not_writable(unset, package)
    compiled_cache.provide_cache(package)
    assert not compiled_cache.is_lasting()
    assert compiled_cache.kernels_place().parent == tmp_path / "tmp"
    assert compiled_cache.kernels_place() != taken
    with common.compilation_is_said():
        start_event("numba:compile")
    assert "Set NUMBA_CACHE_DIR to a folder that can" in capsys.readouterr().err


@pytest.mark.parametrize("compiled", [False, True])
def test_nothing_can_be_written(compiled: bool, tmp_path: Path, package: Path):
    """As in a container without any such place: what the owner compiled is loaded, the rest stays in memory."""
    if compiled:
        assert called(package, None) == "2 0"
    kept = {*package.rglob("*.nb?")}
    script = tmp_path / "script.py"
    script.write_text(
        "import os, tempfile\n"
        "from pathlib import Path\n"
        "def refused(*_, **__): raise FileNotFoundError\n"
        "tempfile.gettempdir = tempfile.mkdtemp = refused\n"
        "Path.mkdir = refused\n"
        "os.access = lambda path, mode: False\n"
        "from ndb_formats import compiled_cache\n"
        f"compiled_cache.provide_cache(Path({str(package)!r}))\n"
        "import counting\n"
        "print(counting.next_of(1), counting.hits(), compiled_cache.is_lasting())\n"
    )
    path = f"{ROOT}:{package / 'part' / 'kernels'}"
    environment = {name: text for name, text in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**environment, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["2", "1" if compiled else "0", "False"]
    assert {*package.rglob("*.nb?")} == kept
