"""
The columnar engine's compiled loops over the arrays of one bucket.
"""
