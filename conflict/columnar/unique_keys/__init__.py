"""
Unique keys besides the primary key: which epoch apply makes two rows, in any buckets, have one value.
"""
