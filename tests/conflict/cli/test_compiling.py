"""The sentence that says that kernels are being compiled."""

import pytest
from numba import njit

from conflict.cli.common import compilation_is_said


def test_it_is_said_once_and_only_when_something_is_compiled(capsys: pytest.CaptureFixture[str]) -> None:
    """Two types are two compilations; a third call compiles nothing."""
    twice = njit(lambda value: value * 2)
    with compilation_is_said():
        assert (twice(2), twice(1.5)) == (4, 3.0)
    assert capsys.readouterr().err.count("Compiling the kernels") == 1
    with compilation_is_said():
        assert twice(3) == 6
    assert capsys.readouterr().err == ""
