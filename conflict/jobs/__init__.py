"""
The Spark side: the jobs that make and resolve a History, and the `ndb_binlog` data source.

A job's rows are small work descriptions, one task each. A task reads its slice, runs the same code that runs
without Spark, and writes its part itself; only summaries come back.
"""
