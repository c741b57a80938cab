"""
The columns of records, and a batch of them as JSON Lines. Computes docs/records.md.

Other programs rely on them: a column that is added, goes or changes its meaning raises `VERSION`.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from conflict.engine.ledger.layout import OUTCOMES
from conflict.history.grid.schemas import PLACE
from ndb_formats.columnar.lines import JSON_ESCAPES, Piece, escaped, join_lines
from ndb_formats.columnar.value_texts import texts_of

VERSION = 1
CONFLICT, LOST = "conflict", "lost"  # kinds
REJECTED, OVERWRITTEN = "rejected", "overwritten"  # how a change was lost
_WINNER = tuple(name for name in OUTCOMES.names if name.startswith("winner_"))

# A record of a conflict, or of a lost change. The columns of `OUTCOMES` mean what they mean there, but for those of an
# overwritten change, where the applier is that of the change's own cluster.
RECORD = pa.schema(
    [
        ("version", pa.int32()),
        ("kind", pa.string()),
        ("lost", pa.bool_()),
        ("lost_by", pa.string()),
        OUTCOMES.field("time"),
        ("applier", pa.string()),
        *(OUTCOMES.field(name) for name in ("epoch", "source", "source_epoch", "transaction_id")),
        ("server_id", pa.int64()),
        *(OUTCOMES.field(name) for name in PLACE),
        OUTCOMES.field("table"),
        ("key", pa.string()),
        OUTCOMES.field("operation"),
        OUTCOMES.field("refresh"),
        ("function", pa.string()),
        *(OUTCOMES.field(name) for name in ("verdict", "cause", "own_cause", "incoming", "stored")),
        ("overwritten_in", pa.uint64()),
        *(OUTCOMES.field(name) for name in _WINNER),
        ("open", pa.bool_()),
        ("candidates", pa.string()),
        ("before", pa.string()),
        ("after", pa.string()),
    ]
)
# Texts that are JSON themselves.
JSON_TEXTS = frozenset({"key", "candidates", "before", "after"})


@cache
def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a line of JSON Lines."""
    found: dict[str, Any] = json.loads((files(__package__) / "records.schema.json").read_text("utf-8"))
    return found


def moment_texts(moments: pa.Array) -> pa.Array:
    """Return moments as text, as in ISO 8601, with microseconds: 2026-11-20T16:00:15.417477+00:00."""
    return pc.strftime(moments.cast(pa.timestamp("us")), format="%Y-%m-%dT%H:%M:%S+00:00")


def json_lines(batch: pa.RecordBatch) -> bytes:
    """Return records as JSON Lines: an object per record, with all columns."""
    if not len(batch):
        return b""
    lines = np.arange(len(batch))
    pieces = []
    for number, field in enumerate(batch.schema):
        column, quote = batch.column(number), b""
        start = (b", " if number else b"{") + b'"%s": ' % field.name.encode()
        if pa.types.is_timestamp(field.type):
            column, quote = moment_texts(column), b'"'
        texts = texts_of(column.cast(pa.string()))
        if pa.types.is_string(field.type) and field.name not in JSON_TEXTS:
            texts, quote = escaped(texts, JSON_ESCAPES), b'"'
        pieces.append(Piece(lines, texts, start + quote, quote, start + b"null"))
    return join_lines(len(batch), [*pieces, Piece(lines, None, b"}\n")])
