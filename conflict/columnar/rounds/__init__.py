"""
Which transactions are in conflict: folding in rounds until nothing changes.
"""
