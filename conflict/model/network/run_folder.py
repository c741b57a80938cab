"""
A simulation of more than two clusters as a folder that `resolve` takes: binlogs, definitions, a run file.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from pathlib import Path

from conflict.model.logged_groups import row_events
from conflict.model.network.run import Network
from conflict.model.network.station import Epoch, Station
from conflict.model.run import CLOCK_START
from conflict.model.run_folder import applied_entry, stopped_entry, write_documents
from ndb_formats.writing.binlog_writer import BinlogSettings, BinlogWriter

__all__ = ["write_network"]

_FILE = "binlog.000001"


def write_network(
    run: Network,
    folder: Path,
    progress: Callable[[int, int], None] = lambda done, total: None,
    *,
    schedule: bool = True,
) -> None:
    """Write the binlog of each cluster into a folder of its name, and a run file; see `write_run`."""
    total, done, files = sum(len(each.epochs) for each in run.stations), 0, {}
    for station, site in zip(run.stations, run.model.sites, strict=True):
        (folder / site.name).mkdir()
        tables = {name: setup.table for name, setup in station.replayed.setups.items()}
        clock = CLOCK_START - run.start + site.skew
        with (folder / site.name / _FILE).open("wb") as out:
            writer = BinlogWriter(out, BinlogSettings(server_id=site.server_id))
            epochs = _logged(run, station)
            writer.start(clock + (epochs[0].closed if epochs else 0))
            for epoch in epochs:
                events = (event for group in epoch.groups for event in row_events(group, tables))
                writer.write_epoch(epoch.number, events, clock + epoch.closed)
                done += 1
                progress(done, total)
            writer.finish()
        files[site.name] = [f"{site.name}/{_FILE}"]
    lines = [line for station in run.stations for line in _schedule(run, station)] if schedule else []
    write_documents(run.model, run.seed, files, lines, folder)


def _logged(run: Network, station: Station) -> list[Epoch]:
    """Return the epochs in the log of a cluster; if the run ended before all was applied, the open one is the last."""
    if any(group.changes for group in station.open.groups):
        station.open.closed = run.now
        return [*station.epochs, station.open]
    return station.epochs


def _schedule(run: Network, station: Station) -> Iterator[str]:
    """Yield when epochs were applied of which the applier's log shows nothing, and after which it applied no more."""
    if station.source is None:
        return
    name, own = station.site.name, [epoch.number for epoch in _logged(run, station)]
    foreign = [epoch.number for epoch in _logged(run, station.source)]
    for number, epoch, traced in station.applies:
        if not traced or number not in own:
            before = bisect_right(own, number)
            yield from applied_entry(name, epoch, own[before - 1] if before else 0)
    done = station.next_foreign + (station.stopped_at is not None)  # the epoch that stopped it was begun
    if done < len(foreign):
        yield from stopped_entry(name, foreign[done - 1] if done else 0)
