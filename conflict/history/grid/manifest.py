"""
`history.json`: what a History on disk is made of, and which runs it fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

import attrs

from conflict.config.database_names import DatabaseNames
from conflict.errors import HistoryError
from conflict.history.grid.catalogue import (
    FileFacts,
    catalogue_part,
    damages,
    facts_of,
    read_catalogue,
    refuse_damages,
    write_catalogue,
)
from conflict.history.grid.documents import read_document, write_document
from conflict.history.grid.folder import Folder
from conflict.history.grid.kept_outlines import KeptOutline
from conflict.history.grid.schemas import SCHEDULE_PART, batch_of
from conflict.history.run import Run, TableNumbers, table_definitions
from conflict.history.shown_effects import sorted_texts
from ndb_formats.events.row_image import RowLayout, layout_of_types
from ndb_formats.events.table_map_of_table import wire_type_of
from ndb_formats.schema.tables import Table
from ndb_formats.types.column_types import WireType

MANIFEST = "history.json"
_MOST_BUCKETS = 1 << 20  # 128 TiB of binlog
AGAIN = "Ingest the binlogs again into another folder"


@attrs.frozen
class SegmentFacts:
    """
    One segment of a binlog.

    Attributes:
        file: The binlog file.
        start: First position read.
        stop: Position after the last complete transaction.
        first_epoch: First own epoch; 0 if it has none.
        last_epoch: Last own epoch; 0 if it has none.
        changes: Row changes that the cluster itself made in it.
        images: Which columns the images of these changes carry, by table (see `conflict.history.shown_effects`).
        digest: Digest of the beginning of the file and of the bytes before `stop`, by which the file is recognized.
        marks: Marks of the rows that its applier changed in it, by table (see `conflict.history.roles`).
        keyless: Rows of tables without a primary key in it, of its applier too.
    """

    file: str
    start: int
    stop: int
    first_epoch: int
    last_epoch: int
    changes: int
    images: dict[str, list[str]] = attrs.field(factory=dict)
    digest: str = ""
    marks: dict[str, list[str]] = attrs.field(factory=dict)
    keyless: int = 0


def _joined(segments: Sequence[SegmentFacts]) -> SegmentFacts:
    """Return one segment with what is in all of some, at least one; its place and digest are those of the first."""
    return attrs.evolve(
        segments[0],
        first_epoch=next((each.first_epoch for each in segments if each.last_epoch), 0),
        last_epoch=max(each.last_epoch for each in segments),
        changes=sum(each.changes for each in segments),
        images=sorted_texts(_texts(each.images for each in segments)),
        marks=sorted_texts(_texts(each.marks for each in segments)),
        keyless=sum(each.keyless for each in segments),
    )


def _texts(of_segments: Iterable[Mapping[str, Sequence[str]]]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for own in of_segments:
        for table, texts in own.items():
            found.setdefault(table, set()).update(texts)
    return found


@attrs.frozen(kw_only=True)
class HistorySubject:
    """
    What a History is about. Only the number of buckets changes once the first row is written.

    Attributes:
        buckets: Into how many buckets keys are divided.
        clusters: Server id of each cluster, in order.
        tables: Columns and primary key of each table as text, in the order of table numbers.
        resolve_columns: By table, the column whose values the History keeps beside the images.
        databases: By cluster, the names in `tables` of databases that have other ones in its log.
    """

    buckets: int
    clusters: dict[str, int]
    tables: dict[str, tuple[str, ...]] = attrs.field(repr=False)
    resolve_columns: dict[str, str]
    databases: dict[str, dict[str, str]] = attrs.field(factory=dict)

    def differences(self, run: Run, *, writing: bool) -> list[str]:
        """
        Return in words why a run does not continue the History.

        What statements in newer binlogs added is no difference: further tables, and columns after those of a table.

        Args:
            run: The run.
            writing: Whether the run adds to the History. A run that only resolves it may ignore a resolve column, and
                needs none that is not compared yet.
        """
        tables = table_definitions(run.numbers)
        needed_columns = run.numbers.resolve_columns if writing else run.compared_columns
        found = []
        if self.clusters != run.links.server_ids:
            found.append(f"it is of {_servers(self.clusters)}, not of {_servers(run.links.server_ids)}")
        if not self.tables.keys() <= tables.keys():
            found.append(f"its tables are {_names(self.tables)}, not {_names(tables)}")
        if self.databases != run.databases.own:
            before, now = (each.renamed or "none is" for each in (DatabaseNames(self.databases), run.databases))
            found.append(f"appliers renamed databases otherwise: {before}, not {now}")
        for name in sorted(self.with_rows & tables.keys()):
            columns, others = self.tables[name], tables[name]
            held, wanted = (each.get(name) for each in (self.resolve_columns, needed_columns))
            if others[: len(columns) - 1] + others[-1:] != columns:
                found.append(f"its table {name} is ({', '.join(columns)}), not ({', '.join(others)})")
            if held != wanted and (writing or wanted is not None):
                kept, needed = (f"column {each}" if each else "no column" for each in (held, wanted))
                found.append(f"it keeps {kept} of {name} for a conflict function, not {needed}")
        return found

    @property
    def with_rows(self) -> AbstractSet[str]:
        """The tables that may have rows."""
        return self.tables.keys()


def _servers(clusters: Mapping[str, int]) -> str:
    return " and ".join(f"cluster {name} with server id {server_id}" for name, server_id in clusters.items())


def _names(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


@attrs.frozen(kw_only=True)
class Manifest(HistorySubject):
    """
    A History on disk.

    Attributes:
        batches: Numbers of the batches that row files belong to, in order; every ingest adds one, and may merge the
            last ones into it.
        files: Binlog files per cluster, by number.
        segments: Segments per cluster, in order.
        types: Wire types of the columns of each table that a binlog mentions.
        errors: Per cluster, why its binlogs could not be read to the end.
        left_out: Per cluster, row operations that belong to an incomplete epoch.
        assumed: Per applying cluster, how many foreign epochs stand at an assumed place of its timeline.
        last_epochs: Per cluster, the last own epoch that can be resolved.
        epochs_left_out: Per cluster, how many later own epochs depend on missing epochs of the other cluster.
        changes: Row changes of both clusters up to the last epochs that can be resolved.
        steps: Per cluster, how many changes of definitions stand in its rows.
        listed: What the schedule is, and the catalogue of each batch, in which all other files are listed.
        outlines: What planning needs of files that could be read to their ends.
        merged: Batches that the last ingest merged into its own. Their files stay until the next ingest, for who was
            reading them.
    """

    batches: tuple[int, ...]
    files: dict[str, tuple[str, ...]]
    segments: dict[str, tuple[SegmentFacts, ...]]
    types: dict[str, tuple[WireType, ...]] = attrs.field(repr=False)
    errors: dict[str, str]
    left_out: dict[str, int]
    assumed: dict[str, int]
    last_epochs: dict[str, int]
    epochs_left_out: dict[str, int]
    changes: int
    steps: dict[str, int] = attrs.field(factory=dict)
    listed: tuple[FileFacts, ...] = ()
    merged: tuple[int, ...] = ()
    outlines: tuple[KeptOutline, ...] = attrs.field(default=(), repr=False)

    @property
    def with_rows(self) -> AbstractSet[str]:
        """The tables that may have rows."""
        return self.types.keys()

    @property
    def has_rows_without_key(self) -> bool:
        """Whether tables without a primary key have rows."""
        return any(segment.keyless for own in self.segments.values() for segment in own)

    @property
    def next_batch(self) -> int:
        """The number of the next batch."""
        return self.batches[-1] + 1 if self.batches else 0

    def is_cut(self, cluster: str) -> bool:
        """Whether the binlogs of a cluster go on after its last epoch that can be resolved."""
        return cluster in self.errors or self.epochs_left_out.get(cluster, 0) > 0

    def for_tasks(self) -> Manifest:
        """Return what tasks need of it: one segment for all of a cluster, and no outlines."""
        segments = {name: tuple(map(_joined, [own] if own else [])) for name, own in self.segments.items()}
        return attrs.evolve(self, segments=segments, outlines=())

    def layouts(self, numbers: TableNumbers) -> list[RowLayout | None]:
        """Return the layout of each table, by number; None for a table that no binlog mentions."""
        return [
            layout_of_grown(table, self.types[table.full_name]) if table.full_name in self.types else None
            for table in numbers.tables
        ]


def layout_of_grown(table: Table, types: Sequence[WireType]) -> RowLayout:
    """Return the layout of a table, to which columns may have been added since its rows were read with some types."""
    return layout_of_types(table, (*types, *map(wire_type_of, table.columns[len(types) :])))


def load_manifest(history: Folder) -> Manifest | None:
    """
    Read `history.json`; None if it does not exist.

    Raises:
        HistoryError: It has another format, or contradicts itself.
    """
    manifest = read_document(history, MANIFEST, Manifest)
    if manifest is not None and history.lasts:
        _refuse_contradictions(history, manifest)
    return manifest


def _refuse_contradictions(history: Folder, manifest: Manifest) -> None:
    """Make sure that its parts speak of the same clusters, files and batches."""
    names = manifest.clusters.keys()
    parts = (manifest.files, manifest.segments, manifest.last_epochs)
    segments = ((name, segment) for name in names for segment in manifest.segments.get(name, ()))
    catalogues = map(catalogue_part, manifest.batches)
    whole = (
        all(part.keys() == names for part in parts)
        and 0 < manifest.buckets <= _MOST_BUCKETS
        and all(segment.file in (manifest.files.get(name) or ("",)) for name, segment in segments)  # "": made, not read
        and sorted(each.path for each in manifest.listed) == sorted([*catalogues, SCHEDULE_PART])
        and list(manifest.batches) == sorted(set(manifest.batches))
    )
    if not whole:
        message = f"{history.uri}: {MANIFEST} contradicts itself; ingest the binlogs again into another folder"
        raise HistoryError(message)


def read_manifest(history: Folder) -> Manifest:
    """
    Read `history.json`.

    Raises:
        HistoryError: It does not exist, or it has another format.
    """
    manifest = load_manifest(history)
    if manifest is None:
        message = f"there is no History in {history.uri}; make one with ndb-conflict ingest"
        raise HistoryError(message)
    return manifest


def with_files(history: Folder, manifest: Manifest, batch: int, facts: Iterable[FileFacts]) -> Manifest:
    """Write the catalogue of the files that a batch added, if they last, and return the manifest that lists it."""
    if not history.lasts:
        return manifest
    path = catalogue_part(batch)
    others = (each for each in manifest.listed if each.path != path)
    return attrs.evolve(manifest, listed=(*others, write_catalogue(history, path, facts)))


def with_schedule(history: Folder, manifest: Manifest) -> Manifest:
    """Return the manifest with what `schedule.parquet` is now."""
    others = (each for each in manifest.listed if each.path != SCHEDULE_PART)
    return attrs.evolve(manifest, listed=(*others, *facts_of(history, [SCHEDULE_PART])))


def refuse_damage(history: Folder, manifest: Manifest, *, growing: bool = False) -> None:
    """
    Make sure that a History consists of the files that were written, as they were written.

    Args:
        history: Its folder.
        manifest: What it holds.
        growing: Whether an ingest was cut off: then there may be other files, and another schedule.

    Raises:
        HistoryError: It does not.
    """
    there = history.sizes()
    what, remedy = f"the History in {history.uri}", AGAIN
    listed = [each for each in manifest.listed if not (growing and each.path == SCHEDULE_PART)]
    refuse_damages(what, damages(history, listed, there), remedy)
    parts = (each.path for each in manifest.listed if each.path != SCHEDULE_PART)
    facts = [each for path in parts for each in read_catalogue(history, path)]
    refuse_damages(what, damages(history, facts, there), remedy)
    refuse_damages(what, _unequal(facts), remedy)
    known = {MANIFEST, *(each.path for each in (*facts, *manifest.listed))}
    others = () if growing else sorted(each for each in there.keys() - known if batch_of(each) not in manifest.merged)
    refuse_damages(what, (f"{path} does not belong to it" for path in others), remedy)


def _unequal(facts: Iterable[FileFacts]) -> Iterator[str]:
    """Yield in words which files of images have not a row for each row of `changes`."""
    rows = {each.path: each.rows for each in facts}
    for path, count in rows.items():
        kind, _, rest = path.partition("/")
        images = f"images/{rest}"
        if kind == "changes" and rows.get(images, 0) != count:
            yield f"{path} has {count:,} rows, but {images} has {rows.get(images, 0):,}"


def write_manifest(history: Folder, manifest: Manifest) -> None:
    """Write `history.json`."""
    write_document(history, MANIFEST, manifest)
