"""The command line as a whole."""

import inspect
import re
import shlex
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conflict.cli.app import COMMANDS, app
from tests.conflict.cli.commands import invoke

RECORDINGS = Path(__file__).parents[2] / "recordings"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example(name: str) -> None:
    """The help of each shows how it is called."""
    module, function = COMMANDS[name][0].split(":")
    documentation = inspect.getdoc(getattr(import_module(module), function)) or ""
    assert f"Example: ndb-conflict {name} " in documentation


def test_no_summary_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """On 80 columns the list of commands shows what each does to the end of its sentence."""
    monkeypatch.setenv("COLUMNS", "80")
    _, shown = invoke("--help")
    for name, (_, summary) in COMMANDS.items():
        assert f"{name} " in shown
        assert summary in shown


def test_version() -> None:
    """It is that of the package."""
    assert invoke("--version") == (0, f"ndb-conflict {version('ndb-conflict')}")


def test_help_loads_nothing_heavy() -> None:
    """Neither the list of commands nor what a command's help shows needs Arrow, the kernels, Spark or an SQL parser."""
    heavy = {"matplotlib", "numba", "numpy", "pandas", "pyarrow", "pyspark", "sqlglot"}
    modules = ["conflict.cli.app", *(place.partition(":")[0] for place, _ in COMMANDS.values())]
    code = f"import sys, {', '.join(modules)}; print(*{heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_a_command_loads_no_pandas() -> None:
    """pyarrow would, with its first array (17 with a later one). Who asks in the same process for pandas gets it."""
    code = (
        "import sys\nfrom conflict.cli.app import main\n"
        "try: main()\nexcept SystemExit as ended: assert not ended.code\n"
        "import pyarrow\nloaded = 'pandas' in sys.modules\n"
        "print(loaded, len(pyarrow.table({'a': [1, 2]}).to_pandas()), file=sys.stderr)"
    )
    log = RECORDINGS / "ndb_formats/types_type8/binlog.000001"
    done = subprocess.run(
        [sys.executable, "-c", code, "decode", str(log), "--format", "json"], capture_output=True, text=True, check=True
    )
    assert done.stdout
    asks_again = version("pyarrow").startswith("17.")
    assert done.stderr.split()[-2:] == [str(asks_again), "2"]


def help_of(name: str) -> str:
    """Return the help of a command on 80 columns."""
    shown = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "80"}).output
    assert all(len(line) <= 80 for line in shown.splitlines())
    return shown


@pytest.mark.parametrize("name", COMMANDS)
def test_an_example_can_be_pasted(name: str) -> None:
    """It stands on one line, and has only options that there are."""
    module, function = COMMANDS[name][0].split(":")
    documentation = inspect.getdoc(getattr(import_module(module), function)) or ""
    examples = [line for line in documentation.splitlines() if line.startswith("Example: ")]
    assert [line.strip() for line in help_of(name).splitlines() if line.startswith("  Example: ")] == examples
    for line in examples:
        for words in line.removeprefix("Example: ").split(" && "):
            _, command, *arguments = shlex.split(words)
            options = re.findall(r"^ +(?:-\w, )?(--[\w-]+)", help_of(command), re.MULTILINE)
            assert {word for word in arguments if word.startswith("--")} <= {*options}
