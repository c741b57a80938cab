"""Interruptions that are swallowed."""

from __future__ import annotations

import signal
import sys
import threading

import pytest

from conflict.decoding.staging import stopped_politely


class Swallows:
    """Its destructor is interrupted, which Python can only print."""

    def __del__(self) -> None:
        """Send a signal to this thread."""
        signal.raise_signal(signal.SIGTERM)


def work() -> None:
    """Wait for a minute, like a command that calls another one."""
    with stopped_politely(), stopped_politely():
        Swallows()
        threading.Event().wait(60)


def test_an_interruption_in_a_destructor_comes_again(capsys: pytest.CaptureFixture[str]) -> None:
    """It is raised a moment later, nothing is printed, and all is as before."""
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGALRM), sys.unraisablehook
    with pytest.raises(KeyboardInterrupt):
        work()
    assert capsys.readouterr().err == ""
    assert before == (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGALRM), sys.unraisablehook)
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_other_errors_in_a_destructor_are_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are no interruptions."""
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda swallowed: seen.append(swallowed.exc_type))

    class Fails:
        def __del__(self) -> None:
            raise ArithmeticError

    with stopped_politely():
        Fails()
    assert seen == [ArithmeticError]
