"""
Exhaustive search of small scopes for the shortest schedule that parts two clusters.
"""
