"""One reader, many inputs: what came of them, how long the worst took, and what was found."""

from __future__ import annotations

import faulthandler
import hashlib
import random
import sys
import traceback
from collections import Counter
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import Any

import attrs

from tests.fuzz.readers import Reader, outcome_of

__all__ = ["FINDINGS", "Span", "Tally", "fuzz"]

FINDINGS = Path(__file__).parent / "findings"
_SLOW = 10.0
_CONFIRMED = 0.1  # seconds that are measured twice
_ROOTS = ("ndb_formats", "conflict", "tests")


@attrs.define
class Tally:
    """
    The figures of a run.

    Attributes:
        reader: Name of the reader.
        seed: Its first seed.
        inputs: How many inputs it read.
        outcomes: How they ended.
        slowest: Seconds of the slowest input, and its seed.
        largest: By how many bytes an input raised the memory of the process while it was read, and its seed.
        findings: What was found, by kind: the seed of the smallest input.
    """

    reader: str
    seed: int
    inputs: int = 0
    outcomes: Counter[str] = attrs.field(factory=Counter)
    slowest: tuple[float, int] = (0.0, 0)
    largest: tuple[int, int] = (0, 0)
    findings: dict[str, tuple[int, int]] = attrs.field(factory=dict)

    def figures(self) -> dict[str, Any]:
        """Return all of it as JSON."""
        return attrs.asdict(self)

    def line(self) -> str:
        """Return it as a line for people."""
        ends = ", ".join(f"{count} {name}" for name, count in self.outcomes.most_common())
        found = "".join(f"\n  found: {kind} (seed {seed})" for kind, (_, seed) in self.findings.items())
        return (
            f"{self.reader}: {self.inputs} inputs; {ends}; slowest {self.slowest[0] * 1e3:.0f} ms (seed "
            f"{self.slowest[1]}), most memory {self.largest[0] / 2**20:.1f} MiB (seed {self.largest[1]}){found}"
        )


@attrs.frozen
class Span:
    """
    How long a reader is given inputs.

    Attributes:
        seconds: At most so many seconds.
        inputs: At most so many inputs; None for any number.
        hangs: Seconds after which an input is given up, with the process.
    """

    seconds: float
    inputs: int | None
    hangs: float


def fuzz(reader: Reader, seed: int, span: Span, folder: Path, findings: Path) -> Tally:
    """
    Give a reader inputs for some time.

    Args:
        reader: The reader.
        seed: Seed of the first input; the others follow it.
        span: How long.
        folder: Where inputs are written; the last one stays there if the process dies.
        findings: Where inputs are kept that should not end as they did.
    """
    tally = Tally(reader.name, seed)
    path = folder / f"input{reader.suffix}"
    end = perf_counter() + span.seconds
    while perf_counter() < end and tally.inputs != span.inputs:
        number = seed + tally.inputs
        faulthandler.dump_traceback_later(span.hangs, exit=True)
        data = reader.make(random.Random(number))
        path.write_bytes(data)
        before = _peak_from_here()
        start = perf_counter()
        try:
            outcome = outcome_of(reader, path)
        except Exception as error:  # noqa: BLE001 - this is what is looked for
            outcome = "found"
            _keep(tally, reader, _kind(error), number, data, findings)
        taken, grown = perf_counter() - start, _peak() - before
        if tally.inputs >= 100:  # the first ones compile kernels
            if taken > max(tally.slowest[0], _CONFIRMED):  # it may have compiled one, or have had to wait
                taken = min(taken, _time_again(reader, path))
            if taken > _SLOW:
                _keep(tally, reader, "slow", number, data, findings)
            tally.slowest = max(tally.slowest, (taken, number))
            tally.largest = max(tally.largest, (grown, number))
        tally.outcomes[outcome] += 1
        tally.inputs += 1
    faulthandler.cancel_dump_traceback_later()
    return tally


def _peak_from_here() -> int:
    """Forget the peak of this process's memory; return what it holds, in bytes."""
    Path("/proc/self/clear_refs").write_bytes(b"5")
    return _peak()


def _peak() -> int:
    """Return the most memory that this process held since, in bytes."""
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) << 10


def _time_again(reader: Reader, path: Path) -> float:
    start = perf_counter()
    with suppress(Exception):
        outcome_of(reader, path)
    return perf_counter() - start


def _kind(error: Exception) -> str:
    """Return the class of an error and the last place of ours that it came through."""
    places = [
        f"{Path(frame.filename).stem}.{frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)
        if any(f"/{root}/" in frame.filename for root in _ROOTS)
    ]
    return f"{type(error).__name__}-{places[-1] if places else 'nowhere'}"


def _keep(tally: Tally, reader: Reader, kind: str, number: int, data: bytes, findings: Path) -> None:
    """Keep an input if it is the first or the smallest of its kind."""
    known = tally.findings.get(kind)
    if known is not None and known[0] <= len(data):
        return
    tally.findings[kind] = (len(data), number)
    folder = findings / reader.name
    folder.mkdir(parents=True, exist_ok=True)
    for older in folder.glob(f"{kind}-new-*"):
        older.unlink()
    name = f"{kind}-new-{hashlib.sha256(data).hexdigest()[:8]}{reader.suffix}"
    (folder / name).write_bytes(data)
    print(f"found {reader.name} {kind}: seed {number}, {len(data)} bytes", file=sys.stderr, flush=True)  # noqa: T201  # told
