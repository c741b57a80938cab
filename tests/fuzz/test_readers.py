"""A few inputs that nobody meant for every reader, the same ones each time; `make fuzz` has more."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.readers import READERS, outcome_of
from tests.fuzz.session import FINDINGS

QUICK = settings(
    derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
COUNTS = {"decoders": 150, "decode-text": 40, "decode-parquet": 25, "history": 10, "result": 15}


@pytest.mark.parametrize("name", READERS)
def test_inputs_that_nobody_meant(name: str, tmp_path: Path) -> None:
    """They end as a result or as one of the project's errors, and both decoders agree."""
    reader, path = READERS[name], tmp_path / f"input{READERS[name].suffix}"
    outcomes = set()

    @settings(QUICK, max_examples=COUNTS.get(name, 40))
    @given(seed=st.integers(0, 2**32))
    def each(seed: int) -> None:
        path.write_bytes(reader.make(random.Random(seed)))
        outcomes.add(outcome_of(reader, path))

    each()
    assert {outcome.split(":")[0] for outcome in outcomes} >= {"read", "refused"}


KEPT = sorted(path for path in FINDINGS.rglob("*") if path.is_file())


@pytest.mark.parametrize("path", KEPT, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_was_found(path: Path) -> None:
    """What ended badly once ends well."""
    assert outcome_of(READERS[path.parent.name], path).split(":")[0] in ("read", "cut", "refused")
