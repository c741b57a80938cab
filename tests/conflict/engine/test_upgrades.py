"""A release that decides otherwise does so after it was installed in the place of another, and the other one again."""

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import numba
import pytest

from tests.layers import ROOT

COMPARISON = 'mine["local"] and epoch {} max_replicated'
# The kernel that decides is compiled, the others would take minutes.
RESOLVE = """
import sys
from pathlib import Path
import conflict
from conflict.engine.kernels import fold
from ndb_formats.columnar.kernel_mode import Mode, set_mode
set_mode(Mode.INTERPRETED)
if sys.argv[1] == "compiled":
    fold._fold._compiled_entry = fold._fold.form(Mode.COMPILED)
result = conflict.resolve(Path(conflict.__file__).parent / "demo" / "run.toml", engine="local")
hits = sum(fold._fold._compiled_entry.stats.cache_hits.values()) if fold._fold._compiled_entry else 0
print(conflict.__file__, len(result.conflicts), hits)
"""


def wheel(folder: Path, comparison: str) -> Path:
    """Return a wheel of the packages with a comparison in a rule; its files have the times that a wheel's have."""
    folder.mkdir()
    path = folder / "ndb_conflict-0.1.0-py3-none-any.whl"
    info = "ndb_conflict-0.1.0.dist-info"
    every = [each for name in ("conflict", "ndb_formats") for each in (ROOT / name).rglob("*") if each.is_file()]
    files = {f"{each.relative_to(ROOT)}": each.read_bytes() for each in every if "__pycache__" not in each.parts}
    rules, old = "conflict/engine/kernels/rules.py", COMPARISON.format(">").encode()
    assert files[rules].count(old) == 1
    files[rules] = files[rules].replace(old, COMPARISON.format(comparison).encode())
    files[f"{info}/METADATA"] = b"Metadata-Version: 2.1\nName: ndb-conflict\nVersion: 0.1.0\n"
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"]).encode()
    with zipfile.ZipFile(path, "w") as made:
        for name, content in files.items():
            made.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), content)
    return path


@pytest.mark.slow
def test_a_wheel_in_the_place_of_another(tmp_path: Path) -> None:
    """They differ in a rule that is inlined into kernels of other modules; the way back finds what was compiled."""
    venv.create(tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    site = tmp_path / "venv" / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    (site / "libraries.pth").write_text(f"{Path(numba.__file__).parents[1]}")
    (tmp_path / "resolve.py").write_text(RESOLVE)
    wheels = {comparison: wheel(tmp_path / name, comparison) for comparison, name in ((">", "one"), ("<", "other"))}

    def installed(comparison: str) -> None:
        pip = [sys.executable, "-m", "pip", "--python", f"{python}", "install", "--quiet", "--no-index", "--no-deps"]
        subprocess.run([*pip, "--force-reinstall", f"{wheels[comparison]}"], check=True)

    def conflicts(how: str) -> tuple[int, int]:
        command = [python, "-P", tmp_path / "resolve.py", how]
        file, count, hits = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        assert Path(file).is_relative_to(site)
        return int(count), int(hits)

    found = []
    for comparison in (">", "<", ">"):
        installed(comparison)
        found.append((conflicts("interpreted")[0], *conflicts("compiled")))
    (one, *first), (two, *second), third = found
    assert one != two
    assert (first, second, third) == ([one, 0], [two, 0], (one, one, 1))
