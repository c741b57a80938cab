"""
The epochs after an earlier result, and what that result knows of those before: the folder ``state`` of a result.

    state/boundary.json                      up to where it has been decided, counters until then
    state/conflicts.parquet                  the transactions in conflict until then
    state/places.parquet                     where epochs without a trace were applied until then
    state/moments.parquet                    rows that stood before an epoch which judged them earlier
    state/rows/bucket=00000.parquet          the rows as they stood, see `conflict.engine.columnar.standing_rows`
    state/images/bucket=00000.parquet        their values
    state/shown/bucket=00000.parquet         what logs said last, see `conflict.engine.columnar.shown_rows`

Computes docs/windows.md.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from conflict.documents import read
from conflict.engine.columnar.boundary import Boundary
from conflict.engine.columnar.bucket import Bucket
from conflict.engine.columnar.shown_rows import ShownRows, read_shown
from conflict.engine.columnar.standing_rows import read_standing, refuse_other_keys
from conflict.engine.kernels.arrays import RowMoments
from conflict.engine.ledger.layout import refuse_damaged_result
from conflict.errors import HistoryError
from conflict.history.grid.folder import Folder
from conflict.history.grid.manifest import Manifest
from conflict.history.run import Run
from conflict.history.scheduling.schedule_columns import COLUMNS, PLACES, ScheduleColumns
from conflict.history.scheduling.start import LAST, Bounds
from conflict.program import program
from conflict.results.run_document import configuration_json

STATE = "state"
_BOUNDARY, _CONFLICTS, _PLACES, _MOMENTS = (
    *("boundary.json", "conflicts.parquet"),
    *("places.parquet", "moments.parquet"),
)
CONFLICTS = pa.schema([("applier", pa.int64()), ("number", pa.int64()), ("group", pa.int64())])
_PLACED = pa.schema([("applier", pa.string()), *((name, pa.from_numpy_dtype(COLUMNS[name].kind)) for name in PLACES)])
_EARLY = pa.schema(
    [
        *(("applier", pa.int8()), ("apply", pa.int32()), ("bucket", pa.int32()), ("key", pa.int32())),
        *(("epoch", pa.uint64()), ("group", pa.int32())),
    ]
)
# By applier and name, `PLACES`.
Places = Mapping[str, Mapping[str, npt.NDArray[Any]]]


@attrs.frozen(kw_only=True)
class ClusterState:
    """
    How far one cluster had come.

    Attributes:
        applied: How many epochs its applier had applied.
        schedule: Digest of these epoch applies.
        source_epoch: The last of these epochs; 0 for none.
        epoch: Own epoch in which that was applied; 0 for none.
        group: Group of that epoch.
        seen: The last own epoch of its log.
        files: Its binlog files in the History.
        counters: Its status counters until then.
        exceptions: By exceptions table, how often counting had started again, SQL node, restarts of that, and the last
            number that was used.
    """

    applied: int
    schedule: str
    source_epoch: int
    epoch: int
    group: int
    seen: int
    files: list[str]
    counters: dict[str, int]
    exceptions: dict[str, list[list[int]]]


@attrs.frozen(kw_only=True)
class BucketState:
    """
    What was known of a bucket.

    Attributes:
        keys: How many keys it had.
        digest: That of their identities.
        following: Per cluster, the first own epoch with changes, or work of its applier, that its rows lack.
        showing: Per cluster, whether its log shows something of its applier's work on rows of the bucket.
    """

    keys: int
    digest: int
    following: list[int]
    showing: list[bool]


@attrs.frozen(kw_only=True)
class State:
    """
    The document ``boundary.json``.

    Attributes:
        program: Which one it was (see `conflict.program`).
        configuration: Digest of what decides: tables, functions, roles, servers.
        clusters: The clusters, by name.
        buckets: The buckets, in order.
    """

    program: str
    configuration: str
    clusters: dict[str, ClusterState]
    buckets: list[BucketState]


@attrs.frozen(eq=False)
class Window:
    """
    What an earlier result knows.

    Attributes:
        folder: Its state.
        state: The document.
        boundary: Up to where it has been decided.
        places: Where epochs without a trace were applied before.
        moments: Per cluster, rows that its applier judged early, `apply` by number among its own; of epochs that were
            told before, as far as rows stood before they came.
    """

    folder: Folder
    state: State
    boundary: Boundary
    places: Places
    moments: tuple[RowMoments, ...]

    def with_places(self, schedule: Mapping[str, ScheduleColumns]) -> dict[str, ScheduleColumns]:
        """Return the epoch applies with the places of those before the boundary."""
        return {name: own.with_given(self.places[name]) for name, own in schedule.items()}

    def showing(self, bucket: int) -> frozenset[str]:
        """Return the clusters whose logs show something, up to there, of their appliers' work on rows of a bucket."""
        shows = self.state.buckets[bucket].showing
        return frozenset(name for name, each in zip(self.state.clusters, shows, strict=True) if each)

    def bounds_of(self, bucket: int, manifest: Manifest) -> dict[str, Bounds]:
        """Return, per cluster, the own epochs of which rows of a bucket are read."""
        following = self.state.buckets[bucket].following
        return {
            name: Bounds(min(first, own.epoch), manifest.last_epochs[name] if manifest.is_cut(name) else LAST)
            for (name, own), first in zip(self.state.clusters.items(), following, strict=True)
        }

    def unseen(self, manifest: Manifest) -> dict[str, Bounds]:
        """Return, per cluster, the own epochs that its log had not when the earlier result was made."""
        return {
            name: Bounds(own.seen + 1, manifest.last_epochs[name] if manifest.is_cut(name) else LAST)
            for name, own in self.state.clusters.items()
        }

    def shown(self, bucket: Bucket) -> ShownRows:
        """Return what logs said last, up to there, of the rows of a bucket."""
        return read_shown(self.folder, bucket.number, len(bucket.key_table))

    def told(self, bucket: Bucket) -> Bucket:
        """Return a bucket with what binlogs show of epoch applies after the boundary alone."""
        shown = []
        for own, each in zip(self.state.clusters.values(), bucket.consequences, strict=True):
            epoch, group = each.array("epoch"), each.array("group")
            shown.append(each.of((epoch > own.epoch) | ((epoch == own.epoch) & (group > own.group))))
        return attrs.evolve(bucket, consequences=tuple(shown))

    def later(self, bucket: Bucket) -> Bucket:
        """
        Return a bucket with what came after its rows stood.

        Raises:
            HistoryError: It is a bucket of another History.
        """
        known = self.state.buckets[bucket.number]
        identities = bucket.keys.column("identity")
        refuse_other_keys(self.folder, identities, bucket.number, (known.keys, known.digest))
        return bucket.after(read_standing(self.folder, bucket.number, bucket.key_table))


