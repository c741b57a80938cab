"""
The planted list: operations put into quiet recordings, and what a result says of each.

    python -m tests.faults.planted [SEED [PLACES [KIND;KIND]]]
"""

from __future__ import annotations

import random
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from functools import cache, partial
from pathlib import Path

import attrs
import pyarrow.dataset as pads

from conflict.cli.commands.resolve import code_of
from conflict.cli.refusals import ExitCode
from conflict.config.configuration import Configuration
from conflict.engine.ledger.layout import rows_folder
from conflict.errors import ConflictError
from conflict.history.grid.folder import Folder
from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.preparing.log_files import check_log_files
from conflict.history.run import Run
from conflict.judge.case import ConflictCase
from conflict.results.cause_kinds import CauseKind
from conflict.results.files import read_rows
from conflict.results.run_document import RunDocument
from conflict.runs.pipeline import ENGINES, ResolveOptions, from_holes, run_after_missing_files
from ndb_formats.errors import FormatError
from ndb_formats.types.values import Value
from tests.corpora import RECORDINGS, SHARED
from tests.faults import planted_hidden, planted_holes, planted_skips
from tests.faults.edited_logs import EditedLog, EditedPair, Row
from tests.faults.planting import Plant, Planted, final_rows

PLANTS: dict[str, Plant] = {
    "incident, nothing lost": planted_holes.incident,
    "incident, epochs lost": planted_holes.lost_events,
    "incident, epochs elsewhere": planted_holes.disconnect,
    "incident, other log": planted_holes.filled_incident,
    "missing file, other log": planted_holes.filled_file,
    "missing file": planted_holes.hole,
    "missing epochs": planted_holes.hidden_hole,
    "skipped epoch": planted_skips.skipped_epoch,
    "skipped epoch of conflicts": planted_skips.skipped_conflict,
    "filtered table": planted_skips.filtered_table,
    "hidden change before an update": planted_hidden.hidden_before_update,
    "hidden change before a delete": planted_hidden.hidden_before_delete,
    "hidden change, no byte differs": planted_hidden.hidden_for_ever,
}


class Noticed(Enum):
    """What became of a fault."""

    NAMED = "named"
    REFUSED = "refused, named"
    LOST = "named; rows are those of the logs"
    NAMED_WRONG = "named, but a decision or a row is wrong"
    OTHERWISE = "named as something else"
    UNEXPLAINED = "contradicted, no cause that fits"
    SILENT = "silent, and wrong"
    INVISIBLE = "not said, and right"


