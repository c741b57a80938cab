"""Kernels of a package that `--py-files` sends are compiled once, wherever its archive is."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import ndb_formats

CODE = """
import zlib, numpy as np, ndb_formats
from ndb_formats.columnar.kernels.words import crc32
from ndb_formats.columnar.kernel import kernel
counted = kernel(crc32.function)
assert counted(np.arange(9, dtype=np.uint8), 0, 9) == zlib.crc32(bytes(range(9)))
print(ndb_formats.__file__, sum(counted._compiled_entry.stats.cache_hits.values()))
"""


def sent(place: Path, kernel: str = "~crc", more: str = "") -> Path:
    """Return an archive of the package, as Spark puts it into a folder of an application; `kernel` is in a kernel."""
    archive, package = place / "ndb_conflict.zip", Path(ndb_formats.__file__).parent
    place.mkdir()
    with zipfile.ZipFile(archive, "w") as made:
        for path in sorted(package.rglob("*.py")):
            text = path.read_text("utf-8")
            if path.name == "words.py":
                assert text.count("~crc") == 1
                text = text.replace("~crc", kernel)
            made.writestr(f"{path.relative_to(package.parent)}", text)
        made.writestr("ndb_formats/more.py", more)
    return archive


def hits(archive: Path, cache: Path) -> int:
    """Run a kernel of an archive in a new process; return how many of its forms numba found compiled."""
    environment = {**os.environ, "PYTHONPATH": str(archive), "XDG_CACHE_HOME": str(cache)}
    environment.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, "-P", "-c", CODE], env=environment, capture_output=True, text=True, check=True, cwd="/"
    )
    file, count = done.stdout.split()
    assert file == str(archive / "ndb_formats" / "__init__.py")
    return int(count)


def test_another_application_finds_them(tmp_path: Path) -> None:
    """The same kernels at another place, of any release; where a release changed one, that is compiled again."""
    cache = tmp_path / "cache"
    assert hits(sent(tmp_path / "first"), cache) == 0
    assert hits(sent(tmp_path / "second", more="NEW = 1"), cache) == 1
    assert hits(sent(tmp_path / "changed", "(crc ^ 0xFFFFFFFF)"), cache) == 0
    assert hits(sent(tmp_path / "third"), cache) == 1