_BOUNDS = {"before_epoch", "before_group", "certain"}  # of a place that is not known yet


def digest_of_schedule(own: ScheduleColumns, applied: int) -> str:
    """Return a digest of the first epochs that an applier applied, and where."""
    digest, columns = hashlib.sha256(), own.applied_alone().columns
    for name in sorted(columns.keys() - _BOUNDS):
        digest.update(name.encode() + np.ascontiguousarray(columns[name][:applied]).tobytes())
    return digest.hexdigest()


def digest_of_configuration(run: Run) -> str:
    """Return a digest of what decides in a run besides its binlogs: tables, functions, servers, filters."""
    document = configuration_json(run)
    clusters = {name: {**own, "binlogs": None} for name, own in document["clusters"].items()}
    filters = {" ".join(pair): attrs.asdict(each) for pair, each in run.links.filters.items()}
    skips = run.configuration.skip_missing
    deciding = {**document, "clusters": clusters, "filters": filters, "skip_missing": skips}
    return hashlib.sha256(json.dumps(deciding, sort_keys=True, default=str).encode()).hexdigest()


def write_state(
    folder: Folder, state: State, boundary: Boundary, places: Places, moments: Sequence[RowMoments]
) -> None:
    """Write what concerns all rows; see `Window`."""
    early = [
        pa.table([np.full(len(own), side, np.int8), *attrs.astuple(own, recurse=False)], schema=_EARLY)
        for side, own in enumerate(moments)
    ]
    folder.write_table(_MOMENTS, pa.concat_tables(early))
    placed = [
        pa.table([pa.array([name] * len(own["epoch"]), pa.string()), *map(pa.array, own.values())], schema=_PLACED)
        for name, own in places.items()
    ]
    folder.write_table(_PLACES, pa.concat_tables(placed))
    columns = [pa.array(each) for each in boundary.conflicts.T]
    folder.write_table(_CONFLICTS, pa.table(columns, schema=CONFLICTS))
    folder.write_json(_BOUNDARY, attrs.asdict(state))


