"""What the small installation does without the libraries that only extras bring, and what it says of the rest."""

import json
import os
import subprocess
import sys
import tomllib
from typing import Any

import pytest
from packaging.requirements import Requirement

import conflict
from conflict.cli.refusals import ExitCode
from conflict.extras import EXTRAS, imported, install_command
from tests.conflict.cli.cheap_calls import BINLOG, PRINTING, RUN, make_files
from tests.layers import ROOT
from tools.core_requirements import REQUIREMENTS, core_requirements

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
LIBRARIES = PROJECT["optional-dependencies"]
# What cannot do without.
COMMANDS_REFUSED = {
    "ingest on Spark": (["ingest", RUN, "--engine", "spark", "--out", "on-spark"], "pyspark"),
    "resolve on Spark": (["resolve", RUN, "--engine", "spark", "--out", "spark"], "pyspark"),
    "compare on Spark": (["compare", RUN, "--functions", "NDB$EPOCH()", "--engine", "spark"], "pyspark"),
    "sweep on Spark": (["sweep", "sweep.toml", "--out", "on-spark", "--engine", "spark"], "pyspark"),
    "a page with charts": (["report", "result", "--out", "charts.html"], "matplotlib"),
    "a story": (["explain", "result", "--table", "cft.t1", "--key", "2", "--plot", "story.svg"], "matplotlib"),
    "a chart of sizes": (["sizes", BINLOG, "--plot", "sizes.png"], "matplotlib"),
    "servers": (["check", *(f"--server={name}=mysql://root@127.0.0.1:1/" for name in "AB")], "pymysql"),
}
EXPRESSIONS_REFUSED = {
    "spark_session": ("conflict.spark_session()", "pyspark"),
    "register": ("conflict.register(None)", "pyspark"),
    "result.spark": ("conflict.read_result('result').spark('outcomes')", "pyspark"),
    "plot": ("conflict.simulate('model.toml').plot()", "matplotlib"),
    "changes": (f"conflict.read_binlog({BINLOG!r}, 'cft.t1').to_pandas()", "pandas"),
    "changes for polars": (f"conflict.read_binlog({BINLOG!r}, 'cft.t1').to_polars()", "polars"),
    "a story for pandas": ("conflict.explain('result', table='cft.t1', key='2').to_pandas()", "pandas"),
    "answers": ("conflict.requirements().to_pandas()", "pandas"),
    "comparison": (f"conflict.compare({RUN!r}, functions=['OVERWRITE']).to_pandas()", "pandas"),
    "simulation": ("conflict.simulate('model.toml').estimates()", "pandas"),
    "verdicts": ("conflict.History(A=['insert 1 v=0'], B=['apply 1']).resolve('NDB$EPOCH()').to_pandas()", "pandas"),
}
ARROW = f"conflict.read_binlog({BINLOG!r}, 'cft.t1').to_arrow().num_rows"


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return how each call ended, and what it said."""
    folder = tmp_path_factory.mktemp("small")
    make_files(folder)
    calls = {
        "commands": PRINTING | {name: arguments for name, (arguments, _) in COMMANDS_REFUSED.items()},
        "expressions": {name: expression for name, (expression, _) in EXPRESSIONS_REFUSED.items()}
        | {"arrow": ARROW, "names": "[name for name in conflict.__all__ if not hasattr(conflict, name)]"},
    }
    subprocess.run(
        [sys.executable, "-m", "tests.conflict.cli.without_extras", "ends.json"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        input=json.dumps(calls).encode(),
        stdout=subprocess.PIPE,  # a call writes to it as a file
        check=True,
    )
    return json.loads((folder / "ends.json").read_text("utf-8"))


pytestmark = pytest.mark.xdist_group("extras")


@pytest.mark.parametrize("name", PRINTING)
def test_what_works_without(name: str, ends: dict[str, Any]) -> None:
    """The demo, the help of every command, and every command that needs no extra."""
    code, said = ends[name]
    assert code in (ExitCode.DONE, ExitCode.CONTRADICTED, ExitCode.WARNED), said
    assert "Traceback" not in said
    assert "not installed" not in said


def test_python_without(ends: dict[str, Any]) -> None:
    """Every name of the package is there, and changes are read into Arrow, as with everything."""
    assert ends["names"] == [0, "[]"]
    assert ends["arrow"] == [0, str(conflict.read_binlog(BINLOG, "cft.t1").to_arrow().num_rows)]


@pytest.mark.parametrize(
    ("name", "module"),
    [(name, module) for name, (_, module) in (COMMANDS_REFUSED | EXPRESSIONS_REFUSED).items()],
)
def test_what_is_refused(name: str, module: str, ends: dict[str, Any]) -> None:
    """In a sentence that says what to type; a command ends as for other wrong uses, and a function raises."""
    code, said = ends[name]
    extra, need = EXTRAS[module]
    assert f"{need}, which is not installed: {install_command(extra)}" in said
    if name in EXPRESSIONS_REFUSED:
        assert said.startswith("ConfigurationError: ")
    else:
        assert code == ExitCode.REFUSED


def test_every_module_is_refused_somewhere() -> None:
    """None is left out above."""
    assert {module for _, module in (COMMANDS_REFUSED | EXPRESSIONS_REFUSED).values()} == {*EXTRAS}


@pytest.mark.parametrize("extra", ["pandas", "plot", "polars", "s3", "server", "spark"])
def test_what_to_type_is_what_the_extra_brings(extra: str) -> None:
    """With its versions."""
    typed = install_command(extra).removeprefix("pip install ").split()
    assert {Requirement(each.strip("'")) for each in typed} == {Requirement(each) for each in LIBRARIES[extra]}


def test_a_broken_library_is_no_missing_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it lacks itself is named."""
    monkeypatch.delitem(sys.modules, "pymysql", raising=False)
    monkeypatch.setitem(sys.modules, "pymysql.connections", None)
    monkeypatch.setitem(sys.modules, "struct", None)
    with pytest.raises(ModuleNotFoundError, match=r"pymysql|struct"):
        imported("pymysql")


def test_requirements_of_the_small_installation() -> None:
    """The file is made from the dependencies: those that no extra brings."""
    assert REQUIREMENTS.read_text("utf-8") == core_requirements()
    core = {Requirement(line).name for line in core_requirements().splitlines() if not line.startswith("#")}
    every = {Requirement(each).name for each in PROJECT["dependencies"]}
    assert every - core == {"matplotlib", "pandas", "PyMySQL", "pyspark"}


def test_version() -> None:
    """It is that of pyproject.toml and CITATION.cff, and asking for it loads neither numpy nor pyspark."""
    assert f"\nversion: {PROJECT['version']}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    code = "import sys, conflict; print(conflict.__version__, *{'numpy', 'pyspark'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [PROJECT["version"]]
