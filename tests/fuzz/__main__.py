"""
Fuzzing as long as one likes: `python -m tests.fuzz --seconds 600`, or `make fuzz FUZZ_SECONDS=600`.

Input number n of a reader is made from seed + n. What is found is kept as a small file below `tests/fuzz/findings`,
which `tests/fuzz/test_readers.py` reads from then on. With --guard, data ends at a page that cannot be read; with
NUMBA_BOUNDSCHECK=1 the kernels check each index.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import random
import resource
import tempfile
from contextlib import nullcontext
from pathlib import Path

from tests.fuzz.guarded import guard_pages
from tests.fuzz.readers import READERS
from tests.fuzz.session import FINDINGS, Span, Tally, fuzz

_MEMORY = "/dev/shm"  # a filesystem in memory, and the names in it are random
_ADDRESSES = 8 << 30  # bytes that the process may hold, so that an input's hunger is found and not the machine's end
_HANGS = 120  # seconds after which an input is given up, with the process


def main() -> None:
    """Run the readers in turns and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--inputs", type=int, help="end a reader's turn after so many")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 40))
    parser.add_argument("--readers", nargs="*", choices=[*READERS, []], default=[])
    parser.add_argument("--guard", action="store_true", help="memory that cannot be read after the data")
    parser.add_argument("--figures", type=Path, help="add the figures to this file, as JSON lines")
    options = parser.parse_args()
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES, _ADDRESSES))
    names = options.readers or list(READERS)
    print(f"seed {options.seed}", flush=True)  # noqa: T201  # told
    found = 0
    tempfile.tempdir = _MEMORY if os.access(_MEMORY, os.W_OK) else None  # opening a file on a disk may take 1 ms
    with guard_pages() if options.guard else nullcontext(), tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        for name in names:
            span = Span(options.seconds / len(names), options.inputs, _HANGS)
            tally = fuzz(READERS[name], options.seed, span, Path(folder), FINDINGS)
            found += len(tally.findings)
            _show(tally, options.figures)
    raise SystemExit(bool(found))


def _show(tally: Tally, figures: Path | None) -> None:
    print(tally.line(), flush=True)  # noqa: T201  # told
    if figures is not None:
        with figures.open("a") as out:
            out.write(json.dumps(tally.figures()) + "\n")


if __name__ == "__main__":
    main()
