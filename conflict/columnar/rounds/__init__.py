"""
Which transactions are in conflict: the fixed point of folding all buckets and closing over dependencies.
"""
