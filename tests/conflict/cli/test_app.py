"""The command line as a whole."""

import inspect
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version

import pytest

from conflict.cli.app import COMMANDS
from tests.conflict.cli.commands import invoke


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
