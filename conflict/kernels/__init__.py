"""
The same semantics as `conflict.engine`, over columns: numpy arrays in, arrays out.

One call folds all changes of all keys of one bucket, in one pass over state arrays indexed by key.
Nothing crosses keys, so buckets are independent.
"""
