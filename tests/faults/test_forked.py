"""The process that forks is a text, so a module that it names can move without anybody noticing."""

import ast
from importlib.util import find_spec

from tests.faults.forked import MAIN


def test_its_modules_are_there():
    """Every module that it loads beforehand exists."""
    loaded = [each for each in ast.walk(ast.parse(MAIN)) if isinstance(each, ast.Import)]
    names = {alias.name for each in loaded for alias in each.names}
    assert {"conflict.runs.pipeline", "conflict.cli.commands.resolve"} <= names
    assert [name for name in sorted(names) if find_spec(name) is None] == []
