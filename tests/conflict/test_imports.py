"""What importing `conflict` brings with it, and what may import what."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import conflict
import ndb_formats

PACKAGE = Path(conflict.__file__).parent
ROOT = PACKAGE.parent
MODULES = sorted(path.relative_to(ROOT) for path in PACKAGE.rglob("*.py"))


def module_name(path: Path) -> str:
    """Return the dotted name of a file."""
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


WITHOUT_SPARK = [module_name(path) for path in MODULES if "jobs" not in path.parts]


def imported(path: Path) -> set[str]:
    """Return the full names of everything that a file imports, at any depth."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return names


def test_all_modules_are_looked_at():
    """The walk sees the package and its subpackages."""
    assert {"conflict", "conflict.cli", "conflict.engine.applier", "conflict.pipeline"} <= set(WITHOUT_SPARK)


def test_importing_conflict_does_not_import_pyspark():
    """All modules outside `conflict.jobs`, the command line among them, load without pyspark."""
    code = f"import sys, {', '.join(WITHOUT_SPARK)}; print([name for name in sys.modules if 'pyspark' in name])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


@pytest.mark.parametrize("module", [path for path in MODULES if "jobs" not in path.parts], ids=str)
def test_pyspark_is_named_in_the_jobs_alone(module: Path):
    """No module outside `conflict.jobs` imports pyspark, not even inside a function."""
    assert "pyspark" not in {name.split(".")[0] for name in imported(ROOT / module)}


@pytest.mark.parametrize("module", sorted(Path(ndb_formats.__file__).parent.rglob("*.py")), ids=lambda path: path.name)
def test_formats_know_nothing_of_conflicts(module: Path):
    """The formats never import `conflict`."""
    assert "conflict" not in {name.split(".")[0] for name in imported(module)}


@pytest.mark.parametrize("module", ["functions", "decision", "schedule", "history", "setup", "engine.replay"])
def test_semantics_do_not_touch_the_world(module: str):
    """What decides imports nothing that opens files, sockets or clocks."""
    path = PACKAGE / (module.replace(".", "/") + ".py")
    roots = {name.split(".")[0] for name in imported(path)}
    assert roots & {"os", "io", "socket", "time", "shutil", "subprocess", "random", "pathlib"} == set()
