"""
What happens when changes meet: NDB Cluster's conflict detection and resolution.

Histories in, outcomes out. Importing this package does not import pyspark; only `conflict.jobs` does.
"""
