"""Recordings whose binlogs grow, and the content of Histories and results, in whatever files it is."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pyarrow.parquet as pq

from conflict.config.configuration import Configuration
from conflict.config.run_file import load_run_file
from conflict.history.grid.folder import Folder
from conflict.history.grid.manifest import Manifest, read_manifest
from conflict.history.grid.schemas import CHANGES, CONSEQUENCES, IMAGES, KEYS, SCHEDULE, epoch_order, keys_part, part
from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.run import Run
from conflict.history.scheduling.hints import hints_of_run_file, hints_of_steps
from conflict.history.scheduling.schedule import HintsOf
from conflict.history.tasks import Runner, in_process
from conflict.judge.case import ConflictCase
from conflict.runs.ingest_job import Ingested, ingest
from conflict.runs.resolving.resolve_job import resolve_history
from ndb_formats.binlog_reader import read_events
from ndb_formats.constants import EventType
from ndb_formats.events.query_event import decode_query

RECORDINGS = Path(__file__).parents[1] / "recordings"
DEMO = Path(__file__).parents[2] / "conflict" / "demo"
SEGMENT_BYTES = 5000


def commits(file: Path) -> list[int]:
    """Return the positions after which a transaction of a binlog is complete."""
    return [
        event.end
        for event in read_events(file)
        if event.type is EventType.QUERY_EVENT and decode_query(event.body).statement == "COMMIT"
    ]


@attrs.frozen
class Recording:
    """
    A copy of a recording, whose binlogs can be as they were at some time.

    Attributes:
        original: Where it was copied from.
        folder: The copy.
        configuration: The run.
        hints: What is known of the schedule from elsewhere.
    """

    original: Path
    folder: Path
    configuration: Configuration
    hints: HintsOf | None

    @classmethod
    def copy(cls, original: Path, folder: Path) -> Recording:
        """Copy a recorded case, or the demo."""
        shutil.copytree(original, folder)
        return cls.load(original, folder)

    @classmethod
    def load(cls, original: Path, folder: Path) -> Recording:
        """Load an existing copy."""
        if (folder / "run.toml").exists():
            loaded = load_run_file(folder / "run.toml")
            return cls(original, folder, loaded.configuration, partial(hints_of_run_file, loaded))
        case = ConflictCase.load(folder)
        return cls(original, folder, case.configuration(), lambda summaries: hints_of_steps(case.steps, summaries))

    def run(self) -> Run:
        """Return the run, with what is known of its schedule."""
        return make_run(self.configuration, self.hints)

    @property
    def files(self) -> dict[str, Path]:
        """The binlog of each cluster; recordings have one."""
        return {cluster.name: cluster.log.files[0] for cluster in self.configuration.clusters}

    def cut(self, sizes: Mapping[str, int]) -> None:
        """Let binlogs have so many of their bytes."""
        for name, size in sizes.items():
            file = self.files[name]
            file.write_bytes((self.original / file.name).read_bytes()[:size])


def ingested(recording: Recording, history: Folder, runner: Runner = in_process, **options: Any) -> Ingested:
    """Ingest in this process, in several segments."""
    options = {"segment_bytes": SEGMENT_BYTES, "buckets": 2, **options}
    return ingest(runner, recording.run(), history, **options)


def rows_of(history: Folder, manifest: Manifest | None = None) -> dict[str, Any]:
    """
    Return everything that a History holds, keys by their identity, in whatever batches and segments it is.

    Args:
        history: Its folder.
        manifest: What it held when its reader began; by default, what it holds.
    """
    manifest = manifest or read_manifest(history)
    found: dict[str, Any] = {"applies": history.read_table("schedule.parquet", SCHEDULE).to_pylist(), "keys": {}}
    for bucket in range(manifest.buckets):
        keys = history.read_tables((keys_part(bucket, batch) for batch in manifest.batches), KEYS)
        assert keys.column("key").to_pylist() == list(range(len(keys)))
        identities = keys.column("identity").to_pylist()
        found["keys"].update(zip(identities, keys.column("text").to_pylist(), strict=True))
        for cluster in manifest.clusters:
            changes, images, consequences = (
                history.read_tables((part(kind, cluster, bucket, batch) for batch in manifest.batches), schema)
                for kind, schema in (("changes", CHANGES), ("images", IMAGES), ("consequences", CONSEQUENCES))
            )
            order = epoch_order(changes)
            if order is not None:
                changes, images = changes.take(order), images.take(order)
            both = zip(changes.to_pylist(), images.to_pylist(), strict=True)
            for kind, rows in (
                ("changes", [{**row, **image} for row, image in both]),
                ("consequences", consequences.to_pylist()),
            ):
                for row in rows:
                    row["key"] = identities[row["key"]]
                    found.setdefault((kind, cluster, bucket), []).append(row)
    return found


def rows_by_key(history: Folder) -> dict[Any, Any]:
    """Return the rows of a History by cluster, table and key, whatever the numbers of tables are; and the schedule."""
    names, found = list(read_manifest(history).tables), dict[Any, Any]()
    for place, rows in rows_of(history).items():
        if place == "keys":
            found[place] = sorted((names[identity[0]], text) for identity, text in rows.items())
        elif place == "applies":
            found[place] = rows
        else:
            for row in rows:
                table, key = names[row["table"]], row["key"][2:]
                found.setdefault((*place[:2], table, key), []).append({**row, "table": table, "key": key})
    return found


def results(run: Run, history: Folder, out: Folder) -> dict[str, Any]:
    """Resolve a History, and return the summary and the rows of every table of the result."""
    found: dict[str, Any] = {"summary": resolve_history(in_process, run, history, out)}
    for file in Path(out.uri).rglob("*.parquet"):
        rows = pq.read_table(file, partitioning=None).to_pylist()
        name = str(file.relative_to(out.uri).parent)
        found[name] = found.get(name, Counter()) + Counter(str(row) for row in rows)
    return found


def written(history: Folder) -> dict[str, tuple[bytes, int]]:
    """Return bytes and time of every file of a History that is never written again."""
    files = [file for file in Path(history.uri).rglob("*") if file.is_file() and file.parent != Path(history.uri)]
    return {str(file): (file.read_bytes(), file.stat().st_mtime_ns) for file in files}
