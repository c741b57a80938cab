"""
A simulation as a folder that `resolve` takes: binlogs, definitions, and a run file with the schedule.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from conflict.errors import ConfigurationError
from conflict.history.grid.whole_files import put_back, whole_folder
from conflict.rules.functions import FUNCTIONS
from conflict.whatif.simulating.binlogs import write_binlogs
from conflict.whatif.simulating.configuration import DATABASE, Model, source_of
from conflict.whatif.simulating.logged_rows import logged_epochs, shown_applies
from conflict.whatif.simulating.run import Simulated

RUN_FILE = "run.toml"
_SCHEMA = "schema.sql"
_FIRST_LINE = "# A simulation, seed "  # tells that a folder may be replaced


def check_run_folder(target: Path, *, replace: bool) -> None:
    """
    Make sure, before the work, that a run may be written.

    Raises:
        ConfigurationError: Something is there, and it may not be replaced or is no run of a simulation.
    """
    _refuse_what_is_there(target, replace=replace, before=put_back(target))


def _refuse_what_is_there(target: Path, *, replace: bool, before: str = "") -> None:
    if not target.exists():
        return
    if not replace:
        message = f"{target} exists already{before}; give another folder, or replace the binlogs in it with --force"
        raise ConfigurationError(message)
    run_file = target / RUN_FILE
    if not run_file.is_file() or not run_file.read_text("utf-8", "replace").startswith(_FIRST_LINE):
        message = f"{target} exists already and holds no binlogs of a simulation, which is all that --force replaces"
        raise ConfigurationError(message)


@contextlib.contextmanager
def run_folder(target: Path, *, replace: bool = False) -> Iterator[Path]:
    """
    Give a folder for `write_run`, and put it in place of `target` only if nothing went wrong.

    Raises:
        ConfigurationError: As for `check_run_folder`.
    """
    with whole_folder(target, lambda: _refuse_what_is_there(target, replace=replace)) as work:
        yield work


def write_run(
    run: Simulated,
    folder: Path,
    progress: Callable[[int, int], None] = lambda done, total: None,
    *,
    schedule: bool = True,
) -> None:
    """
    Write the binlogs of the clusters, and a run file for them.

    Args:
        run: The simulation.
        folder: Where they go; it exists, and is empty.
        progress: As for `conflict.whatif.simulating.binlogs.write_binlogs`.
        schedule: Whether the run file says when the epochs were applied that left no trace in the binlogs.
    """
    files = write_binlogs(run, folder, progress)
    (folder / _SCHEMA).write_text("".join(table.definition + "\n" for table in run.model.tables), "utf-8")
    lines = [f"{_FIRST_LINE}{run.seed}.", *_configuration(run.model, files), *(_schedule(run) if schedule else ())]
    (folder / RUN_FILE).write_text("\n".join(lines) + "\n", "utf-8")


def _configuration(model: Model, files: Mapping[str, Sequence[str]]) -> Iterator[str]:
    yield f'schema = "{_SCHEMA}"'
    yield f'database = "{DATABASE}"'
    yield 'start = "empty"'
    for site in model.sites:
        yield f"\n[clusters.{json.dumps(site.name)}]"
        yield f"server_id = {site.server_id}"
        yield f"binlogs = {json.dumps(files[site.name])}"
        yield f'role = "{site.role}"'
        if site.replicates_from is not None:
            yield f"replicates_from = {json.dumps(site.replicates_from)}"
    for table in model.tables:
        for site in model.sites:
            yield "\n[[ndb_replication]]"
            yield f'db = "{DATABASE}"'
            yield f'table_name = "{table.name}"'
            yield f"server_id = {site.server_id}"
            yield f"binlog_type = {table.binlog_type}"
            if site.name in table.functions:
                yield f"conflict_fn = {json.dumps(table.functions[site.name])}"
    for spec in model.functions:
        if spec not in FUNCTIONS:
            yield "\n[[conflict_function]]"
            cells = {"write": spec.write, "update": spec.update, "delete": spec.delete}
            yield f"name = {json.dumps(spec.name)}"
            yield from (f'{operation} = "{cell.words}"' for operation, cell in cells.items())


def _schedule(run: Simulated) -> Iterator[str]:
    """Yield when epochs were applied that left nothing in the applier's log, and after which it applied no more."""
    for side, site in enumerate(run.model.sites):
        source = source_of(run.model, side)
        if source is None:
            continue
        own, foreign = (logged_epochs(run, each)["number"] for each in (side, source))
        applies, (_, hidden) = run.world.schedule.applies, shown_applies(run, side, logged_epochs(run, side))
        for apply in applies[hidden]:
            yield from _applied(site.name, int(apply["foreign_epoch"]), own, int(apply["epoch"]))
        state = run.world.site[side]
        done = int(state["next_foreign"])
        if state["stopped"]:  # the epoch that stopped it was begun
            yield from _applied(site.name, int(foreign[done]), own, int(state["stop_epoch"]))
            done += 1
        if done < len(foreign):
            yield from _stopped_entry(site.name, int(foreign[done - 1]) if done else 0)


def _applied(applier: str, epoch: int, own: np.ndarray, during: int) -> Iterator[str]:
    """Yield an entry for an epoch that was applied in an own epoch; it counts from the last logged one until then."""
    before = int(np.searchsorted(own, np.uint64(during), "right"))
    yield from _applied_entry(applier, epoch, int(own[before - 1]) if before else 0)


def _applied_entry(applier: str, epoch: int, after: int) -> Iterator[str]:
    """Yield the lines that say after which own epoch an applier applied one of its source."""
    yield "\n[[schedule.applied]]"
    yield f'applier = "{applier}"'
    yield f"epoch = {epoch}"
    yield f"after_epoch = {after}"


def _stopped_entry(applier: str, after: int) -> Iterator[str]:
    """Yield the lines that say after which epoch of its source an applier applied nothing more."""
    yield "\n[[schedule.stopped]]"
    yield f'applier = "{applier}"'
    yield f"after_epoch = {after}"
