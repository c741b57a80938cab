"""The clusters of `make test-ndb`: one set at a time, for all checks."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.recorder.clusters import READER, Pool
from tests.recorder.programs import MissingProgramError, Programs

OUT = Path("build/ndb")  # what the checks leave: recordings, cells.json


@pytest.fixture(scope="session")
def pool() -> Iterator[Pool]:
    """Yield the clusters, or end the run with what is missing."""
    given = os.environ.get("NDB", "")
    try:
        programs = Programs.of(Path(given).absolute())
    except MissingProgramError as error:
        pytest.exit(f"make test-ndb NDB=DIR: {error}" if given else "NDB is not set: make test-ndb NDB=DIR", 2)
    with Pool(programs) as found:
        yield found


@pytest.fixture
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the password of the account that reads."""
    monkeypatch.setenv("MYSQL_PWD", READER)