def read_window(earlier: Folder, configuration: str) -> Window:
    """
    Read what an earlier result knows.

    Args:
        earlier: Folder of the result.
        configuration: See `State`.

    Raises:
        HistoryError: It has no state, or one of another program or configuration.
    """
    folder = earlier.below(STATE)
    if not folder.exists(_BOUNDARY):
        message = f"{earlier.uri} has no state to go on from; resolve with --keep-state, and see what it says"
        raise HistoryError(message)
    refuse_damaged_result(earlier, earlier.read_json("run.json"))
    state = read(State, folder.read_json(_BOUNDARY), _BOUNDARY)
    if (state.program, state.configuration) != (program(), configuration):
        same = state.program == program()
        what = "with other tables, functions or servers" if same else "by another version of this program"
        message = f"{earlier.uri} was resolved {what}; resolve all with --keep-state again"
        raise HistoryError(message)
    conflicts = folder.read_table(_CONFLICTS, CONFLICTS)
    pairs = np.stack([each.to_numpy() for each in conflicts.columns], axis=1).reshape(-1, 3)
    first, second = (own.applied for own in state.clusters.values())
    counted = {
        (name, table): {(era, server, restarts): last for era, server, restarts, last in series}
        for name, own in state.clusters.items()
        for table, series in own.exceptions.items()
    }
    boundary = Boundary((first, second), pairs, counted)
    return Window(folder, state, boundary, _read_places(folder, state), _read_moments(folder))


def _read_moments(folder: Folder) -> tuple[RowMoments, ...]:
    table = folder.read_table(_MOMENTS, _EARLY)
    applier, *columns = (column.to_numpy() for column in table.columns)
    return tuple(RowMoments(*columns).chosen(applier == side) for side in (0, 1))


def _read_places(folder: Folder, state: State) -> Places:
    table = folder.read_table(_PLACES, _PLACED)
    by_applier = {name: table.filter(pc.field("applier") == name) for name in state.clusters}
    return {name: {column: own.column(column).to_numpy() for column in PLACES} for name, own in by_applier.items()}


def refuse_other_history(window: Window, manifest: Manifest, schedule: Mapping[str, ScheduleColumns]) -> None:
    """
    Make sure that a History goes on from what an earlier result knows.

    Args:
        window: What that is.
        manifest: What the History holds.
        schedule: Per cluster, the epoch applies of its applier.

    Raises:
        HistoryError: It does not.
    """
    what = _difference(window.state, manifest, schedule)
    if what is not None:
        message = f"the state in {window.folder.uri} is not that of this History: {what}; resolve all again"
        raise HistoryError(message)


def _difference(state: State, manifest: Manifest, schedule: Mapping[str, ScheduleColumns]) -> str | None:
    if list(state.clusters) != list(manifest.clusters) or len(state.buckets) != manifest.buckets:
        return "it has other clusters or buckets"
    for name, own in state.clusters.items():
        if list(manifest.files[name])[: len(own.files)] != own.files:
            return f"it has other binlogs of {name}"
        if digest_of_schedule(schedule[name], own.applied) != own.schedule:
            return f"{name} applied other epochs, or at other places"
    return None
