"""
Runs commands and Python as in the small installation: all libraries that only extras bring are hidden.

Reads from its input a JSON object with the arguments of commands and with expressions, each by name; prints by name the
exit code and the output of a command, or 0 and the value of an expression, or 1 and how it is refused.
"""

from __future__ import annotations

import json
import sys
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any

HIDDEN = {"fsspec", "matplotlib", "pandas", "polars", "py4j", "pymysql", "pyspark", "s3fs"}


class Hiding(PathFinder):
    """Finds all modules but the hidden ones."""

    @classmethod
    def find_spec(cls, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return where a module is."""
        return None if fullname in HIDDEN else super().find_spec(fullname, path, target)


sys.meta_path[:] = [Hiding if finder is PathFinder else finder for finder in sys.meta_path]

from typer.testing import CliRunner  # noqa: E402

import conflict  # noqa: E402
from conflict.cli.app import app  # noqa: E402
from conflict.cli.commands import warm_up  # noqa: E402


def evaluated(expression: str) -> tuple[int, str]:
    """Return what an expression gives, or how it is refused."""
    try:
        return 0, str(eval(expression, {"conflict": conflict}))
    except conflict.ConflictError as error:
        return 1, f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    warm_up._commands = lambda folder: []  # it runs the others
    given: dict[str, Any] = json.load(sys.stdin)
    ends: dict[str, tuple[int, str]] = {}
    for name, arguments in given["commands"].items():
        done = CliRunner().invoke(app, arguments)
        ends[name] = done.exit_code, done.output + (repr(done.exception) if done.exit_code == 1 else "")
    ends |= {name: evaluated(expression) for name, expression in given["expressions"].items()}
    Path(sys.argv[1]).write_text(json.dumps(ends), "utf-8")
