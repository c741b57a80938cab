"""
Records scenarios on clusters of its own, which are gone afterwards.

    python -m tests.recorder --ndb DIR SCENARIO... --out DIR

A scenario is a `scenario.json`, or a folder below which there are some. Below `--out`, each gets a folder of its name.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tests.recorder.clusters import Pool
from tests.recorder.programs import MissingProgramError, Programs
from tests.recorder.recording import Scenario, record
from tests.recorder.schedule import EpochsFellApartError
from tests.recorder.sql_node import NotReachedError
from tests.recorder.steps import UnknownStepError

Wanted = tuple[Scenario, Path]  # a scenario, and the folder of its recording
Recorded = tuple[Path, Exception | None]


def scenarios(given: Sequence[Path], out: Path) -> list[Wanted]:
    """Return the scenarios below some paths, and the folder for each."""
    found = list[Wanted]()
    for path in given:
        files = sorted(path.rglob("scenario.json")) if path.is_dir() else [path]
        top = path if path.is_dir() else path.parent
        found += [(Scenario.load(file), out / top.name / file.parent.relative_to(top)) for file in files]
    return found


def recordings(programs: Programs, wanted: Iterable[Wanted]) -> Iterator[Recorded]:
    """Record scenarios, those that need the same clusters on the same ones; yield why one was not recorded."""

    def needs(each: Wanted) -> str:
        return str((each[0].topology, each[0].epoch_ms))

    with Pool(programs) as pool:
        for scenario, target in sorted(wanted, key=needs):
            try:
                record(scenario, pool.clusters(scenario.topology, scenario.epoch_ms), target)
                yield target, None
            except (EpochsFellApartError, NotReachedError, UnknownStepError) as why:
                yield target, why


def main() -> int:
    """Record what the command line asks for; return 1 if something was not recorded."""
    parser = argparse.ArgumentParser(prog="python -m tests.recorder", description=__doc__)
    parser.add_argument("--ndb", type=Path, required=True, help="folder of a build or of an installed server")
    parser.add_argument("--out", type=Path, required=True, help="folder for the recordings")
    parser.add_argument("scenarios", type=Path, nargs="+")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        programs = Programs.of(given.ndb)
    except MissingProgramError as error:
        parser.error(str(error))
    failed, start = 0, time.monotonic()
    for target, problem in recordings(programs, scenarios(given.scenarios, given.out)):
        failed += problem is not None
        why = f": not recorded: {problem}" if problem else ""
        sys.stdout.write(f"{time.monotonic() - start:6.1f} s  {target}{why}\n")
        sys.stdout.flush()
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
