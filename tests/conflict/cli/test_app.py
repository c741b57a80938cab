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
def test_a_command_is_summarized_by_its_first_sentence(name: str) -> None:
    """The list of commands says what each says itself, with an example."""
    place, summary = COMMANDS[name]
    module, function = place.split(":")
    documentation = inspect.getdoc(getattr(import_module(module), function)) or ""
    assert documentation.split("\n\n")[0].replace("\n", " ") == summary
    assert f"Example: ndb-conflict {name} " in documentation


def test_version() -> None:
    """It is that of the package."""
    assert invoke("--version") == (0, f"ndb-conflict {version('ndb-conflict')}")


def test_help_loads_nothing_heavy() -> None:
    """The list of commands needs neither Arrow nor the kernels nor Spark."""
    code = (
        "import sys, conflict.cli.app; print(*{'pyarrow', 'numba', 'pyspark', 'pandas', 'sqlglot'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
