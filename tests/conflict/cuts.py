"""A recording that is read from the middle, beside the whole of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import attrs

from conflict.config.configuration import Span
from conflict.engine.inference.placement import Placed
from conflict.engine.ledger.contradictions import contradicted_rows
from conflict.engine.ledger.resolution import Outcome, Resolution
from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.reading.readings import ClusterReading, cut_readings, history_of, read_cluster, usable_epochs
from conflict.history.run import Run
from conflict.history.scheduling.hints import hints_of_steps
from conflict.history.shown_effects import recorded_effects, recorded_images
from conflict.judge.case import ConflictCase
from conflict.rules.decision import Verdict
from conflict.runs.reference_run import place_in_memory, resolve_settled

__all__ = ["CutRecording", "Figures"]


@attrs.define
class Figures:
    """
    How the rests of recordings compare with the whole.

    Attributes:
        cuts: Cuts tried.
        compared: Decisions compared.
        cannot_tell: Decisions that the rest leaves open.
        wrong: What the rest says and the whole does not.
    """

    cuts: int = 0
    compared: int = 0
    cannot_tell: int = 0
    wrong: list[str] = attrs.field(factory=list)

    def __iadd__(self, other: Figures) -> Self:
        self.cuts += other.cuts
        self.compared += other.compared
        self.cannot_tell += other.cannot_tell
        self.wrong += other.wrong
        return self


# Applier, source epoch, table, key
Operation = tuple[str, int, str, bytes]


@attrs.frozen
class Resolved:
    """
    The result of a part of a recording.

    Attributes:
        resolution: The result.
        contradicted: How many rows its binlogs contradict.
        unplaced: Operations that hang on the place of an epoch that left no trace.
    """

    resolution: Resolution
    contradicted: int
    unplaced: frozenset[Operation]

    def leaves_open(self, outcome: Outcome) -> bool:
        """Whether it does not decide on an operation."""
        operation = outcome.applier, outcome.source_epoch, outcome.table, outcome.key
        return outcome.verdict is Verdict.CANNOT_TELL or operation in self.unplaced


@attrs.define
class CutRecording:
    """
    A recording.

    Attributes:
        case: The recording.
        run: Its run.
        readings: What its binlogs hold.
        whole: The result of all of it.
        steps: Whether its steps narrow the schedule.
    """

    case: ConflictCase
    run: Run
    readings: Mapping[str, ClusterReading]
    steps: bool = True
    whole: Resolved = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.whole = self.resolve(self.run)

    @classmethod
    def load(cls, path: Path, *, steps: bool = True) -> CutRecording:
        """Read a recording and resolve all of it."""
        case = ConflictCase.load(path)
        run = make_run(case.configuration())
        readings = {each.name: read_cluster(each, run) for each in run.clusters}
        return cls(case, run, readings, steps)

    @property
    def agrees(self) -> bool:
        """Whether its binlogs agree with its result."""
        return self.whole.contradicted == 0

    @property
    def places(self) -> list[tuple[str, int]]:
        """Cluster and epoch of every place where it can be cut; none if definitions change."""
        if self.run.definitions:
            return []
        return [(name, epoch.number) for name, reading in self.readings.items() for epoch in reading.epochs[1:]]

    def resolve(self, run: Run) -> Resolved:
        """Resolve a part of it."""
        hints = hints_of_steps(self.case.steps, usable_epochs(run, self.readings)) if self.steps else None
        readings = cut_readings(run, self.readings)
        summaries = usable_epochs(run, readings)
        recorded = {name: recorded_effects(each.epochs[: len(summaries[name])]) for name, each in readings.items()}
        history = history_of(run, readings, hints)
        setups = run.setups.at_start
        placed = place_in_memory(history, setups, recorded)
        _, resolution, _ = resolve_settled(placed.history(history), setups, recorded)
        epochs = {name: each.epochs[: len(summaries[name])] for name, each in readings.items()}
        contradicted = sum(
            len(contradicted_rows((result.effects, result.images), (recorded[name], recorded_images(epochs[name])))[1])
            for name, result in resolution.clusters.items()
        )
        return Resolved(resolution, contradicted, _open_operations(placed))

    def compare(self, **first: int) -> Figures:
        """
        Cut it, and compare the result of the rest with that of the whole.

        Args:
            first: First own epoch of the rest, of one cluster, which the other one follows, or of both.
        """
        cut = attrs.evolve(self.run, span=Span(first=first))
        rest = self.resolve(cut)
        figures = Figures(cuts=1)
        name = f"{self.case.path.name} from {first}"
        whole = _by_operation(self.whole.resolution)
        for operation, outcomes in _by_operation(rest.resolution).items():
            # A replica that was set back applies an epoch again, in another own epoch.
            others = {each.epoch: each for each in whole.get(operation, [])}
            for mine in outcomes if others else ():
                other = others.get(mine.epoch, whole[operation][-1])
                if self.whole.leaves_open(other):
                    continue
                figures.compared += 1
                left_open = rest.leaves_open(mine)
                figures.cannot_tell += left_open
                if not left_open and not _same(mine, other):
                    figures.wrong.append(f"{name}: {mine} is {other}")
        for each, result in rest.resolution.clusters.items():
            for table, rows in result.rows.items():
                held = Counter(map(repr, self.whole.resolution.clusters[each].rows[table]))
                unlike = Counter(map(repr, rows)) - held
                figures.wrong += [f"{name}: {table} on {each}: {unlike}"] if unlike else []
        return figures


def _same(mine: Outcome, other: Outcome) -> bool:
    """Whether two outcomes are the same; a compared value can be older than the rest."""
    stored = mine.stored is None or mine.stored == other.stored
    return (mine.verdict, mine.cause) == (other.verdict, other.cause) and stored


def _open_operations(placed: Placed) -> frozenset[Operation]:
    return frozenset(
        (each.applier, each.source_epoch, each.table, each.key)
        for place in placed.schedule.places
        for each in place.undecided
    )


def _by_operation(resolution: Resolution) -> dict[tuple[object, ...], list[Outcome]]:
    """Return the outcomes of each operation, in order."""
    found = defaultdict(list)
    for each in resolution.outcomes:
        place = each.applier, each.source_epoch, each.group, each.ordinal, each.table, each.key, each.refresh
        found[place].append(each)
    return found
