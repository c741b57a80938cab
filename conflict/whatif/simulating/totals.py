"""
The figures of all clusters of a run together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def totals_of(figures: Mapping[str, Any]) -> dict[str, Any]:
    """
    Return the figures of all clusters together; see `conflict.whatif.simulating.measured.RunFigures`.

    Args:
        figures: As `conflict.whatif.simulating.report.figures_of` returns them.
    """
    sites = figures["clusters"]
    changes = total(sites, "changes")
    lost = total(sites, "rejected") + total(sites, "overwritten")
    unsettled = total(sites, "unsettled")
    most = changes if unsettled else lost  # an unsettled one can also overwrite changes that are settled
    appliers = {name: site["applier"] for name, site in sites.items()}
    return {
        "changes": changes,
        "transactions": total(sites, "transactions"),
        "conflicts": total(appliers, "conflicts"),
        "lost_updates": lost,
        "lost_share": lost / changes if changes else 0.0,
        "lost_updates_at_most": most,
        "lost_share_at_most": most / changes if changes else 0.0,
        "unsettled_changes": unsettled,
        "refreshes": total(appliers, "refreshes"),
        "logged_bytes": sum(site["epochs"]["logged_bytes"] for site in sites.values()),
        "stopped_appliers": sum(each["stopped_at_ms"] is not None for each in appliers.values()),
    }


def total(parts: Mapping[str, Mapping[str, Any]], name: str) -> int:
    """Return the sum of a figure of all clusters."""
    return int(sum(part[name] for part in parts.values()))
