"""A compiled kernel is known by all that it is made of, wherever that stands; nothing else counts."""

import os
import subprocess
import sys
from typing import Any

import pytest

from ndb_formats.columnar.kernel_stamp import stamp_of
from tests.layers import ROOT

# A kernel that calls one that calls another, with a value of each kind that kernels use.
SOURCE = '''
import collections
from enum import IntEnum
from typing import NamedTuple
import numpy as np
from ndb_formats.columnar.kernel import inlined, kernel, part

class Operation(IntEnum):
    WRITE = 1
    DELETE = 2

class Row(NamedTuple):
    first: int
    second: int

LIMIT, BITS, TABLE = 7, np.uint64(3), np.array([1, 2, 3])
RECORD = np.dtype([("a", "i4"), ("b", "i4")])
CHOICE = (True, 0.5)
other = collections.OrderedDict()

@inlined
def wins(brought, stored):
    return brought > stored

@part
def decide(brought, stored):
    """Decide."""
    # by the rule
    return wins(brought, stored + LIMIT) and CHOICE[0]

@kernel
def count(values, least=4):
    out = np.zeros(len(values), RECORD)
    for number in range(len(values)):
        if decide(values[number], least) and values[number] != Operation.WRITE:
            out[number]["a"] = Row(1, 2).first + TABLE[0] + BITS
    return out
'''


def stamp(source: str) -> str:
    """Return the stamp of the kernel in a source."""
    names: dict[str, Any] = {"__name__": "a_module"}
    exec(compile(source, "a_module.py", "exec"), names)
    return stamp_of(names["count"])


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("brought > stored", "brought >= stored"),
        ("brought > stored", "stored > brought"),
        ("stored + LIMIT", "stored - LIMIT"),
        ("LIMIT, BITS, TABLE = 7", "LIMIT, BITS, TABLE = 8"),
        ("np.uint64(3)", "np.uint64(4)"),
        ("np.uint64(3)", "np.int64(3)"),
        ("[1, 2, 3]", "[1, 2, 4]"),
        ("WRITE = 1", "WRITE = 3"),
        ("    first: int\n    second: int", "    second: int\n    first: int"),
        ('("a", "i4"), ("b", "i4")', '("b", "i4"), ("a", "i4")'),
        ("(True, 0.5)", "(1, 0.5)"),
        ("least=4", "least=5"),
        ("Row(1, 2).first", "Row(1, 2).second"),
        ("@part", "@inlined"),
    ],
)
def test_what_counts(text: str, other: str) -> None:
    """The code of every kernel that is called, at any depth, and every value that one of them uses."""
    assert SOURCE.count(text) == 1
    assert stamp(SOURCE.replace(text, other)) != stamp(SOURCE)


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("# by the rule", "# by the table\n    #"),
        ("\nCHOICE", "\n\n\nCHOICE"),
        ("Decide.", "Decide on one."),
        ("other = collections.OrderedDict()", "other = None"),
    ],
)
def test_what_does_not_count(text: str, other: str) -> None:
    """Where code stands, what is said of it, and names that no kernel uses."""
    assert SOURCE.count(text) == 1
    assert stamp(SOURCE.replace(text, other)) == stamp(SOURCE)


def test_a_value_that_nobody_can_tell_from_another() -> None:
    """It is not passed over."""
    with pytest.raises(TypeError, match="a kernel uses OrderedDict"):
        stamp(SOURCE.replace("+ BITS", "+ BITS + len(other)"))


_ALL = """
import json
from importlib import import_module
from pkgutil import walk_packages
import conflict, ndb_formats
from ndb_formats.columnar.kernel import Kernel, Use
packages = [each for top in (conflict, ndb_formats) for each in walk_packages(top.__path__, f"{top.__name__}.")]
modules = [import_module(each.name) for each in packages if ".kernels." in each.name]
every = {each for module in modules for each in vars(module).values() if isinstance(each, Kernel)}
kernels = [each for each in every if each.use is Use.CALLED]
print(json.dumps(sorted((each.__module__, each.__name__, each.files._begin) for each in kernels)))
"""


def test_every_process_finds_the_same() -> None:
    """All kernels have a stamp, and it does not depend on the order of sets in a process."""
    found = []
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", _ALL]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, check=True)
        found.append(done.stdout)
    assert found[0] == found[1]
    assert found[0].count("[") > 100
