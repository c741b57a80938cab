"""
The buckets of a History, decided by the kernels: setups, order, rounds, stops, and what a bucket writes.
"""
