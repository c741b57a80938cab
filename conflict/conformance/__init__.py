"""
Judges the engines by recordings of real clusters.

A case's schema, replication rows, options and steps are input; what it expects never is.
"""
