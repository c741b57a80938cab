"""The package stands alone: no conflict resolution, no Spark, and its modules import one way."""

import ast
from pathlib import Path

import pytest

import ndb_formats

PACKAGE = Path(ndb_formats.__file__).parent
# Modules, and a folder of them, that hold many values at once.
COLUMNAR = {"row_records.py", "event_index.py", "stretches.py", "kernels"}
COLUMNAR |= {"columnar.py", "columnar_keys.py", "columnar_tables.py", "column_arrays.py", "fast_columns.py"}
COLUMNAR |= {"key_texts.py", "record_columns.py", "row_walk.py"}
MODULES = sorted(path.relative_to(PACKAGE.parent) for path in PACKAGE.rglob("*.py"))


def imported(path: Path) -> set[str]:
    """Return the full names of everything that a file imports, at any depth."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            names.add(node.module)
    return names


def test_all_modules_are_looked_at():
    """The walk sees the package and its events."""
    names = {str(path) for path in MODULES}
    assert {"ndb_formats/cursor.py", "ndb_formats/events/rows_event.py", "ndb_formats/binlog_reader.py"} <= names


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_no_conflict_and_no_spark(module: Path):
    """No module of ndb_formats imports conflict or pyspark; only what is columnar imports numpy and the like."""
    roots = {name.split(".")[0] for name in imported(PACKAGE.parent / module)}
    assert roots & {"conflict", "pyspark", "pandas", "tests"} == set()
    if not COLUMNAR & {module.name, module.parent.name}:
        assert roots & {"pyarrow", "numpy", "numba", "llvmlite"} == set()


@pytest.mark.parametrize("module", [path for path in MODULES if path.name != "binlog_reader.py"], ids=str)
def test_only_the_reader_touches_the_world(module: Path):
    """No other module imports what opens files, sockets or clocks."""
    path = PACKAGE.parent / module
    roots = {name.split(".")[0] for name in imported(path)}
    assert roots & {"os", "io", "socket", "time", "shutil", "subprocess", "random"} == set()
    calls = {ast.unparse(node.func) for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)}
    assert calls & {"open", "print", "input"} == set()


def test_imports_run_one_way():
    """No two modules need each other, directly or through others."""
    names = {".".join(path.with_suffix("").parts): path for path in MODULES}
    needs = {name: imported(PACKAGE.parent / path) & set(names) for name, path in names.items()}
    done: set[str] = set()
    while len(done) < len(names):
        ready = {name for name, wanted in needs.items() if name not in done and wanted <= done | {name}}
        assert ready, f"these import each other: {sorted(set(names) - done)}"
        done |= ready
