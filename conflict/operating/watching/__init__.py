"""
Follows logs that grow, and appends a record of each conflict and lost change as soon as it cannot change any more.
"""
