"""
Spark: the jobs that make and resolve a History, and the `ndb_binlog` data source.

A job is a list of small work descriptions, one task each. A task reads its part, runs the same code that runs without
Spark, and writes its part of the result itself; only summaries come back to the driver.
"""
