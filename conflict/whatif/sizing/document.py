"""
The sizes of a log as a document: what ``sizes --json`` writes, and `conflict.sizes` returns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from ndb_formats.rules.formats import FORMATS
from ndb_formats.sizes.report import ChangeSizes, SizeBounds, SizeReport

KINDS = ("insert", "update", "delete")  # as `CHANGES`
_COSTLY = 10


def sizes_json(report: SizeReport, types: Mapping[str, str]) -> dict[str, Any]:
    """
    Return the sizes as a document, all of them in bytes.

    Args:
        report: The sizes.
        types: By table, the binlog type that rows of ``mysql.ndb_replication`` give it; empty without rows.
    """
    return {
        "file_bytes": report.file_bytes,
        "total": report.total,
        "frame": report.frame.bytes,
        "other_events": {name: attrs.asdict(amount) for name, amount in report.others.items()},
        "formats": {form.name: form.title for form in FORMATS},
        "totals": _changes_json(report.changes),
        "configured": {
            "types": dict(types),
            **_bounds_json(_configured_bounds(report, types)),
        }
        if types
        else None,
        "tables": [
            {
                "table": table.name,
                "definition": table.known,
                "table_maps": attrs.asdict(table.maps),
                "changes": {
                    kind: _changes_json(changes)
                    for kind, changes in zip(KINDS, table.changes, strict=True)
                    if changes.rows
                },
            }
            for table in report.tables
        ],
        "columns": [attrs.asdict(cost) | {"bytes": cost.bytes} for cost in report.columns[:_COSTLY]],
        "every_column_set": _orm_costs(report),
        "compression": None if report.compression is None else attrs.asdict(report.compression),
    }


def _changes_json(changes: ChangeSizes) -> dict[str, Any]:
    return {
        "rows": changes.rows,
        "hidden": changes.hidden,
        "logged": attrs.asdict(changes.logged),
        "formats": {form.name: _bounds_json(bounds) for form, bounds in zip(FORMATS, changes.formats, strict=True)},
    }


def _bounds_json(bounds: SizeBounds) -> dict[str, Any]:
    return {
        "least": attrs.asdict(bounds.least),
        "most": attrs.asdict(bounds.most),
        "rows_lacking_values": bounds.lacking,
    }


def _configured_bounds(report: SizeReport, types: Mapping[str, str]) -> SizeBounds:
    """Return what all tables take, each with its own binlog type; those without one as logged."""
    numbers = {form.name: number for number, form in enumerate(FORMATS)}
    bounds = SizeBounds()
    for table in report.tables:
        changes, own = table.all_changes, types.get(table.name)
        bounds += SizeBounds(changes.logged, changes.logged) if own is None else changes.formats[numbers[own]]
    return bounds


def _orm_costs(report: SizeReport) -> dict[str, int]:
    """
    Return, by format, the bytes that updates cost more if each sets every column, and not only those that change.

    Updates without a before image to compare are left out; so are those whose columns the log tells.
    """
    updates = [table.changes[KINDS.index("update")] for table in report.tables]
    compared = sum((each for each in updates if each.hidden and not each.uncompared), ChangeSizes())
    return {
        form.name: bounds.most.bytes - bounds.least.bytes
        for form, bounds in zip(FORMATS, compared.formats, strict=True)
    }
