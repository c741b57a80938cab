"""A recording that is read from the middle, beside the whole of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import attrs

from conflict.config.configuration import Configuration, Span
from conflict.conformance.case import ConflictCase
from conflict.history.effects import recorded_effects
from conflict.history.reading import ClusterReading, cut_readings, history_of, read_cluster, usable_epochs
from conflict.history.steps import hints_of_steps
from conflict.pipeline import resolve_settled
from conflict.results.files import summarize_resolution
from conflict.results.model import Outcome, Resolution
from conflict.rules.decision import Verdict

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


@attrs.define
class CutRecording:
    """
    A recording.

    Attributes:
        case: The recording.
        readings: What its binlogs hold.
        whole: The result of all of it.
        agrees: Whether its binlogs agree with that result.
    """

    case: ConflictCase
    readings: Mapping[str, ClusterReading]
    whole: Resolution = attrs.field(init=False)
    agrees: bool = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.whole, contradicted = self.resolve(self.case.configuration())
        self.agrees = contradicted == 0

    @classmethod
    def load(cls, path: Path) -> CutRecording:
        """Read a recording and resolve all of it."""
        case = ConflictCase.load(path)
        configuration = case.configuration()
        return cls(case, {each.name: read_cluster(each, configuration.data_schema) for each in configuration.clusters})

    @property
    def places(self) -> list[tuple[str, int]]:
        """Cluster and epoch of every place where it can be cut."""
        return [(name, epoch.number) for name, reading in self.readings.items() for epoch in reading.epochs[1:]]

    def resolve(self, configuration: Configuration) -> tuple[Resolution, int]:
        """Resolve a part of it; return the result, and how many rows its binlogs contradict."""
        hints = hints_of_steps(self.case.steps, usable_epochs(configuration, self.readings))
        readings = cut_readings(configuration, self.readings)
        summaries = usable_epochs(configuration, readings)
        recorded = {name: recorded_effects(each.epochs[: len(summaries[name])]) for name, each in readings.items()}
        history = history_of(configuration, readings, hints)
        setups = configuration.setups()
        _, resolution, _ = resolve_settled(history, setups, recorded)
        return resolution, summarize_resolution(resolution, setups, recorded).contradicted

    def compare(self, cluster: str, epoch: int) -> Figures:
        """Cut it before an epoch of a cluster, and compare the result of the rest with that of the whole."""
        cut = attrs.evolve(self.case.configuration(), span=Span(first={cluster: epoch}))
        rest, _ = self.resolve(cut)
        figures = Figures(cuts=1)
        whole = _by_operation(self.whole)
        for operation, outcomes in _by_operation(rest).items():
            # An epoch that was applied again after the replica was set back counts from the last time.
            for mine, other in zip(reversed(outcomes), reversed(whole.get(operation, [])), strict=False):
                figures.compared += 1
                figures.cannot_tell += mine.verdict is Verdict.CANNOT_TELL
                if mine.verdict is not Verdict.CANNOT_TELL and not _same(mine, other):
                    figures.wrong.append(f"{self.case.path.name} from {cluster} {epoch}: {mine} is {other}")
        for name, result in rest.clusters.items():
            for table, rows in result.rows.items():
                unlike = Counter(map(repr, rows)) - Counter(map(repr, self.whole.clusters[name].rows[table]))
                figures.wrong += [f"{self.case.path.name} from {cluster} {epoch}: {table} on {name}: {unlike}"] * bool(
                    unlike
                )
        return figures


def _same(mine: Outcome, other: Outcome) -> bool:
    """Whether two outcomes are the same; a compared value can be older than the rest."""
    stored = mine.stored is None or mine.stored == other.stored
    return (mine.verdict, mine.cause) == (other.verdict, other.cause) and stored


def _by_operation(resolution: Resolution) -> dict[tuple[object, ...], list[Outcome]]:
    """Return the outcomes of each operation, in order."""
    found = defaultdict(list)
    for each in resolution.outcomes:
        place = each.applier, each.source_epoch, each.group, each.ordinal, each.table, each.key, each.refresh
        found[place].append(each)
    return found
