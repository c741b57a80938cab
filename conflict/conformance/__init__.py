"""
Judges the engines and the binlog reader by recordings of real clusters.

A case's schema, replication rows, options and steps are input; its expected results are only compared.
"""
