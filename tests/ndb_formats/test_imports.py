"""`ndb_formats` stands alone: no conflict resolution, no Spark, and its folders import one way."""

import ast
from pathlib import Path

from tests.layers import LAYERS, ROOT, imported, modules, upward_imports

MODULES = modules("ndb_formats")
# They hold many values at once.
COLUMNAR = {"columnar", "sizes", "log_text.py", "row_printer.py", "value_columns.py"}
WORLD = {"os", "io", "socket", "time", "shutil", "subprocess", "random"}


def roots(path: Path) -> set[str]:
    """Return the top-level packages that a file imports."""
    return {name.split(".")[0] for name in imported(path)}


def test_every_folder_has_a_layer():
    """The order names all folders and modules, and nothing else."""
    found = {path.relative_to(ROOT / "ndb_formats").parts[0].removesuffix(".py") for path in MODULES}
    assert found == set(LAYERS["ndb_formats"])


def test_folders_import_one_way():
    """No folder imports from one above it."""
    assert list(upward_imports("ndb_formats")) == []


def test_no_conflict_and_no_spark():
    """No module imports `conflict` or pyspark."""
    assert [path for path in MODULES if roots(path) & {"conflict", "pyspark", "pandas", "tests", "benchmarks"}] == []


def test_only_columnar_code_imports_numpy_and_its_kin():
    """Codecs of single values need none of them."""
    scalar = [path for path in MODULES if not COLUMNAR & set(path.relative_to(ROOT).parts)]
    assert len(scalar) > 30
    assert [path for path in scalar if roots(path) & {"pyarrow", "numpy", "numba", "llvmlite"}] == []


def test_only_the_reader_touches_the_world():
    """No module besides it, what fetches files, and what compiles and keeps kernels, opens files or sockets."""
    for path in MODULES:
        if path.name not in ("binlog_reader.py", "scratch.py", "stored.py", "compiled_cache.py", "compiling.py"):
            # How long interpreted kernels took decides whether compiled ones are loaded.
            allowed = {"time"} if path.name == "kernel.py" else set()
            assert roots(path) & WORLD == allowed, path
            nodes = ast.walk(ast.parse(path.read_text("utf-8")))
            assert {ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)}.isdisjoint(
                {"open", "print", "input"}
            ), path
