"""
Rows, keys and takes to the parts of a grid, and a whole History made in memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

import attrs
import pyarrow as pa

from conflict.bucketing import PartBuilder, TableNumbers
from conflict.grid import (
    CHANGES,
    CONSEQUENCES,
    KEYS,
    STAGED_CHANGES,
    STAGED_CONSEQUENCES,
    TAKES,
    Folder,
    keys_part,
    part,
)
from conflict.history import History, Take, Transaction
from conflict.ingest import BinlogEpoch
from conflict.manifest import Manifest, RunFacts
from ndb_formats.collation import key_text
from ndb_formats.column_types import WireType
from ndb_formats.row_image import layout_of_types

__all__ = ["KeyTask", "number_keys", "takes_table", "write_history", "write_parts"]


@attrs.frozen
class KeyTask:
    """
    One bucket whose keys get numbers.

    Attributes:
        history: Folder of the History.
        bucket: The bucket.
        runs: How many runs each cluster has.
        numbers: The tables.
        types: Wire types of the columns of each table that the runs mention.
    """

    history: Folder
    bucket: int
    runs: dict[str, int]
    numbers: TableNumbers
    types: Mapping[str, tuple[WireType, ...]]


def number_keys(task: KeyTask) -> None:
    """Give the keys of a bucket dense numbers, in the order in which they appear, and write its final parts."""
    history, bucket = task.history, task.bucket
    places = [(cluster, run, bucket) for cluster, runs in task.runs.items() for run in range(runs)]
    kinds = (("changes", STAGED_CHANGES, CHANGES), ("consequences", STAGED_CONSEQUENCES, CONSEQUENCES))
    parts = [
        (part(kind, *place), history.read_table(part(f"staged/{kind}", *place), staged), final)
        for kind, staged, final in kinds
        for place in places
    ]
    identities = pa.chunked_array(
        [chunk for _, table, _ in parts for chunk in table.column("identity").chunks], pa.binary()
    ).combine_chunks()
    encoded = identities.dictionary_encode()
    keys, start = encoded.indices, 0
    for path, table, final in parts:
        if len(table):
            columns = [keys.slice(start, len(table)), *table.drop_columns(["identity"]).columns]
            history.write_table(path, pa.table(columns, schema=final))
        start += len(table)
    values = encoded.dictionary
    tables = [int.from_bytes(value.as_py()[:2], "little") for value in values]
    texts = _key_texts(task, tables, values.to_pylist())
    columns = [range(len(values)), tables, values, texts]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, KEYS, strict=True)]
    history.write_table(keys_part(bucket, 0), pa.table(arrays, schema=KEYS))


def _key_texts(task: KeyTask, tables: Sequence[int], identities: Sequence[bytes]) -> list[str]:
    """Return keys for people to read."""
    layouts = {
        number: layout_of_types(table, task.types[table.full_name])
        for number, table in enumerate(task.numbers.tables)
        if table.full_name in task.types
    }
    texts = []
    for number, identity in zip(tables, identities, strict=True):
        definition, codecs = task.numbers.tables[number], layouts[number].codecs
        ordinals = definition.key_ordinals
        columns = [definition.columns[ordinal] for ordinal in ordinals]
        texts.append(key_text(columns, [codecs[ordinal] for ordinal in ordinals], identity[2:]))
    return texts


def takes_table(takes: Sequence[tuple[str, Take]]) -> pa.Table:
    """Return the takes of both appliers as `TAKES`."""
    rows = [
        (applier, take.source, take.foreign_epoch, take.epoch, take.group, take.traced, take.restarted, *take.arrived)
        for applier, take in takes
    ]
    columns = list(zip(*rows, strict=True)) or [()] * len(TAKES)
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, TAKES, strict=True)], schema=TAKES)


def write_history(
    history: History, numbers: TableNumbers, folder: Folder, *, buckets: int = 1, epochs_per_run: int = 2**31
) -> Manifest:
    """
    Write a History that was made in memory.

    Args:
        history: What happened.
        numbers: Its tables.
        folder: Where it goes.
        buckets: Into how many buckets keys are divided.
        epochs_per_run: How many epochs stand in one run.
    """
    facts: dict[str, tuple[RunFacts, ...]] = {}
    takes: list[tuple[str, Take]] = []
    for cluster in history.clusters:
        transactions = [item for item in cluster.timeline if isinstance(item, Transaction)]
        takes += [(cluster.name, item) for item in cluster.timeline if isinstance(item, Take)]
        epochs = [list(group) for _, group in groupby(transactions, key=lambda transaction: transaction.epoch)]
        runs = [epochs[start : start + epochs_per_run] for start in range(0, len(epochs), epochs_per_run)]
        facts[cluster.name] = tuple(
            _write_run(folder, cluster.name, number, run, PartBuilder(numbers, buckets, ()))
            for number, run in enumerate(runs)
        )
    types = {name: layout.types for name, layout in history.layouts.items()}
    runs_of = {name: len(runs) for name, runs in facts.items()}
    for bucket in range(buckets):
        number_keys(KeyTask(folder, bucket, runs_of, numbers, types))
    folder.delete("staged")
    folder.write_table("takes.parquet", takes_table(takes))
    manifest = Manifest(
        buckets=buckets,
        batches=1,
        clusters={cluster.name: cluster.server_id for cluster in history.clusters},
        files={cluster.name: () for cluster in history.clusters},
        runs=facts,
        types=types,
        resolve_columns=dict(numbers.resolve_columns),
        errors={},
        left_out={},
        assumed=history.assumed,
        last_epochs={name: runs[-1].last_epoch if runs else 0 for name, runs in facts.items()},
        epochs_left_out={},
        changes=sum(run.changes for runs in facts.values() for run in runs),
    )
    folder.write_json("history.json", manifest.to_json())
    return manifest


def _write_run(
    folder: Folder, cluster: str, number: int, epochs: Sequence[Sequence[Transaction]], builder: PartBuilder
) -> RunFacts:
    changes = 0
    for epoch in epochs:
        builder.add(BinlogEpoch(epoch[0].epoch, tuple(epoch), (), ()))
        changes += sum(len(transaction.changes) for transaction in epoch)
    write_parts(folder, cluster, number, builder)
    return RunFacts("", 0, 0, epochs[0][0].epoch, epochs[-1][0].epoch, changes)


def write_parts(folder: Folder, cluster: str, run: int, builder: PartBuilder) -> None:
    """Write the parts of one run, keys still as bytes."""
    for bucket, staged, images, consequences in builder.tables():
        place = (cluster, run, bucket)
        folder.write_table(part("staged/changes", *place), staged)
        folder.write_table(part("staged/consequences", *place), consequences)
        folder.write_table(part("images", *place), images)
