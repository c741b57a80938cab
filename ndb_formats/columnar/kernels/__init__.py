"""
Loops compiled by numba: over the bytes of events, and over arrays of offsets into them.

Arguments are arrays and numbers only; results go into arrays that the caller has allocated.
"""
