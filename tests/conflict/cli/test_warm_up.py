"""`ndb-conflict warm-up`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from conflict.cli.commands import warm_up
from conflict.cli.refusals import ExitCode
from ndb_formats import compiled_cache
from tests.conflict.cli.commands import invoke
from tests.layers import ROOT


def test_where_nothing_can_be_kept(monkeypatch: pytest.MonkeyPatch):
    """It would be in vain."""
    monkeypatch.setitem(compiled_cache._state, "lasting", False)
    code, said = invoke("warm-up")
    assert code == ExitCode.REFUSED
    assert "set NUMBA_CACHE_DIR" in said


def test_a_command_that_is_refused_is_said(monkeypatch: pytest.MonkeyPatch):
    """So that an option that is no longer there is noticed."""
    monkeypatch.setattr(warm_up, "_commands", lambda folder: [["decode", f"{folder / 'missing'}"]])
    code, said = invoke("warm-up")
    assert code == ExitCode.REFUSED
    assert "ndb-conflict decode could not be run" in said


_LEFT_OUT = """
from importlib import import_module
from pkgutil import walk_packages
import conflict, ndb_formats
from tests.conflict.cli.commands import invoke
from ndb_formats.columnar.kernel import Kernel, Use
code, said = invoke("warm-up")
packages = [each for top in (conflict, ndb_formats) for each in walk_packages(top.__path__, f"{top.__name__}.")]
modules = [import_module(each.name) for each in packages if ".kernels." in each.name]
kernels = [each for module in modules for each in vars(module).values() if isinstance(each, Kernel)]
left_out = [each.__name__ for each in kernels if each.use is Use.CALLED and not each.files.are_there()]
print(json.dumps([code, said, len(kernels), left_out]))
"""


@pytest.mark.slow
def test_its_commands_run(tmp_path: Path):
    """It says for whom they compile, and leaves no kernel out: in a process that has compiled none before."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", f"import json{_LEFT_OUT}"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, check=True)
    code, said, kernels, left_out = json.loads(done.stdout.splitlines()[-1])
    assert code == ExitCode.DONE
    assert f"The kernels are compiled, in {tmp_path}, for this user." in said
    assert kernels > 100
    assert left_out == []
