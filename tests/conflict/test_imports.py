"""What importing `conflict` brings with it, and which folder may import which."""

import subprocess
import sys

import pytest

import conflict
from tests.layers import LAYERS, ROOT, both_ways, circles, imported, modules, upward_imports

MODULES = modules("conflict")
WITHOUT_SPARK = [path for path in MODULES if "spark" not in path.relative_to(ROOT).parts]
WORLD = {"os", "io", "socket", "time", "shutil", "subprocess", "random", "pathlib"}


def test_every_folder_has_a_layer():
    """The order names all folders and modules, and nothing else."""
    found = {path.relative_to(ROOT / "conflict").parts[0].removesuffix(".py") for path in MODULES}
    assert found == set(LAYERS["conflict"])


def test_folders_import_one_way():
    """No folder imports from one above it: the engines not from the jobs, the results not from the engines."""
    assert list(upward_imports("conflict")) == []


def test_folders_inside_a_layer_import_one_way():
    """But for a run, which knows its schedule, tasks, which write to folders, and the list of rules."""
    known = {("checking", "checking/rules"), ("history", "history/grid"), ("history", "history/scheduling")}
    assert both_ways("conflict") == set(map(frozenset, known))


def test_no_modules_import_each_other():
    """No circle, not even one that only a type checker goes round."""
    assert list(circles("conflict")) == []


@pytest.mark.parametrize(
    ("engine", "others"),
    [("reference", ("columnar", "kernels")), ("kernels", ("reference",)), ("columnar", ("reference",))],
)
def test_the_engines_do_not_know_each_other(engine: str, others: tuple[str, ...]):
    """The reference engine and the kernels share rules, history and results, and import nothing of each other."""
    folder = ROOT / "conflict/engine" / engine
    assert len(list(folder.glob("*.py"))) > 5
    for path in folder.rglob("*.py"):
        for other in others:
            assert not any(name.startswith(f"conflict.engine.{other}") for name in imported(path)), path


def test_no_folder_hides_a_function_of_the_facade():
    """Importing a folder sets its name in `conflict`: no module or folder there is called as a function is."""
    beside = {path.stem for path in (ROOT / "conflict").iterdir() if path.suffix == ".py" or path.is_dir()}
    functions = {name for name in conflict.__all__ if callable(getattr(conflict, name))}
    assert "resolve" in functions
    assert beside & functions == set()


def test_importing_conflict_does_not_import_pyspark():
    """All modules outside `conflict.spark`, the command line among them, load without pyspark."""
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in WITHOUT_SPARK]
    code = f"import sys, {', '.join(names)}; print([name for name in sys.modules if 'pyspark' in name])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_pyspark_is_named_in_one_folder_alone():
    """No module outside `conflict.spark` imports pyspark, not even inside a function."""
    named = [path for path in WITHOUT_SPARK if any(name.split(".")[0] == "pyspark" for name in imported(path))]
    assert named == []


@pytest.mark.parametrize(
    "folder", ["rules", "history/model.py", "history/timeline.py", "history/scheduling", "engine/reference"]
)
def test_semantics_do_not_touch_the_world(folder: str):
    """What decides imports nothing that opens files, sockets or clocks."""
    place = ROOT / "conflict" / folder
    found = [place] if place.is_file() else list(place.rglob("*.py"))
    assert found
    for path in found:
        assert {name.split(".")[0] for name in imported(path)} & WORLD == set(), path


def test_tests_do_not_import_benchmarks():
    """Only tests of the benchmarks import them: what a benchmark measures must not decide what is right."""
    found = [path for path in modules("tests") if any(name.split(".")[0] == "benchmarks" for name in imported(path))]
    assert [path for path in found if not path.name.startswith("test_benchmark")] == []
