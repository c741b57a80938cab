"""
Which transactions are in conflict: fold all buckets, add dependent transactions, and repeat until nothing changes.
"""
