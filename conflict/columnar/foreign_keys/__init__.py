"""
Foreign keys: whether one of them refuses or changes anything, over all buckets.
"""
