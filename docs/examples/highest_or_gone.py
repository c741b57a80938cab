"""A resolver: of two values, the greater one stays, and a delete wins over both."""

import conflict
from docs.examples.highest import highest


@conflict.resolver(reads=["values"])
def highest_or_gone(row: conflict.FoundRow, change: conflict.IncomingChange) -> conflict.Decision:
    """Apply a delete; else decide as `highest`."""
    return conflict.APPLY if change.kind == "delete" and row.exists else highest(row, change)
