"""
Foreign keys, over all buckets: whether one of them stops an applier or changes a row.
"""
