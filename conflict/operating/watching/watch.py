"""
Follows the logs of a run: reads what came, decides what can be decided, appends its records.
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from conflict.config.arguments import StageProgress
from conflict.config.run_file import GivenSchedule, RunFile, matching_files
from conflict.engine.reference.overwritten import OverwriteSearch
from conflict.errors import ConfigurationError, HistoryError
from conflict.history.epochs import BinlogEpoch, EpochReader
from conflict.history.grid.folder import Folder
from conflict.history.grid.whole_files import one_writer
from conflict.history.run import Run
from conflict.operating.watching.clusters import WatchedClusters
from conflict.operating.watching.figures import FigureFile, Figures
from conflict.operating.watching.record_lines import RecordWriter
from conflict.operating.watching.saved import RECORD_FILE, RecordFile, StateOf
from conflict.operating.watching.tail import Extent, Tail
from conflict.operating.watching.unsettled import Unsettled
from conflict.operating.watching.window import LogWindow
from conflict.runs.run_inputs import run_of
from ndb_formats.schema.tables import split_full_name

_SCRATCH = "scratch"  # in the folder of the watch
_STEP = 20_000  # row changes that are read at a time, at most
_PAUSE = 0.1  # seconds between two looks at the files
_SAVED_AFTER = 10.0  # seconds after which the state is written again, at least
_COLLECTIONS = 200_000, 20, 1000  # `gc.set_threshold`
_SAVING = 20  # and so many times as long as that takes


@attrs.define
class WatchState:
    """
    All that a watch knows.

    Attributes:
        tails: By cluster, its log.
        clusters: The clusters as they were decided.
        unsettled: What was decided and can still change.
        extents: By cluster and own epoch that is not settled, where it stands.
        figures: How much was done.
        is_ended: Whether all was decided as if nothing came any more.
    """

    tails: dict[str, Tail]
    clusters: WatchedClusters
    unsettled: Unsettled
    extents: dict[tuple[str, int], Extent] = attrs.field(factory=dict)
    figures: Figures = attrs.field(factory=Figures)
    is_ended: bool = False

    @classmethod
    def of(cls, run: Run) -> WatchState:
        """Return the state before anything was read."""
        names = [cluster.name for cluster in run.clusters]
        tables = frozenset(split_full_name(table.full_name)[1] for table in run.schema.tables)
        window = LogWindow(run, {name: [] for name in names})
        search = OverwriteSearch(
            {name: {table: setup.table for table, setup in run.setups.at_start[name].items()} for name in names}
        )
        tails = {}
        for cluster in run.clusters:
            reader = EpochReader(
                cluster.server_id,
                run.data_schema,
                without_key=True,
                databases=run.databases.of(cluster.name),
                server_id_bits=cluster.server_id_bits,
            )
            tails[cluster.name] = Tail(cluster.name, reader, tables)
        peers = {name: run.links.peer(name).name for name in names}
        return cls(tails, WatchedClusters(window, search), Unsettled(search, peers))


@attrs.define
class Watch:
    """
    A watch.

    Attributes:
        run_file: The run.
        folder: Where the record and the state are.
        of: What its state belongs to.
        state: What it knows.
        record: The record.
        writer: Makes its lines.
        end: Why it cannot go on; None if it can. The next step raises it.
    """

    run_file: RunFile
    folder: Path
    of: StateOf
    state: WatchState
    record: RecordFile
    writer: RecordWriter
    end: HistoryError | None = None
    _saved: float = 0.0
    _cost: float = 0.0

    @classmethod
    def opened(cls, run_file: RunFile, folder: Path) -> Watch:
        """
        Return a watch, as its folder says that it goes on.

        Raises:
            ConfigurationError: The run cannot be watched.
            HistoryError: The folder is that of another watch.
        """
        folder.mkdir(parents=True, exist_ok=True)
        run = run_of(run_file)
        refuse_run(run_file, run)
        # Of the files that were there, nothing more is needed.
        known = attrs.evolve(run, outlines={}, hints_of=None)
        of = StateOf(run_file.text, known)
        state, length = of.load(folder) or (WatchState.of(known), 0)
        if state.is_ended:
            message = f"the watch in {folder} was ended with --until-idle; watch with another --out"
            raise ConfigurationError(message)
        scratch = Folder(str((folder / _SCRATCH).absolute()))
        record = RecordFile.opened(folder / RECORD_FILE, length)
        return cls(run_file, folder, of, state, record, RecordWriter(run, scratch), saved=time.monotonic())

    def step(self, *, ended: bool = False) -> tuple[int, list[bytes]]:
        """
        Read what came, decide what can be decided, and append the records of what is settled.

        Args:
            ended: Whether nothing comes any more.

        Returns:
            How many epochs were read, and the new lines of the record.

        Raises:
            HistoryError: The logs cannot be followed further.
            FormatError: A file cannot be read.
        """
        if self.end is not None:
            raise self.end
        state = self.state
        if not (ended or self._is_there()):
            return 0, []
        read = self._read()
        window = state.clusters.window
        if not window.has_begun or not (read or ended or window.held):
            return read, []
        part = state.clusters.decide(ended=ended)
        state.figures.take(part)
        state.unsettled.take(part)
        settled = list(state.unsettled.settled(ended=ended))
        lines = self.writer.lines(settled, part.history, state.extents)
        self._forget_extents()
        state.is_ended = ended
        state.figures.count(lines)
        self.end = part.end
        return read, self.record.append(lines)

    def _is_there(self) -> bool:
        """Whether no file lacks what records of epochs need that are not settled: it may be cut, or gone for a time."""
        ends: dict[tuple[str, str], int] = {}
        for (name, _), extent in self.state.extents.items():
            ends[name, extent.file] = max(extent.stop, ends.get((name, extent.file), 0))
        files = matching_files(self.run_file)
        sizes = {each: Path(each[1]).stat().st_size if Path(each[1]).exists() else 0 for each in ends}
        # One that is gone, and others follow, was purged: it does not come back.
        purged = {each for each in ends if not sizes[each] and any(str(file) > each[1] for file in files[each[0]])}
        return all(sizes[each] >= end for each, end in ends.items() if each not in purged)

    def _read(self) -> int:
        """Read what came, of the log first that is behind; return how many epochs that were."""
        files, state, count, rows = matching_files(self.run_file), self.state, 0, 0
        feeds = {name: tail.read(files[name]) for name, tail in state.tails.items()}
        found: dict[str, list[BinlogEpoch]] = {name: [] for name in feeds}
        times = {name: state.clusters.window.last_time(name) for name in feeds}
        while feeds and rows < _STEP:
            name = min(feeds, key=lambda each: times[each])
            each = next(feeds[name], None)
            if each is None:
                del feeds[name]
                continue
            epoch = each.epoch
            found[name].append(epoch)
            times[name], count = epoch.committed, count + 1
            rows += sum(len(own.changes) for own in epoch.transactions) + len(epoch.consequences)
            state.extents[name, epoch.number] = each.extent
            state.figures.note(name, epoch)
        for feed in feeds.values():
            feed.close()
        for name, own in found.items():
            state.clusters.window.layouts.update(state.tails[name].reader.layouts)
            state.clusters.window.add(name, own)
        return count

    def _forget_extents(self) -> None:
        """Forget where epochs stand that are settled."""
        for key in [key for key in self.state.extents if self.state.unsettled.is_settled(*key)]:
            del self.state.extents[key]

    def save(self) -> None:
        """Write the state, unless the record is ahead of it: its lines there would be taken for those of this state."""
        if self.catches_up:
            return
        begun = time.monotonic()
        self.of.save(self.folder, self.state, self.record)
        self._saved = time.monotonic()
        self._cost = self._saved - begun

    def save_in_time(self) -> None:
        """Write the state if that was long ago."""
        if time.monotonic() - self._saved > max(_SAVED_AFTER, _SAVING * self._cost):
            self.save()

    @property
    def catches_up(self) -> bool:
        """Whether not all was read yet that was there when the watch went on."""
        return any(self.record.there.values())

    def look(self) -> tuple[bool, list[bytes]]:
        """
        Make a step, and write the state if that was long ago.

        Returns:
            Whether there was anything to read; and the new lines of the record.
        """
        read, lines = self.step()
        if read:
            self.save_in_time()
        elif self._is_there() and not any(tail.waits for tail in self.state.tails.values()):
            self.record.refuse_left()
        return read > 0, lines


class EndOfWatch(Exception):  # noqa: N818  # no error
    """The watch is to end."""


def followed(
    run_file: RunFile, folder: Path, metrics: Path | None, progress: StageProgress, *, until_idle: bool
) -> Iterator[dict[str, Any]]:
    """
    Yield the records of a watch as they are written; see `conflict.watch`.

    Args:
        run_file: The run.
        folder: The folder of the watch.
        metrics: File of its figures; None for none.
        progress: Called after each look at the files; an `EndOfWatch` that it raises ends the watch.
        until_idle: End when all that is there was read.
    """
    figures = FigureFile(metrics)
    with one_writer(folder), _few_collections():
        watch = Watch.opened(run_file, folder)
        try:
            while True:
                read, lines = watch.look()
                yield from map(json.loads, lines)
                figures.write_in_time(watch.state.figures)
                progress("deciding epochs", watch.state.figures.decided, watch.state.figures.read)
                if not read and until_idle:
                    break
                if not read:
                    time.sleep(_PAUSE)
            _, lines = watch.step(ended=True)
            yield from map(json.loads, lines)
            if watch.end is not None:
                raise watch.end
        except EndOfWatch:
            pass
        watch.save()
        figures.write(watch.state.figures)


@contextmanager
def _few_collections() -> Iterator[None]:
    """Let Python look for circles of objects rarely: the rows are many, and make none."""
    before = gc.get_threshold()
    gc.set_threshold(*_COLLECTIONS)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def refuse_run(run_file: RunFile, run: Run) -> None:
    """
    Make sure that a run can be watched.

    Raises:
        ConfigurationError: It cannot.
    """
    why = None
    if not run.links.is_pair:
        why = "other than two clusters that replicate to each other"
    elif any(len(cluster.servers) > 1 for cluster in run.clusters):
        why = "several SQL nodes of one cluster"
    elif run.definitions:
        why = "definitions that change, or tables that only the binlogs define"
    elif run.span.cuts:
        why = "a part of the logs"
    elif run.compressed:
        why = "compressed transactions"
    elif run_file.schedule != GivenSchedule():
        why = "a schedule in the run file"
    if why is not None:
        message = f"watch does not follow {why}; resolve does"
        raise ConfigurationError(message)
