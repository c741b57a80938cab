"""
Workloads to begin with. A file that names one lays its own entries over it.
"""

from __future__ import annotations

__all__ = ["PRESETS"]

PRESETS = {
    # Transfers between two accounts: both rows are read, and written after a while if nobody changed them.
    "bank": """
        [[tables]]
        name = "accounts"
        recordcount = 100_000
        columns = 2
        [[tables]]
        name = "transfers"
        recordcount = 0
        columns = 4
        [workload]
        transactions_per_second = 200
        transactions = [[1, [["update", "accounts"], ["update", "accounts"], ["insert", "transfers"]]]]
        think_ms = 20
        check_reads = true
        retries = 3
        retry_delay_ms = 10
        affinity = 0.8
    """,
    # Orders take from stock; few articles sell most.
    "inventory": """
        [[tables]]
        name = "stock"
        recordcount = 10_000
        columns = 3
        [[tables]]
        name = "orders"
        recordcount = 0
        columns = 6
        [workload]
        transactions_per_second = 100
        transactions = [
            [6, [["update", "stock"], ["insert", "orders"]]],
            [3, [["update", "stock"], ["update", "stock"], ["insert", "orders"]]],
            [1, [["update", "stock"]]],
        ]
        requestdistribution = "zipfian"
    """,
    # Sessions are made, touched and removed, mostly where their user is; an ORM writes whole rows.
    "sessions": """
        [[tables]]
        name = "sessions"
        recordcount = 50_000
        columns = 5
        [workload]
        transactions_per_second = 500
        transactions = [[90, [["put", "sessions"]]], [10, [["swap", "sessions"]]]]
        columnsperupdate = "all"
        affinity = 0.95
    """,
    # A few counters that everybody raises.
    "counters": """
        [[tables]]
        name = "counters"
        recordcount = 200
        columns = 1
        x = "version"
        [workload]
        transactions_per_second = 100
        requestdistribution = "hotspot"
        hotspotdatafraction = 0.1
        hotspotopnfraction = 0.9
    """,
}
