"""
Spark: a session, what runs tasks on it, the data sources `ndb_binlog` and `ndb_result`. All else runs without pyspark.
"""

from conflict.extras import imported

imported("pyspark")
