"""
Unique keys besides the primary key: which epoch apply gives two rows, in any buckets, the same value.
"""
