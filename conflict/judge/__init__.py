"""
Compares the engines and the binlog reader with recordings of real clusters.

A case's schema, replication rows, options and steps are input; its expected results are only compared.
"""
