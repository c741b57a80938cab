"""Results in two parts: up to a place in the order of epoch applies, and from there on; and both as one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from conflict.engine.ledger.layout import (
    ResultOptions,
    applied_epochs_path,
    catalogue_result,
    exceptions_path,
    rows_folder,
)
from conflict.history.grid.folder import Folder
from conflict.history.run import Run
from conflict.history.tasks import in_process
from conflict.rules.counters import add_counters, zero_counters
from conflict.runs.resolving.keeping_state import keep_state, not_kept
from conflict.runs.resolving.resolve_job import SettledHistory, settle_history
from conflict.runs.rows.window import State, digest_of_configuration

OPTIONS = ResultOptions(all_outcomes=True)
Contents = dict[str, Any]


@attrs.frozen
class Part:
    """
    A result of the kernels.

    Attributes:
        settled: What was decided.
        out: Its folder.
    """

    settled: SettledHistory
    out: Folder

    @property
    def applies(self) -> int:
        """How many epochs were applied."""
        return len(self.settled.resolved.found.applies)

    @property
    def not_kept(self) -> str | None:
        """Why no state can be kept of it, contradictions aside: made-up Histories do not show what appliers did."""
        found = self.settled
        summary = attrs.evolve(found.summary(), contradicted=0, unexplained={})
        return not_kept(found.job.run, found.schedule, found.resolved, summary)

    def keep(self, at: int) -> State:
        """Keep its state before an epoch apply, and return it."""
        found = self.settled
        digest = digest_of_configuration(found.configured)
        return keep_state(found.job, found.schedule, found.resolved, digest, found.unsure, at)

    def contents(self, since: Mapping[str, int] | None = None) -> Contents:
        """
        Return all that it tells of epoch applies, and its final rows, in an order that does not depend on buckets.

        Args:
            since: Per applier, the last epoch of the other cluster of which nothing is wanted; None to return all.
        """
        run, summary = self.settled.configured, self.settled.summary()
        found: Contents = {"differing": summary.differing_rows, "rows": summary.rows, "not known": summary.not_known}
        for name, setups in run.setups.at_end.items():
            last = (since or {}).get(name, -1)
            for path, column in (
                (f"outcomes/applier={name}", "source_epoch"),
                (f"overwritten/cluster={name}", "winner_epoch"),
                (f"undecided/applier={name}", "source_epoch"),
                (applied_epochs_path(name), "source_epoch"),
            ):
                found[path] = self._rows(path, pc.field(column) > pa.scalar(max(last, 0), pa.uint64()))
            for table in run.schema.tables:
                if table.full_name in setups:
                    path, chosen = rows_folder(name, table.full_name), None
                else:
                    path = exceptions_path(name, table.full_name)
                    chosen = pc.field("NDB$outcome", "source_epoch") > pa.scalar(max(last, 0), pa.uint64())
                found[path] = self._rows(path, chosen)
        return found

    def _rows(self, path: str, chosen: pc.Expression | None) -> Counter[str]:
        if not self.out.exists(path):
            return Counter()
        rows = pads.dataset(f"{self.out.uri}/{path}", partitioning=None).to_table(filter=chosen)
        return Counter(map(str, rows.to_pylist()))

    def counters(self, state: State | None = None) -> dict[str, dict[str, int]]:
        """Return its counters, with those until a state."""
        zeros = zero_counters(self.settled.configured.configuration.functions)
        before = {} if state is None else {name: own.counters for name, own in state.clusters.items()}
        found = self.settled.summary().counters
        return {name: add_counters([zeros, before.get(name, {}), own]) for name, own in found.items()}


def in_conflict(part: Part, state: State) -> int:
    """Return how many transactions were in conflict in the epochs that were applied after a state."""
    found = part.settled.resolved.found
    applied = np.array([own.applied for own in state.clusters.values()])
    later = found.applies.number >= applied[found.applies.applier]
    return int(np.diff(found.conflicts.offsets)[later].sum())


def decided(run: Run, history: Folder, out: Folder, after: Folder | None = None, **how: Any) -> Part:
    """Decide a History with the kernels, or what came after an earlier result."""
    options = attrs.evolve(OPTIONS, after=after)
    settled = settle_history(in_process, run, history, out, options, **how)
    assert isinstance(settled, SettledHistory), settled
    return Part(settled, out)


def finished(part: Part) -> Part:
    """Write the rest of a result."""
    part.settled.write()
    part.out.write_json("run.json", catalogue_result(part.out))
    return part


def assert_parts_are_the_whole(
    run: Run, history: Folder, folder: Path, places: tuple[int, ...], whole: Part, **how: Any
) -> None:
    """
    Decide a run again in windows that begin at some places, and compare each with the whole.

    Args:
        run: The run.
        history: Its History.
        folder: For the results.
        places: The epoch applies before which windows begin, by number, in order.
        whole: The run as it is decided at once, its files not yet complete.
        how: As for `settle_history`.
    """
    states = [whole.keep(places[0])]
    finished(whole)
    earlier = whole
    for number, place in enumerate([*places[1:], None]):
        part = decided(run, history, Folder(str(folder / f"window{number}")), earlier.out, **how)
        if place is not None:
            states.append(part.keep(place))
        finished(part)
        known = states[number]
        since = {name: own.source_epoch for name, own in known.clusters.items()}
        assert part.contents() == whole.contents(since)
        assert part.counters(known) == whole.counters()
        for last in part.settled.resolved.found.rounds[-1:]:
            assert last.in_conflict == in_conflict(whole, known)
        earlier = part
