"""`ndb-conflict warm-up`."""

from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest

import conflict
import ndb_formats
from conflict.cli.commands import warm_up
from conflict.cli.refusals import ExitCode
from ndb_formats import compiled_cache
from ndb_formats.columnar.kernel import Kernel, Use
from tests.conflict.cli.commands import invoke


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


@pytest.mark.slow
def test_its_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It says for whom they compile, and leaves no kernel out."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    code, said = invoke("warm-up")
    assert code == ExitCode.DONE
    assert f"The kernels are compiled, in {tmp_path}, for this user." in said
    modules = [
        import_module(each.name)
        for package in (conflict, ndb_formats)
        for each in walk_packages(package.__path__, f"{package.__name__}.")
        if ".kernels." in each.name
    ]
    kernels = [each for module in modules for each in vars(module).values() if isinstance(each, Kernel)]
    assert len(kernels) > 100
    assert not [each.__name__ for each in kernels if each.use is Use.CALLED and not each._is_cached()]
