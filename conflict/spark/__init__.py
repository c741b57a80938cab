"""
Spark: a session, what runs tasks on it, and the `ndb_binlog` data source. All else runs without pyspark.
"""

from conflict.extras import imported

imported("pyspark")
