"""
The compiled loops over the arrays of one bucket: the reference engine's semantics, per row.
"""
