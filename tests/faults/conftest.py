"""One process that forks commands, for all tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.forked import Forks, forks


@pytest.fixture(scope="module")
def forked() -> Iterator[Forks]:
    """Start the process that forks."""
    with forks() as started:
        yield started
