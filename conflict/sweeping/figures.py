"""
The figures of a run as the columns of a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["flat_figures"]


def flat_figures(figures: Mapping[str, Any]) -> dict[str, Any]:
    """
    Return the figures of both clusters together, and all others by a name with underscores.

    Args:
        figures: As `conflict.model.report.figures_of` returns them.
    """
    sites = figures["clusters"]
    changes = _sum(sites, "changes")
    lost = _sum(sites, "rejected") + _sum(sites, "overwritten")
    unsettled = _sum(sites, "unsettled")
    most = changes if unsettled else lost  # an unsettled one can also overwrite changes that are settled
    appliers = {name: site["applier"] for name, site in sites.items()}
    sizes = {name: site.get("row_event_bytes", {}) for name, site in sites.items()}
    return {
        "changes": changes,
        "transactions": _sum(sites, "transactions"),
        "conflicts": _sum(appliers, "conflicts"),
        "lost_updates": lost,
        "lost_share": lost / changes if changes else 0.0,
        "lost_updates_at_most": most,
        "lost_share_at_most": most / changes if changes else 0.0,
        "unsettled_changes": unsettled,
        "refreshes": _sum(appliers, "refreshes"),
        "logged_bytes": sum(site["epochs"]["logged_bytes"] for site in sites.values()),
        **{f"row_event_bytes_type_{name}": _sum(sizes, name) for name in next(iter(sizes.values()))},
        "stopped_appliers": sum(each["stopped_at_ms"] is not None for each in appliers.values()),
        **dict(_flat("", {name: each for name, each in figures.items() if name != "clusters"})),
        **dict(_flat("", {name: _without_counters(site) for name, site in sites.items()})),
    }


def _sum(parts: Mapping[str, Mapping[str, Any]], name: str) -> int:
    return int(sum(part[name] for part in parts.values()))


def _without_counters(site: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out the status counters: runs have different ones."""
    return {name: each for name, each in site.items() if name != "counters"}


def _flat(before: str, figures: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in figures.items():
        whole = f"{before}_{name}" if before else str(name)
        if isinstance(value, Mapping):
            yield from _flat(whole, value)
        else:
            yield whole, value
