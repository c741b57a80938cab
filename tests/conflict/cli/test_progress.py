"""How far a command is, without a terminal."""

import re
import time

import pytest

from conflict.cli import common
from conflict.cli.common import progress_bars


def test_long_work_prints_lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Also while no step ends: what is being done, and how much of it is, on standard error alone."""
    monkeypatch.setattr(common, "FIRST_LINE", 0.01)
    monkeypatch.setattr(common, "NEXT_LINE", 0.01)
    with progress_bars() as show:
        show("resolving", 3, 1000)
        time.sleep(0.2)
    printed = capsys.readouterr()
    assert printed.out == ""
    lines = printed.err.splitlines()
    assert len(lines) > 1
    assert all(re.fullmatch(r"At work for 0 s(: resolving, 3 of 1,000)?\.", line) for line in lines)


def test_short_work_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Not even an empty line."""
    with progress_bars() as show:
        show("resolving", 1, 1)
    assert capsys.readouterr() == ("", "")


def test_a_terminal_has_bars(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """And no lines."""
    monkeypatch.setattr(common, "FIRST_LINE", 0.01)
    monkeypatch.setattr(common.messages, "is_interactive", True)
    monkeypatch.setattr(common.messages, "_force_terminal", True)
    with progress_bars() as show:
        show("resolving", 3, 1000)
        time.sleep(0.2)
    printed = capsys.readouterr().err
    assert "3/1000" in printed
    assert "At work" not in printed


def test_a_terminal_has_nothing_before_the_first_stage(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """So that a password can be asked for."""
    monkeypatch.setattr(common.messages, "is_interactive", True)
    monkeypatch.setattr(common.messages, "_force_terminal", True)
    with progress_bars():
        time.sleep(0.2)
    assert capsys.readouterr() == ("", "")