@attrs.frozen(eq=False)
class Found:
    """
    A result.

    Attributes:
        resolved: What was resolved.
        decisions: What was decided on each operation; None if that is open.
        rows: The rows at the end, by cluster.
    """

    resolved: RunDocument
    decisions: Mapping[Operation, tuple[str, str | None] | None]
    rows: Mapping[str, Mapping[Row, dict[str, Value]]]

    @property
    def skipped(self) -> set[tuple[str, int]]:
        """The epochs that count as never applied, with the applier."""
        return {(each.applier, each.foreign_epoch) for each in self.resolved.summary.schedule.skipped}

    @property
    def unlogged(self) -> set[tuple[str, Row]]:
        """The rows that were changed without a log, with their cluster."""
        return {(name, (each.table, each.key)) for name, own in self.resolved.unlogged.items() for each in own}

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is said."""
        summary = self.resolved.summary
        return (
            code_of(self.resolved) is ExitCode.DONE
            and not summary.stops
            and not self.resolved.moves.repeated
            and not self.resolved.starts
            and not self.resolved.run.definitions
        )


Operation = tuple[object, ...]


def find(configuration: Configuration, engine: str) -> Found:
    """Resolve a run without steps, as users do."""
    with tempfile.TemporaryDirectory() as folder:
        check_log_files(configuration, may_lack_files=True)
        out = Folder(f"{folder}/out")
        run = run_after_missing_files(make_run(configuration))
        attempt = partial(ENGINES[engine], out=out, options=ResolveOptions(all_outcomes=True))
        resolved = from_holes(run, attempt, can_have_holes=True)
        return Found(resolved, _decisions(out, run), {each.name: _rows(out, run, each.name) for each in run.clusters})


def _decisions(out: Folder, run: Run) -> dict[Operation, tuple[str, str | None] | None]:
    found: dict[Operation, tuple[str, str | None] | None] = {}
    for applier in (each.name for each in run.clusters):
        if out.exists(f"outcomes/applier={applier}"):
            names = ["source_epoch", "ordinal", "table", "key", "operation", "refresh", "verdict", "cause"]
            table = pads.dataset(f"{out.uri}/outcomes/applier={applier}", format="parquet", partitioning=None)
            for *operation, verdict, cause in zip(
                *(each.to_pylist() for each in table.to_table(names).columns), strict=True
            ):
                found[applier, *operation] = None if verdict == "CANNOT_TELL" else (verdict, cause)
        if out.exists(f"undecided/applier={applier}"):
            table = pads.dataset(f"{out.uri}/undecided/applier={applier}", format="parquet", partitioning=None)
            names = ["source_epoch", "table", "key"]
            left = set(zip(*(each.to_pylist() for each in table.to_table(names).columns), strict=True))
            found.update({each: None for each in found if each[0] == applier and (each[1], each[3], each[4]) in left})
    return found


def _rows(out: Folder, run: Run, cluster: str) -> dict[Row, dict[str, Value]]:
    found: dict[Row, dict[str, Value]] = {}
    for table, setup in run.setups.at_end[cluster].items():
        shown, _ = setup.shown
        for values in read_rows(out, rows_folder(cluster, table), shown):
            row = dict(zip((each.name for each in shown.columns), values, strict=True))
            found[table, repr([row[each] for each in shown.primary_key]).encode()] = row
    return found


def _true_rows(log: EditedLog, run: Run) -> dict[Row, dict[str, Value]]:
    """Return the rows at the end of a log, under the values of their keys."""
    found = {}
    for (name, _), row in final_rows(log).items():
        table = run.schema.find(*name.split(".", 1))
        assert table is not None
        found[name, repr([row[each] for each in table.primary_key]).encode()] = row
    return found


@attrs.frozen(eq=False)
class Recording:
    """A quiet recording, and its result."""

    name: str
    pair: EditedPair
    found: Found


def quiet_recording(path: Path) -> Recording | None:
    """Return a recording in which nothing happens that is to be said, and whose logs hold its rows; else None."""
    case = ConflictCase.load(path)
    configuration = case.configuration()
    if len(configuration.clusters) != 2 or any(len(each.files) > 1 for each in configuration.clusters):
        return None
    if not all(table.primary_key for table in configuration.schema.tables):
        return None
    try:
        found = find(configuration, "local")
        pair = EditedPair.read(configuration)
    except (ConflictError, FormatError):
        return None
    rows = {log.cluster: _true_rows(log, found.resolved.run) for log in pair.logs}
    if not found.is_quiet or rows != found.rows or min(len(log.epochs) for log in pair.logs) < _FEWEST:
        return None
    return Recording(f"{path.parent.name}/{path.name}", pair, found)


_FEWEST = 4  # epochs of a log


def judge(planted: Planted, recording: Recording, engine: str) -> tuple[Noticed, str]:
    """Return what became of a fault, and why."""
    if not planted.changed:
        return Noticed.INVISIBLE, "the logs are the same"
    try:
        found = find(planted.configuration, engine)
    except (ConflictError, FormatError) as error:
        fits = "hole" in planted.names and re.search("missing|give all binlog files", str(error))
        return Noticed.REFUSED if fits else Noticed.OTHERWISE, str(error)
    wrong = [*_wrong_decisions(planted, recording, found), *_wrong_rows(planted, found)]
    resolved, named = found.resolved, is_named(planted, found)
    before = recording.found.resolved.likely_causes
    causes = [(each.cluster, each.kind.value, each.tables) for each in resolved.likely_causes if each not in before]
    others = [
        *(["contradicted"] if resolved.contradicted and planted.kind != "filtered table" else []),
        *(sorted(map(str, found.skipped)) if not planted.kind.startswith("skipped") else []),
        *(sorted(map(str, found.unlogged)) if not planted.kind.startswith("hidden") else []),
        *([f"causes {causes}"] if causes else []),
    ]
    why = "; ".join([*others, *wrong])
    if named and planted.kind == "incident, epochs lost":
        if resolved.contradicted:
            return Noticed.NAMED if resolved.likely_causes[0].kind is CauseKind.FILES else Noticed.NAMED_WRONG, why
        decided = [*_wrong_decisions(planted, recording, found)]
        as_logged = planted.given is not None and not [*_wrong_rows(attrs.evolve(planted, truth=planted.given), found)]
        return Noticed.LOST if wrong and as_logged and not decided and not others else Noticed.NAMED_WRONG, why
    if named:
        bad = others[:1] if planted.kind == "filtered table" and len(causes) == 1 else [*others, *wrong]
        bad = [] if planted.kind == "filtered table" and len(causes) == 1 else bad
        return Noticed.NAMED_WRONG if bad else Noticed.NAMED, why
    if resolved.contradicted:
        return Noticed.UNEXPLAINED, why
    if code_of(resolved) is not ExitCode.DONE or others:
        return Noticed.OTHERWISE, why
    return Noticed.SILENT if wrong else Noticed.INVISIBLE, why


def is_named(planted: Planted, found: Found) -> bool:
    """Whether a result names a fault as what it is."""
    resolved, names = found.resolved, planted.names
    match planted.kind.split()[0]:
        case "skipped":
            return found.skipped == {names}
        case "filtered":
            return any(each.kind is CauseKind.FILTER and names[0] in each.tables for each in resolved.likely_causes)
        case "hidden":
            return found.unlogged == {names}
        case _ if planted.kind.endswith("other log"):
            return code_of(resolved) is ExitCode.DONE and any("lacks" in note for note in resolved.run.notes)
        case "incident" | "incident,":
            return any(each.lost and "incident" in each.sentence for each in resolved.remarks)
        case _:
            return any(each.lost for each in resolved.remarks)


def _wrong_decisions(planted: Planted, recording: Recording, found: Found) -> Iterator[str]:
    """Yield what was decided otherwise than in the recording, or not at all; where epochs are missing, it can be."""
    before, after = recording.found.decisions, found.decisions
    lost = planted.loses

    def concerned(operation: Operation) -> bool:
        return operation[0] == planted.applier and operation[1] in planted.source_epochs

    for operation, decision in after.items():
        if operation in before and before[operation] is None:
            continue  # open in the recording
        if decision is None and not concerned(operation):
            continue  # open: which is right, if not the most that can be said
        if concerned(operation) or before.get(operation) != decision:
            yield f"decided {operation}: {decision}, not {before.get(operation)}"
    if not lost:  # what an applier sends back of an epoch does not come back if it skipped that
        missing = (each for each in before if each not in after and not concerned(each))
        yield from (
            f"not decided {each}" for each in missing if not planted.kind.startswith("skipped") or each[2] != -1
        )


def _wrong_rows(planted: Planted, found: Found) -> Iterator[str]:
    """Yield which rows end otherwise than they did; where epochs are missing, rows can be absent."""
    for log in planted.truth:
        true, mine = _true_rows(log, found.resolved.run), found.rows[log.cluster]
        known = planted.loses or planted.kind.startswith("hidden")
        for row in {*mine, *({} if known else true)}:
            if mine.get(row) != true.get(row):
                yield f"row {log.cluster} {row}: {mine.get(row)}, not {true.get(row)}"


def recordings() -> Iterator[Path]:
    """Yield the folders of recordings from which quiet ones are taken."""
    for folder in (RECORDINGS / "conflict", SHARED / "conformance" / "conflict", SHARED / "conformance" / "everyday"):
        yield from sorted(path.parent for path in folder.glob("*/*/scenario.json"))


@cache
def recording_of(path: Path) -> Recording | None:
    """Return a quiet recording, once."""
    return quiet_recording(path)


def planted_places(
    plant: Plant, chance: random.Random, most: int, scratch: Path
) -> Iterator[tuple[Recording, Planted]]:
    """Yield seeded places, each in another recording; functions and binlog types take turns."""
    by_sort = defaultdict[tuple[str, str], list[Path]](list)
    for path in recordings():
        by_sort[path.parent.name, path.name[-1]].append(path)
    pools = [chance.sample(each, len(each)) for _, each in sorted(by_sort.items())]
    found, number = 0, 0
    while any(pools):
        for pool in chance.sample(pools, len(pools)):
            recording = recording_of(pool.pop()) if pool else None
            number += 1
            folder = scratch / str(number)
            folder.mkdir()
            planted = None if recording is None else next(plant(recording.pair, folder, chance), None)
            if recording is not None and planted is not None:
                found += 1
                yield recording, planted
            if found == most:
                return


Tally = Counter[tuple[str, str, Noticed]]  # by kind and engine


def judged(kind: str, seed: int, most: int) -> Iterator[tuple[str, str, Noticed, str]]:
    """Plant faults of a kind, and yield each with its engine, what became of it, and why."""
    with tempfile.TemporaryDirectory() as scratch:
        for recording, planted in planted_places(PLANTS[kind], random.Random(f"{seed} {kind}"), most, Path(scratch)):
            for engine in ("local", "reference"):
                noticed, why = judge(planted, recording, engine)
                yield planted.kind, engine, noticed, f"{recording.name}, {planted.place}: {why[:400]}"


def table_of(tally: Tally) -> str:
    """Return a table by kind."""
    columns = [each for each in Noticed if any(noticed is each for *_, noticed in tally)]
    lines = ["".join([f"{'':34}{'engine':10}", *(f"{each.value:>41}" for each in columns)])]
    for kind, engine in dict.fromkeys((kind, engine) for kind, engine, _ in tally):
        counts = (tally[kind, engine, each] for each in columns)
        lines.append("".join([f"{kind:34}{engine:10}", *(f"{count or '':>41}" for count in counts)]))
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str]) -> None:
    """Plant each kind, and print what became of it."""
    seed, most, kinds = [*arguments, *(str(random.randrange(1 << 32)), "10", ";".join(PLANTS))[len(arguments) :]][:3]
    sys.stdout.write(f"seed {seed}\n")
    tally = Tally()
    for kind in kinds.split(";"):
        for planted, engine, noticed, why in judged(kind, int(seed), int(most)):
            tally[planted, engine, noticed] += 1
            if noticed is not Noticed.NAMED and "the logs are the same" not in why:
                sys.stdout.write(f"{planted}, {engine}, {noticed.value}: {why}\n")
                sys.stdout.flush()
    sys.stdout.write(f"\n{table_of(tally)}")


if __name__ == "__main__":
    main(sys.argv[1:])
