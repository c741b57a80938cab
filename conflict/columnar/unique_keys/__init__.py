"""
Unique keys besides the primary key, over all buckets.
"""
