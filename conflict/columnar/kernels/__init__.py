"""
Compiled loops over the arrays of one bucket.
"""
