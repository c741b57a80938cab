"""A resolver: of two values, the greater one stays."""

import conflict


@conflict.resolver(reads=["values"])
def highest(row: conflict.FoundRow, change: conflict.IncomingChange) -> conflict.Decision:
    """Apply a change that raises v, and reject any other."""
    if not row.exists:
        return conflict.APPLY if change.kind == "write" else conflict.IGNORE
    if change.kind != "delete" and change.new["v"] > row.values["v"]:
        return conflict.APPLY
    return conflict.reject()
